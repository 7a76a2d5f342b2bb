"use strict";
// Small charts as SVG; each takes a width in pixels and gives a node.
(() => {
  const { svg, number, percent, ticks } = onlooker;
  const line = (x1, y1, x2, y2, stroke, width = 1) => svg("line", { x1, y1, x2, y2, stroke, "stroke-width": width });
  const text = (x, y, words, anchor = "middle", kind = "soft") => svg("text", { x, y, "text-anchor": anchor, class: kind }, words);

  const MOST_BARS = 6; // actions that are listed where names are long

  function frame(width, height, label, ...children) {
    return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      svg("title", {}, label), children);
  }

  // Probabilities of actions with their interval; `other` are a second run's means.
  onlooker.actionBars = (width, { mean, low, high, other, names, height = 150 }) => {
    if (names.some((name) => name.length > 5)) return likeliestBars(width, { mean, low, high, other, names });
    const ink = onlooker.ink();
    const left = 34;
    const n = mean.length;
    const every = Math.max(1, Math.ceil((n * 34) / (width - left)));
    const top = Math.max(0.05, ...(high || mean), ...(other || []));
    const step = (width - left - 4) / n;
    const y = (p) => 8 + (height - 30) * (1 - p / top);
    const parts = ticks(0, top, 3).map((p) => [
      line(left, y(p), width - 4, y(p), ink.line, 0.7), text(left - 4, y(p) + 4, percent(p), "end"),
    ]);
    for (let j = 0; j < n; j++) {
      const x = left + step * j;
      parts.push(svg("rect", {
        x: x + step * 0.12, y: y(mean[j]), width: step * 0.76, height: Math.max(0, y(0) - y(mean[j])), fill: ink.accent, opacity: 0.75,
      }, svg("title", {}, `${names[j]}: ${percent(mean[j])}${low ? `, ${percent(low[j])} to ${percent(high[j])}` : ""}`)));
      if (low) parts.push(line(x + step / 2, y(low[j]), x + step / 2, y(high[j]), ink.ink, Math.min(2, step * 0.3)));
      if (other) parts.push(line(x + step * 0.05, y(other[j]), x + step * 0.95, y(other[j]), onlooker.isDark() ? "#F0712C" : "#D55E00", 2.5));
      if (j % every === 0) parts.push(text(x + step / 2, height - 8, names[j]));
    }
    const likely = mean.indexOf(Math.max(...mean));
    return frame(width, height, `Action probabilities; the likeliest is ${names[likely]} with ${percent(mean[likely])}`, parts);
  };

  // The likeliest ones, a line each, where names need room.
  function likeliestBars(width, { mean, low, high, other, names }) {
    const ink = onlooker.ink();
    const shown = mean.map((p, j) => j).sort((a, b) => mean[b] - mean[a]).slice(0, MOST_BARS);
    const label = Math.min(0.45 * width, 8 + 7.6 * Math.max(...shown.map((j) => names[j].length)));
    const top = Math.max(0.05, ...shown.flatMap((j) => [mean[j], high ? high[j] : 0, other ? other[j] : 0]));
    const x = (p) => label + ((width - label - 42) * p) / top;
    const parts = shown.flatMap((j, row) => {
      const y = 22 * row + 2;
      const said = `${names[j]}: ${percent(mean[j])}${low ? `, ${percent(low[j])} to ${percent(high[j])}` : ""}`;
      return [
        text(label - 6, y + 13, names[j], "end"),
        svg("rect", { x: label, y: y + 2, width: Math.max(0.7, x(mean[j]) - label), height: 14, fill: ink.accent, opacity: 0.75 }, svg("title", {}, said)),
        low ? line(x(low[j]), y + 9, x(high[j]), y + 9, ink.ink, 2) : null,
        other ? line(x(other[j]), y, x(other[j]), y + 18, onlooker.isDark() ? "#F0712C" : "#D55E00", 2.5) : null,
        text(width - 2, y + 13, percent(mean[j]), "end"),
      ];
    });
    const rest = mean.length - shown.length;
    if (rest > 0) {
      const share = 1 - shown.reduce((sum, j) => sum + mean[j], 0);
      parts.push(text(label, 22 * shown.length + 15, `${onlooker.plural(rest, "other", "others")}: ${percent(Math.max(0, share))}`, "start"));
    }
    return frame(width, 22 * (shown.length + (rest > 0)) + 4, `Action probabilities; the likeliest is ${names[shown[0]]} with ${percent(mean[shown[0]])}`, parts);
  }

  // The same as a rose, where actions are directions in a plane.
  onlooker.roseChart = (run, policy, size = 120) => {
    const ink = onlooker.ink();
    const surface = new onlooker.SvgSurface(size, size);
    const reach = size / 2 - 3;
    surface.rose(size / 2, size / 2, onlooker.petals(run, policy, reach), reach, ink.accent, ink.line);
    const words = "Rose of directions: petals point from the middle to where actions lead; the longer, the likelier";
    const chart = svg("svg", { class: "rose", viewBox: `0 0 ${size} ${size}`, width: size, height: size, role: "img", "aria-label": words }, svg("title", {}, words));
    chart.append(...surface.nodes());
    return chart;
  };
  onlooker.hasRose = (run) => Boolean(run.space.moves && run.space.n_position === 2);

  onlooker.histogram = (width, counts) => {
    const ink = onlooker.ink();
    const height = 190;
    const left = 40;
    const first = counts[0].k;
    const last = counts[counts.length - 1].k;
    const n = last - first + 1;
    const top = Math.max(...counts.map((c) => c.share));
    const step = Math.min(48, (width - left - 6) / n);
    const y = (p) => 10 + (height - 48) * (1 - p / top);
    const every = Math.max(1, Math.ceil(26 / step));
    const parts = ticks(0, top, 3).map((p) => [
      line(left, y(p), left + step * n, y(p), ink.line, 0.7), text(left - 4, y(p) + 4, percent(p), "end"),
    ]);
    for (const { k, share } of counts) {
      const x = left + step * (k - first);
      parts.push(svg("rect", { x: x + step * 0.08, y: y(share), width: step * 0.84, height: y(0) - y(share), fill: ink.accent },
        svg("title", {}, `${k} controllers: ${percent(share)}`)));
    }
    for (let k = first; k <= last; k += every) parts.push(text(left + step * (k - first + 0.5), height - 22, String(k)));
    parts.push(text(left + (step * n) / 2, height - 5, "controllers"));
    return frame(width, height, "Posterior of the number of controllers", parts);
  };

  // Chains over draws; long ones are thinned to what pixels can show, by their extremes.
  onlooker.trace = (width, { values, shape }, step, label, chains) => {
    const ink = onlooker.ink();
    const height = 120;
    const left = 46;
    const [nChains, n] = shape;
    let low = Infinity;
    let high = -Infinity;
    for (const v of values) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const x = (t) => left + ((width - left - 6) * t) / Math.max(1, n - 1);
    const y = (v) => 8 + (height - 30) * (1 - (v - low) / (high - low));
    const parts = ticks(low, high, 3).map((v) => [
      line(left, y(v), width - 6, y(v), ink.line, 0.7), text(left - 4, y(v) + 4, number(v, 3), "end"),
    ]);
    const bucket = Math.max(1, Math.floor(n / (width - left)));
    for (let c = 0; c < nChains; c++) {
      let d = "";
      for (let t = 0; t < n; t += bucket) {
        let [least, most] = [Infinity, -Infinity];
        for (let u = t; u < Math.min(n, t + bucket); u++) {
          const v = values[c * n + u];
          least = Math.min(least, v);
          most = Math.max(most, v);
        }
        d += `${d ? "L" : "M"}${x(t).toFixed(1)} ${y(most).toFixed(1)}`;
        if (least !== most) d += `L${x(t).toFixed(1)} ${y(least).toFixed(1)}`;
      }
      parts.push(svg("path", { d, fill: "none", stroke: onlooker.chainColour(c), "stroke-width": 1, opacity: 0.85 },
        svg("title", {}, `chain ${chains[c]}`)));
    }
    parts.push(text(left, height - 5, "draw 0", "start"), text(width - 6, height - 5, number((n - 1) * step), "end"));
    return frame(width, height, `Trace of the ${label}`, parts);
  };

  // Surprise along a trajectory; `pick(t)` is told which step is pointed at.
  onlooker.surpriseChart = (width, run, path, chosen, pick) => {
    const { surprise, expected, action, share } = path;
    const ink = onlooker.ink();
    const alarm = onlooker.isDark() ? "#F0712C" : "#D55E00";
    const odd = run.odd(path);
    const height = 140;
    const left = 42;
    const { typical, unusual } = run.steps;
    const low = Math.min(typical, ...surprise, ...(expected || []));
    const high = Math.max(typical, expected ? -Infinity : unusual, ...surprise, ...(expected || [])) + 1e-9;
    const step = (width - left - 4) / surprise.length;
    const y = (v) => 8 + (height - 32) * (1 - (v - low) / (high - low));
    const parts = ticks(low, high, 3).map((v) => [
      line(left, y(v), width - 4, y(v), ink.line, 0.7), text(left - 4, y(v) + 4, number(v, 3), "end"),
    ]);
    surprise.forEach((v, t) => parts.push(svg("rect", {
      x: left + step * t, y: Math.min(y(v), height - 27), width: Math.max(0.7, step * 0.9), height: Math.max(1.5, y(low) - y(v)),
      fill: t === chosen ? ink.ink : odd[t] ? alarm : ink.accent,
    }, svg("title", {}, `step ${t}: surprise ${number(v)}; ${run.actions[action[t]]} in ${percent(share[t])} of draws`))));
    if (expected) {
      const d = expected.map((v, t) => `M${(left + step * t).toFixed(1)} ${y(v).toFixed(1)}h${(0.9 * step).toFixed(1)}`).join("");
      parts.push(svg("path", { d, stroke: ink.ink, "stroke-width": 1.6, fill: "none" }));
    } else parts.push(svg("line", { x1: left, x2: width - 4, y1: y(unusual), y2: y(unusual), stroke: alarm, "stroke-dasharray": "5 4" }));
    parts.push(text(left, height - 6, "step 0", "start"), text(width - 4, height - 6, String(surprise.length - 1), "end"));
    const chart = frame(width, height, "Surprise at every step of the trajectory", parts);
    const at = (event) => {
      const box = chart.getBoundingClientRect();
      const t = Math.floor((((event.clientX - box.left) / box.width) * width - left) / step);
      return t >= 0 && t < surprise.length ? t : null;
    };
    chart.addEventListener("pointerdown", (event) => pick(at(event)));
    return chart;
  };

  // Shares of clusters as bars with their signs.
  onlooker.shareBars = (items, nReference) => {
    const ink = onlooker.ink();
    return onlooker.el("ul", { class: "plain" }, items.map(({ cluster, share }) => {
      const bar = svg("svg", { width: 120, height: 10, "aria-hidden": "true" },
        svg("rect", { width: 120, height: 10, rx: 2, fill: ink.line }),
        svg("rect", { width: Math.max(1, 120 * share), height: 10, rx: 2, fill: ink.accent }));
      const sign = cluster < 0 ? null : onlooker.sign(cluster, nReference);
      return onlooker.el("li", { class: "chip" }, sign, cluster < 0 ? "one of its own" : `controller ${cluster + 1}`, bar, percent(share));
    }));
  };

  onlooker.widthOf = (node) => Math.max(220, Math.min(900, node.clientWidth || 320));
})();
