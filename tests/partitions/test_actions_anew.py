"""All actions of a controller drawn anew together leave the posterior as it is."""

import itertools
import math

import numpy as np
import pytest
from naive_behaviours import draw_anew
from scipy import stats

KIND_OF = [0, 1, 1]
SHARE = [1.8, 0.6, 0.6]
LIKELIHOOD = np.exp(np.random.default_rng(4).normal(0, 1.0, (4, 3)))
TIMES = 8_000


def enumerated(alpha):
    """Every sequence of four actions of one controller, and its probability."""
    every = list(itertools.product(range(3), repeat=4))
    logs = []
    for actions in every:
        log_joint = sum(math.log(LIKELIHOOD[t, j]) for t, j in enumerate(actions))
        for j, part in enumerate(SHARE):
            shape = alpha * part
            log_joint += math.lgamma(shape + actions.count(j)) - math.lgamma(shape)
        logs.append(log_joint)
    weights = np.exp(np.array(logs) - max(logs))
    return every, weights / weights.sum()


def p_value(alpha, worth_of=None, seed=0):
    """Of what a step makes of independent draws of the posterior: they stay such draws."""
    every, p = enumerated(alpha)
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(every, 0)
    for start in rng.choice(len(every), size=TIMES, p=p):
        actions = list(every[start])
        draw_anew(range(4), actions, LIKELIHOOD, alpha, SHARE, KIND_OF, rng, 2, worth_of)
        found[tuple(actions)] += 1
    counts = np.array(list(found.values()))
    rare = TIMES * p < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    p = np.append(p[~rare], p[rare].sum())
    return stats.chisquare(counts[p > 0], TIMES * p[p > 0]).pvalue


@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_draws_of_the_posterior_stay_draws_of_the_posterior(alpha):
    assert p_value(alpha) > 1e-4


MISTAKES = {
    "all are worth the same": lambda log_worth, is_present: 0.0,
    "the present one is worth nothing": lambda log_worth, is_present: (
        -50.0 if is_present else log_worth
    ),
    "worth twice over": lambda log_worth, is_present: 2.0 * log_worth,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_worth_is_caught(mistake):
    assert p_value(0.3, MISTAKES[mistake]) < 1e-8
