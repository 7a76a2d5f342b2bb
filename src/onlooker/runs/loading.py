"""Runs as they are read: from one file, or from a store."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker.checks import stored_array
from onlooker.files import (
    DamagedFileError,
    parse_json,
    read_arrays,
    refusing_damage,
    within,
    write_atomically,
)
from onlooker.inference.draws import Draws, join
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.runs.checking import check_draws
from onlooker.runs.header import (
    HEADER,
    check_header,
    describe_run,
    read_header,
    refusing_run,
    restore_run,
)
from onlooker.runs.store import PROBLEM, ChainFolder, folder_of
from onlooker.warnings import warn

if TYPE_CHECKING:
    from onlooker.dynamics.base import Dynamics
    from onlooker.partitions.base import PartitionPrior


class NoDrawsYet(ValueError):
    """A store has no draws: it is still tuning, or was stopped before the first."""


Run = tuple[Target, Schedule, Draws, list[int]]
"""What was sampled, for how long, the draws of all chains, and the chains' numbers."""


def save_run(
    path: str | os.PathLike[str],
    target: Target,
    schedule: Schedule,
    draws: Draws,
    chain_ids: list[int],
) -> None:
    """Write a run to one NumPy archive."""
    header, arrays = describe_run(target, schedule)
    header["chain_ids"] = chain_ids
    arrays = {f"run.{name}": values for name, values in arrays.items()}
    arrays |= {f"draws.{name}": values for name, values in draws.arrays.items()}
    arrays["header"] = np.array(json.dumps(header))
    write_atomically(
        Path(path),
        lambda file: np.savez_compressed(file, **arrays),  # type: ignore[arg-type]
    )


def load_run(
    path: str | os.PathLike[str],
    prior: PartitionPrior[Any] | None = None,
    dynamics: Dynamics | None = None,
) -> Run:
    """Read what `save_run` wrote, or a store."""
    path = Path(path)
    if path.is_dir():
        return _load_store(path, prior, dynamics)
    try:
        arrays = read_arrays(path)
        header = parse_json(str(arrays["header"]))
    except FileNotFoundError:
        raise
    except (ValueError, KeyError) as error:
        raise DamagedFileError(f"{path} was not written by Posterior.save: {error}") from error
    header = check_header(header, path)
    with refusing_run(path, header):
        target, schedule = restore_run(header, within("run.", arrays), prior, dynamics)
        draws, chain_ids = Draws(within("draws.", arrays)), header["chain_ids"]
        check_draws(draws, target, lead=2)
        if 0 in draws.labels.shape:
            raise ValueError("it has no draws")
        if sorted(set(chain_ids)) != chain_ids or len(chain_ids) != len(draws.labels):
            raise ValueError(f"its chains are numbered {chain_ids}")
        stored_array("chain_ids", np.asarray(chain_ids), "i", (len(chain_ids),), 0)
    return target, schedule, draws, chain_ids


def open_store(
    path: Path,
    prior: PartitionPrior[Any] | None = None,
    dynamics: Dynamics | None = None,
) -> tuple[dict[str, Any], Target, Schedule, dict[int, ChainFolder]]:
    """The header of a store, what was sampled, for how long, and where the draws are."""
    header = read_header(path)
    if header is None:
        raise ValueError(f"{path} is no store: it has no {HEADER}")
    arrays = read_arrays(path / PROBLEM)
    with refusing_run(path, header):
        target, schedule = restore_run(header, arrays, prior, dynamics)
    folders = {
        chain: ChainFolder(folder_of(path, chain), target, schedule, header["fingerprint"])
        for chain in _chains(path, schedule)
    }
    return header, target, schedule, folders


def _load_store(path: Path, prior: PartitionPrior[Any] | None, dynamics: Dynamics | None) -> Run:
    _, target, schedule, folders = open_store(path, prior, dynamics)
    found = {}
    for chain, folder in folders.items():
        stored = folder.read()
        if stored.lost:
            warn(f"{stored.lost}; they are left out", RuntimeWarning)
        if stored.draws is not None and len(stored.draws) > 0:
            found[chain] = stored.draws
    if not found:
        raise NoDrawsYet(f"{path} holds no draws yet; wait until tuning is over")
    shortest = min(len(draws) for draws in found.values())
    with refusing_damage(path):
        stacked = join([draws[:shortest] for draws in found.values()], axis="chain")
    return target, replace(schedule, draws=shortest), stacked, list(found)


def _chains(path: Path, schedule: Schedule) -> list[int]:
    """The chains that have a folder; the header may claim any number."""
    numbers = [folder.name.removeprefix("chain-") for folder in path.glob("chain-*")]
    chains = [int(number) for number in numbers if re.fullmatch("[0-9]{3,9}", number)]
    return sorted(chain for chain in chains if chain < schedule.chains)
