"""Base measures that are not uniform, and masses of kinds, against enumeration."""

import exact
import numpy as np
import pytest
from bare import bare_problem
from chains import draws_of, make_chain
from enumerated_regions import MORE, Case, many_visits
from naive_behaviours import draw_anew
from naive_regions import twin_alpha

from onlooker import Demonstrations, Problem, sample
from onlooker.dynamics import DisplacementDynamics
from onlooker.gibbs.anew import SEQUENCES
from onlooker.gibbs.arrays import make_tables, sum_base
from onlooker.gibbs.behaviours import BETWEEN
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import (
    ChineseRestaurant,
    DistanceDependent,
    GaussianDecay,
    Mixing,
    Regions,
)
from onlooker.repertoire import Actions, Blurs
from onlooker.repertoire.making import make_policies
from onlooker.warnings import ConvergenceWarning

SWEEPS = 6_000


def few_visits():
    """Four nodes, ten transitions, three actions."""
    rng = np.random.default_rng(5)
    node_of = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    return node_of, rng.normal(0, 1.2, (10, 3)), 4, np.array([[0], [0.7], [1.2], [2.1]])


class Shapes:
    """The parameters of the controllers' prior in every draw, for the comparison of policies."""

    def __init__(self, shapes):
        self.shapes = shapes

    def policy(self, counts):
        more = counts + self.shapes
        return more / more.sum(axis=-1, keepdims=True)


def compare(case, draws):
    """What the draws get wrong."""
    n = case.loglik.shape[1]
    alpha = draws.hyper["alpha"][..., None]
    if case.kinds is not None:
        draws.hyper["kind"] = draws.kind
        kinds, mass = np.array(case.kinds), draws.kind[..., None]
        share = n * np.where(kinds == 0, mass, 1 - mass) / np.bincount(kinds)[kinds]
    else:
        share = np.asarray(case.share)
    return exact.compare(draws, case.oracle(), alpha=Shapes(alpha * share))


KIND = {"kind": lambda chain: chain.state.masses[0]}


def run(case, sweeps=SWEEPS, **options):
    more = MORE | (KIND if case.kinds is not None else {})
    return draws_of(case.problem, case.prior, sweeps=sweeps, alpha=case.alpha, more=more, **options)


@pytest.mark.parametrize("alpha", ["fixed", "inferred"])
def test_a_base_measure_that_is_not_uniform_matches_the_enumerated_posterior(alpha):
    inferred = ("alpha",) if alpha == "inferred" else ()
    case = Case(few_visits(), *inferred, share=[1.8, 0.9, 0.3])
    assert compare(case, run(case)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "kinds", "inferred"),
    [(few_visits, [0, 1, 1], []), (many_visits, [0, 1], ["alpha"])],
    ids=["few", "many"],
)
def test_inferred_masses_of_kinds_match_the_enumerated_posterior(problem, kinds, inferred):
    case = Case(problem(), *inferred, kinds=kinds)
    assert compare(case, run(case)) == []


@pytest.mark.slow
def test_masses_of_kinds_match_with_everything_else_inferred_too():
    case = Case(few_visits(), "alpha", "nu", "gamma", "scale", kinds=[0, 1, 1])
    assert compare(case, run(case, sweeps=12_000)) == []


def masses_from(tables_of, sizes_known=True, prior=1.0):
    """Draws of the masses with something wrong."""

    def draw(masses, counts, totals, kind, sizes, concentration, rng):
        shapes = concentration * masses / (sizes if sizes_known else 1.0)
        tables = np.full(len(masses), prior)
        for k, j in np.argwhere(counts):
            tables[kind[j]] += tables_of(counts[k, j], shapes[kind[j]], rng)
        masses[:] = rng.dirichlet(tables)

    return draw


def tables(n, shape, rng):
    return 1 + (rng.random(n - 1) * (shape + np.arange(1, n)) < shape).sum()


def replace_step(monkeypatch, draw):
    """With so few passes that masses are drawn after the last one only."""
    monkeypatch.setattr(Regions, "passes", BETWEEN)
    monkeypatch.setattr("onlooker.inference.updates.draw_masses", draw)


FEW, MANY = (few_visits, [0, 1, 1]), (many_visits, [0, 1])
MASSES = {
    "another prior": (masses_from(tables, prior=2.0), *FEW),
    "sizes forgotten": (masses_from(tables, sizes_known=False), *FEW),
    "customers for tables": (masses_from(lambda n, shape, rng: n), *FEW),
    "one table each": (masses_from(lambda n, shape, rng: 1), *MANY),
}


@pytest.mark.slow
@pytest.mark.parametrize("broken", MASSES)
def test_a_wrong_step_of_the_masses_is_caught(broken, monkeypatch):
    draw, visits, kinds = MASSES[broken]
    replace_step(monkeypatch, draw)
    case = Case(visits(), alpha=1.0, kinds=kinds)
    assert compare(case, run(case)) != []


@pytest.mark.parametrize(("visits", "kinds"), [FEW, MANY], ids=["few", "many"])
def test_the_step_of_the_masses_is_right_in_plain_words_too(visits, kinds, monkeypatch):
    replace_step(monkeypatch, masses_from(tables))
    case = Case(visits(), alpha=1.0, kinds=kinds)
    assert compare(case, run(case)) == []


def test_a_base_measure_that_draws_forget_is_caught(monkeypatch):
    monkeypatch.setattr(
        "onlooker.problem.problem.Problem.base_measure", lambda self, masses=None: None
    )
    case = Case(few_visits(), share=[1.8, 0.9, 0.3])
    assert compare(case, run(case)) != []


# -- twins ----------------------------------------------------------------------------------------


def made(seed, n_kinds=3, n_behaviours=9):
    rng = np.random.default_rng(seed)
    kind_of = np.sort(np.concatenate([np.arange(n_kinds), rng.integers(n_kinds, size=6)]))
    problem = Problem(
        np.sort(rng.integers(5, size=40)),
        rng.normal(0, 1.5, (40, n_behaviours)),
        rng.normal(size=(5, 2)),
    )
    problem.set_kinds([f"kind {q}" for q in range(n_kinds)], kind_of)
    prior = Regions.inferred(1.0)
    chain = make_chain(problem, prior, alpha=CONCENTRATION, rng=np.random.default_rng(seed + 50))
    for _ in range(3):
        chain.sweep()
    return chain


def twin_masses(masses, counts, kind_of, total, rng):
    sizes = np.bincount(kind_of)
    n_tables = [1] * len(masses)
    for xi in counts.tolist():
        for j, n in enumerate(xi):
            shape = total * masses[kind_of[j]] / sizes[kind_of[j]]
            for seated in range(n):
                alone = seated == 0 or rng.random() * (shape + seated) < shape
                n_tables[kind_of[j]] += alone
    drawn = np.array([sum(rng.standard_exponential() for _ in range(n)) for n in n_tables])
    return drawn / drawn.sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_step_of_the_masses_equals_its_twin(seed):
    chain = made(seed)
    state, problem = chain.state, chain.problem
    rng, total = state.copy().rng, problem.n_behaviours * state.hyper["alpha"]
    masses = twin_masses(state.masses, state.counts.cluster, problem.kind_of, total, rng)
    chain.update("kinds")(state)
    np.testing.assert_allclose(state.masses, masses, rtol=1e-12)
    assert state.rng.random() == rng.random()


@pytest.mark.parametrize("seed", range(4))
def test_passes_over_behaviours_equal_their_twin(seed):
    """Counts first, then the base: its kind, then inside it; then all of a controller anew.

    In between, masses and α.
    """
    chain = made(seed)
    state, problem = chain.state, chain.problem
    update = chain.update("actions")
    update.passes = 2 * BETWEEN + 1
    rng, masses, alpha = state.copy().rng, state.masses.copy(), state.hyper["alpha"]
    actions, counts = state.actions.tolist(), state.counts.cluster.copy().astype(int)
    likelihood = state.data.likelihood[state.data.row]
    share, kind_of, prior = state.tables.share, problem.kind_of, chain.target.alpha
    first = state.data.first

    def draw(weights):
        running = np.cumsum(weights)
        return int(np.searchsorted(running, rng.random() * running[-1], side="right"))

    for n_passes in (BETWEEN, BETWEEN, 1):
        for k in range(len(counts)):
            used = [j for j in range(9) if counts[k, j] > 0]
            for _ in range(n_passes):
                for i in np.flatnonzero(state.labels == k):
                    for t in range(first[i], first[i + 1]):
                        counts[k, actions[t]] -= 1
                        for place in reversed(range(len(used))):
                            if counts[k, used[place]] == 0:
                                used[place] = used[-1]
                                used.pop()
                        weights = [likelihood[t, j] * counts[k, j] for j in used]
                        at = draw([*weights, alpha * likelihood[t] @ share])
                        if at < len(used):
                            new = used[at]
                        else:
                            by_kind = [
                                (likelihood[t] * share)[kind_of == q].sum() for q in range(3)
                            ]
                            inside = np.flatnonzero(kind_of == draw(by_kind))
                            new = int(inside[draw(likelihood[t, inside])])
                            if counts[k, new] == 0:
                                used.append(new)
                        counts[k, new] += 1
                        actions[t] = new
            of_k = [
                t for i in np.flatnonzero(state.labels == k) for t in range(first[i], first[i + 1])
            ]
            if len(of_k) > 1:
                draw_anew(
                    of_k,
                    actions,
                    likelihood,
                    alpha,
                    share,
                    kind_of,
                    rng,
                    SEQUENCES,
                )
                counts[k] = np.bincount([actions[t] for t in of_k], minlength=9)
        if n_passes == BETWEEN:
            masses = twin_masses(masses, counts, kind_of, 9 * alpha, rng)
            share = 9 * masses[kind_of] / np.bincount(kind_of)[kind_of]
            alpha = twin_alpha(alpha, share, counts, prior, rng)
    update(state)
    assert state.actions.tolist() == actions
    np.testing.assert_array_equal(state.counts.cluster, counts)
    np.testing.assert_allclose(state.masses, masses, rtol=1e-9)
    np.testing.assert_allclose(state.tables.share, share, rtol=1e-9)
    assert state.hyper["alpha"] == state.tables.alpha == pytest.approx(alpha, rel=1e-9)
    assert state.rng.random() == rng.random()


def test_sums_of_the_base_are_kind_by_kind_whatever_their_order():
    rng = np.random.default_rng(0)
    likelihood, kind = rng.random((7, 6)), np.array([1, 0, 1, 2, 0, 1])
    base = sum_base(likelihood, kind)
    assert kind[base.order].tolist() == sorted(kind)
    for q in range(3):
        np.testing.assert_allclose(base.sums[:, q], likelihood[:, kind == q].sum(axis=1))
        np.testing.assert_allclose(base.running[:, base.start[q + 1] - 1], base.sums[:, q])


# -- with every prior, and with none ---------------------------------------------------------------


def tracks():
    rng = np.random.default_rng(2)
    return Demonstrations([rng.normal(0.5, 0.8, size=(12, 2)).cumsum(axis=0) for _ in range(3)])


def quiet(*arguments, **options):
    with pytest.warns(ConvergenceWarning):
        return sample(*arguments, draws=12, tune=5, chains=2, progress=False, **options)


@pytest.mark.parametrize(
    "prior", [Regions.inferred(1.0), DistanceDependent(), Mixing(3)], ids=lambda p: p.key
)
@pytest.mark.parametrize("concentration", [1.0, CONCENTRATION], ids=["fixed", "inferred"])
def test_a_repertoire_of_bare_actions_gives_the_draws_of_none(prior, concentration):
    compass = DisplacementDynamics.compass(8, sigma=0.4)
    problems = [
        bare_problem(tracks(), compass),
        Problem.from_demonstrations(
            tracks(), compass, repertoire=make_policies([Actions()], compass, tracks())
        ),
    ]
    np.testing.assert_array_equal(problems[0].loglik, problems[1].loglik)
    runs = [quiet(p, prior, concentration, random_state=3).draws.arrays for p in problems]
    assert runs[0].keys() == runs[1].keys()
    for name, values in runs[0].items():
        np.testing.assert_array_equal(values, runs[1][name], err_msg=name)


@pytest.mark.parametrize(
    ("prior", "collapsed"),
    [
        (Mixing(3), True),
        (Mixing(3), False),
        (ChineseRestaurant(), True),
        (ChineseRestaurant(), False),
        (DistanceDependent(decay=GaussianDecay(1.0, 0.01)), True),
        (Regions.inferred(1.0), True),
    ],
)
def test_every_prior_is_sampled_with_a_repertoire(prior, collapsed):
    problem = Problem.from_demonstrations(
        tracks(), DisplacementDynamics.compass(8, sigma=0.4), repertoire=[Actions(), Blurs()]
    )
    posterior = quiet(problem, prior, 0.2, collapsed, random_state=1)
    assert posterior.kinds.shape == (2, 12, 4)
    np.testing.assert_allclose(posterior.kinds.sum(axis=2), 1.0)
    assert posterior.kinds.std(axis=(0, 1)).min() > 0
    assert posterior.actions.max() < 8
    state = make_chain(problem, prior, alpha=0.2, collapsed=collapsed).state
    tables = make_tables(0.2, 25, problem.n_transitions, problem.base_measure(np.full(4, 1 / 4)))
    np.testing.assert_allclose(state.tables.action, tables.action)
