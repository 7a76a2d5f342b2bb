"""Passes over regions with one mistake each must fail the check that the right ones pass.

Mistakes in the conditional of a link or of a region's controller are in `test_regions_twins.py`.
"""

from unittest import mock

import exact
import numpy as np
import pytest
from enumerated_regions import Case, carries, differing_neighbours, many_visits, only

from onlooker.gibbs.dirichlet import controllers_for
from onlooker.partitions.regions import bound as updates

SHARP = exact.sharp_problem()


def without_jacobian(reach):
    """Patch ``ln p(ν) ν`` of a line of (scale, ν) to ``ln p(ν)``."""
    return mock.patch.object(reach, "log_prior_nu", reach.nu_prior.logpdf)


class CarryWithoutNormalisers(updates.Carried):
    def _try_scale(self, state, fit, n_slots):
        with mock.patch.object(updates, "log_link_normaliser", return_value=0.0):
            return super()._try_scale(state, fit, n_slots)


class CarryWithoutJacobian(updates.Carried):
    def _try_scale(self, state, fit, n_slots):
        with without_jacobian(self.reach):
            return super()._try_scale(state, fit, n_slots)


class RejectedCarryStays(updates.Carried):
    def _try_scale(self, state, fit, n_slots):
        scale, proposed = state.hyper["scale"], (state.labels, state.partition, state.counts)
        chance = super()._try_scale(state, fit, n_slots)
        if state.hyper["scale"] == scale:
            state.labels, state.partition, state.counts = proposed
        return chance


class ScaleWithoutJacobian(updates.ScaleAndSelfLink):
    def _draw_scale(self, state, lengths, n_self):
        with without_jacobian(self):
            super()._draw_scale(state, lengths, n_self)


class GammaOfNodes(updates.Gamma):
    def __call__(self, state):
        regions = state.partition
        state.partition = regions._replace(n_regions=state.counts.size)
        info = super().__call__(state)
        state.partition = regions
        return info


def free_controllers_from_data(n_slots, cluster, tables, rng):
    """Free ones as if they had been in use where the first one is."""
    used = cluster.any(axis=1)[:, None]
    return controllers_for(n_slots, np.where(used, cluster, cluster[0]), tables, rng)


def old_actions(actions, labels, counts, data, controllers, rng):
    """Counted anew, not drawn."""
    counts.cluster[:] = 0
    np.add.at(counts.cluster, labels, counts.node)
    counts.total[:] = counts.cluster.sum(axis=1)


def carries_and_summed(chain):
    carries(chain)
    chain.update("carried")(chain.state)


SUMMED = Case(SHARP, "nu", "scale", alpha=0.1), carries_and_summed
CARRIES = Case(differing_neighbours(), "scale", alpha=0.3), carries
SHARING = Case(SHARP, "gamma", alpha=0.1), None
VISITS = Case(many_visits()), only("carried")
FAULTS = {
    "carry without normalisers": (SUMMED, "Carried", CarryWithoutNormalisers),
    "carry without Jacobian": (SUMMED, "Carried", CarryWithoutJacobian),
    "rejected carry stays": (CARRIES, "Carried", RejectedCarryStays),
    "scale without Jacobian": (SUMMED, "ScaleAndSelfLink", ScaleWithoutJacobian),
    "gamma of nodes": (SHARING, "Gamma", GammaOfNodes),
    "free controllers from data": (VISITS, "controllers_for", free_controllers_from_data),
    "old actions": (VISITS, "behaviours_given", old_actions),
}


@pytest.mark.parametrize("where", [SUMMED, SHARING, VISITS], ids=["summed", "gamma", "visits"])
def test_what_catches_mistakes_passes_without_one(where):
    case, step = where
    assert case.errors(2_000, step=step) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mistake_is_caught(fault):
    (case, step), name, broken = FAULTS[fault]
    with mock.patch.object(updates, name, broken):
        assert case.errors(2_000, step=step)
