"use strict";
// One namespace for all files of the page; each adds what the later ones need.
const onlooker = {};

(() => {
  const SVG = "http://www.w3.org/2000/svg";

  // A number and its unit stay on one line.
  const joined = (text) => text.replace(/(\d) (?=(%|km)(?![\w-]))|([<>±]) (?=\d)/g, "$1$3\u00a0");

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) => (typeof child === "string" && node.namespaceURI !== SVG ? joined(child) : child)));
    return node;
  }

  onlooker.el = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
  onlooker.svg = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  // Text whose options, such as --draws, stay whole at the end of a line.
  onlooker.unbroken = (text) => text.split(/(--[a-z-]+)/).map((part) => (part.startsWith("--") ? onlooker.el("span", { class: "option" }, part) : part));
  onlooker.byId = (id) => document.getElementById(id);
  onlooker.put = (node, ...children) => {
    node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  };

  const KINDS = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

  onlooker.bytes = (text) => {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  };

  // {dtype, shape, data} -> {values, shape}; null stays null.
  onlooker.unpack = (packed) => {
    if (!packed) return null;
    return { values: new KINDS[packed.dtype](onlooker.bytes(packed.data).buffer), shape: packed.shape };
  };

  onlooker.number = (x, digits = 3) => {
    if (x === null || x === undefined || Number.isNaN(x)) return "–";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    let text;
    if (size >= 1e6 || size < 1e-4) text = x.toExponential(digits - 1);
    else if (size >= 1000 || Number.isInteger(x)) text = Math.round(x).toLocaleString("en-US");
    else text = String(Number(x.toPrecision(digits)));
    return text.replace("-", "−");
  };
  // At most so many digits after the point, without zeros at the end.
  onlooker.fixed = (x, decimals) => {
    const text = Number(x.toFixed(decimals)).toLocaleString("en-US", { maximumFractionDigits: decimals });
    return (text === "-0" ? "0" : text).replace("-", "−");
  };
  // A time as it is told on the command line too: a date without seconds that are 0, in UTC.
  onlooker.timeText = (value, clock) => {
    if (clock === "number") return `time ${value}`;
    if (clock === "duration") return `${onlooker.number(value / 1000)} s`;
    const date = new Date(value);
    return Number.isNaN(date.getTime()) ? "no date" : date.toISOString().slice(0, 19).replace("T", " ").replace(/:00$/, "");
  };
  // A longitude (k = 0) or a latitude in degrees and the side it is on.
  onlooker.degrees = (x, k, text) => {
    const value = k === 0 ? x - 360 * Math.floor((x + 180) / 360) : x;
    const side = value === 0 || Math.abs(value) === 180 ? "" : ["EW", "NS"][k][value < 0 ? 1 : 0];
    return `${text(Math.abs(value))}°${side}`;
  };
  onlooker.EARTH_RADIUS = 6371.0088; // km
  onlooker.percent = (x) => {
    const space = "\u00a0"; // a number and its unit stay on one line
    if (x > 0 && x < 0.005) return `<${space}1${space}%`;
    if (x < 1 && x > 0.995) return `>${space}99${space}%`;
    return `${Math.round(100 * x)}${space}%`;
  };
  onlooker.plural = (n, one, many) => `${onlooker.number(n)} ${n === 1 ? one : many}`;

  // About `count` round numbers that span [low, high].
  onlooker.ticks = (low, high, count) => {
    const span = high - low;
    if (!(span > 0)) return [low];
    const rough = span / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) {
      out.push(Number((k * step).toPrecision(12)));
    }
    return out;
  };

  // A tiny store: one object that everybody reads, and a word to all when some of it changes.
  const listeners = [];
  onlooker.state = {
    run: 0, other: null, x: 0, y: 1, colour: "cluster", field: "arrows", behaviours: true, paths: false,
    frame: null, highlight: null, picked: null, trajectory: null, step: null,
  };
  onlooker.listen = (names, act) => listeners.push([names, act]);
  onlooker.set = (changes) => {
    const changed = Object.keys(changes).filter((name) => onlooker.state[name] !== changes[name]);
    Object.assign(onlooker.state, changes);
    for (const [names, act] of listeners) if (names.some((name) => changed.includes(name))) act();
  };
  // For what changed inside, such as a run that has grown.
  onlooker.announce = (name) => {
    for (const [names, act] of listeners) if (names.includes(name)) act();
  };
})();
