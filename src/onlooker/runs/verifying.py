"""Whether a stored run is sound, file by file, and what can be done where it is not."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from onlooker._version import __version__
from onlooker.files import DamagedFileError
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Binder, Target
from onlooker.runs.codec import UnknownPrior
from onlooker.runs.header import describe_run
from onlooker.runs.loading import load_run, open_store
from onlooker.runs.lock import Lock
from onlooker.runs.store import PROBLEM


class Verdict(NamedTuple):
    """What was found in a run."""

    chains: int
    draws: int
    """Sound draws that every chain has."""
    lost: list[str]
    """What cannot be read, one sentence per chain; with `repair` it has been set aside."""


def verify_run(path: Path, repair: bool = False) -> Verdict:
    """Read all of a store, or a file of `Posterior.save`.

    With `repair`, parts that cannot be read are renamed (``.broken``) with all that follow them,
    so that the chain can be resumed from there.

    Raises
    ------
    ValueError
        If what is damaged cannot be mended here; the message says how it can be.
    """
    if not path.is_dir():
        _, schedule, _, chains = load_run(path)
        return Verdict(len(chains), schedule.draws, [])
    with Lock(path) if repair else contextlib.nullcontext():
        try:
            header, target, schedule, folders = open_store(path)
        except (DamagedFileError, FileNotFoundError) as error:
            if PROBLEM not in str(error):
                raise
            raise DamagedFileError(f"{error}. Resuming the run writes it again") from error
        resumable = header["versions"]["onlooker"] == __version__
        if resumable:
            _check_fingerprint(path, header, target, schedule)
        bind = Binder(target)
        states_too = resumable and not isinstance(target.prior, UnknownPrior)
        found = [
            folder.read(bind(chain) if states_too else None, repair=repair)
            for chain, folder in folders.items()
        ]
    n_draws = [0 if item.draws is None else len(item.draws) for item in found]
    lost = [item.lost for item in found if item.lost]
    return Verdict(len(found), min(n_draws, default=0), lost)


def _check_fingerprint(
    path: Path, header: dict[str, Any], target: Target, schedule: Schedule
) -> None:
    """Refuse data or settings that are not those the run was begun with."""
    again = describe_run(target, schedule)[0]
    if any(again[name] != header[name] for name in ("prior", "dynamics")):
        return  # code of the user's own, which is not stored
    if again["fingerprint"] != header["fingerprint"]:
        raise DamagedFileError(
            f"{path} is damaged: its settings or data are not those that it was begun with"
        )
