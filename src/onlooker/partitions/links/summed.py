"""Parts of the ddCRP's clusters change sides together with their actions.

With many transitions a node and actions that are hard to tell apart, links and actions hold each
other: a node whose actions were drawn for one controller fits no other, and as long as it stays,
its actions are drawn for that controller. Here both move at once. Controllers are drawn, ``θ_k ~
Dir(ξ_k + α)``, and moved on with the actions summed out. Given them, node i's transitions have the
likelihood ``L_ik = Π_t Σ_j ℓ[t, j] θ_kj`` in cluster k, and its link, whose removal splits the part
P off its component, is drawn among all nodes outside of P::

    p(c_i = j) ∝ f(d_ij) Π_{m ∈ P} L_{m, z_j}.

No component is born or dies, so that every controller keeps its meaning. Links that close a cycle
are left alone: whether a link does is not changed by this step. In the end all actions are drawn
from ``ℓ[t, ·] ⊙ θ_z``, and the controllers are forgotten.
"""

from __future__ import annotations

import numpy as np

from onlooker.checks import Array
from onlooker.compiled import njit
from onlooker.gibbs.actions import ordinary_actions
from onlooker.gibbs.arrays import Counts, Data, Slots, Tables
from onlooker.gibbs.dirichlet import dirichlet
from onlooker.gibbs.summed import log_fits, update_controllers
from onlooker.partitions.links.arrays import Forest, Graph
from onlooker.partitions.links.forest import count_reach, remove_link, set_link
from onlooker.partitions.links.kernels import (
    Shortcuts,
    Workspace,
    any_member,
    draw_candidate,
    every_cluster,
    make_workspace,
    near_member,
)


@njit(cache=True, nogil=True, error_model="numpy")
def _score_part(n_part: int, slots: Slots, fits: Array, work: Workspace) -> bool:
    """Score each cluster by ``ln Π_{m ∈ P} L_mk``, relative to the best one within reach.

    A cluster of mass zero, without a neighbour of node i, must not set the scale: beside a much
    better fit all that can be drawn would underflow. Returns whether anything can be drawn.
    """
    best = -np.inf
    for p in range(slots.n[0]):
        fit = -np.inf
        if work.mass[p + 1] > 0.0:
            fit = 0.0
            for m in range(n_part):
                fit += fits[work.walk[m], p]
        work.score[p + 1] = fit
        best = max(best, fit)
    if best == -np.inf:
        return False
    for p in range(slots.n[0]):
        work.score[p + 1] -= best
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def link_parts(
    labels: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    fits: Array,
    graph: Graph,
    shortcuts: Shortcuts,
    rng: np.random.Generator,
) -> None:
    """Draw ``p(c_i = j) ∝ f(d_ij) Π_{m ∈ P} L_{m, z_j}`` among the nodes outside of P."""
    n_nodes, n_actions = counts.node.shape
    work = make_workspace(n_nodes, n_actions, shortcuts.n_candidates)
    for i in range(n_nodes):
        home = labels[i]
        if forest.link[i] == i:
            continue
        n_part = count_reach(i, forest, work.walk, counts.size[home], shortcuts.max_walk, rng)
        if n_part == 0 or n_part == counts.size[home]:  # given up, or the link closes a cycle
            continue
        old = forest.link[i]
        own = remove_link(i, n_part, work.walk, labels, forest, slots, counts, work.part)
        every_cluster(i, own, True, labels, slots, counts.size, graph, work)
        if not _score_part(n_part, slots, fits, work):
            set_link(i, old, home, work.walk, labels, forest, slots, counts, work.part)
            continue
        work.slot[0], work.mass[0], work.score[0] = own, 0.0, 0.0  # it must not link to itself
        c = draw_candidate(slots.n[0] + 1, work, rng.random())  # the part, listed last, is left out
        k = work.slot[c]
        rest = rng.random() * work.mass[c]
        if rest < work.near[k] or graph.offset == 0.0:
            j = near_member(i, k, rest, labels, graph)
        else:
            index = min(int((rest - work.near[k]) / graph.offset), counts.size[k] - 1)
            j = any_member(i, k, home, index, labels, forest, counts.size, work.walk, rng)
        set_link(i, j, home, work.walk, labels, forest, slots, counts, work.part)


@njit(cache=True, nogil=True, error_model="numpy")
def summed_pass(
    labels: Array,
    actions: Array,
    forest: Forest,
    slots: Slots,
    counts: Counts,
    tables: Tables,
    data: Data,
    graph: Graph,
    shortcuts: Shortcuts,
    rng: np.random.Generator,
) -> bool:
    """Draw links between the components there are, and all actions; returns whether it was done.

    With one component, or with more than ``shortcuts.max_exact``, nothing is done: their number
    does not change here, so that this is no choice that depends on what is drawn.
    """
    n_slots = slots.n[0]
    if n_slots < 2 or n_slots > shortcuts.max_exact:
        return False
    controllers = np.empty(counts.cluster.shape)
    for p in range(n_slots):
        k = slots.order[p]
        dirichlet(controllers[k], counts.cluster[k], tables.alpha, tables.share, rng)
    alpha = tables.alpha * tables.share
    update_controllers(controllers, slots, forest.pool, forest.start, counts.size, alpha, data, rng)
    fits = log_fits(controllers, slots, data)
    link_parts(labels, forest, slots, counts, fits, graph, shortcuts, rng)
    ordinary_actions(actions, labels, counts, data, controllers, rng)
    return True
