"use strict";
// The picture of the state space: points or cells, the policy on top, trajectories, a cursor.
(() => {
  const MARGIN = { left: 52, right: 14, top: 12, bottom: 40 };
  const BIN = 38; // pixels between arrows
  const NEAR = 7; // pixels within which a click means the node
  const MOST_ZOOM = 400;

  // Axes that a run can be drawn along; `dim` is set where a click means a coordinate.
  onlooker.axesOf = (run) => {
    const d = run.space.sites.shape[1];
    const value = (k) => (site) => run.space.sites.values[site * d + k];
    const axes = run.space.axes.map((name, k) => ({ name, dim: k, value: value(k) }));
    if (run.space.kind === "abstract") return axes;
    const nodes = (name, values) => ({ name, dim: null, value: (site) => (site < run.nNodes ? values[site] : NaN) });
    if (run.node_moves && d === 1) axes.push(nodes("expected move", run.node_moves.values));
    if (run.policy && d === 1) axes.push(nodes("likeliest action", likeliest(run)));
    if (run.membership) axes.push(nodes("certainty of membership", run.membership.values));
    if (axes.length < 2) axes.push({ name: "", dim: null, value: () => 0 });
    return axes;
  };

  function likeliest(run) {
    const a = run.nActions;
    return Array.from({ length: run.nNodes }, (_, node) => {
      const row = run.policy.values.subarray(node * a, (node + 1) * a);
      return row.indexOf(Math.max(...row));
    });
  }

  // A value between 0 and 1 for every node, for colours other than clusters; null while unknown.
  onlooker.scales = {
    certainty: { label: "Certainty of membership", of: (run) => run.membership && run.membership.values, low: "unsure", high: "sure", top: 1 },
    spread: { label: "Uncertainty of the policy", of: (run) => run.spread && run.spread.values, low: "sure", high: "unsure" },
    entropy: { label: "Randomness of the behaviour", of: entropy, low: "one action", high: "any action", top: 1 },
    difference: { label: "Difference from the other run", of: (run) => run.difference || null, low: "same", high: "differs", top: 1 },
  };

  function entropy(run) {
    if (!run.policy) return null;
    if (run.entropies) return run.entropies;
    const a = run.nActions;
    run.entropies = Float32Array.from({ length: run.nNodes }, (_, node) => {
      let sum = 0;
      for (const p of run.policy.values.subarray(node * a, (node + 1) * a)) if (p > 0) sum -= p * Math.log(p);
      return a > 1 ? sum / Math.log(a) : 0;
    });
    return run.entropies;
  }

  class MapView {
    // `look()` gives what is to be shown; `pick(place)` is told of clicks.
    constructor(canvas, { look, pick, hover }) {
      this.canvas = canvas;
      this.look = look;
      this.pick = pick;
      this.hover = hover || (() => {});
      this.zoom = 1;
      this.shift = [0, 0];
      this.cursor = null;
      this.drawn = 0;
      this.listen();
      new ResizeObserver(() => this.refresh()).observe(canvas);
    }

    // -- from places to pixels ------------------------------------------------------------------

    setRun(run, x, y, graph) {
      const key = `${run.number} ${run.epoch} ${run.version} ${x} ${y} ${graph}`;
      if (this.key === key) return;
      const same = this.run && this.kind === `${run.number} ${x} ${y} ${graph}`;
      this.key = key;
      this.kind = `${run.number} ${x} ${y} ${graph}`;
      this.run = run;
      this.graph = graph && run.space.graph ? run.space.graph.values : null;
      const axes = onlooker.axesOf(run);
      this.axes = [axes[Math.min(x, axes.length - 1)], axes[Math.min(y, axes.length - 1)]];
      const n = this.graph ? run.nNodes : run.nSites;
      this.xs = new Float64Array(n);
      this.ys = new Float64Array(n);
      for (let site = 0; site < n; site++) {
        this.xs[site] = this.graph ? this.graph[2 * site] : this.axes[0].value(site);
        this.ys[site] = this.graph ? this.graph[2 * site + 1] : this.axes[1].value(site);
      }
      this.bounds();
      if (!same) this.reset();
      this.refresh();
    }

    bounds() {
      const range = (values, cell) => {
        let low = Infinity;
        let high = -Infinity;
        for (const v of values) {
          if (v < low) low = v;
          if (v > high) high = v;
        }
        if (!(low <= high)) return [-1, 1];
        const pad = cell ? 0.7 * cell : 0.04 * (high - low) || Math.abs(low) * 0.1 || 1;
        return [low - pad, high + pad];
      };
      this.cell = null;
      const { cell, kind } = this.run.space;
      if (cell && !this.graph && cell.length > 1 && this.axes.every((axis) => axis.dim !== null)) {
        this.cell = [cell[this.axes[0].dim], cell[this.axes[1].dim]];
      }
      this.world = [range(this.xs, this.cell && this.cell[0]), range(this.ys, this.cell && this.cell[1])];
      const [w, h] = this.world.map(([low, high]) => high - low);
      const flat = this.run.space.sites.shape[1] < 3; // in a plane, both axes likely have one unit
      this.equal = Boolean(this.graph) || (this.axes.every((axis) => axis.dim !== null) && Math.max(w / h, h / w) < (flat ? 8 : 2));
      this.flipped = kind === "abstract" && !this.graph; // tables start at the top
    }

    fit() {
      const box = this.box;
      const [[x0, x1], [y0, y1]] = this.world;
      let sx = box.w / (x1 - x0);
      let sy = box.h / (y1 - y0);
      if (this.equal) sx = sy = Math.min(sx, sy);
      this.sx = sx * this.zoom;
      this.sy = sy * this.zoom * (this.flipped ? -1 : 1);
      this.ox = box.x + box.w / 2 - ((x0 + x1) / 2 + this.shift[0]) * this.sx;
      this.oy = box.y + box.h / 2 + ((y0 + y1) / 2 + this.shift[1]) * this.sy;
    }
    px(x) { return this.ox + x * this.sx; }
    py(y) { return this.oy - y * this.sy; }
    wx(px) { return (px - this.ox) / this.sx; }
    wy(py) { return (this.oy - py) / this.sy; }

    reset() {
      this.zoom = 1;
      this.shift = [0, 0];
      this.refresh();
    }
    zoomBy(factor, px, py) {
      const before = [this.wx(px), this.wy(py)];
      this.zoom = Math.min(MOST_ZOOM, Math.max(0.5, this.zoom * factor));
      this.fit();
      this.shift[0] += before[0] - this.wx(px);
      this.shift[1] += before[1] - this.wy(py);
      this.refresh();
    }

    // -- drawing --------------------------------------------------------------------------------

    refresh() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }

    draw() {
      const ratio = window.devicePixelRatio || 1;
      const w = this.canvas.clientWidth;
      const h = this.canvas.clientHeight;
      if (!this.run || !w || !h) return;
      if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
        this.canvas.width = Math.round(w * ratio);
        this.canvas.height = Math.round(h * ratio);
      }
      if (!this.surface || this.surface.ratio !== ratio) {
        this.surface = new onlooker.CanvasSurface(this.canvas.getContext("2d"), ratio);
      }
      const context = this.surface.context;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, w, h);
      this.paint(this.surface, w, h, true);
      this.drawn += 1;
    }

    toSvg() {
      const surface = new onlooker.SvgSurface(this.canvas.clientWidth, this.canvas.clientHeight);
      this.paint(surface, surface.width, surface.height, false);
      return surface.toString(onlooker.ink().card);
    }

    paint(surface, w, h, withCursor) {
      const ink = onlooker.ink();
      const bare = this.graph || this.run.space.kind === "abstract";
      const margin = bare ? { left: 10, right: 10, top: 10, bottom: 10 } : MARGIN;
      this.box = { x: margin.left, y: margin.top, w: w - margin.left - margin.right, h: h - margin.top - margin.bottom };
      this.fit();
      const shown = this.look();
      if (!bare) this.paintAxes(surface, ink);
      surface.clip(this.box.x, this.box.y, this.box.w, this.box.h);
      if (this.graph) this.paintEdges(surface, ink);
      if (shown.paths && this.run.paths) this.paintPaths(surface, ink);
      this.paintSites(surface, ink, shown);
      if (shown.field !== "none") this.paintField(surface, ink, shown);
      if (shown.trajectory !== null && this.run.paths) this.paintTrajectory(surface, ink, shown);
      this.paintPicked(surface, ink, shown);
      if (withCursor && this.cursor && document.activeElement === this.canvas) {
        const [x, y] = this.cursor;
        surface.line([[x - 9, y], [x + 9, y], null, [x, y - 9], [x, y + 9]], ink.card, 4);
        surface.line([[x - 9, y], [x + 9, y], null, [x, y - 9], [x, y + 9]], ink.accent, 2);
      }
      surface.unclip();
    }

    paintAxes(surface, ink) {
      const { x, y, w, h } = this.box;
      for (const tick of onlooker.ticks(this.wx(x), this.wx(x + w), Math.max(2, w / 90))) {
        surface.line([[this.px(tick), y], [this.px(tick), y + h]], ink.line, 0.6);
        surface.text(this.px(tick), y + h + 6, onlooker.number(tick, 4), ink.soft, "middle", 11, "top");
      }
      for (const tick of onlooker.ticks(this.wy(y + h), this.wy(y), Math.max(2, h / 60))) {
        surface.line([[x, this.py(tick)], [x + w, this.py(tick)]], ink.line, 0.6);
        surface.text(x - 6, this.py(tick), onlooker.number(tick, 4), ink.soft, "end", 11);
      }
      surface.text(x + w / 2, y + h + 22, this.axes[0].name, ink.soft, "middle", 12, "top");
      surface.text(x + 4, y + 4, this.axes[1].name, ink.soft, "start", 12, "top");
    }

    paintEdges(surface, ink) {
      const edges = this.run.space.edges.values;
      const points = [];
      for (let e = 0; e < edges.length; e += 3) {
        points.push(this.at(edges[e]), this.at(edges[e + 1]), null);
      }
      surface.line(points, ink.soft, 1, 0.45);
    }

    at(site) {
      return [this.px(this.xs[site]), this.py(this.ys[site])];
    }

    paintPaths(surface, ink) {
      const offsets = this.run.paths.offsets.values;
      const nodes = this.run.paths.nodes.values;
      const points = [];
      for (let k = 0; k + 1 < offsets.length; k++) {
        for (let t = offsets[k]; t < offsets[k + 1]; t++) points.push(this.at(nodes[t]));
        points.push(null);
      }
      surface.line(points, ink.soft, 0.8, 0.55);
    }

    radius() {
      const area = this.box.w * this.box.h;
      const r = 0.32 * Math.sqrt(area / this.run.nNodes) * Math.min(2, Math.sqrt(this.zoom));
      return Math.round(2 * Math.min(7, Math.max(2, r))) / 2;
    }

    paintSites(surface, ink, shown) {
      const run = this.run;
      const n = run.nNodes;
      const k = run.n_reference;
      const scale = shown.colour === "cluster" ? null : onlooker.scales[shown.colour];
      const values = scale && scale.of(run);
      const top = scale && (scale.top || highest(values));
      const names = shown.names || run.reference.values;
      const r = this.radius();
      const side = this.cell && this.cell.map((size, i) => Math.abs(size * [this.sx, this.sy][i]));
      const inked = side && Math.min(...side) >= 24 && run.space.kind === "abstract";
      for (let site = n; site < this.xs.length; site++) {
        const [x, y] = this.at(site);
        if (side) surface.outline(x - side[0] / 2 + 1, y - side[1] / 2 + 1, side[0] - 2, side[1] - 2, ink.line, 0.7);
        else surface.marker("circle", x, y, Math.min(2, r), ink.line, ink.line, false);
        if (inked) surface.text(x, y, String(run.stateOf(site)), ink.soft, "middle", 11);
      }
      const pale = onlooker.isDark() ? "#3a424c" : "#d5dae0";
      const lit = (i) => shown.highlight === null || names[i] % k === shown.highlight;
      if (side) {
        for (let i = 0; i < n; i++) {
          const look = onlooker.look(names[i], k);
          const fill = lit(i) ? (scale ? (values ? ramp(values[i] / top) : pale) : look.fill) : pale;
          this.paintCell(surface, ink, ...this.at(i), side, fill, scale ? null : look, inked ? String(run.stateOf(i)) : null);
        }
        return;
      }
      const brushes = new Map();
      const brushOf = (kind) => {
        if (!brushes.has(kind)) {
          const look = scale || kind < 0 ? { shape: "circle", hollow: false } : onlooker.look(kind, k);
          const fill = kind < 0 ? pale : scale ? rampAt(kind) : look.fill;
          brushes.set(kind, surface.brush(look.shape, r, fill, ink.ink, look.hollow));
        }
        return brushes.get(kind);
      };
      surface.stamps((stamp) => {
        for (let i = 0; i < n; i++) {
          const kind = !lit(i) ? -1 : scale ? rampIndex(values ? values[i] / top : NaN) : names[i];
          stamp(brushOf(kind), this.px(this.xs[i]), this.py(this.ys[i]));
        }
      });
    }

    paintCell(surface, ink, x, y, side, fill, look, text) {
      const [w, h] = [Math.max(1, side[0] - 1), Math.max(1, side[1] - 1)];
      if (look && look.hollow) {
        const thick = Math.max(1.5, 0.22 * Math.min(w, h));
        surface.outline(x - w / 2 + thick / 2, y - h / 2 + thick / 2, w - thick, h - thick, fill, thick);
      } else surface.rect(x - w / 2, y - h / 2, w, h, fill);
      // colours repeat after eight clusters: then a sign in the cell tells them apart
      if (look && look.shape !== "circle" && Math.min(w, h) > 7 && !text) {
        surface.marker(look.shape, x, y, Math.min(w, h) * 0.2, ink.card, ink.ink, false);
      }
      if (text) surface.text(x, y, text, "#10151a", "middle", 11);
    }

    // One arrow or rose for all nodes that share a few pixels: their mean.
    paintField(surface, ink, shown) {
      const run = this.run;
      const moves = run.node_moves;
      const dims = this.axes.map((axis) => axis.dim);
      if (!moves || this.graph || dims[0] === null || run.space.kind === "abstract") return;
      const d = moves.shape[1];
      const across = d === 1 || dims[1] === null;
      const key = [this.key, this.sx, this.sy, this.ox, this.oy, shown.highlight, shown.highlight === null ? null : JSON.stringify(shown.frame)].join(" ");
      if (this.binsKey !== key) [this.bins, this.binsKey] = [this.gather(moves.values, d, dims, across, shown), key];
      const { bins } = this;
      if (shown.field === "roses" && !across && run.space.moves) this.paintRoses(surface, ink, bins);
      else this.paintArrows(surface, ink, bins);
    }

    // Nodes by the square of pixels that they are in; kept until something moves.
    gather(moves, d, dims, across, shown) {
      const bins = new Map();
      const names = shown.names || this.run.reference.values;
      for (let i = 0; i < this.run.nNodes; i++) {
        if (shown.highlight !== null && names[i] % this.run.n_reference !== shown.highlight) continue;
        const [x, y] = this.at(i);
        const key = Math.floor(x / BIN) + 1e5 * Math.floor(y / BIN);
        let bin = bins.get(key);
        if (!bin) bins.set(key, (bin = { n: 0, x: 0, y: 0, dx: 0, dy: 0, nodes: [] }));
        bin.n += 1;
        bin.x += x;
        bin.y += y;
        bin.dx += moves[i * d + dims[0]];
        bin.dy += across ? 0 : moves[i * d + dims[1]];
        bin.nodes.push(i);
      }
      return bins;
    }

    paintArrows(surface, ink, bins) {
      let longest = 0;
      for (const bin of bins.values()) longest = Math.max(longest, Math.hypot(bin.dx, bin.dy) / bin.n);
      const scale = (0.95 * BIN) / (longest || 1);
      const down = this.flipped ? 1 : -1;
      for (const bin of bins.values()) {
        surface.arrow(bin.x / bin.n, bin.y / bin.n, (bin.dx / bin.n) * scale, (down * bin.dy / bin.n) * scale, ink.ink, ink.card);
      }
    }

    paintRoses(surface, ink, bins) {
      const run = this.run;
      const a = run.nActions;
      for (const bin of bins.values()) {
        const mean = new Float64Array(a);
        for (const node of bin.nodes) for (let j = 0; j < a; j++) mean[j] += run.policy.values[node * a + j] / bin.n;
        const petals = onlooker.petals(run, mean, 0.5 * BIN, this.axes.map((axis) => axis.dim));
        surface.rose(bin.x / bin.n, bin.y / bin.n, petals, ink.ink, ink.card);
      }
    }

    paintTrajectory(surface, ink, shown) {
      const { nodes, surprise } = this.run.trajectory(shown.trajectory);
      const points = nodes.map((node) => this.at(node));
      surface.line(points, ink.card, 5, 0.8);
      surface.line(points, ink.ink, 1.6);
      points.slice(0, -1).forEach(([x, y], t) => {
        const odd = surprise && surprise[t] > this.run.steps.unusual;
        if (odd) surface.marker("circle", x, y, 6, onlooker.isDark() ? "#F0712C" : "#D55E00", ink.ink, true);
      });
      surface.marker("circle", ...points[0], 4.5, ink.card, ink.ink, false);
      if (shown.step !== null && points[shown.step]) surface.marker("diamond", ...points[shown.step], 7, ink.accent, ink.card, false);
    }

    paintPicked(surface, ink, shown) {
      if (!shown.picked) return;
      const place = shown.picked.place;
      let at = null;
      if (shown.picked.site !== null && shown.picked.site < this.xs.length) at = this.at(shown.picked.site);
      else if (place && this.axes[0].dim !== null && !this.graph) {
        const [i, j] = this.axes.map((axis) => axis.dim);
        at = [this.px(place[i]), j === null ? this.box.y + this.box.h / 2 : this.py(place[j])];
      }
      if (!at) return;
      surface.marker("circle", ...at, 9, ink.card, ink.card, true);
      surface.marker("circle", ...at, 10.5, ink.accent, ink.ink, true);
    }

    // -- what a pixel means ---------------------------------------------------------------------

    siteAt(px, py, most = this.xs.length) {
      let best = -1;
      let least = Infinity;
      for (let site = 0; site < most; site++) {
        const away = (this.px(this.xs[site]) - px) ** 2 + (this.py(this.ys[site]) - py) ** 2;
        if (away < least) {
          least = away;
          best = site;
        }
      }
      return [best, Math.sqrt(least)];
    }

    // {site, place}: a site if one is meant, else the coordinates under the pixel.
    placeAt(px, py) {
      const run = this.run;
      if (run.space.kind !== "real") {
        const site = this.siteAt(px, py)[0];
        return { site, place: run.place(site) };
      }
      const [node, away] = this.siteAt(px, py, run.nNodes);
      const [i, j] = this.axes.map((axis) => axis.dim);
      const d = run.space.sites.shape[1];
      const free = i !== null && (j !== null || d === 1);
      if (away <= NEAR || !free || !run.source.live) return { site: node, place: run.place(node) };
      const place = run.place(node); // coordinates that are not shown are those of the nearest node
      place[i] = this.wx(px);
      if (j !== null) place[j] = this.wy(py);
      return { site: null, place };
    }

    // -- hands ----------------------------------------------------------------------------------

    listen() {
      const canvas = this.canvas;
      const where = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      let held = null;
      canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        held = { at: where(event), shift: [...this.shift], moved: false };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = where(event);
        if (!held) {
          if (this.run) this.hover(x, y);
          return;
        }
        const [dx, dy] = [x - held.at[0], y - held.at[1]];
        if (Math.hypot(dx, dy) > 4) held.moved = true;
        if (held.moved) {
          this.shift = [held.shift[0] - dx / this.sx, held.shift[1] + dy / this.sy];
          this.refresh();
        }
      });
      canvas.addEventListener("pointerup", (event) => {
        if (held && !held.moved && this.run) {
          this.cursor = where(event);
          this.pick(this.placeAt(...this.cursor));
        }
        held = null;
      });
      canvas.addEventListener("pointercancel", () => { held = null; });
      canvas.addEventListener("pointerleave", () => this.hover(null));
      canvas.addEventListener("wheel", (event) => {
        if (!this.run || !(event.ctrlKey || event.shiftKey || document.activeElement === canvas)) return;
        event.preventDefault();
        this.zoomBy(Math.exp(-Math.sign(event.deltaY || event.deltaX) * 0.2), ...where(event));
      }, { passive: false });
      canvas.addEventListener("dblclick", (event) => this.zoomBy(1.8, ...where(event)));
      canvas.addEventListener("keydown", (event) => this.key_(event));
      canvas.addEventListener("blur", () => this.refresh());
      canvas.addEventListener("focus", () => this.refresh());
    }

    key_(event) {
      if (!this.run || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 48 : 12;
      const go = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      const { x, y, w, h } = this.box;
      this.cursor ||= [x + w / 2, y + h / 2];
      if (go) {
        this.cursor = [
          Math.min(x + w, Math.max(x, this.cursor[0] + step * go[0])),
          Math.min(y + h, Math.max(y, this.cursor[1] + step * go[1])),
        ];
        this.hover(...this.cursor);
        this.refresh();
      } else if (event.key === "Enter" || event.key === " ") this.pick(this.placeAt(...this.cursor));
      else if (event.key === "+" || event.key === "=") this.zoomBy(1.3, ...this.cursor);
      else if (event.key === "-" || event.key === "_") this.zoomBy(1 / 1.3, ...this.cursor);
      else if (event.key === "0") this.reset();
      else return;
      event.preventDefault();
    }
  }

  // 65 colours are enough, and few enough to keep a drawn marker of each; -1: unknown.
  const RAMP = Array.from({ length: 65 }, (_, k) => onlooker.ramp(k / 64));
  const rampIndex = (share) => (Number.isFinite(share) ? Math.round(64 * Math.min(1, Math.max(0, share))) : -1);
  const rampAt = (index) => RAMP[index];
  const ramp = (share) => (Number.isFinite(share) ? RAMP[rampIndex(share)] : onlooker.ramp(NaN));

  function highest(values) {
    let top = 0;
    for (const v of values || []) if (v > top) top = v;
    return top || 1;
  }
  onlooker.highest = highest;

  // [angle, length] of every action in a plane of two coordinates.
  onlooker.petals = (run, policy, longest, dims = [0, 1]) => {
    const moves = run.space.moves;
    const d = moves.shape[1];
    const most = Math.max(...policy);
    const petals = [];
    for (let j = 0; j < policy.length; j++) {
      const [dx, dy] = dims.map((dim) => moves.values[j * d + dim]);
      if (Math.hypot(dx, dy) > 0) petals.push([Math.atan2(dy, dx), (longest * policy[j]) / (most || 1)]);
    }
    return petals;
  };

  onlooker.MapView = MapView;
})();
