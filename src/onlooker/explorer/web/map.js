"use strict";
// The picture of the state space: points or cells, the policy on top, trajectories, a cursor.
(() => {
  const MARGIN = { left: 64, right: 14, top: 12, bottom: 40 };
  const NEAR = 7; // pixels within which a click means the node
  const MOST_ZOOM = 400;

  // Axes that a run can be drawn along; `dim` is set where a click means a coordinate.
  onlooker.axesOf = (run) => {
    const d = run.space.sites.shape[1];
    const value = (k) => (site) => (k === 0 ? run.unwrapped(run.space.sites.values[site * d]) : run.space.sites.values[site * d + k]);
    const withUnit = (name, k) => (run.space.units[k] ? `${name} [${run.space.units[k]}]` : name);
    const axes = run.space.axes.map((name, k) => ({ name: withUnit(name, k), dim: k, value: value(k) }));
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
    constructor(canvas, { look, pick, hover, told, moved, fits = false }) {
      this.fits = fits; // whether the canvas is made as high as its content
      this.canvas = canvas;
      this.look = look;
      this.pick = pick;
      this.hover = hover || (() => {});
      this.told = told || (() => {}); // that what is in view has changed
      this.moved = moved || (() => {}); // that it is seen from elsewhere
      this.zoom = 1;
      this.shift = [0, 0];
      this.cursor = null;
      this.drawn = 0;
      this.listen();
      new ResizeObserver(() => this.refresh()).observe(canvas);
    }

    // -- from places to pixels ------------------------------------------------------------------

    setRun(run, x, y) {
      const key = `${run.number} ${run.epoch} ${run.version} ${x} ${y}`;
      if (this.key === key) return;
      const same = this.run && this.kind === `${run.number} ${x} ${y}`;
      this.key = key;
      this.kind = `${run.number} ${x} ${y}`;
      this.run = run;
      const axes = onlooker.axesOf(run);
      this.axes = [axes[Math.min(x, axes.length - 1)], axes[Math.min(y, axes.length - 1)]];
      const n = run.nSites;
      this.xs = new Float64Array(n);
      this.ys = new Float64Array(n);
      for (let site = 0; site < n; site++) {
        this.xs[site] = this.axes[0].value(site);
        this.ys[site] = this.axes[1].value(site);
      }
      if (same) this.bounds(this.whole);
      else this.reset();
      this.refresh();
    }

    // The world in view; `whole`: with what lies far off.
    bounds(whole) {
      this.whole = whole;
      const { extent, meridian } = this.run.space;
      const range = (values, cell, axis) => {
        let low = Infinity;
        let high = -Infinity;
        for (const v of values) {
          if (v < low) low = v;
          if (v > high) high = v;
        }
        if (extent && axis.dim !== null && !whole) [low, high] = extent[axis.dim];
        if (!(low <= high)) return [-1, 1];
        const pad = cell ? 0.7 * cell : 0.04 * (high - low) || Math.abs(low) * 0.1 || 1;
        return [low - pad, high + pad];
      };
      this.cell = null;
      const { cell, kind } = this.run.space;
      if (cell && cell.length > 1 && this.axes.every((axis) => axis.dim !== null)) {
        this.cell = [cell[this.axes[0].dim], cell[this.axes[1].dim]];
      }
      this.world = [this.xs, this.ys].map((values, i) => range(values, this.cell && this.cell[i], this.axes[i]));
      this.farOff = whole ? 0 : this.xs.reduce((sum, x, site) => sum + ![x, this.ys[site]].every((v, i) => !(v < this.world[i][0] || v > this.world[i][1])), 0);
      const [w, h] = this.world.map(([low, high]) => high - low);
      const flat = this.run.space.sites.shape[1] < 3; // in a plane, both axes likely have one unit
      this.equal = this.axes.every((axis) => axis.dim !== null) && Math.max(w / h, h / w) < (flat ? 8 : 2);
      this.onEarth = meridian !== null && this.axes[0].dim === 0 && this.axes[1].dim === 1;
      if (this.onEarth) this.equal = true;
      this.narrow = this.onEarth ? Math.cos(((this.world[1][0] + this.world[1][1]) / 2) * (Math.PI / 180)) : 1; // a degree east to one north
      this.flipped = kind === "abstract"; // tables start at the top
    }

    fit() {
      const box = this.box;
      const [[x0, x1], [y0, y1]] = this.world;
      let sx = box.w / (x1 - x0);
      let sy = box.h / (y1 - y0);
      if (this.equal) {
        sy = Math.min(sx / this.narrow, sy);
        sx = sy * this.narrow;
      }
      this.sx = sx * this.zoom;
      this.sy = sy * this.zoom * (this.flipped ? -1 : 1);
      this.ox = box.x + box.w / 2 - ((x0 + x1) / 2 + this.shift[0]) * this.sx;
      this.oy = box.y + box.h / 2 + ((y0 + y1) / 2 + this.shift[1]) * this.sy;
    }
    px(x) { return this.ox + x * this.sx; }
    py(y) { return this.oy - y * this.sy; }
    wx(px) { return (px - this.ox) / this.sx; }
    wy(py) { return (this.oy - py) / this.sy; }

    // Everything in view; without `whole` but for what lies far off.
    reset(whole = false) {
      if (this.run) this.bounds(whole);
      if (whole) this.told();
      this.zoom = 1;
      this.shift = [0, 0];
      this.refresh();
      this.moved();
    }
    zoomBy(factor, px, py) {
      const before = [this.wx(px), this.wy(py)];
      this.zoom = Math.min(MOST_ZOOM, Math.max(0.5, this.zoom * factor));
      this.fit();
      this.shift[0] += before[0] - this.wx(px);
      this.shift[1] += before[1] - this.wy(py);
      this.refresh();
      this.moved();
    }
    // As an address says.
    seen([zoom, x, y, whole]) {
      this.reset(Boolean(whole));
      this.zoom = Math.min(MOST_ZOOM, Math.max(0.5, zoom));
      this.shift = [x, y];
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

    // As high as the world is, for the width there is; never taller than most of the window.
    shape() {
      const width = this.canvas.clientWidth - MARGIN.left - MARGIN.right;
      const [[x0, x1], [y0, y1]] = this.world;
      const high = (width * (y1 - y0)) / ((x1 - x0) * this.narrow) + MARGIN.top + MARGIN.bottom;
      const most = 0.75 * window.innerHeight;
      const height = this.equal ? `${Math.round(Math.max(Math.min(220, most), Math.min(high, most)))}px` : "";
      const { style } = this.canvas.parentElement;
      if (this.fits && style.height !== height) style.height = height;
    }

    draw() {
      if (this.run) this.shape();
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
      const bare = this.run.space.kind === "abstract";
      const margin = bare ? { left: 10, right: 10, top: 10, bottom: 10 } : MARGIN;
      this.box = { x: margin.left, y: margin.top, w: w - margin.left - margin.right, h: h - margin.top - margin.bottom };
      this.fit();
      const shown = this.look();
      if (this.onEarth) this.paintLand(surface);
      if (!bare) this.paintAxes(surface, ink);
      surface.clip(this.box.x, this.box.y, this.box.w, this.box.h);
      if (shown.paths && this.run.paths) this.paintPaths(surface, ink);
      this.paintSites(surface, ink, shown);
      if (shown.field !== "none") this.paintField(surface, ink, shown);
      if (shown.behaviours) this.paintBehaviours(surface, ink, shown);
      if (shown.trajectory !== null && this.run.paths) this.paintTrajectory(surface, ink, shown);
      this.paintPicked(surface, ink, shown);
      if (this.onEarth) this.paintScale(surface, ink);
      if (withCursor && this.cursor && document.activeElement === this.canvas) {
        const [x, y] = this.cursor;
        surface.line([[x - 9, y], [x + 9, y], null, [x, y - 9], [x, y + 9]], ink.card, 4);
        surface.line([[x - 9, y], [x + 9, y], null, [x, y - 9], [x, y + 9]], ink.accent, 2);
      }
      surface.unclip();
    }

    at(site) {
      return [this.px(this.xs[site]), this.py(this.ys[site])];
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
        if (held && held.moved) this.moved();
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
      else if (event.key === "0") this.reset(true);
      else return;
      event.preventDefault();
    }
  }

  onlooker.MapView = MapView;
})();
