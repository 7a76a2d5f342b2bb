"""Short runs of every prior, scheme and kind of unknown, of which the golden file keeps hashes.

``python tests/golden/runs.py`` (re)writes ``draws.json`` beside it. Only a deliberate change of the
order of random numbers is a reason to do so.
"""

import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from onlooker import Demonstrations, Posterior, Problem, sample
from onlooker.dynamics import DisplacementDynamics, SlipperyDynamics, TabularDynamics
from onlooker.hyper import Beta, Exponential, Gamma, LogUniform
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    ExponentialDecay,
    GaussianDecay,
    Mixing,
    Potts,
    Static,
    Uniform,
)
from onlooker.repertoire import Actions

GOLDEN = Path(__file__).with_name("draws.json")
bare_problem = partial(Problem.from_demonstrations, repertoire=[Actions()])
COMPASS = DisplacementDynamics.compass(6, step=1.0, sigma=0.4)
near_links = partial(DistanceDependent, start="nearest")
inferred = partial(DistanceDependent.inferred, start="nearest")

INDICATORS = {
    "static": Static(),
    "uniform": Uniform(3),
    "mixing": Mixing(4, concentration=2.0),
    "mixing, q drawn": Mixing(4, collapsed=False),
    "mixing, gamma inferred": Mixing(4, concentration=Gamma(2, 1)),
    "potts": Potts(3, beta=0.7, n_neighbors=4, start="random"),
    "potts, beta inferred": Potts(3, beta=Exponential(1.0), n_neighbors=4, start="random"),
    "potts, offset": Potts(
        3, beta=0.4, decay=GaussianDecay(1.0, 0.05), n_neighbors=None, start="random"
    ),
    "crp": ChineseRestaurant(),
    "crp, gamma inferred": ChineseRestaurant(Gamma(1, 1)),
}
LINKS = {
    "ddcrp": near_links(),
    "ddcrp, nu fixed": near_links(self_link=0.5, decay=GaussianDecay(1.0, 0.0)),
    "ddcrp, nu by metropolis": near_links(self_link_step="metropolis"),
    "ddcrp, start self": DistanceDependent(start="self", decay=ExponentialDecay(0.7, 0.02)),
    "ddcrp, neighbours": near_links(n_neighbors=5),
    "ddcrp, reassign": near_links(reassign=1),
    "ddcrp, inferred": inferred(1.0),
    "ddcrp, inferred, neighbours": inferred(1.0, n_neighbors=6),
}


def walks(n: int, length: int, seed: int) -> list[np.ndarray]:
    """Walks that circle round the origin with a step of about 1."""
    rng = np.random.default_rng(seed)
    walked = []
    for _ in range(n):
        states = [rng.normal(0.0, 2.0, 2)]
        for _ in range(length):
            x, y = states[-1]
            angle = np.arctan2(x, -y) + rng.normal(0.0, 0.3)
            states.append(states[-1] + [np.cos(angle), np.sin(angle)] + rng.normal(0.0, 0.3, 2))
        walked.append(np.array(states))
    return walked


def ring(n_states: int = 7) -> TabularDynamics:
    """Stay, go up or go down a ring, with a little noise."""
    table = np.full((n_states, 3, n_states), 0.02)
    for action, step in enumerate((0, 1, -1)):
        for state in range(n_states):
            table[state, action, (state + step) % n_states] += 1.0
    return TabularDynamics(table / table.sum(axis=2, keepdims=True))


def ring_walks(seed: int = 5) -> list[np.ndarray]:
    """Walks on the ring: up in one half of it, down in the other."""
    rng = np.random.default_rng(seed)
    walked = []
    for _ in range(5):
        states = [int(rng.integers(7))]
        for _ in range(14):
            step = (1 if states[-1] < 4 else -1) if rng.random() < 0.8 else 0
            states.append((states[-1] + step) % 7)
        walked.append(np.array(states))
    return walked


def hidden(trajectories: list[np.ndarray], share: float, mark: float) -> Demonstrations:
    """The same with some states hidden, never the first or the last."""
    rng = np.random.default_rng(11)
    found = []
    for states in trajectories:
        states = states.copy()
        states[1:-1][rng.random(len(states) - 2) < share] = mark
        found.append(states)
    return Demonstrations(found, missing="infer")


def plane() -> Problem:
    return bare_problem(walks(4, 15, 3), COMPASS)


def grid() -> Problem:
    """States that are visited often."""
    return bare_problem(ring_walks(), ring())


def cases() -> Iterator[tuple[str, Callable[[], Posterior]]]:
    """Every run by name."""

    def run(problem: Callable[[], Problem], prior: object, **options: object) -> Posterior:
        settings = {"draws": 40, "tune": 5, "chains": 2, "random_state": 17, "n_jobs": 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sample(problem(), prior, progress=False, **settings, **options)

    for name, prior in INDICATORS.items():
        for collapsed in (True, False):
            scheme = "collapsed" if collapsed else "ordinary"
            yield f"{name}, {scheme}", lambda p=prior, c=collapsed: run(plane, p, collapsed=c)
    for name, prior in LINKS.items():
        yield name, lambda p=prior: run(plane, p)
    alpha = Gamma(1, 1)
    on_ring = near_links(coordinates=np.arange(7.0), decay=GaussianDecay(1.5, 0.01))
    more: dict[str, tuple[Callable[[], Problem], object, dict[str, object]]] = {
        "grid, mixing, alpha inferred": (grid, Mixing(3), {"concentration": alpha}),
        "grid, crp, alpha inferred, ordinary": (
            grid,
            ChineseRestaurant(),
            {"concentration": alpha, "collapsed": False},
        ),
        "grid, ddcrp, alpha inferred": (grid, on_ring, {"concentration": alpha, "thin": 2}),
    }
    gaps = lambda: bare_problem(  # noqa: E731
        hidden(ring_walks(), 0.25, -1), ring(), nodes="all"
    )
    holes = lambda: bare_problem(  # noqa: E731
        hidden(walks(4, 15, 3), 0.2, np.nan), COMPASS
    )
    noisy = lambda: bare_problem(  # noqa: E731
        walks(4, 15, 3), COMPASS, observation_noise=LogUniform(0.05, 0.5)
    )
    more["unseen in a table, mixing"] = (gaps, Mixing(3), {})
    more["unseen in a table, crp, ordinary"] = (gaps, ChineseRestaurant(), {"collapsed": False})
    more["unseen in a table, ddcrp"] = (gaps, on_ring, {})
    more["unseen in the plane, potts"] = (holes, Potts(3, n_neighbors=4, start="random"), {})
    more["unseen in the plane, ddcrp"] = (holes, near_links(), {})
    more["noisy, mixing, ordinary"] = (noisy, Mixing(3), {"collapsed": False})
    more["noisy, ddcrp"] = (noisy, near_links(), {})
    steps = COMPASS.steps
    unknown = DisplacementDynamics(steps, LogUniform(0.1, 2.0), step=LogUniform(0.5, 2.0))
    slippery = SlipperyDynamics(ring(), TabularDynamics(np.full((7, 3, 7), 1 / 7)), Beta(2, 1))
    moving = lambda: bare_problem(walks(4, 15, 3), unknown)  # noqa: E731
    slipping = lambda: bare_problem(ring_walks(), slippery)  # noqa: E731
    lost = lambda: bare_problem(  # noqa: E731
        hidden(walks(4, 15, 3), 0.2, np.nan), unknown
    )
    more["unknown noise and step, mixing"] = (moving, Mixing(3), {})
    more["unknown noise and step, crp, ordinary"] = (
        moving,
        ChineseRestaurant(),
        {"collapsed": False},
    )
    more["unknown noise and step, ddcrp"] = (moving, near_links(), {"concentration": alpha})
    more["unknown success, ddcrp"] = (slipping, on_ring, {})
    more["unknown noise, unseen, ddcrp"] = (lost, near_links(), {})
    for name, (problem, prior, options) in more.items():
        yield name, lambda a=problem, b=prior, o=options: run(a, b, **o)


def described(posterior: Posterior) -> dict[str, object]:
    """Hashes of what must stay the same to the bit, and the log joint in full."""
    arrays = {"labels": posterior.labels, "actions": posterior.actions}
    arrays |= {f"hyper.{name}": values for name, values in sorted(posterior.hyper.items())}
    if posterior.links is not None:
        arrays["links"] = posterior.links
    if posterior.imputed is not None:
        arrays["imputed"] = posterior.imputed
    hashes = {
        name: hashlib.sha256(
            np.ascontiguousarray(
                values, dtype=np.float64 if values.dtype.kind == "f" else np.int64
            ).tobytes()
        ).hexdigest()[:24]
        for name, values in arrays.items()
    }
    means = {name: float(values.mean()) for name, values in arrays.items()}
    return {"sha256": hashes, "means": means, "log_joint": posterior.log_joint.ravel().tolist()}


def machine() -> str:
    """What may change the last bit of a logarithm: the processor's features and the versions."""
    features = np._core._multiarray_umath.__cpu_features__
    told = [platform.libc_ver()[1], np.__version__, *(name for name in features if features[name])]
    return hashlib.sha256(" ".join(told).encode()).hexdigest()[:24]


def write() -> None:
    """Make the golden file anew."""
    kept = {name: described(make()) for name, make in cases()}
    GOLDEN.write_text(json.dumps({"machine": machine(), "runs": kept}, indent=0) + "\n")
    print(f"{len(kept)} runs", file=sys.stderr)


if __name__ == "__main__":
    write()
