"use strict";
// What the map is painted of, layer by layer; each works on a canvas and on SVG alike.
(() => {
  const BIN = 38; // pixels between arrows

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

  const KM_A_DEGREE = (onlooker.EARTH_RADIUS * Math.PI) / 180;
  const FADED = 0.65; // share of the paper in the colour of a state without a step
  const LAND = { light: "#e6e3da", dark: "#2b323a" };

  class Layers {
    paintLand(surface) {
      const { x, y, w, h } = this.box;
      surface.clip(x, y, w, h);
      for (const { points, offsets } of this.run.space.land) {
        const rings = Array.from(offsets.values.subarray(1), (end, k) => {
          const ring = [];
          for (let i = offsets.values[k]; i < end; i++) ring.push([this.px(points.values[2 * i]), this.py(points.values[2 * i + 1])]);
          return ring;
        });
        surface.area(rings, LAND[onlooker.isDark() ? "dark" : "light"]);
      }
      surface.unclip();
    }

    // A length in km, true in the middle of the map.
    paintScale(surface, ink) {
      const { x, y, w, h } = this.box;
      const perKm = Math.abs(this.sy) / KM_A_DEGREE;
      const room = Math.max(60, 0.25 * w) / perKm;
      const power = 10 ** Math.floor(Math.log10(room));
      const km = [5, 2, 1].map((m) => m * power).find((length) => length <= room);
      const text = km >= 1 ? `${onlooker.number(km)} km` : `${onlooker.number(1000 * km)} m`;
      const [left, right, base] = [x + 10, x + 10 + km * perKm, y + h - 10];
      const bar = [[left, base - 5], [left, base], [right, base], [right, base - 5]];
      surface.line(bar, ink.card, 4.5, 0.85);
      surface.line(bar, ink.ink, 1.6);
      for (const [dx, dy] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) surface.text(left + 5 + dx, base - 5 + dy, text, ink.card, "start", 11, "bottom");
      surface.text(left + 5, base - 5, text, ink.ink, "start", 11, "bottom");
    }

    // A tick with the digits that its step needs; on Earth with its side.
    tickText(value, step, k) {
      const text = (v) => (Math.abs(v) >= 1e6 || (v !== 0 && step < 1e-6) ? onlooker.number(v, 6) : onlooker.fixed(v, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
      return this.onEarth ? onlooker.degrees(value, k, text) : text(value);
    }

    paintAxes(surface, ink) {
      const { x, y, w, h } = this.box;
      const stepOf = (ticks) => (ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(ticks[0]) || 1);
      const across = onlooker.ticks(this.wx(x), this.wx(x + w), Math.max(2, w / 90));
      for (const tick of across) {
        surface.line([[this.px(tick), y], [this.px(tick), y + h]], ink.line, 0.6);
        surface.text(this.px(tick), y + h + 6, this.tickText(tick, stepOf(across), 0), ink.soft, "middle", 11, "top");
      }
      const up = onlooker.ticks(this.wy(y + h), this.wy(y), Math.max(2, h / 60));
      for (const tick of up) {
        surface.line([[x, this.py(tick)], [x + w, this.py(tick)]], ink.line, 0.6);
        surface.text(x - 6, this.py(tick), this.tickText(tick, stepOf(up), 1), ink.soft, "end", 11);
      }
      surface.text(x + w / 2, y + h + 22, this.axes[0].name, ink.soft, "middle", 12, "top");
      surface.text(x + 4, y + 4, this.axes[1].name, ink.soft, "start", 12, "top");
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
      const faded = (colour) => onlooker.mix(colour, ink.card, FADED); // the end of a track
      const lit = (i) => shown.highlight === null || names[i] % k === shown.highlight;
      if (side) {
        for (let i = 0; i < n; i++) {
          const look = onlooker.look(names[i], k);
          const fill = lit(i) ? (scale ? (values ? ramp(values[i] / top) : pale) : look.fill) : pale;
          this.paintCell(surface, ink, ...this.at(i), side, run.left[i] ? fill : faded(fill), scale ? null : look, inked ? String(run.stateOf(i)) : null);
        }
        return;
      }
      const brushes = new Map();
      const brushOf = (kind, left) => {
        const key = 2 * (kind + 1) + (left ? 1 : 0);
        if (!brushes.has(key)) {
          const look = scale || kind < 0 ? { shape: "circle", hollow: false } : onlooker.look(kind, k);
          const fill = kind < 0 ? pale : scale ? rampAt(kind) : look.fill;
          const [inside, rim] = left ? [fill, ink.ink] : [fill, ink.ink].map(faded);
          brushes.set(key, surface.brush(look.shape, r, inside, rim, look.hollow));
        }
        return brushes.get(key);
      };
      surface.stamps((stamp) => {
        for (let i = 0; i < n; i++) {
          const kind = !lit(i) ? -1 : scale ? rampIndex(values ? values[i] / top : NaN) : names[i];
          stamp(brushOf(kind, run.left[i]), this.px(this.xs[i]), this.py(this.ys[i]));
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
      if (text) surface.text(x, y, text, onlooker.readableOn(look && look.hollow ? ink.card : fill), "middle", 11);
    }

    // One arrow or rose for all nodes that share a few pixels: their mean.
    paintField(surface, ink, shown) {
      const run = this.run;
      const moves = run.node_moves;
      const dims = this.axes.map((axis) => axis.dim);
      if (!moves || dims[0] === null || run.space.kind === "abstract") return;
      const d = moves.shape[1];
      const across = d === 1 || dims[1] === null;
      this.bin = this.cell ? Math.max(BIN, Math.min(80, Math.abs(this.cell[0] * this.sx), Math.abs(this.cell[1] * this.sy))) : BIN;
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
        const key = Math.floor((x - this.ox) / this.bin + 0.5) + 1e5 * Math.floor((y - this.oy) / this.bin + 0.5);
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
      const scale = (0.95 * this.bin) / (longest || 1);
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
        const reach = 0.47 * this.bin;
        const petals = onlooker.petals(run, mean, reach, this.axes.map((axis) => axis.dim));
        surface.rose(bin.x / bin.n, bin.y / bin.n, petals, reach, ink.ink, ink.soft, ink.card);
      }
    }

    paintTrajectory(surface, ink, shown) {
      const path = this.run.trajectory(shown.trajectory);
      const odd = path.surprise ? this.run.odd(path) : [];
      const points = path.nodes.map((node) => this.at(node));
      surface.line(points, ink.card, 7, 0.9);
      surface.line(points, ink.accent, 3);
      points.slice(0, -1).forEach(([x, y], t) => {
        if (odd[t]) surface.marker("circle", x, y, 6, onlooker.isDark() ? "#F0712C" : "#D55E00", ink.ink, true);
      });
      surface.marker("circle", ...points[0], 4.5, ink.card, ink.ink, false);
      if (shown.step !== null && points[shown.step]) surface.marker("diamond", ...points[shown.step], 7, ink.accent, ink.card, false);
    }

    paintPicked(surface, ink, shown) {
      if (!shown.picked) return;
      const place = shown.picked.place;
      let at = null;
      if (shown.picked.site !== null && shown.picked.site < this.xs.length) at = this.at(shown.picked.site);
      else if (place && this.axes[0].dim !== null) {
        const [i, j] = this.axes.map((axis) => axis.dim);
        at = [this.px(i === 0 ? this.run.unwrapped(place[i]) : place[i]), j === null ? this.box.y + this.box.h / 2 : this.py(place[j])];
      }
      if (!at) return;
      surface.marker("circle", ...at, 9, ink.card, ink.card, true);
      surface.marker("circle", ...at, 10.5, ink.accent, ink.ink, true);
    }
  }

  for (const name of Object.getOwnPropertyNames(Layers.prototype)) {
    if (name !== "constructor") onlooker.MapView.prototype[name] = Layers.prototype[name];
  }
})();
