"use strict";
// What is known at a place, and along a trajectory.
(() => {
  const { el, put, byId, number, percent, state } = onlooker;
  let asked = 0;

  // The form to name a state with the keyboard.
  onlooker.askForm = (run, act) => {
    const box = byId("ask");
    const real = run.space.kind === "real";
    const { n_position } = run.space;
    const names = real ? run.space.axes.slice(0, n_position) : ["state"];
    const inputs = names.map((name, k) => el("input", { type: "number", step: real ? "any" : "1", min: real ? null : "0", required: true, "aria-label": name, id: `ask-${k}` }));
    put(box, el("form", {
      class: "controls",
      onsubmit: (event) => {
        event.preventDefault();
        const values = inputs.map((input) => Number(input.value));
        if (!real) {
          const site = run.space.states.values.indexOf(values[0]);
          if (site < 0) put(byId("detail"), el("p", { class: "note" }, `There is no state ${values[0]}.`));
          else act.pick({ site, place: run.place(site) });
        } else {
          const near = run.nearestTo(values);
          act.pick(run.source.live ? { site: null, place: run.filled(values) } : { site: near, place: run.place(near) });
        }
      },
    }, names.map((name, k) => el("label", {}, name, inputs[k])), el("button", { type: "submit" }, "Ask")));
    onlooker.fillAsk = (picked) => {
      if (!picked) return;
      const values = real ? picked.place.slice(0, n_position) : [run.stateOf(picked.site)];
      values.forEach((value, k) => { inputs[k].value = real ? Number(value.toPrecision(8)) : value; });
    };
    onlooker.fillAsk(state.picked);
  };

  onlooker.showDetail = async (run, other, act) => {
    const box = byId("detail");
    const { picked } = state;
    if (!picked) {
      const anywhere = run.source.live ? "Click any point of the map, visited or not" : "Click a state on the map";
      return put(box, el("p", { class: "caption" }, `${anywhere}, to see what is done there, how sure that is, and who was near.`));
    }
    if (!run.source.live && picked.site >= run.nNodes) {
      return put(box, el("p", {}, el("b", {}, run.stateText(picked.site)), ", never visited"),
        el("p", { class: "caption" }, "This file knows the states that were visited; the explorer (onlooker explore) answers about all others too."));
    }
    const question = ++asked;
    const began = performance.now();
    const where = picked.site === null ? picked.place : run.stateOf(picked.site);
    let answer;
    try {
      answer = run.source.live ? await run.source.at(run.number, where) : run.answer(picked.site);
    } catch (error) {
      if (question === asked) put(box, el("p", { class: "note" }, `No answer: ${error.message}`));
      return null;
    }
    if (question !== asked) return null; // another place was asked for meanwhile
    let there = null;
    if (other && run.source.live) {
      try {
        there = await other.source.at(other.number, where);
      } catch { /* the other run may have states of another kind */ }
      if (question !== asked) return null;
    }
    put(box, answered(run, other, picked, answer, there, act, onlooker.widthOf(box)));
    box.dataset.took = String(Math.round(performance.now() - began));
    return null;
  };

  function answered(run, other, picked, answer, there, act, width) {
    const site = picked.site !== null ? picked.site : answer.node >= 0 ? answer.node : null;
    const visited = answer.node >= 0;
    const title = site !== null ? run.stateText(site) : run.placeText(picked.place);
    const likely = answer.mean.indexOf(Math.max(...answer.mean));
    const rose = onlooker.hasRose(run);
    const near = run.nearest(picked.place, picked.site === null ? run.nNodes : picked.site);
    const same = there && there.mean.length === answer.mean.length ? there.mean : null;
    const beside = rose && width >= 360;
    const chart = beside ? width - 140 : width;
    return [
      el("p", {}, el("b", {}, title), visited ? "" : ", never visited: what is known comes from its neighbours"),
      el("p", {}, `Likeliest: ${run.actions[likely]}, ${percent(answer.mean[likely])} (${percent(answer.level)} interval ${percent(answer.low[likely])} to ${percent(answer.high[likely])}).`),
      el("div", { class: `rose-and-bars${beside ? " both" : ""}` },
        rose ? onlooker.roseChart(run, answer.mean, 130) : null,
        onlooker.actionBars(chart, { ...answer, other: same, names: run.actions })),
      same ? el("p", { class: "caption" }, "Orange lines: the other run.") : null,
      el("h3", {}, "Controllers it may belong to"), onlooker.shareBars(answer.candidates.slice(0, 6), run.n_reference),
      el("h3", {}, "Nearest demonstrations"),
      near.length ? el("ul", { class: "plain" }, near.map((one) => el("li", {},
        el("button", { class: "linklike", type: "button", onclick: () => act.trajectory(one.trajectory, one.step) }, `trajectory ${run.called(one.trajectory)}, step ${one.step}`),
        one.distance > 0 ? `, ${number(one.distance)}${run.space.meridian === null ? "" : " km"} away` : ", at this place")))
        : el("p", { class: "caption" }, run.paths ? "No trajectory was here." : "This run holds single steps, not trajectories."),
    ];
  }

  onlooker.showTrajectory = (run, act) => {
    const box = byId("trajectory");
    if (!run.paths) return put(box, el("p", { class: "caption" }, "This run holds single steps, not trajectories."));
    const k = state.trajectory;
    const form = el("div", { class: "controls" }, trajectoryField(run, act, k),
      k === null ? el("button", { type: "button", id: "oddest", onclick: () => act.trajectory(onlooker.oddest(run), null), disabled: !run.anomaly, title: whyOddest(run) }, "The oddest")
        : el("button", { type: "button", onclick: () => act.trajectory(null, null) }, "None"));
    if (k === null) return put(box, form, el("p", { class: "caption" }, "Choose a trajectory to see it on the map, with how surprising each of its steps is."));
    const path = run.trajectory(k);
    if (!path.surprise) return put(box, form, el("p", { class: "caption" }, run.data.unseen ? "The surprise of its steps is not shown: some states were not seen." : "Computing …"));
    const odd = run.odd(path).filter(Boolean).length;
    const rare = path.p_value ? "more surprising than 98 % of simulated steps" : "among the 5 % most surprising of this run";
    const t = state.step === null ? null : Math.min(state.step, path.surprise.length - 1);
    const slider = el("input", { type: "range", min: "0", max: String(path.surprise.length - 1), value: String(t ?? 0), "aria-label": "Step of the trajectory",
      oninput: (event) => act.step(Number(event.target.value)) });
    const chart = el("div", { id: "surprise" }, onlooker.surpriseChart(onlooker.widthOf(box), run, path, t, act.step));
    const words = el("p", { id: "step-words" }, stepWords(run, path, t));
    put(box, form,
      judged(run, k),
      el("p", {}, `${odd === 0 ? "None" : odd} of its ${path.surprise.length} steps ${odd < 2 ? "is" : "are"} ${rare}.`),
      chart, el("div", { class: "controls" }, el("label", { class: "long" }, "Step", slider)), words,
      el("p", { class: "caption" }, `Surprise of a step: −ln of its predictive density. ${path.expected ? "Short lines: the expected surprise at that state; orange: more surprising than 98 % of simulated steps." : "Dashed: 95 % of all steps lie below."} The run was fitted to these very steps, so they look less odd than they are.`));
    return null;
  };

  // The field to choose a trajectory with: a number, or a name where there are names.
  function trajectoryField(run, act, k) {
    const n = run.data.trajectories;
    const { names } = run.paths;
    const kind = names ? { type: "text", list: "trajectory-names", size: String(Math.min(24, Math.max(12, 3 + run.called(0).length))), autocomplete: "off", placeholder: `as ${run.called(0)}` }
      : { type: "number", min: "0", max: String(n - 1), placeholder: `0 – ${n - 1}` };
    const input = el("input", { ...kind, id: "trajectory-number", value: k === null ? "" : run.called(k),
      oninput: (event) => event.target.setCustomValidity(""),
      onchange: (event) => {
        const words = event.target.value.trim();
        const found = run.calledSo(words);
        if (found !== null || words === "") return act.trajectory(found, null);
        event.target.setCustomValidity(`There is no trajectory ${words}.`);
        return event.target.reportValidity();
      } });
    const list = names && el("datalist", { id: "trajectory-names" }, names.map((_, i) => el("option", { value: run.called(i) })));
    return [el("label", {}, "Trajectory", input), list];
  }

  // The trajectory as a whole, among all of the run.
  function judged(run, k) {
    if (!run.anomaly) return null;
    const { score, p_combined, p_change, onset, end, n_unexplained, behaviour } = run.anomaly[k];
    const words = [`Score ${number(score)}${p_combined === null ? "" : `; ${percent(p_combined)} of the trajectories of this run are at least as odd in some respect`}.`];
    if (n_unexplained > 0) words.push(`No action explains ${onlooker.plural(n_unexplained, "step", "steps")}.`);
    if (p_change !== null && p_change <= 0.05 && onset >= 0) words.push(`Its behaviour seems to change from step ${onset} to ${end}.`);
    if (behaviour) words.push(`Best explained by: ${behaviour}.`);
    return el("p", {}, words.join(" "));
  }

  // Only what depends on the step, so that a slider keeps the focus.
  onlooker.showStep = (run, act) => {
    if (state.trajectory === null || !run.steps || !byId("surprise")) return;
    const path = run.trajectory(state.trajectory);
    const t = state.step === null ? null : Math.min(state.step, path.surprise.length - 1);
    put(byId("surprise"), onlooker.surpriseChart(onlooker.widthOf(byId("trajectory")), run, path, t, act.step));
    put(byId("step-words"), stepWords(run, path, t));
  };

  function stepWords(run, path, t) {
    if (t === null) return "Choose a step to see it on the map.";
    const recorded = run.recorded(state.trajectory, t);
    return `Step ${t}${recorded && ` (${recorded})`}: ${run.stateText(path.nodes[t])} → ${run.stateText(path.nodes[t + 1])}; surprise ${number(path.surprise[t])}; ${run.actions[path.action[t]]} in ${percent(path.share[t])} of draws.`;
  }

  // The oddest trajectory: fewest others are as odd; of several, that of the largest score.
  onlooker.oddest = (run) => {
    const rank = run.anomaly.map(({ p_combined, score }, k) => ({ k, p: p_combined ?? 1, score: score ?? Infinity })); // null: infinite
    rank.sort((a, b) => a.p - b.p || (a.score === b.score ? a.k - b.k : b.score - a.score));
    return rank[0].k;
  };

  function whyOddest(run) {
    if (run.anomaly) return "The trajectory that stands out most in this run";
    if (run.run.growing) return "Trajectories are compared once the run has ended";
    if (run.data.unseen) return "Trajectories are not compared where states were not seen";
    if (!run.complete) return "Trajectories are still being compared";
    return "The trajectories of this run were not compared: it has too many steps, or its dynamics are not stored";
  }
})();
