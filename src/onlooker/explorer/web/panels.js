"use strict";
// Sections that read a run: facts, convergence, controllers, doubts, hyper-parameters, how again.
(() => {
  const { el, put, byId, number, percent, plural } = onlooker;
  const WAIT = () => el("p", { class: "caption" }, "Computing …");

  const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names[0]);

  onlooker.panels = {
    facts(run, source) {
      const { data } = run;
      const kind = {
        real: run.space.features.length ? `states of ${listed(["position", ...run.space.features.map((one) => one.name)])}` : data.dims === 1 ? "states on a line" : `states in ${data.dims} dimensions`,
        grid: `states with coordinates in ${plural(data.dims, "dimension", "dimensions")}`,
        abstract: "numbered states",
      }[data.kind];
      const lengths = data.shortest === data.longest ? `${data.longest}` : `${data.shortest} to ${data.longest}`;
      const steps = `${plural(data.transitions, "step", "steps")}${data.step_time ? ` of ${data.step_time}` : ""} between ${number(data.nodes)} distinct ${kind}`;
      const seen = data.trajectories === null ? steps : `${plural(data.trajectories, "trajectory", "trajectories")} of ${lengths} states, ${steps}`;
      const actions = plural(data.actions, "action", "actions");
      const ways = !data.dynamics ? actions : data.dynamics.startsWith(actions) ? data.dynamics : `${actions} (${data.dynamics})`;
      const likely = run.counts.reduce((best, one) => (one.share > best.share ? one : best));
      const found = run.consensus && (run.consensus.n_acting ?? run.consensus.n_clusters);
      const tile = (value, words) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, words));
      const controllers = run.regions && el("ul", { class: "plain found", "aria-label": "The controllers with the most states" },
        run.regions.map((one) => el("li", {}, onlooker.sign(one.number, run.n_reference, 15), el("span", {}, `${one.number + 1}: ${one.text}`))));
      const more = run.regions ? found - run.regions.length : 0;
      const legend = "A controller is one way of acting, shared by all states of its colour. Those of the consensus partition, with 90 % intervals in brackets:";
      const below = [more > 0 ? `and ${number(more)} more, further down` : null, run.angles].filter(Boolean).join("; ");
      put(byId("facts"),
        el("div", {},
          run.in_short ? el("p", { class: "lead" }, onlooker.unbroken(run.in_short)) : null,
          run.regions ? el("p", { class: "caption" }, legend) : null,
          controllers,
          run.regions && below ? el("p", { class: "caption" }, `${below[0].toUpperCase()}${below.slice(1)}.`) : null,
          el("div", { class: "tiles" },
            tile(`${likely.k}`, `controllers most likely (${percent(likely.share)})`),
            tile(found === null ? "…" : number(found), `${found === 1 ? "controller" : "controllers"} in the consensus partition`),
            tile(`${run.draws.chains.length} × ${number(run.draws.n_draws)}`, "chains × draws"),
            run.verdict ? tile(el("span", { class: run.verdict.level }, SIGN[run.verdict.level]), run.verdict.title) : tile("…", "convergence"),
          )),
        el("div", {},
          el("p", {}, `Seen: ${seen}; no action was seen. Each step is explained by one of ${ways}. Prior: ${run.run.prior}.`),
          run.kinds ? el("p", {}, run.kinds) : null));
      const notes = [...run.notes];
      if (data.unidentifiable > 0) notes.push(`${percent(data.unidentifiable)} of the steps are equally likely under every action: they say nothing about the policy.`);
      if (!source.live) {
        const all = run.draws.chains.length * run.draws.n_draws;
        const inside = run.frames.reduce((sum, one) => sum + one.length, 0);
        if (inside < all) put(byId("footer"), `This file holds ${number(inside)} of the ${number(all)} draws, evenly spaced, to slide through; all other numbers come from all draws${run.at_nodes.n_draws < all ? `, but for the credible intervals at states, which come from ${number(run.at_nodes.n_draws)}` : ""}. The explorer (onlooker explore) has them all, and answers about states that were never visited.`);
        else put(byId("footer"), "This file holds all draws. The explorer (onlooker explore) also answers about states that were never visited.");
      } else put(byId("footer"), "Served to this machine only; nothing here can change the run.");
      put(byId("notes"), notes.map((words) => el("p", { class: "note" }, words)));
    },

    verdict(run) {
      const box = byId("verdict");
      const wasOpen = Boolean(box.querySelector("details[open]"));
      if (!run.verdict) return put(box, WAIT(), traces(run, box));
      const { level, title, sentences } = run.verdict;
      const rows = run.summary.map((row) => el("tr", {},
        el("td", {}, row.meaning), ...[row.mean, row.sd].map((x) => el("td", {}, number(x))),
        el("td", {}, `${number(row.q5)} to ${number(row.q95)}`), el("td", {}, row.ess === null ? "–" : number(Math.round(row.ess))),
        el("td", { class: row.fine ? "" : "bad" }, row.r_hat === null ? "–" : row.r_hat.toFixed(3), row.fine ? "" : " ✗")));
      return put(box,
        el("p", { class: `verdict-line ${level}` }, `${SIGN[level]} ${title}`), sentences.map((words) => el("p", {}, onlooker.unbroken(words))),
        traces(run, box),
        el("details", { open: wasOpen }, el("summary", {}, "All monitored quantities"),
          el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of diagnostics" }, el("table", {},
            el("thead", {}, el("tr", {}, ["", "mean", "sd", "90 % of draws", "ESS", "R-hat"].map((words) => el("th", { scope: "col" }, words)))),
            el("tbody", {}, rows)))));
    },

    count(run) {
      const box = byId("count");
      const top = [...run.counts].sort((a, b) => b.share - a.share).slice(0, 3);
      const words = top.map(({ k, share }) => `${k} (${percent(share)})`).join(", ");
      const found = run.consensus;
      put(box, el("p", {}, `Most likely: ${words}.`), onlooker.histogram(onlooker.widthOf(box), run.counts),
        found && el("p", { class: "caption" },
          `The consensus partition has ${plural(found.n_clusters, "cluster", "clusters")}${found.n_acting !== null && found.n_acting < found.n_clusters ? `, ${number(found.n_clusters - found.n_acting)} of them ends of trajectories without a step` : ""}. Of all partitions it has the least expected distance from the draws (${number(found.expected_loss)} bits of variation of information); ${found.n_agreeing} of ${found.n_restarts} searches found it. ${percent(found.level)} of the draws lie within ${number(found.radius)} bits; the farthest of these have ${found.fewest} to ${found.most} clusters.${found.provisional ? " It is provisional while sampling goes on." : ""}`));
    },

    unsure(run, act) {
      const box = byId("unsure");
      if (!run.unsure) return put(box, WAIT());
      const item = (node, value) => el("li", {},
        el("button", { class: "linklike", type: "button", onclick: () => act.pick({ site: node, place: run.place(node) }) }, run.stateText(node)),
        ` ${value(node)}`);
      const list = (nodes, value) => el("ul", { class: "plain" }, nodes.slice(0, 6).map((node) => item(node, value)));
      const shaky = run.membership.values.reduce((sum, m) => sum + (m < 0.5), 0) / run.nNodes;
      return put(box,
        el("p", {}, `${percent(shaky)} of the states have an uncertain region (membership < 50 %).`),
        el("h3", {}, "Least certain which controller"), list(run.unsure.membership, (node) => `with the rest of its region in ${percent(run.membership.values[node])} of draws`),
        el("h3", {}, "Least certain what is done"), list(run.unsure.policy, (node) => `± ${number(run.spread.values[node], 2)}`),
        el("p", { class: "caption" }, "Membership: mean probability of being together with the other states of its region. ±: root of the summed variances of the action probabilities."),
        el("div", { class: "controls" },
          el("button", { type: "button", onclick: () => act.colour("certainty") }, "Show certainty on the map"),
          el("button", { type: "button", onclick: () => act.colour("spread") }, "Show uncertainty of the policy")));
    },

    controllers(run, act) {
      const box = byId("controllers");
      if (!run.controllers) return put(box, WAIT());
      const worth = run.controllers.filter((one) => one.nodes > 1 || one.transitions > 0);
      const cards = worth.map((one) => {
        const likely = one.mean.indexOf(Math.max(...one.mean));
        const lit = onlooker.state.highlight === one.number;
        return el("article", {},
          el("h3", {}, onlooker.sign(one.number, run.n_reference, 16), `Controller ${one.number + 1}`,
            el("button", { type: "button", "aria-pressed": String(lit), onclick: () => act.highlight(lit ? null : one.number) }, "Show")),
          el("p", { class: "caption" }, `${plural(one.nodes, "state", "states")} (${percent(one.nodes / run.nNodes)}), ${plural(one.transitions, "step", "steps")}, certainty ${percent(one.certainty)}`),
          one.behaviours.length ? onlooker.doings(one) : null,
          onlooker.hasRose(run) ? onlooker.roseChart(run, one.mean, 96) : null,
          onlooker.actionBars(260, { ...one, height: 110, names: run.actions }),
          one.behaviours.length ? null : el("p", { class: "caption" }, `Likeliest: ${run.actions[likely]}, ${percent(one.mean[likely])}.`));
      });
      const idle = run.controllers.length - worth.length;
      const more = run.n_reference - run.controllers.length;
      return put(box, el("div", { class: "cards" }, cards),
        el("p", { class: "caption" }, `Bars: mean over the steps from the controller's states; lines: ${percent(run.level)} credible intervals.${idle > 0 ? ` Left out: ${plural(idle, "cluster", "clusters")} of a single state without a step.` : ""}${more > 0 ? ` ${number(more)} smaller clusters are not listed.` : ""}`));
    },

    hyper(run) {
      put(byId("hyper"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of hyper-parameters" }, el("table", { class: "narrow" },
        el("thead", {}, el("tr", {}, ["", "value", "90 % of draws"].map((words) => el("th", { scope: "col" }, words)))),
        el("tbody", {}, run.hyper.map((row) => el("tr", {},
          el("td", {}, row.text, el("br"), el("span", { class: "caption" }, row.does),
            row.prior ? [el("br"), el("span", { class: "caption" }, `prior: ${row.prior}`)] : null),
          el("td", {}, row.drawn ? `${number(row.mean)} ± ${number(row.sd, 2)}` : number(row.mean)),
          el("td", {}, row.drawn ? `${number(row.low)} to ${number(row.high)}` : "fixed")))))));
    },

    again(run) {
      const about = run.run;
      const versions = Object.entries(about.versions).map(([name, version]) => `${name} ${version}`).join(", ");
      put(byId("again"),
        el("p", {}, "Groups of states share a controller, a distribution over actions; which states belong together, how many controllers there are and which action each step was are inferred jointly, by Gibbs sampling."),
        about.command ? [el("p", {}, "Command"), el("pre", {}, about.command)] : null,
        el("p", {}, "In Python"), el("pre", {}, about.call),
        el("dl", {}, el("dt", {}, "Seed"), el("dd", {}, about.seed), el("dt", {}, "Versions"), el("dd", {}, versions),
          el("dt", {}, "Started"), el("dd", {}, about.created), el("dt", {}, "Shown by"), el("dd", {}, `onlooker ${about.shown_by}`)));
    },
  };

  const SIGN = { good: "✓", fair: "≈", bad: "✗", unknown: "?" };

  function traces(run, box) {
    const width = Math.min(640, Math.max(280, box.clientWidth / run.traces.rows.length - 16));
    return [
      el("div", { class: "small-multiples" }, run.traces.rows.map((row) => el("figure", { class: "trace" },
        el("figcaption", { class: "caption" }, row.meaning),
        onlooker.trace(width, onlooker.unpack(row.values), run.traces.step, row.meaning, run.draws.chains)))),
      el("p", { class: "caption" }, "One line per chain: ", run.draws.chains.map((id, k) => el("span", { class: "chip" },
        onlooker.svg("svg", { width: 18, height: 8, "aria-hidden": "true" }, onlooker.svg("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: onlooker.chainColour(k), "stroke-width": 3 })), `chain ${id}`)),
        run.draws.chains.length > 1 ? "Chains that agree overlap." : ""),
    ];
  }
})();
