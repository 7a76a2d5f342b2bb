"use strict";
// What is shown, as a file: a picture (PNG, SVG) or a table (CSV).
(() => {
  function save(name, blob) {
    const link = onlooker.el("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  onlooker.exportPng = (view, name) => {
    const { canvas } = view;
    const copy = document.createElement("canvas");
    copy.width = canvas.width;
    copy.height = canvas.height;
    const context = copy.getContext("2d");
    context.fillStyle = onlooker.ink().card; // a canvas is transparent: on black paper, black on black
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(canvas, 0, 0);
    copy.toBlob((blob) => save(`${name}.png`, blob), "image/png");
  };

  onlooker.exportSvg = (view, name) => save(`${name}.svg`, new Blob([view.toSvg()], { type: "image/svg+xml" }));

  // A spreadsheet would compute text that starts with one of these.
  const shown = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);

  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${shown(text).replaceAll('"', '""')}"` : shown(text));

  // One row per node; clusters as shown: of the draw, or of the consensus.
  onlooker.exportCsv = (run, names, name) => {
    const abstract = run.space.kind === "abstract";
    const head = ["node"];
    if (run.space.states) head.push("state");
    if (!abstract) head.push(...run.space.axes.map(quoted));
    head.push("controller", "splinter");
    if (run.membership) head.push("certainty");
    if (run.spread) head.push("policy_spread");
    if (run.difference) head.push("difference");
    if (run.policy) for (let j = 0; j < run.nActions; j++) head.push(quoted(`p ${run.actions[j]}`));
    const rows = [head.join(",")];
    for (let i = 0; i < run.nNodes; i++) {
      const row = [i];
      if (run.space.states) row.push(run.stateOf(i));
      if (!abstract) row.push(...run.place(i));
      row.push((names[i] % run.n_reference) + 1, Math.floor(names[i] / run.n_reference));
      if (run.membership) row.push(run.membership.values[i]);
      if (run.spread) row.push(run.spread.values[i]);
      if (run.difference) row.push(Number.isNaN(run.difference[i]) ? "" : run.difference[i]);
      if (run.policy) row.push(...run.policy.values.subarray(i * run.nActions, (i + 1) * run.nActions));
      rows.push(row.join(","));
    }
    save(`${name}.csv`, new Blob([`${rows.join("\n")}\n`], { type: "text/csv" }));
  };
})();
