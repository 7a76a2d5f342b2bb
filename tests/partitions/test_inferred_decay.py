"""A ddCRP whose decay is unknown, against the enumerated posterior."""

import exact
import numpy as np
import pytest
from chains import make_chain
from enumerated import (
    ALPHA,
    COORDINATES,
    DISTANCES,
    INFERRED_DECAYS,
    LOGLIK,
    NODE_OF,
    OFFSET,
    SCALE,
    N,
    run,
)

from onlooker import Posterior, Problem, sample
from onlooker.hyper import LogUniform
from onlooker.partitions import DistanceDependent, GaussianDecay, Potts
from onlooker.partitions.geometry import TOLERANCE, Geometry
from onlooker.partitions.links.scales import ScaleGrid, log_links

unmixed = pytest.mark.filterwarnings("ignore::onlooker.warnings.ConvergenceWarning")


def draws_of(prior):
    draws = run(prior, sweeps=8_000)
    if prior.decay.offset is not OFFSET:
        assert np.ptp(draws.hyper.pop("offset")) == 0
    if prior.decay.scale is not SCALE:
        assert np.ptp(draws.hyper.pop("scale")) == 0
    return draws


@pytest.mark.parametrize("case", INFERRED_DECAYS)
def test_inferred_decays_match_the_enumerated_posterior(case):
    prior, oracle = INFERRED_DECAYS[case]
    assert exact.compare(draws_of(prior), oracle(), alpha=ALPHA) == []


class RowSumsOfTheFirstScale(ScaleGrid):
    """A normaliser that does not follow the scale."""

    def local(self, index):
        return super().local(index)._replace(sums=super().local(0).sums)


class OffsetWithoutNormaliser(ScaleGrid):
    """Row sums that leave the constant part out."""

    def local(self, index):
        local = super().local(index)
        return local._replace(n_far=np.zeros_like(local.n_far))


@pytest.mark.parametrize(
    ("broken", "case"),
    [(RowSumsOfTheFirstScale, "scale, nu"), (OffsetWithoutNormaliser, "offset")],
)
def test_a_wrong_step_for_the_decay_is_caught(broken, case, monkeypatch):
    monkeypatch.setattr("onlooker.partitions.links.scales.ScaleGrid", broken)
    prior, oracle = INFERRED_DECAYS[case]
    assert exact.compare(draws_of(prior), oracle(), alpha=ALPHA)


def test_the_likelihood_of_links_is_that_of_its_formula():
    rng = np.random.default_rng(0)
    n = 6
    links = np.array([0, 0, 3, 2, 4, 1])
    distances = exact.pairwise_distances(rng.normal(size=(n, 2)))
    for nu, offset in ((0.3, 0.0), (1e-200, 0.2), (2.0, 0.999)):
        g = exact.gaussian_decay(0.7)(distances)
        np.fill_diagonal(g, 0.0)
        f = (1 - offset) * g + offset
        np.fill_diagonal(f, nu)
        expected = np.log(f[np.arange(n), links] / f.sum(axis=1)).sum()
        near = np.where(links == np.arange(n), -1.0, g[np.arange(n), links])
        found = log_links(nu, offset, near, g.sum(axis=1), np.full(n, n - 1.0))
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_link_that_has_no_weight_has_no_probability():
    near = np.array([0.0, 1.0])
    assert log_links(1.0, 0.0, near, np.ones(2), np.ones(2)) == -np.inf


def test_row_sums_and_log_prior_follow_the_drawn_decay():
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    prior = DistanceDependent(0.4, GaussianDecay(SCALE, OFFSET))
    chain = make_chain(problem, prior, rng=np.random.default_rng(0))
    for _ in range(30):
        chain.sweep()
    hyper = chain.state.hyper
    f = exact.gaussian_decay(hyper["scale"], hyper["offset"])(DISTANCES)
    np.fill_diagonal(f, 0.4)
    expected = np.log(f[np.arange(N), chain.links] / f.sum(axis=1)).sum()
    assert chain.bound.log_prior(chain.state) == pytest.approx(expected, rel=1e-10)
    others = f.sum(axis=1) - 0.4
    nodes = chain.bound.layout.nodes
    np.testing.assert_allclose(chain.bound.similarities.row_sums(chain.state), others[nodes])


def test_few_graphs_are_kept_where_they_are_large(monkeypatch):
    monkeypatch.setattr("onlooker.partitions.links.scales._MAX_BYTES", 1)
    grid = ScaleGrid(Geometry(COORDINATES), GaussianDecay(SCALE, 0.1), None, TOLERANCE)
    fresh = ScaleGrid(Geometry(COORDINATES), GaussianDecay(SCALE, 0.1), None, TOLERANCE)
    for index in (0, 2, -1, 2, 0):
        kept = grid.local(index)
        assert len(grid._graphs) == 1
        np.testing.assert_array_equal(kept.graph.toarray(), fresh.local(index).graph.toarray())
        np.testing.assert_array_equal(kept.sums, fresh.local(index).sums)


@unmixed
def test_predictions_use_the_decay_of_each_draw():
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    prior = DistanceDependent(0.4, GaussianDecay(SCALE, OFFSET))
    posterior = sample(problem, prior, draws=50, tune=10, chains=2, random_state=0, progress=False)
    place = np.array([[0.3, 0.2]])
    total = np.zeros(problem.n_actions)
    for draw in np.ndindex(2, 50):
        scale, offset = (posterior.hyper[name][draw] for name in ("scale", "offset"))
        labels, actions = posterior.labels[draw], posterior.actions[draw]
        f = exact.gaussian_decay(scale, offset)(np.linalg.norm(COORDINATES - place, axis=1))
        weight = {k: f[labels == k].sum() for k in np.unique(labels)}
        counts = {
            k: np.bincount(actions[labels[NODE_OF] == k], minlength=problem.n_actions)
            for k in weight
        }
        fresh = np.full(problem.n_actions, 0.4 / problem.n_actions)
        mixed = fresh + sum(
            w * (counts[k] + 1.0) / (counts[k].sum() + problem.n_actions) for k, w in weight.items()
        )
        total += mixed / (0.4 + sum(weight.values()))
    np.testing.assert_allclose(posterior.policy(place, extrapolate="average")[0], total / 100)


@unmixed
def test_a_stored_run_keeps_the_priors_of_its_decay(tmp_path):
    problem = Problem(NODE_OF, LOGLIK, COORDINATES)
    prior = DistanceDependent(0.4, GaussianDecay(SCALE, OFFSET))
    made = sample(problem, prior, draws=20, tune=5, chains=2, random_state=0, progress=False,
                  store=tmp_path / "run")  # fmt: skip
    read = Posterior.load(tmp_path / "run")
    assert read.prior.decay == prior.decay
    np.testing.assert_array_equal(read.hyper["scale"], made.hyper["scale"])


def test_all_inferred_follows_the_unit_of_the_states():
    prior = DistanceDependent.inferred(20.0, n_neighbors=50)
    assert prior.decay.scale == LogUniform(10.0, 100.0)
    assert prior.n_neighbors == 50
    with pytest.raises(ValueError, match="typical"):
        DistanceDependent.inferred(0.0)


def test_what_cannot_be_inferred_is_refused():
    with pytest.raises(ValueError, match="Potts model's decay is fixed"):
        Potts(3, decay=GaussianDecay(SCALE))
    with pytest.raises(TypeError, match="scale must be a number or a prior"):
        GaussianDecay("wide")
    with pytest.raises(ValueError, match="offset is below 1"):
        GaussianDecay(1.0, LogUniform(2.0, 3.0))
    with pytest.raises(TypeError, match="scale is to be inferred"):
        GaussianDecay(SCALE)(1.0)
