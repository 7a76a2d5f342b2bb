"use strict";
// What is shown, as the part of the page's address after #, and back.
(() => {
  const FIELDS = ["arrows", "roses", "none"];

  onlooker.linkOf = (run, view) => {
    const { state } = onlooker;
    const words = new URLSearchParams();
    const put = (key, value, usual) => { if (value !== null && value !== usual) words.set(key, String(value)); };
    put("run", state.run, 0);
    put("across", state.x, 0);
    put("up", state.y, 1);
    put("colour", state.colour, "cluster");
    put("policy", state.field, "arrows");
    put("tracks", state.paths ? 1 : 0, 0);
    put("behaviours", state.behaviours ? 1 : 0, 1);
    put("controller", state.highlight === null ? null : state.highlight + 1);
    if (state.frame) words.set("draw", `${state.frame.chain},${state.frame.index}`);
    if (state.picked) words.set("at", state.picked.site !== null ? `site ${state.picked.site}` : state.picked.place.join(","));
    put("track", state.trajectory);
    if (state.trajectory !== null) put("step", state.step);
    const moved = [view.zoom, ...view.shift];
    if (view.whole || moved.some((v, k) => v !== [1, 0, 0][k])) words.set("view", [...moved, view.whole ? 1 : 0].map((v) => Number(v.toPrecision(6))).join(","));
    return words.toString();
  };

  // The run that an address names; what it says else needs this run to be there.
  onlooker.runOfLink = (text, n) => {
    const k = Number(new URLSearchParams(text).get("run") || 0);
    return Number.isInteger(k) && k >= 0 && k < n ? k : 0;
  };

  // What of an address fits the run: an old one may name what the run no longer has.
  onlooker.readLink = (text, run) => {
    const words = new URLSearchParams(text);
    const whole = (key, most) => {
      const value = Number(words.get(key) ?? NaN);
      return Number.isInteger(value) && value >= 0 && value < most ? value : null;
    };
    const list = (key) => (words.get(key) || "").split(",").map(Number);
    const changes = {};
    const axes = onlooker.axesOf(run).length;
    for (const [key, name] of [["across", "x"], ["up", "y"]]) if (whole(key, axes) !== null) changes[name] = whole(key, axes);
    const colour = words.get("colour");
    if (Object.hasOwn(onlooker.scales, colour) && onlooker.scales[colour].of(run)) changes.colour = colour;
    if (FIELDS.includes(words.get("policy"))) changes.field = words.get("policy");
    if (words.get("tracks") === "1" && run.paths) changes.paths = true;
    if (words.has("behaviours")) changes.behaviours = words.get("behaviours") === "1";
    const controller = whole("controller", run.n_reference + 1);
    if (controller) changes.highlight = controller - 1;
    const [chain, index] = list("draw");
    if (run.frames[chain] && Number.isInteger(index) && index >= 0 && index < run.frames[chain].length) changes.frame = { chain, index };
    const at = words.get("at") || "";
    const site = Number(at.replace(/^site /, ""));
    const place = list("at");
    if (at.startsWith("site ") && Number.isInteger(site) && site >= 0 && site < run.nSites) changes.picked = { site, place: run.place(site) };
    else if (run.source.live && run.space.kind === "real" && [run.space.n_position, run.space.sites.shape[1]].includes(place.length) && at && place.every(Number.isFinite)) changes.picked = { site: null, place: run.filled(place) };
    if (run.paths && whole("track", run.data.trajectories) !== null) {
      changes.trajectory = whole("track", run.data.trajectories);
      changes.step = whole("step", run.paths.offsets.values[changes.trajectory + 1] - run.paths.offsets.values[changes.trajectory] - 1);
    }
    const view = list("view");
    return { changes, view: view.length === 4 && view.every(Number.isFinite) && view[0] > 0 ? view : null };
  };
})();
