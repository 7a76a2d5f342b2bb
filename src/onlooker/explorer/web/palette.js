"use strict";
// Colours that colour-blind readers can tell apart, and shapes where colours run out.
(() => {
  // Okabe and Ito's, with wine in place of black; brightened where paper is dark.
  const LIGHT = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#882255"];
  const DARK = ["#E69F00", "#56B4E9", "#17B98B", "#F0E442", "#3F8FDB", "#F0712C", "#DD8FBB", "#B8548C"];
  const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "drop"];
  // Cividis (Nuñez, Anderton and Renslow, 2018) at nine places.
  const CIVIDIS = [
    [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 134, 120], [165, 156, 116], [195, 179, 105], [254, 232, 56],
  ];

  onlooker.isDark = () => document.documentElement.dataset.theme === "dark";

  // How a cluster looks in every picture: colour and shape of its name, hollow if a splinter.
  onlooker.look = (name, nReference) => {
    const palette = onlooker.isDark() ? DARK : LIGHT;
    return {
      fill: palette[name % palette.length],
      shape: SHAPES[Math.floor(name / palette.length) % SHAPES.length],
      hollow: name >= nReference,
    };
  };
  onlooker.chainColour = (k) => (onlooker.isDark() ? DARK : LIGHT)[[4, 5, 2, 6, 0, 1, 7, 3][k % 8]];

  onlooker.ramp = (share) => {
    if (!Number.isFinite(share)) return onlooker.isDark() ? "#3a424c" : "#d5dae0";
    const at = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
    const k = Math.min(CIVIDIS.length - 2, Math.floor(at));
    const mix = CIVIDIS[k].map((c, i) => Math.round(c + (at - k) * (CIVIDIS[k + 1][i] - c)));
    return `rgb(${mix.join(",")})`;
  };

  // Of a colour as #rrggbb or rgb(r,g,b).
  const parts = (text) => (text.startsWith("#") ? [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)) : text.match(/\d+/g).map(Number));
  // A colour with so much of another in it.
  onlooker.mix = (colour, other, share) => {
    const [a, b] = [parts(colour), parts(other)];
    return `#${a.map((c, k) => Math.round(c + share * (b[k] - c)).toString(16).padStart(2, "0")).join("")}`;
  };

  // What can be read on a colour.
  onlooker.readableOn = (colour) => {
    const [r, g, b] = parts(colour);
    return 0.299 * r + 0.587 * g + 0.114 * b > 110 ? "#10151a" : "#e8ecf0";
  };

  onlooker.ink = () => {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), soft: read("--soft"), line: read("--line"), card: read("--card"), accent: read("--accent") };
  };

  // A cluster's sign for legends and texts.
  onlooker.sign = (name, nReference, size = 14) => {
    const look = onlooker.look(name, nReference);
    const surface = new onlooker.SvgSurface(size, size);
    surface.marker(look.shape, size / 2, size / 2, size / 2 - 2, look.fill, onlooker.ink().soft, look.hollow);
    const node = onlooker.svg("svg", { width: size, height: size, "aria-hidden": "true" });
    node.append(...surface.nodes());
    return node;
  };
})();
