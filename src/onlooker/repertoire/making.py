"""From kinds of behaviours to their policies in one world, and to files and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onlooker.checks import Array, as_policy
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics.features import Speed
from onlooker.files import decode, encode
from onlooker.repertoire.actions import Actions, Overall, Stay
from onlooker.repertoire.base import (
    Block,
    Everywhere,
    Kind,
    Known,
    Merged,
    Own,
    Part,
    Policies,
    World,
    merge_equal,
)
from onlooker.repertoire.blurs import Blurs
from onlooker.repertoire.goals import Goals, Planned, Toward
from onlooker.repertoire.turns import Keeping, Turning, Turns
from onlooker.warnings import RepertoireWarning, warn

DEFAULT: tuple[Kind, ...] = (Actions(), Blurs(), Turns(), Goals())
"""What is offered where the dynamics can; with turns, `Stay` and `Overall` beside them."""
MAX_LIKELIHOODS = 1 << 25
"""Transitions × behaviours, above which goals are thinned."""
_MIN_GOALS = 20
_BLOCKS: dict[str, type] = {
    kind.__name__: kind
    for kind in (Everywhere, Keeping, Known, Merged, Planned, Speed, Toward, Turning)
}


def is_bare(repertoire: Any) -> bool:
    """Whether a repertoire is the actions alone."""
    return (
        isinstance(repertoire, list | tuple)
        and len(repertoire) == 1
        and isinstance(repertoire[0], Actions)
    )


def make_policies(repertoire: Any, dynamics: Any, demos: Demonstrations) -> Policies:
    """The policies of a repertoire, a list of kinds or ``"auto"``."""
    parts = _build(repertoire, World(dynamics, demos))
    n = sum(part.block.n for part in parts)
    n_goals = sum(part.block.n for part in parts if part.kind == "goals")
    room = MAX_LIKELIHOODS // demos.n_transitions - (n - n_goals)
    if room < n_goals and n_goals > _MIN_GOALS:
        most = max(room, _MIN_GOALS)
        warn(
            f"{demos.n_transitions} transitions times {n} behaviours are too many likelihoods to "
            f"hold, so {most} of {n_goals} goals are kept; Goals(candidates=...) chooses their "
            "number",
            RepertoireWarning,
        )
        parts = _build(repertoire, World(dynamics, demos, most))
    seen = demos.distinct()[0]
    merged = [merge_equal(part, seen, dynamics.n_actions) for part in parts]
    return Policies(merged, dynamics.n_actions)


def _build(repertoire: Any, world: World) -> list[Part]:
    if isinstance(repertoire, str) and repertoire == "auto":
        parts = [part for kind in DEFAULT for part in kind.build(world)]
        if any(part.kind == "turns" for part in parts):
            parts += [*Stay().build(world), *Overall().build(world)]
        return parts
    if isinstance(repertoire, str | Kind) or not isinstance(repertoire, Sequence):
        raise TypeError(
            "repertoire must be 'auto' or a list of kinds such as [Actions(), Blurs(), Goals()], "
            f"got {repertoire!r}"
        )
    if not repertoire:
        raise ValueError("repertoire is empty; [Actions()] has the actions alone")
    parts = []
    for number, kind in enumerate(repertoire):
        if not isinstance(kind, Kind):
            raise TypeError(
                f"repertoire[{number}] must be a kind of behaviours such as Actions() or "
                f"Behaviour(name, policy), got {kind!r}"
            )
        found = kind.build(world)
        if not found:
            raise ValueError(
                f"repertoire[{number}], {kind!r}, has no behaviours in {world.dynamics!r}; "
                "leave it out"
            )
        parts += found
    return parts


# -- files -----------------------------------------------------------------------------------------


def encode_policies(policies: Policies, states: Array, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON, with arrays added to `arrays`; behaviours of the user's own as tables at `states`."""
    parts = [
        {
            "kind": part.kind,
            "names": part.names,
            "block": encode(_storable(part.block, states), f"repertoire.{k}", arrays, _BLOCKS),
        }
        for k, part in enumerate(policies.parts)
    ]
    return {"parts": parts, "n_actions": policies.n_actions}


def _storable(block: Block, states: Array) -> Block:
    if isinstance(block, Own):
        return block.known_at(states)
    return (
        replace(block, block=_storable(block.block, states)) if isinstance(block, Merged) else block
    )


def decode_policies(
    description: dict[str, Any], states: Array, arrays: dict[str, Array]
) -> Policies:
    """Undo `encode_policies`; what does not fit together, or not these states, is refused."""
    parts = []
    for item in description["parts"]:
        block = decode(item["block"], arrays, _BLOCKS)
        names = item["names"]
        if not isinstance(block, Block) or not isinstance(names, list) or len(names) != block.n:
            raise ValueError("repertoire has names that do not fit its behaviours")
        if not all(isinstance(text, str) for text in (item["kind"], *names)):
            raise ValueError("repertoire has a name that is no text")
        parts.append(Part(item["kind"], names, block))
    policies = Policies(parts, description["n_actions"])
    some = policies(states[:1])[0]
    as_policy("repertoire", some, some.shape)
    if states.ndim == 1 and any(_n_states(part.block) <= states.max() for part in parts):
        raise ValueError("repertoire does not know all states")
    return policies


def _n_states(block: Block) -> float:
    if isinstance(block, Merged):
        return _n_states(block.block)
    return block.best.shape[1] if isinstance(block, Planned) else math.inf
