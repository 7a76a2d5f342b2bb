"""The consensus of a stored run: sought once, in a time that suits a command, then kept."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.files import read_arrays, write_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlooker.consensus import ConsensusResult
    from onlooker.posterior import Posterior

_FILE = "consensus.npz"
_MOST_LABELS = 2_000_000  # of the draws that are looked at; half a minute or so


def settle(posterior: Posterior, path: Path, say: Callable[[str], Any] | None = None) -> int:
    """Give the posterior a consensus: the one kept in the store at `path`, or a new one.

    Of draws that are too many for a search of some seconds, every so many-th is looked at; returns
    that step. A search is told by `say`.
    """
    n_draws, n_nodes = posterior.n_draws, posterior.problem.n_nodes
    each = max(2, _MOST_LABELS // (posterior.n_chains * n_nodes))
    step = max(1, -(-n_draws // each))
    about = {"chains": posterior.chain_ids, "draws": n_draws, "step": step, "nodes": n_nodes}
    found = _kept(path, about)
    if found is None:
        from onlooker.consensus import consensus

        if say is not None:
            say("Looking for the one partition that stands for all draws ...")
        found = consensus(posterior.labels[:, ::step], random_state=0)
        with contextlib.suppress(OSError):  # a store may be read-only
            _keep(path, about, found)
    posterior.use_consensus(found)
    return step


def thinned(step: int) -> list[str]:
    """What there is to note of a search among one draw in `step`."""
    if step == 1:
        return []
    return [f"The consensus is sought among one draw in {step}, to save time."]


def _keep(path: Path, about: dict[str, Any], found: ConsensusResult) -> None:
    if not path.is_dir():
        return
    told = dataclasses.asdict(found)
    labels, membership = told.pop("labels"), told.pop("membership")
    text = np.array(json.dumps({"about": about, "found": told}))
    write_arrays(path / _FILE, {"labels": labels, "membership": membership, "told": text})


def _kept(path: Path, about: dict[str, Any]) -> ConsensusResult | None:
    from onlooker.consensus import ConsensusResult

    try:
        arrays = read_arrays(path / _FILE)
        told = json.loads(str(arrays["told"]))
        if told["about"] != about:
            return None  # the run has grown since
        labels, membership = arrays["labels"], arrays["membership"]
        return ConsensusResult(labels=labels, membership=membership, **told["found"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
