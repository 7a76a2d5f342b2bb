"""The report: the explorer's page with its data inside, for a file that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from onlooker.explorer.overview import overview
from onlooker.explorer.packing import pack, to_json, zipped
from onlooker.explorer.page import page
from onlooker.explorer.query import shares_at_nodes
from onlooker.explorer.run import RunStatus, read
from onlooker.explorer.view import REFINEMENT, RunView
from onlooker.files import write_atomically
from onlooker.findings.opened import OpenedRun
from onlooker.posterior import Posterior
from onlooker.prediction.controllers import LEVEL
from onlooker.progress import make_progress

_MAX_NAMES = 1_500_000  # labels of draws in a report
_MAX_FRAMES = 200  # draws in a report
_MAX_VALUES = 50_000_000  # probabilities sorted for the intervals at all nodes
_SHARES = 5  # clusters that a node may belong to


def write_report(
    run: str | Path | Posterior, output: str | Path, *, progress: bool = False
) -> dict[str, Any]:
    """Write the report of a stored run: one HTML file that needs no network.

    Parameters
    ----------
    run
        A store, finished or not, or a file of `Posterior.save`. One that cannot be read, or that
        has no draws yet, gives a page that says so, unless a file is in the way. Or a posterior
        in memory.
    output
        The file to write; one that is there is replaced.
    progress
        Whether to show how far it is.

    Returns
    -------
    dict
        ``readable``, whether the run could be read; ``text``, how far it got; ``frames``, the draws
        inside; ``bytes``, the size of the file.

    Examples
    --------
    >>> from onlooker.explorer.report import write_report
    >>> write_report("run", "report.html")["readable"]  # doctest: +SKIP
    True
    """
    output, name = Path(output), "run"
    if isinstance(run, Posterior):
        view: RunView | None = RunView(OpenedRun.of(run))
        status = RunStatus("finished", f"{run.n_draws:,} draws of {run.n_chains} chains.")
    else:
        status, view = read(Path(run))
        name = Path(run).resolve().name
    if view is None and output.exists():
        raise ValueError(f"{status.text} {output} is left as it was")
    about = {"name": name, "state": status.state, "text": status.text}
    data: dict[str, Any] = {"runs": [about], "overview": None}
    sizes: dict[str, Any] = {"readable": view is not None, "text": status.text, "frames": 0}
    if view is not None:
        with make_progress(progress, REFINEMENT + 10, "report", "steps", brief=True) as shown:
            for _ in view.refine(shown):
                pass
            shown.update(REFINEMENT, "intervals")
            chosen = _chosen(view)
            data |= _contents(view, chosen)
            shown.advance(10)
        sizes["frames"] = len(chosen)
    text = page(f"{name}: report", data).encode()
    write_atomically(output, lambda file: file.write(text))
    return sizes | {"bytes": len(text)}


def is_report(file: Path) -> bool:
    """Whether a file is a page of onlooker's, or a device, which is written to and not replaced."""
    return not file.is_file() or b'type="application/json" id="embedded"' in file.read_bytes()


def _contents(view: RunView, chosen: np.ndarray[Any, Any]) -> dict[str, Any]:
    posterior = view.posterior
    seen = overview(view) | {"epoch": 0}  # a file has one: the same run gives the same bytes
    low, high, n_used = _intervals(view)
    clusters, shares = shares_at_nodes(view, _SHARES)
    seen["at_nodes"] = {
        "low": pack(np.rint(low * 65535), "u2"),
        "high": pack(np.rint(high * 65535), "u2"),
        "clusters": pack(clusters, "u2"),
        "shares": pack(np.rint(shares * 65535), "u2"),
        "n_draws": n_used,
    }
    frames = [[int(b // posterior.n_draws), int(b % posterior.n_draws)] for b in chosen]
    return {
        "overview": zipped(to_json(seen)),
        "frames": frames,
        "draws": zipped(view.names().encode(chosen)),
    }


def _chosen(view: RunView) -> np.ndarray[Any, Any]:
    """Draws that the report keeps: evenly spaced, the same number of each chain."""
    posterior = view.posterior
    most = max(1, min(_MAX_FRAMES, _MAX_NAMES // posterior.problem.n_nodes))
    each = min(posterior.n_draws, max(1, most // posterior.n_chains))
    one = np.unique(np.linspace(0, posterior.n_draws - 1, each).astype(int))
    return np.concatenate([chain * posterior.n_draws + one for chain in range(posterior.n_chains)])


def _intervals(view: RunView) -> tuple[Any, Any, int]:
    """Credible intervals at all nodes, from fewer draws where sorting all would take minutes."""
    posterior = view.posterior
    n_all = posterior.n_chains * posterior.n_draws
    cost = n_all * posterior.problem.n_nodes * posterior.problem.n_actions
    step = max(1, -(-cost // _MAX_VALUES))
    thinned = posterior if step == 1 else posterior.thin(step)
    found = thinned.policy(interval=LEVEL)
    return found.low, found.high, thinned.n_chains * thinned.n_draws
