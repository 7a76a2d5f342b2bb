"use strict";
// Two runs: the other one's map with the same axes, and how far they agree.
(() => {
  const { el, put, byId, number, percent, state } = onlooker;
  let view = null;

  onlooker.showCompare = async (run, others, act) => {
    byId("compare-card").hidden = others.length === 0;
    if (others.length === 0) return;
    const chosen = state.other;
    const choice = el("label", {}, "Other run", el("select", { id: "other", onchange: (event) => act.other(event.target.value === "" ? null : Number(event.target.value)) },
      el("option", { value: "" }, "none"), others.map((one) => el("option", { value: String(one.number), selected: one.number === chosen }, one.name))));
    if (chosen === null) {
      view = null;
      run.difference = null;
      put(byId("compare"), el("div", { class: "controls" }, choice));
      return;
    }
    const words = el("div", { id: "compare-words" }, el("p", { class: "caption" }, "Comparing …"));
    const canvas = el("canvas", { id: "other-map", tabindex: "0", role: "img", "aria-label": "The other run's state space", "aria-describedby": "map-help" });
    put(byId("compare"), el("div", { class: "controls" }, choice,
      el("button", { type: "button", id: "show-difference", onclick: () => act.colour("difference") }, "Show the difference on the map")),
      el("div", { class: "pair" }, el("div", { class: "canvas-box short" }, canvas), words));
    const other = await act.load(chosen);
    if (state.other !== chosen) return;
    if (!other) {
      put(words, el("p", { class: "note" }, "The other run cannot be shown (yet)."));
      return;
    }
    view = new onlooker.MapView(canvas, {
      look: () => ({ colour: state.colour === "difference" ? "cluster" : state.colour, field: state.field, paths: state.paths, names: null, highlight: null, trajectory: null, step: null, picked: state.picked && other.space.kind === run.space.kind ? { site: null, place: state.picked.place } : null }),
      pick: (place) => { if (other.space.sites.shape[1] === run.space.sites.shape[1]) act.pick({ site: matching(run, place.place), place: place.place }); },
    });
    onlooker.otherMap = view;
    view.setRun(other, state.x, state.y);
    let found;
    try {
      found = await run.source.compare(run.number, chosen);
    } catch (error) {
      found = { comparable: false, reason: error.message };
    }
    if (state.other !== chosen) return;
    put(words, told(run, other, found, act));
    const distance = onlooker.unpack(found.distance);
    run.difference = distance ? distance.values : null;
    onlooker.announce("difference");
  };

  onlooker.refreshCompare = () => {
    if (!view || !view.run) return;
    view.setRun(view.run, state.x, state.y);
    view.refresh();
  };

  // The node of `run` at exactly this place, if it has one.
  function matching(run, place) {
    const d = place.length;
    for (let i = 0; i < run.nSites; i++) {
      if (place.every((x, k) => run.space.sites.values[i * d + k] === x)) return i;
    }
    return null;
  }

  function told(run, other, found, act) {
    if (!found.comparable) return el("p", { class: "note" }, `These runs cannot be compared: ${found.reason}`);
    const sketch = (one) => [...one.counts].sort((a, b) => b.share - a.share).slice(0, 3).map(({ k, share }) => `${k} (${percent(share)})`).join(", ");
    const row = (name, words) => el("tr", {}, el("td", {}, name), el("td", { class: "words" }, words));
    return [
      el("table", {}, el("tbody", {},
        row("Controllers here", sketch(run)), row("Controllers there", sketch(other)),
        row("States of this run that the other has too", `${number(found.shared)} of ${number(found.nodes)}`),
        row("Agreement of the partitions", found.rand === null ? "no states in common" : `Rand index ${number(found.rand)} (1: the same, 0: chance), ${number(found.variation)} bits apart`),
        row("Distance of the policies", found.distance === null ? "their actions differ" : `${percent(found.mean)} of probability on average over ${number(found.asked)} states, at most ${percent(found.most)}`))),
      found.distance ? el("p", {}, el("button", { class: "linklike", type: "button", onclick: () => act.pick({ site: found.where, place: run.place(found.where) }) }, `Where they differ most: ${run.stateText(found.where)}`)) : null,
      el("p", { class: "caption" }, "A click asks both runs; the other one's probabilities are orange lines."),
    ];
  }
})();
