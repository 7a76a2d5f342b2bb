"use strict";
// What controllers do in words, and their goals and directions as marks on the map.
(() => {
  const { el, percent } = onlooker;
  const LEAST = 0.2; // probability of a behaviour that is marked
  const MOST = 12; // controllers that are marked where none is highlighted
  const FAN = 24; // pixels

  // "heads for (4, −2), 82 % [70–90]", one line for each behaviour of a controller.
  onlooker.doings = (one) => el("ul", { class: "plain doings" }, one.behaviours.map((done, k) => {
    const words = `${done.name}, ${percent(done.mean)} [${Math.round(100 * done.low)}–${Math.round(100 * done.high)}]`;
    return el("li", {}, k === 0 ? el("b", {}, words) : words);
  }));

  // Whether there is anything to mark.
  onlooker.hasMarks = (run) => Boolean(run.controllers && run.controllers.some((one) => one.behaviours.some((done) => done.picture)));

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
      const [from, to] = arc(angles);
      const at = this.at(this.middles()[number]);
      const r = FAN * Math.sqrt(mean);
      const down = this.flipped ? 1 : -1;
      const rim = Array.from({ length: 17 }, (_, k) => from + ((to - from) * k) / 16).map((angle) => [at[0] + r * Math.cos(angle), at[1] + down * r * Math.sin(angle)]);
      surface.area([[at, ...rim]], fill);
      surface.line([at, ...rim, at], ink.card, 3.2);
      surface.line([at, ...rim, at], ink.ink, 1.4);
    }

    // The node of every controller that is nearest to the mean of all of its nodes.
    middles() {
      if (this.middlesKey === this.key) return this.found;
      const { run, xs, ys } = this;
      const names = run.reference.values;
      const sums = Array.from({ length: run.n_reference }, () => [0, 0, 0]);
      for (let i = 0; i < run.nNodes; i++) {
        const sum = sums[names[i]];
        sum[0] += 1;
        sum[1] += xs[i];
        sum[2] += ys[i];
      }
      const nearest = new Float64Array(run.n_reference).fill(Infinity);
      this.found = new Uint32Array(run.n_reference);
      for (let i = 0; i < run.nNodes; i++) {
        const [n, x, y] = sums[names[i]];
        const away = Math.hypot(xs[i] - x / n, ys[i] - y / n);
        if (away < nearest[names[i]]) [nearest[names[i]], this.found[names[i]]] = [away, i];
      }
      this.middlesKey = this.key;
      return this.found;
    }
  }

  // The narrowest arc that holds all angles, made wide enough to be seen.
  function arc(angles) {
    const sorted = [...angles].sort((a, b) => a - b);
    let widest = 0;
    let start = 0;
    sorted.forEach((angle, k) => {
      const next = k + 1 < sorted.length ? sorted[k + 1] : sorted[0] + 2 * Math.PI;
      if (next - angle > widest) [widest, start] = [next - angle, next];
    });
    const width = 2 * Math.PI - widest;
    const extra = Math.max(0, 0.3 - width) / 2;
    return [start - extra, start + width + extra];
  }

  for (const name of Object.getOwnPropertyNames(Marks.prototype)) {
    if (name !== "constructor") onlooker.MapView.prototype[name] = Marks.prototype[name];
  }
})();
