"""The paper's Example 1 from end to end: simulate, recognise, judge, draw, tell."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlooker import plot
from onlooker.checks import Array
from onlooker.consensus import adjusted_rand_index
from onlooker.demonstrations import Demonstrations
from onlooker.diagnostics import LEAST_ESS, MOST_R_HAT
from onlooker.metrics import circular_emd
from onlooker.partitions import DistanceDependent
from onlooker.posterior import Posterior
from onlooker.problem.problem import Problem
from onlooker.sampling import sample
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL = {"draws": 500, "tune": 300, "chains": 4}
QUICK = {"draws": 100, "tune": 100, "chains": 2}

_REACH = 1.0  # a state farther than this from all data is not judged
_GRID = 51  # points along a side of the map of errors


@dataclass(frozen=True)
class Findings:
    """What was recognised, and how it compares with the truth."""

    world: CircularMotion
    demos: Demonstrations
    posterior: Posterior
    labels: Array
    """Consensus clusters of the nodes."""
    error: float
    """Mean circular EMD to the expert at the states seen, in radians."""
    error_by_chain: Array
    error_off: float
    """The same at grid points near the data that were not seen."""
    untrained: float
    """What a policy that knows nothing scores."""
    began: float
    """When it began, by the monotonic clock."""

    @property
    def n_behaviours(self) -> int:
        """Different controllers that the expert used at the states seen."""
        return len(np.unique(behaviour(self.world, self.demos.states)))


def behaviour(world: CircularMotion, states: Array) -> Array:
    """The direction that the expert wants, as a number below `n_sectors`.

    A sector inside the radius and the opposite one outside want the same.
    """
    heading = np.angle(world.policy(states) @ np.exp(1j * world.angles))
    return np.rint(heading * world.n_sectors / (2 * np.pi)).astype(np.int64) % world.n_sectors


def recognise(
    seed: int,
    *,
    draws: int,
    tune: int,
    chains: int,
    n_jobs: int | None = None,
    n_trajectories: int = 10,
    length: int = 100,
    say: Callable[[str], object] = lambda text: None,
) -> Findings:
    """Simulate the expert, recognise its policy from states alone, and compare the two."""
    began = time.monotonic()
    world = CircularMotion()
    demos, _ = world.rollout(n_trajectories, length, random_state=seed)
    say(
        f"Seen: {len(demos)} trajectories of {demos.lengths[0]} states in the plane, "
        f"{demos.n_transitions} steps. No action was seen."
    )
    problem = Problem.from_demonstrations(demos, world.dynamics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report has its own words
        posterior = sample(
            problem,
            DistanceDependent(),
            draws=draws,
            tune=tune,
            chains=chains,
            random_state=seed,
            n_jobs=n_jobs,
        )
    say("Looking for the one partition that stands for all draws ...")
    labels = posterior.partition()
    expert = world.policy(problem.states)
    near = world.coordinates[plot.distance_to(world.coordinates, problem.states) <= _REACH]
    return Findings(
        world,
        demos,
        posterior,
        labels,
        error=float(circular_emd(posterior.policy(), expert).mean()),
        error_by_chain=np.array(
            [
                circular_emd(posterior.chain(c).policy(), expert).mean()
                for c in range(posterior.n_chains)
            ]
        ),
        error_off=float(circular_emd(posterior.policy(near), world.policy(near)).mean()),
        untrained=float(circular_emd(np.full_like(expert, 1 / world.n_actions), expert).mean()),
        began=began,
    )


# -- in words ---------------------------------------------------------------------------------


def report(findings: Findings, figure: Path) -> None:
    """Print what was found, for a person."""
    from onlooker.cli.output import table

    world, posterior = findings.world, findings.posterior
    counts = np.bincount(posterior.n_controllers.ravel())
    mode = int(counts.argmax())
    untrained = f"{findings.untrained:.3f} rad if untrained"
    nu = posterior.hyper["nu"]
    rows = [
        ("number of controllers", _share(counts, mode), f"{findings.n_behaviours} of the expert"),
        ("  or else", _others(counts, mode), ""),
        ("partition (Rand index)", f"{_agreement(findings):.2f}", "1 if it were exact"),
        ("policy error where seen", _angle(findings.error), untrained),
        ("  at unseen points near", _angle(findings.error_off), untrained),
        ("self-link weight nu", f"{nu.mean():.3f} ± {nu.std():.3f}", "0.1 ± 0.1 a priori"),
    ]
    print("\n" + table(["", "recognised", "to compare with"], rows) + "\n")
    print(
        f"The expert has {2 * world.n_sectors} regions, {world.n_sectors} sectors inside the "
        f"radius {world.radius:g} and {world.n_sectors} outside, but only {world.n_sectors} "
        "controllers: opposite sectors, one inside and one outside, want the same direction. "
        "Errors are circular earth mover's distances from the expert's action probabilities.\n"
    )
    print(_verdict(findings))
    print(
        f"\nTook {time.monotonic() - findings.began:.0f} s: {posterior.n_chains} chains of "
        f"{posterior.plan.n_sweeps} sweeps, {posterior.n_draws} draws kept of each.\n"
        f"Figure: {figure} (and {figure.with_suffix('.svg').name})\n"
        "Try next: another expert with --seed 1, surer numbers with --draws 3000 --tune 1000, "
        "or your own data: see the README."
    )


def _angle(radians: float) -> str:
    return f"{radians:.3f} rad ({np.degrees(radians):.0f}°)"


def _share(counts: Array, k: int) -> str:
    return f"{k} ({counts[k] / counts.sum():.0%})"


def _others(counts: Array, mode: int) -> str:
    likely = [k for k in np.argsort(-counts, kind="stable")[:4] if counts[k] and k != mode]
    return ", ".join(_share(counts, k) for k in sorted(likely)) or "none"


def _agreement(findings: Findings) -> float:
    truth = behaviour(findings.world, findings.posterior.problem.states)
    return float(adjusted_rand_index(findings.labels, truth))


def _verdict(findings: Findings) -> str:
    """Have the chains converged, and if not, does it matter?"""
    posterior = findings.posterior
    table = posterior.summary()
    r_hat = table["r_hat"].dropna().sort_values()
    ess = (table["ess_bulk"].dropna() / posterior.n_chains).sort_values()
    if r_hat.empty:
        return "Convergence: too few draws to tell; raise --draws."
    if r_hat.iloc[-1] <= MOST_R_HAT and ess.iloc[0] >= LEAST_ESS:
        return f"Convergence: the chains agree (R-hat at most {r_hat.iloc[-1]:.3f})."
    low, high = findings.error_by_chain.min(), findings.error_by_chain.max()
    return (
        f"Convergence: not reached. R-hat is {r_hat.iloc[-1]:.2f} for {r_hat.index[-1]} "
        f"({MOST_R_HAT} is wanted), and {ess.index[0]} is worth {ess.iloc[0]:.0f} independent "
        f"draws a chain ({LEAST_ESS} are wanted): a chain may keep two controllers merged for "
        f"long. Each chain alone has a policy error of {low:.3f} to {high:.3f} rad. Take "
        "probabilities as rough; larger --draws and --tune make them surer."
    )


# -- in pictures ------------------------------------------------------------------------------


def draw(findings: Findings, folder: Path) -> Path:
    """Write ``example1.png`` and ``example1.svg`` into `folder`; return the first."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = folder / "example1.png"
    with rc_context({"font.size": 11, "axes.titlesize": 12, "svg.hashsalt": "onlooker"}):
        figure = Figure(figsize=(13.5, 9.8))
        # By hand: the automatic layouts make room for legends at the cost of equal panels.
        figure.subplots_adjust(0.06, 0.125, 0.975, 0.965, wspace=0.2, hspace=0.36)
        FigureCanvasAgg(figure)
        _panels(findings, figure)
        figure.savefig(path, dpi=120)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    return path


def _panels(findings: Findings, figure: Figure) -> None:
    world, posterior = findings.world, findings.posterior
    states = findings.demos.states
    side = float(np.ceil(np.abs(states).max() + 0.5))
    extent = (-side, side, -side, side)
    expert_colours = plot.cluster_colours(world.n_sectors)

    ax = figure.add_subplot(2, 3, 1, title="(a) What was seen, on the expert's controllers")
    plot.regions(lambda s: behaviour(world, s), extent, ax, colours=list(expert_colours))
    plot.trajectories(findings.demos, ax)
    _expert_arrows(world, side, ax)
    _legend(ax, 3)

    ax = figure.add_subplot(2, 3, 2, title="(b) Recognised clusters of states")
    colours = _matched_colours(findings, expert_colours)
    plot.regions(posterior.assign, extent, ax, colours=colours, near=states, reach=_REACH)
    plot.partition(posterior.problem.states, findings.labels, ax, colours=colours)
    _legend(ax, 4)

    ax = figure.add_subplot(2, 3, 3, title="(c) Policy: mean step")
    axis = np.arange(-side + 0.75, side, 1.5)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    points = points[plot.distance_to(points, states) <= _REACH]
    plot.policy_field(
        points, posterior.policy(points), world.angles, ax,
        reference=world.policy(points), length=1.3,
    )  # fmt: skip
    ax.set(xlim=extent[:2], ylim=extent[2:])
    _legend(ax, 2)

    ax = figure.add_subplot(2, 3, 4, title="(d) How many controllers?")
    plot.n_controllers(posterior, ax, truth=findings.n_behaviours)
    _legend(ax, 2)

    ax = figure.add_subplot(2, 3, 5, title="(e) Policy error over the plane")
    axis = np.linspace(-side, side, _GRID)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    errors = circular_emd(posterior.policy(points), world.policy(points))
    bar = ax.inset_axes((0.1, -0.2, 0.8, 0.035))
    plot.policy_error(points, errors, ax, label="circular EMD [rad], dots: states seen", cax=bar)
    ax.plot(*states.T, ".", color="white", ms=1.5, alpha=0.7)

    _one_state(findings, figure)


def _one_state(findings: Findings, figure: Figure) -> None:
    """The policy at a typical state, with how sure it is."""
    posterior, world = findings.posterior, findings.world
    nodes = posterior.problem.states
    errors = circular_emd(posterior.policy(), world.policy(nodes))
    typical = nodes[[int(np.argsort(errors)[len(errors) // 2])]]
    mean, low, high = posterior.policy(typical, interval=0.9)
    x, y = typical[0]
    ax: Any = figure.add_subplot(2, 3, 6, projection="polar")
    ax.set_title(f"(f) Policy at ({x:.1f}, {y:.1f}), of median error")
    plot.rose(
        mean[0], world.angles, ax, low=low[0], high=high[0], reference=world.policy(typical)[0]
    )
    _legend(ax, 3)


def _expert_arrows(world: CircularMotion, side: float, ax: Any) -> None:
    """One arrow a region, so that colour is not the only sign."""
    sector = 2 * np.pi * np.arange(world.n_sectors) / world.n_sectors
    circle = np.column_stack([np.cos(sector), np.sin(sector)])
    middle = np.concatenate([0.6 * world.radius * circle, 0.5 * (world.radius + side) * circle])
    steps = world.policy(middle) @ world.dynamics.steps
    ax.quiver(
        *middle.T, *steps.T, angles="xy", scale_units="xy", scale=0.55, units="xy", width=0.3,
        color="white", edgecolor="black", linewidth=0.8, zorder=5,
    )  # fmt: skip
    ax.plot([], [], ">", color="white", mec="black", ms=8, label="wanted direction")


def _matched_colours(findings: Findings, colours: Array) -> list[Array]:
    """Give each cluster the colour of the expert's controller that it overlaps most."""
    from scipy.optimize import linear_sum_assignment

    truth = behaviour(findings.world, findings.posterior.problem.states)
    overlap = np.zeros((len(colours), findings.labels.max() + 1))
    np.add.at(overlap, (truth, findings.labels), 1)
    mine: list[Array] = [np.full(3, 0.15)] * overlap.shape[1]
    for controller, cluster in zip(*linear_sum_assignment(-overlap), strict=True):
        mine[cluster] = colours[controller]
    return mine


def _legend(ax: Any, columns: int, below: float = -0.12) -> None:
    """Below the axes, where it covers nothing."""
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, below), ncols=columns, frameon=False,
        fontsize=10, columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip
