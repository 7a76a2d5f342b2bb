"use strict";
// What controllers do in words, and their goals and directions as marks on the map.
(() => {
  const { el, percent } = onlooker;
  const LEAST = 0.2; // probability of a behaviour that is marked
  const MOST = 12; // controllers that are marked where none is highlighted
  const FAN = 42; // pixels
  const PARTS = 8; // of the map, each way, among which that with the most states is sought

  // "heads for (4, −2), 82 % [70–90]", one line for each behaviour of a controller.
  onlooker.doings = (one) => el("ul", { class: "plain doings" }, one.behaviours.map((done, k) => {
    const words = `${done.name}, ${percent(done.mean)} [${Math.round(100 * done.low)}–${Math.round(100 * done.high)}]`;
    return el("li", {}, k === 0 ? el("b", {}, words) : words);
  }));

  // Whether there is anything to mark.
  onlooker.hasMarks = (run) => Boolean(run.controllers && run.controllers.some((one) => one.behaviours.some((done) => done.picture)));

  // What the marks mean, for each kind that is drawn.
  onlooker.markKinds = (run) => {
    const pictures = (run.controllers || []).flatMap((one) => one.behaviours).filter((done) => done.picture && done.mean >= LEAST).map((done) => done.picture);
    const fans = run.space.moves && pictures.some(({ actions }) => actions && actions.length < run.nActions);
    const words = [pictures.some(({ goals }) => goals && goals.length) && "targets: where a controller heads for", fans && "fans: the directions that it takes"].filter(Boolean);
    if (words.length) words[0] = words[0][0].toUpperCase() + words[0].slice(1);
    return words;
  };

  class Marks {
    paintBehaviours(surface, ink, shown) {
      const { run } = this;
      if (!onlooker.hasMarks(run)) return;
      const chosen = run.controllers.filter((one) => shown.highlight === null || one.number === shown.highlight);
      const [x, y] = this.axes.map((axis) => axis.dim);
      for (const one of chosen.slice(0, MOST).reverse()) {
        const { fill } = onlooker.look(one.number, run.n_reference);
        for (const { mean, picture } of [...one.behaviours].reverse()) {
          if (!picture || mean < LEAST) continue;
          for (const goal of picture.goals || []) this.paintGoal(surface, ink, goal, fill, mean);
          if (picture.actions && x !== null && y !== null) this.paintFan(surface, ink, one.number, picture.actions, fill, mean);
        }
      }
    }

    paintGoal(surface, ink, goal, fill, mean) {
      const [i, j] = this.axes.map((axis) => axis.dim);
      if (i === null || goal[i] === undefined || (j !== null && goal[j] === undefined)) return;
      const at = [this.px(i === 0 ? this.run.unwrapped(goal[i]) : goal[i]), j === null ? this.box.y + this.box.h / 2 : this.py(goal[j])];
      const r = 6 + 6 * Math.sqrt(mean);
      surface.marker("circle", ...at, r + 1.5, ink.ink, ink.ink, false);
      surface.marker("circle", ...at, r, ink.card, ink.ink, false);
      surface.marker("circle", ...at, 0.68 * r, fill, ink.ink, false);
      surface.marker("circle", ...at, 0.3 * r, ink.card, ink.ink, false);
    }

    // A wedge over the directions that a controller takes, where its states are.
    paintFan(surface, ink, number, actions, fill, mean) {
      const moves = this.run.space.moves;
      if (!moves || actions.length === this.run.nActions) return;
      const d = moves.shape[1];
      const [i, j] = this.axes.map((axis) => axis.dim);
      const angles = actions.map((a) => [moves.values[a * d + i], moves.values[a * d + j]])
        .filter(([dx, dy]) => Math.hypot(dx, dy) > 0).map(([dx, dy]) => Math.atan2(dy, dx));
      if (!angles.length) return;
      const [from, to] = arc(angles, Math.PI / this.run.nActions);
      const at = this.at(this.middles()[number]);
      const r = Math.min(FAN, 0.1 * this.box.w) * Math.sqrt(mean);
      const down = this.flipped ? 1 : -1;
      const rim = Array.from({ length: 17 }, (_, k) => from + ((to - from) * k) / 16).map((angle) => [at[0] + r * Math.cos(angle), at[1] + down * r * Math.sin(angle)]);
      surface.line([at, ...rim, at], ink.card, 5);
      surface.area([[at, ...rim]], fill);
      surface.line([at, ...rim, at], ink.ink, 1.6);
      const [dx, dy] = [Math.cos((from + to) / 2) * r, down * Math.sin((from + to) / 2) * r];
      surface.arrow(at[0] + 0.65 * dx, at[1] + 0.65 * dy, 1.3 * dx, 1.3 * dy, ink.ink, ink.card);
    }

    // A node of every controller in the midst of where most of its nodes are.
    middles() {
      if (this.middlesKey === this.key) return this.found;
      const { run, xs, ys } = this;
      const names = run.reference.values;
      const [[x0, x1], [y0, y1]] = this.world;
      const part = (v, low, high) => Math.min(PARTS - 1, Math.max(0, Math.floor((PARTS * (v - low)) / (high - low)))) + 1;
      const wide = PARTS + 2;
      const place = (i) => part(xs[i], x0, x1) + wide * part(ys[i], y0, y1);
      const sums = Array.from({ length: run.n_reference }, () => new Float64Array(3 * wide * wide));
      for (let i = 0; i < run.nNodes; i++) {
        const at = 3 * place(i);
        [1, xs[i], ys[i]].forEach((value, k) => { sums[names[i]][at + k] += value; });
      }
      const around = [-wide - 1, -wide, -wide + 1, -1, 0, 1, wide - 1, wide, wide + 1];
      const centres = sums.map((sum) => {
        let best = [0, 0, 0];
        for (let y = 1; y <= PARTS; y++) {
          for (let x = 1; x <= PARTS; x++) {
            const all = [0, 1, 2].map((k) => around.reduce((total, by) => total + sum[3 * (x + wide * y + by) + k], 0));
            if (all[0] > best[0]) best = all;
          }
        }
        return [best[1] / best[0], best[2] / best[0]];
      });
      const nearest = new Float64Array(run.n_reference).fill(Infinity);
      this.found = new Uint32Array(run.n_reference);
      for (let i = 0; i < run.nNodes; i++) {
        const c = names[i];
        const away = Math.hypot(xs[i] - centres[c][0], ys[i] - centres[c][1]);
        if (away < nearest[c]) [nearest[c], this.found[c]] = [away, i];
      }
      this.middlesKey = this.key;
      return this.found;
    }
  }

  // The narrowest arc that holds all angles, with `margin` on both sides.
  function arc(angles, margin) {
    const sorted = [...angles].sort((a, b) => a - b);
    let widest = 0;
    let start = 0;
    sorted.forEach((angle, k) => {
      const next = k + 1 < sorted.length ? sorted[k + 1] : sorted[0] + 2 * Math.PI;
      if (next - angle > widest) [widest, start] = [next - angle, next];
    });
    const width = 2 * Math.PI - widest;
    return [start - margin, start + width + margin];
  }

  for (const name of Object.getOwnPropertyNames(Marks.prototype)) {
    if (name !== "constructor") onlooker.MapView.prototype[name] = Marks.prototype[name];
  }
})();
