"""Tables and figures of ``docs/benchmarks.md``, made from the results: nobody copies a number.

The page is written by hand but for what stands between ``<!-- results: NAME -->`` and
``<!-- end -->``, which is replaced by what benchmark NAME found last. Figures go to
``docs/images/bench_*.png``. The README has one such place, *compared*. A quick look makes its own
page and figures, in ``.benchmarks/page``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _results
from benchmarks.__main__ import ON_DEMAND, names
from benchmarks._measure import markdown

PAGE = _results.ROOT / "docs" / "benchmarks.md"
README = _results.ROOT / "README.md"
IMAGES = _results.ROOT / "docs" / "images"
BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_COLOURS = (
    "#000000", "#999999", "#56B4E9", "#0072B2", "#009E73", "#E69F00", "#D55E00", "#CC79A7",
)  # fmt: skip


def make(quick: bool) -> None:
    """Fill the page in and draw the figures."""
    entries = _results.read(_results.place(quick))
    page, images = PAGE, IMAGES
    if quick:
        images = _results.QUICK.parent / "page" / "images"
        page = images.parent / "benchmarks.md"
    images.mkdir(parents=True, exist_ok=True)
    page.write_text(fill_in(PAGE.read_text(), entries))
    if not quick:
        README.write_text(fill_in(README.read_text(), entries))
    draw(entries, images)
    print(f"made {page.relative_to(_results.ROOT)} from {len(entries)} results")


def fill_in(text: str, entries: dict[str, Any]) -> str:
    """The page with every block as the results have it."""

    def block(found: re.Match[str]) -> str:
        name = found[2]
        made = {"machine": _about, "compared": _compared}.get(name)
        lines = _entry(name, entries) if made is None else made(entries)
        return found[1] + ("\n" + "\n".join(lines) + "\n\n" if lines else "") + found[3]

    return BLOCK.sub(block, text)


def places(text: str) -> list[str]:
    """The names of the benchmarks that a page has a block for."""
    return [found[2] for found in BLOCK.finditer(text)]


# -- words and tables ------------------------------------------------------------------------------


def _about(entries: dict[str, Any]) -> list[str]:
    """Machine and dates of all results: one line a machine."""
    if not entries:
        return ["Nothing is measured yet: `make bench`."]
    lines = []
    machines = {tuple(sorted(e["machine"].items())): e["machine"] for e in entries.values()}
    for machine in machines.values():
        own = [e for e in entries.values() if e["machine"] == machine]
        dates = sorted({e["date"][:10] for e in own})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        minutes = sum(e["seconds"] for e in own) / 60
        many = "benchmark" if len(own) == 1 else "benchmarks"
        versions = ", ".join(f"{name} {machine[name]}" for name in _results.VERSIONS)
        lines.append(
            f"Measured {when} on {machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_gb']} GB, {machine['system']}; Python {machine['python']}, "
            f"{versions}. {len(own)} {many}, {minutes:.0f} minutes in all."
        )
    return lines


def _compared(entries: dict[str, Any]) -> list[str]:
    """The README's table: mean errors of all methods on the grid, the least of a column in bold."""
    if "repertoires" not in entries:
        return []
    means = entries["repertoires"]["data"]["means"]
    cells = [cell for cell in means if cell.startswith(("2a", "2b"))]
    methods = list(dict.fromkeys(method for cell in cells for method in means[cell]))
    sizes = [cell.partition(", ")[2] for cell in cells]
    for part, expert in (("2a", "circling"), ("2b", "optimal")):
        first = next(k for k, cell in enumerate(cells) if cell.startswith(part))
        sizes[first] = f"{expert}: {sizes[first]}"
    rows = []
    for method in methods:
        row = ["ddCRP, the paper's settings" if method == "ddCRP" else method]
        for cell in cells:
            errors = {m: f"{found['mean']:.3f}" for m, found in means[cell].items()}
            error = errors.get(method, "–")
            row.append(f"**{error}**" if error == min(errors.values()) else error)
        rows.append(row)
    return markdown({"header": ["trajectories", *sizes], "rows": rows})


def _entry(name: str, entries: dict[str, Any]) -> list[str]:
    if name not in entries and name in ON_DEMAND:
        return []  # what is written by hand says enough
    if name not in entries:
        return [f"Not measured yet: `python -m benchmarks {name}`."]
    entry = entries[name]
    lines = []
    for table in entry["tables"]:
        lines += [f"{table['title']}:", "", *markdown(table), ""]
    for note in entry["notes"]:
        lines += [note, ""]
    if name in FIGURES:
        image, says, _ = FIGURES[name]
        lines += [f"![{says}](images/{image})", ""]
    if name not in names():
        version = entry["machine"]["onlooker"]
        return [*lines, f"*Measured {entry['date']} UTC with onlooker {version}.*"]
    before, after = entry["load_a_core_before"], entry["load_a_core_after"]
    took = f"`python -m benchmarks {name}` in {entry['seconds']:.0f} s"
    load = f"load {before:.1f} a core before, {after:.1f} after"
    return [*lines, f"*Measured {entry['date']} UTC by {took}; {load}.*"]


# -- figures ---------------------------------------------------------------------------------------


def draw(entries: dict[str, Any], images: Path) -> None:
    """Whatever there are numbers for."""
    import matplotlib as mpl

    mpl.use("Agg")
    for name, (image, _, draw_one) in FIGURES.items():
        if name in entries:
            draw_one(entries[name]["data"], images / image)


def _draw_growth(data: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True, layout="constrained")
    for axes, (axis, label) in zip(
        panels, {"N": "nodes N = M", "M": "transitions M, N = 1,000"}.items(), strict=True
    ):
        for (name, found), colour in zip(data["growth"][axis].items(), _COLOURS, strict=True):
            for kind, style, told in (("kernel", "o-", name), ("twin", "x:", None)):
                size, seconds = np.array(found[kind]).reshape(-1, 2).T  # there may be none
                axes.loglog(size, seconds, style, color=colour, markersize=4, label=told)
        line = np.array([3e4, 1e6])
        axes.loglog(line, 8e-9 * line, color="0.7", linewidth=1)
        axes.text(1e6, 3e-9 * 1e6, "∝ size", color="0.5", fontsize=8, ha="right", va="top")
        axes.set_xlabel(label)
    panels[0].set_ylabel("processor time of a sweep, s")
    handles, labels = panels[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color="0.3", linestyle=":", marker="x", markersize=4))
    labels.append("its twin in plain Python")
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    _save(figure, path)


def _draw_memory(data: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    for (name, found), colour in zip(
        data["memory"].items(), ("#0072B2", "#009E73", "#D55E00"), strict=True
    ):
        given = np.array([one["given"] for one in found]) * 1e3
        peak = np.array([one["peak"] for one in found]) * 1e3
        axes.loglog(given, peak, "o-", color=colour, markersize=4, label=name)
    axes.axline(
        (1, 1), (10, 10), color="0.7", linewidth=1, linestyle="--", label="the input itself"
    )
    axes.set(xlabel="input, MB", ylabel="peak memory, MB", ylim=(50, None))
    axes.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _draw_scores(data: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    scores = data["scores"]
    figure, panels = plt.subplots(1, len(scores), figsize=(9.5, 4.0), layout="constrained")
    for axes, (known, found) in zip(np.atleast_1d(panels), scores.items(), strict=True):
        floor = found["global marginal"][0]
        axes.axhline(floor, color="0.6", linewidth=1, linestyle="--")
        axes.text(0.99, floor, "global marginal ", transform=axes.get_yaxis_transform(),
                  fontsize=7, color="0.4", ha="right", va="bottom")  # fmt: skip
        ours = [found[name] for name in found if name.startswith("onlooker")]
        axes.semilogx([t for _, t in ours], [s for s, _ in ours], "o-", color="#D55E00",
                      label="onlooker, more and more sweeps")  # fmt: skip
        others = [name for name in found if not name.startswith(("onlooker", "global"))]
        markers = "s^v<>DPX*"
        for name, marker in zip(others, markers, strict=False):
            score, seconds = found[name]
            axes.semilogx(seconds, score, marker, color="#0072B2", markersize=6, label=name)
        axes.set_title(f"knowing {known}", fontsize=10)
        axes.set_xlabel("processor time to train and predict, s")
    np.atleast_1d(panels)[0].set_ylabel("held-out ln p of the direction, a step")
    handles, labels = np.atleast_1d(panels)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Without the date and the library's version, so that the same numbers give the same file."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=150, metadata={"Software": None})
    plt.close(figure)


FIGURES = {
    "sweeps": ("bench_growth.png", "Cost of a sweep as the data grow", _draw_growth),
    "memory": ("bench_memory.png", "Peak memory against the input", _draw_memory),
    "cloning": ("bench_cloning.png", "Held-out score against seconds", _draw_scores),
}
"""Of benchmark NAME: its file, what it says, and who draws it."""
