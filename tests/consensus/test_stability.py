"""Half of the chains against the other half."""

import numpy as np
import pytest

from onlooker import Problem, sample
from onlooker.consensus.stability import Stability, adjusted_rand_index, stability
from onlooker.diagnostics import own_landmarks, scalar_row, summary
from onlooker.findings.opened import OpenedRun
from onlooker.findings.verdict import verdict
from onlooker.partitions import Regions
from onlooker.problem import Landmarks
from onlooker.repertoire import Actions
from onlooker.warnings import ConvergenceWarning
from onlooker.worlds import CircularMotion

WORLD = CircularMotion()
DEMOS = WORLD.rollout(8, 20, random_state=0)[0]


def run(chains=4, draws=10, tune=2):
    problem = Problem.from_demonstrations(
        DEMOS, WORLD.dynamics, nodes=Landmarks(60), repertoire=[Actions()]
    )
    options = {"random_state": 0, "progress": False, "chains": chains, "draws": draws, "tune": tune}
    return sample(problem, Regions.inferred(1.0), **options)


@pytest.fixture(scope="module")
def posterior():
    with pytest.warns(ConvergenceWarning, match="Half of the chains"):
        return run()


def test_the_variation_is_that_of_the_mean_policies_of_even_and_odd_chains(posterior):
    halves = [posterior._with(posterior.draws.take(chains=[k, k + 2]), [k, k + 2]) for k in (0, 1)]
    first, second = (half.policy() for half in halves)
    right = 0.5 * np.abs(first - second).sum(axis=1).mean()
    assert stability(posterior).variation == pytest.approx(right)


def test_a_chain_agrees_with_its_copy(posterior):
    twice = posterior._with(posterior.draws.take(chains=[0, 0, 1, 1]), [0, 0, 1, 1])
    found = stability(twice)
    assert found.variation == pytest.approx(0.0, abs=1e-12)
    assert found.rand_index in (0.0, 1.0)
    assert stability(posterior.chain(0)) is None


def test_what_may_be_read_is_said():
    assert "Both can be relied on" in Stability(0.05, 0.9, 0.6).sentence
    assert "the partition is not to be read" in Stability(0.05, 0.7, 0.6).sentence
    assert "Neither" in Stability(0.2, 0.9, 0.6).sentence


def test_a_partition_that_leaves_most_states_open_is_not_to_be_read():
    found = Stability(0.05, 1.0, 0.2)
    assert "on the 20 % of states with membership > 50 %" in found.sentence
    assert "the partition is not to be read" in found.sentence
    assert not found.partition_agrees


def test_the_verdict_is_about_halves_and_names_what_each_chain_found(posterior):
    found = verdict(OpenedRun.of(posterior))
    says = stability(posterior)
    assert found["settled"] == {"policy": says.policy_agrees, "partition": says.partition_agrees}
    numbers = ", ".join(f"{k:.0f}" for k in posterior.n_controllers.mean(axis=1))
    assert f"controllers ({numbers})" in found["sentences"][0]
    assert found["sentences"][1] == says.sentence


def test_chains_with_landmarks_of_their_own_are_compared_with_themselves(posterior):
    assert own_landmarks(posterior)
    assert not own_landmarks(posterior.chain(0))
    row = summary(posterior).loc["log_joint"]
    each = [scalar_row(chain[None]) for chain in posterior.log_joint]
    assert row["r_hat"] == max(one["r_hat"] for one in each)
    assert row["ess_bulk"] == sum(one["ess_bulk"] for one in each)


def test_the_index_is_that_of_scikit_learn():
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(0)
    for n in (1, 2, 4):
        first, second = rng.integers(0, n, (2, 40))
        second[:20] = first[:20]
        right = adjusted_rand_score(first, second)
        assert adjusted_rand_index(first, second) == pytest.approx(right)
