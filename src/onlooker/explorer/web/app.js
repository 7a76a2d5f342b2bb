"use strict";
// Puts the page together and keeps it up to date.
(() => {
  const { el, put, byId, number, state, set, listen } = onlooker;
  const source = onlooker.source();
  const FRAMES_A_SECOND = 20;
  let runs = []; // as the server lists them
  const loaded = new Map(); // number -> Run
  let run = null;
  let view = null;
  let names = null; // of the draw that is shown; null: the consensus
  let controls = {};

  // -- theme --------------------------------------------------------------------------------------

  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const THEMES = ["auto", "light", "dark"];
  let theme = "auto";
  function applyTheme() {
    const dark = theme === "dark" || (theme === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").textContent = `Theme: ${theme}`;
    if (run) renderAll();
  }
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % 3];
    applyTheme();
  });
  system.addEventListener("change", applyTheme);

  // -- what can be done ---------------------------------------------------------------------------

  const act = {
    pick: (picked) => set({ picked }),
    colour: (colour) => {
      set({ colour });
      byId("map-title").scrollIntoView({ block: "nearest" });
    },
    highlight: (highlight) => set({ highlight }),
    trajectory: (trajectory, step) => set({ trajectory, step }),
    step: (step) => set({ step }),
    other: (other) => set({ other }),
    load: async (k) => {
      try {
        return runs[k] && runs[k].ready ? await load(k) : null;
      } catch {
        return null;
      }
    },
  };

  async function load(k) {
    const had = loaded.get(k);
    if (had && had.version >= runs[k].version) return had;
    const fresh = new onlooker.Run(source, k, await source.overview(k));
    if (had && had.difference && had.nNodes === fresh.nNodes) fresh.difference = had.difference;
    loaded.set(k, fresh);
    return fresh;
  }

  const other = () => (state.other === null ? null : loaded.get(state.other) || null);

  // -- the map and its controls -------------------------------------------------------------------

  function makeMap() {
    const tip = byId("tip");
    view = new onlooker.MapView(byId("map"), {
      look: () => ({ ...state, names }),
      pick: act.pick,
      fits: true,
      told: renderCaption,
      moved: writeLink,
      hover: (x, y) => {
        if (x === null) {
          tip.hidden = true;
          return;
        }
        const [site, away] = view.siteAt(x, y);
        tip.hidden = away > 20;
        if (tip.hidden) return;
        tip.textContent = tipText(site);
        const room = byId("map").clientWidth;
        tip.style.left = `${Math.min(x + 12, room - tip.offsetWidth - 4)}px`;
        tip.style.top = `${Math.max(0, y - 34)}px`;
      },
    });
    onlooker.mainMap = view; // for the tests and benchmarks
  }

  function tipText(site) {
    if (site >= run.nNodes) return `${run.stateText(site)}, never visited`;
    const name = (names || run.reference.values)[site];
    const sure = run.membership ? `, certainty ${onlooker.percent(run.membership.values[site])}` : "";
    const splinter = name >= run.n_reference ? ", a splinter" : "";
    return `${run.stateText(site)}: controller ${(name % run.n_reference) + 1}${splinter}${sure}`;
  }

  function choice(label, id, options, value, onchange) {
    const select = el("select", { id, onchange: (event) => onchange(event.target.value) },
      options.map(([key, words]) => el("option", { value: String(key) }, words)));
    select.value = String(value);
    return el("label", {}, label, select);
  }

  function renderMapControls() {
    const axes = onlooker.axesOf(run);
    const abstract = run.space.kind === "abstract";
    const colours = [["cluster", "controller"], ...Object.entries(onlooker.scales)
      .filter(([, scale]) => scale.of(run)).map(([key, scale]) => [key, scale.label.toLowerCase()])];
    const named = axes.map((axis, k) => [k, axis.name]).filter(([, name]) => name);
    const pairs = !abstract && named.length > 2;
    put(byId("map-controls"),
      pairs ? [choice("Across", "axis-x", named, state.x, (v) => set({ x: Number(v) })), choice("Up", "axis-y", named, state.y, (v) => set({ y: Number(v) }))] : null,
      choice("Colour", "colour", colours, state.colour, (v) => set({ colour: v })),
      run.node_moves && !abstract ? choice("Policy", "field", [["arrows", "arrows"], ...(run.space.sites.shape[1] > 1 ? [["roses", "roses"]] : []), ["none", "hidden"]], state.field, (v) => set({ field: v })) : null,
      run.paths ? el("label", {}, el("input", { type: "checkbox", id: "paths", checked: state.paths, onchange: (event) => set({ paths: event.target.checked }) }), "all trajectories") : null,
      onlooker.hasMarks(run) ? el("label", {}, el("input", { type: "checkbox", id: "behaviours", checked: state.behaviours, onchange: (event) => set({ behaviours: event.target.checked }) }), "goals and directions") : null,
      el("button", { type: "button", onclick: () => view.zoomBy(1.4, ...centre()), "aria-label": "Zoom in" }, "+"),
      el("button", { type: "button", onclick: () => view.zoomBy(1 / 1.4, ...centre()), "aria-label": "Zoom out" }, "−"),
      el("button", { type: "button", onclick: () => view.reset(true) }, "Show all"));
  }
  // What was chosen elsewhere shows in the menus, which keep the focus.
  function syncChoices() {
    for (const [id, value] of [["axis-x", state.x], ["axis-y", state.y], ["field", state.field], ["colour", state.colour]]) {
      if (byId(id)) byId(id).value = String(value);
    }
  }
  const centre = () => [byId("map").clientWidth / 2, byId("map").clientHeight / 2];

  function renderDrawControls() {
    const { chains } = run.draws;
    const chain = state.frame ? state.frame.chain : 0;
    const frames = run.frames[chain];
    const slider = el("input", { type: "range", id: "draw", min: "0", max: String(frames.length - 1), value: String(state.frame ? state.frame.index : 0), "aria-label": "Draw",
      oninput: (event) => set({ frame: { chain: Number(controls.chain.value), index: Number(event.target.value) } }) });
    const which = el("select", { id: "chain", onchange: () => set({ frame: { chain: Number(controls.chain.value), index: Number(slider.value) } }) },
      chains.map((id, k) => el("option", { value: String(k) }, String(id))));
    which.value = String(chain);
    const play = el("button", { type: "button", id: "play", "aria-pressed": "false", onclick: togglePlay }, "Play");
    const consensus = el("button", { type: "button", id: "consensus", onclick: () => set({ frame: null }) }, "Consensus");
    const words = el("output", { id: "draw-words", for: "draw" });
    controls = { slider, chain: which, play, consensus, words };
    put(byId("draw-controls"), consensus, el("label", {}, "Chain", which), play, slider, words);
    renderFrameWords();
  }

  function renderFrameWords() {
    const shown = state.frame;
    controls.consensus.setAttribute("aria-pressed", String(!shown));
    const waiting = run.is_consensus ? "the consensus of all draws" : "the last draw, until the consensus is found";
    controls.words.textContent = shown ? `draw ${number(run.frames[shown.chain].at(shown.index))} of chain ${run.draws.chains[shown.chain]}` : waiting;
  }

  let playing = null;
  function togglePlay() {
    if (playing !== null) {
      clearInterval(playing);
      playing = null;
    } else {
      playing = setInterval(() => {
        const at = state.frame || { chain: Number(controls.chain.value), index: -1 };
        const index = (at.index + 1) % run.frames[at.chain].length;
        controls.slider.value = String(index);
        set({ frame: { chain: at.chain, index } });
      }, 1000 / FRAMES_A_SECOND);
    }
    controls.play.setAttribute("aria-pressed", String(playing !== null));
    controls.play.textContent = playing !== null ? "Pause" : "Play";
  }

  let wanted = null;
  function showFrame() {
    wanted = state.frame;
    renderFrameWords();
    if (!wanted) {
      names = null;
      view.refresh();
      renderCaption();
      return;
    }
    const found = run.names(wanted.chain, wanted.index);
    if (found instanceof Uint16Array) {
      names = found;
      view.refresh();
    } else {
      const mine = wanted;
      found.then((block) => {
        if (wanted !== mine) return; // the slider has moved on
        names = block;
        view.refresh();
      }).catch(() => {}); // a run that grew: the next overview is on its way
    }
    if (source.live) run.prefetch(wanted.chain, wanted.index);
    renderCaption();
  }

  function renderCaption() {
    const what = state.colour === "cluster"
      ? `Colour and shape: ${state.frame ? "the controllers of this draw, named after the consensus; hollow: parts that split off, which the consensus does not have" : run.is_consensus ? "the controllers of the consensus partition" : "the controllers of the last draw"}.`
      : `Colour: ${onlooker.scales[state.colour].label.toLowerCase()}.`;
    const words = { arrows: " Arrows: the mean policy of the states nearby.", roses: " Roses: the mean policy of the states nearby; petals point from the middle to where actions lead, the longer the likelier." };
    const field = run.node_moves && run.space.kind !== "abstract" ? words[state.field] || "" : "";
    const others = run.space.kind === "real" && run.space.sites.shape[1] > 2 ? " A click takes the coordinates that are not shown from the nearest state." : "";
    const unseen = run.nSites > run.nNodes ? " Empty: never visited." : "";
    const ends = run.nEnds > 0 ? " Faded: states from which no step was seen, as at the ends of trajectories." : "";
    const far = view.farOff > 0 ? ` ${onlooker.plural(view.farOff, "state lies", "states lie")} far off and out of view: “Show all” zooms out.` : "";
    const kinds = state.behaviours ? onlooker.markKinds(run) : [];
    const marks = kinds.length ? ` ${kinds.join("; ")}; larger: more often.` : "";
    const caption = what + field + marks + ends + unseen + others + far;
    if (byId("map-caption").textContent !== caption) byId("map-caption").textContent = caption;
  }

  function renderLegend() {
    const scale = state.colour === "cluster" ? null : onlooker.scales[state.colour];
    if (scale) {
      const values = scale.of(run);
      const top = scale.top || onlooker.highest(values);
      const bars = Array.from({ length: 40 }, (_, k) => onlooker.svg("rect", { x: 5 * k, width: 5.5, height: 12, fill: onlooker.ramp(k / 39) }));
      put(byId("legend"), el("span", { class: "scale" }, `0, ${scale.low}`, onlooker.svg("svg", { width: 200, height: 12, "aria-hidden": "true" }, bars), `${scale.high}, ${number(top)}`));
      return;
    }
    const sizes = new Map();
    for (const name of run.reference.values) sizes.set(name, (sizes.get(name) || 0) + 1);
    const shown = [...sizes].sort((a, b) => b[1] - a[1]).slice(0, 48);
    put(byId("legend"), shown.map(([c, size]) => el("button", {
      type: "button", "aria-pressed": String(state.highlight === c), title: `Controller ${c + 1}: ${number(size)} states`,
      onclick: () => act.highlight(state.highlight === c ? null : c),
    }, onlooker.sign(c, run.n_reference), String(c + 1))),
    sizes.size > shown.length ? el("span", {}, `and ${sizes.size - shown.length} smaller`) : null);
  }

  function renderExport() {
    const name = () => {
      const shown = state.frame ? `chain${run.draws.chains[state.frame.chain]}-draw${run.frames[state.frame.chain].at(state.frame.index)}` : "consensus";
      return `${runs[run.number].name}-${shown}`;
    };
    const button = (id, words, go) => el("button", { type: "button", id, onclick: go }, words);
    put(byId("export-controls"), "Save what is shown:",
      button("save-png", "PNG", () => onlooker.exportPng(view, name())),
      button("save-svg", "SVG", () => onlooker.exportSvg(view, name())),
      button("save-csv", "CSV", () => onlooker.exportCsv(run, names || run.reference.values, name())));
  }

  // -- all of it ----------------------------------------------------------------------------------

  const sections = ["facts", "verdict", "count", "unsure", "controllers", "hyper", "again"];
  function renderSections() {
    for (const name of sections) onlooker.panels[name](run, name === "facts" ? source : act);
  }
  function renderAll() {
    const hand = heldByHand();
    renderEverything();
    hand();
  }

  // A page that follows a run is made anew under its reader's hands: keep the focus and the typing.
  function heldByHand() {
    const focus = document.activeElement && document.activeElement.id;
    const typed = [...document.querySelectorAll("#ask input, #trajectory-number")].map((input) => [input.id, input.value]);
    return () => {
      for (const [id, value] of typed) if (byId(id) && value) byId(id).value = value;
      if (focus && byId(focus) && document.activeElement !== byId(focus)) byId(focus).focus({ preventScroll: true });
    };
  }

  function renderEverything() {
    byId("content").hidden = false;
    byId("trouble").hidden = true;
    clampChoices();
    view.setRun(run, state.x, state.y);
    view.canvas.setAttribute("aria-label", `Map of ${number(run.nNodes)} states, coloured by controller. ${run.counts.length ? `${run.n_reference} controllers.` : ""}`);
    renderMapControls();
    renderDrawControls();
    renderLegend();
    renderExport();
    renderSections();
    onlooker.askForm(run, act);
    onlooker.showDetail(run, other(), act);
    onlooker.showTrajectory(run, act);
    showFrame();
    view.refresh();
  }

  // A run that was replaced or has grown may lack what was chosen.
  function clampChoices() {
    const n = onlooker.axesOf(run).length;
    state.x = Math.min(state.x, n - 1);
    state.y = Math.min(state.y, n - 1);
    if (state.frame && (state.frame.chain >= run.frames.length || state.frame.index >= run.frames[state.frame.chain].length)) state.frame = null;
    if (state.colour !== "cluster" && !onlooker.scales[state.colour].of(run)) state.colour = "cluster";
    if (state.highlight !== null && state.highlight >= run.n_reference) state.highlight = null;
  }

  function renderTrouble(one) {
    byId("content").hidden = true;
    byId("trouble").hidden = false;
    byId("trouble-title").textContent = one.state === "broken" ? "This run cannot be shown" : "Nothing to show yet";
    put(byId("trouble-text"), one.text, one.changing ? " This page updates itself." : "");
  }

  function renderHead() {
    const one = runs[state.run];
    byId("title").textContent = one.name;
    byId("state").textContent = one.text;
    document.title = `${one.name} · onlooker`;
    byId("run-choice").hidden = runs.length < 2;
    put(byId("run"), runs.map((item, k) => el("option", { value: String(k) }, item.name)));
    byId("run").value = String(state.run);
  }

  async function show() {
    const one = runs[state.run];
    renderHead();
    if (!one.ready) {
      renderTrouble(one);
      return;
    }
    const fresh = await load(state.run);
    if (run === fresh && !byId("content").hidden) return;
    const moved = !run || run.number !== fresh.number;
    run = fresh;
    if (moved) for (const id of ["ask", "trajectory"]) put(byId(id)); // another run has others
    if (moved) Object.assign(state, { frame: null, picked: null, trajectory: null, step: null, highlight: null, x: 0, y: 1 });
    if (moved) readLink();
    renderAll();
    if (moved) compare();
  }

  // -- the address --------------------------------------------------------------------------------

  let linked = window.location.hash.slice(1); // what the address asked for, until it is shown
  let writing = null;
  function readLink() {
    if (linked === null) return;
    const { changes, view: from } = onlooker.readLink(linked, run);
    linked = null;
    Object.assign(state, changes);
    view.setRun(run, state.x, state.y);
    if (from) view.seen(from);
  }
  function writeLink() {
    if (linked !== null || !run || writing !== null) return;
    writing = setTimeout(() => {
      writing = null;
      const hash = `#${onlooker.linkOf(run, view)}`;
      if (hash !== (window.location.hash || "#")) window.history.replaceState(null, "", hash === "#" ? window.location.pathname + window.location.search : hash);
    }, 250);
  }

  function compare() {
    const others = runs.map((one, k) => ({ number: k, name: one.name })).filter((one) => one.number !== run.number);
    if (state.other === run.number) state.other = null;
    onlooker.showCompare(run, others, act);
  }

  // -- listening ----------------------------------------------------------------------------------

  listen(["run", "x", "y", "field", "colour", "behaviours", "paths", "frame", "highlight", "picked", "trajectory", "step"], writeLink);
  listen(["x", "y", "field", "colour"], syncChoices);
  listen(["x", "y"], () => { view.setRun(run, state.x, state.y); onlooker.refreshCompare(); });
  listen(["colour"], () => { renderLegend(); renderCaption(); });
  listen(["field", "behaviours"], renderCaption);
  listen(["highlight"], () => { renderLegend(); onlooker.panels.controllers(run, act); });
  listen(["frame"], showFrame);
  listen(["picked"], () => { onlooker.fillAsk(state.picked); onlooker.showDetail(run, other(), act); });
  listen(["trajectory"], () => onlooker.showTrajectory(run, act));
  listen(["step"], () => onlooker.showStep(run, act));
  listen(["other"], compare);
  listen(["difference"], () => { renderMapControls(); onlooker.showDetail(run, other(), act); });
  listen(["colour", "field", "behaviours", "paths", "highlight", "picked", "trajectory", "step", "difference"], () => view.refresh());
  listen(["colour", "field", "behaviours", "paths", "picked"], onlooker.refreshCompare);
  byId("run").addEventListener("change", (event) => {
    state.run = Number(event.target.value);
    writeLink();
    show();
  });

  let resizing = null;
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (!run) return;
      renderSections();
      onlooker.showDetail(run, other(), act);
      onlooker.showTrajectory(run, act);
    }, 150);
  });

  // Ask for news for as long as there may be some; a server that is gone is asked less and less.
  async function follow() {
    let pause = 250;
    for (;;) {
      try {
        runs = await source.runs(runs.map((one) => one.version));
        await show();
        pause = 250;
        if (!source.live) return;
      } catch {
        byId("state").textContent = "The explorer does not answer: it was stopped, or the run is being replaced.";
        pause = Math.min(2 * pause, 10000);
      }
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  async function begin() {
    applyTheme();
    makeMap();
    try {
      runs = await source.runs();
      state.run = onlooker.runOfLink(linked, runs.length);
      await show();
    } catch (error) {
      renderTrouble({ state: "broken", text: `The page could not be filled: ${error.message}` });
      byId("state").textContent = "";
    }
    if (source.live) follow();
    document.documentElement.dataset.up = "yes";
  }
  begin();
})();
