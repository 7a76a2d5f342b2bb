"""The link graph's bookkeeping, whatever is done to the links."""

import numpy as np
import pytest
from agreement import canonical
from chains import make_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from onlooker import Problem
from onlooker.gibbs.arrays import count
from onlooker.partitions import DistanceDependent, GaussianDecay
from onlooker.partitions.ddcrp.bound import shortcuts_for
from onlooker.partitions.links.forest import (
    CHILD,
    NEXT,
    count_reach,
    make_forest,
    reach,
    remove_link,
    set_link,
)

N_ACTIONS = 3


class Graph:
    """A link graph with random counts, and a way to set one link."""

    def __init__(self, links, seed=0):
        rng = np.random.default_rng(seed)
        n = len(links)
        self.first = np.concatenate([[0], np.cumsum(rng.integers(0, 4, size=n))])
        self.actions = rng.integers(N_ACTIONS, size=self.first[-1])
        self.forest, self.labels, self.slots = make_forest(np.array(links))
        self.counts = count(self.actions, self.labels, self.first, N_ACTIONS, n)
        self.rng = rng
        self.walk = np.empty(n, dtype=np.int32)
        self.part = np.empty(N_ACTIONS, dtype=np.int32)

    def relink(self, i, j):
        home = self.labels[i]
        size = self.counts.size[home]
        n = count_reach(i, self.forest, self.walk, size, len(self.labels), self.rng)
        state = (self.labels, self.forest, self.slots, self.counts)
        remove_link(i, n, self.walk, *state, self.part)
        self.check_parted(i)
        set_link(i, j, home, self.walk, *state, self.part)

    def check_parted(self, i):
        """While the link is away: labels are components, counts are theirs."""
        parts = components(self.forest.link)
        assert canonical(self.labels) == parts
        own = self.labels[i]
        members = np.flatnonzero(self.labels == own)
        assert self.part.tolist() == self.counts.node[members].sum(axis=0).tolist()
        assert self.counts.size[own] == len(members)
        assert self.counts.total[own] == self.part.sum()

    def check(self):
        check(self.forest, self.labels, self.slots, self.counts, self.actions, self.first)


def components(links):
    labels = np.arange(len(links))
    for _ in links:
        for i, j in enumerate(links):
            labels[[i, j]] = min(labels[i], labels[j])
    return canonical(labels)


def check(forest, labels, slots, counts, actions, first):
    """Labels are the components, counts a recount, and every list holds what it should."""
    n = len(labels)
    assert canonical(labels) == components(forest.link)
    again = count(actions, labels, first, counts.node.shape[1], n)
    for kept, recounted in zip(counts, again, strict=True):
        assert np.array_equal(kept, recounted)
    used = set(slots.order[: slots.n[0]].tolist())
    assert used == set(labels.tolist())
    assert np.array_equal(slots.where[slots.order], np.arange(n))
    for k in used:
        members = forest.pool[forest.start[k] : forest.start[k] + counts.size[k]]
        assert sorted(members.tolist()) == np.flatnonzero(labels == k).tolist()
        assert np.array_equal(forest.at[members], np.arange(len(members)))
        assert counts.size[k] <= forest.capacity[k]
    for j in range(n):
        listed, i = [], forest.siblings[j, CHILD]
        while i >= 0:
            listed.append(int(i))
            i = forest.siblings[i, NEXT]
        assert sorted(listed) == [i for i in range(n) if forest.link[i] == j and i != j]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_after_any_sequence_of_link_updates_all_is_as_if_counted_anew(data):
    n = data.draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    graph = Graph(data.draw(st.lists(node, min_size=n, max_size=n)))
    graph.check()
    for i, j in data.draw(st.lists(st.tuples(node, node), max_size=25)):
        graph.relink(i, j)
        graph.check()


def test_removing_a_cycle_link_does_not_split_its_cluster():
    graph = Graph([1, 2, 0, 0])
    assert reach(1, graph.forest.siblings, graph.walk, 4) == 4
    graph.relink(1, 1)
    assert canonical(graph.labels) == (0, 0, 0, 0)


def test_removing_a_tree_link_splits_off_what_hangs_on_it():
    graph = Graph([0, 0, 1, 1])
    graph.relink(1, 1)
    assert canonical(graph.labels) == (0, 1, 1, 1)


def test_a_walk_gives_up_beyond_its_limit():
    graph = Graph([1, 2, 3, 4, 4])
    assert reach(3, graph.forest.siblings, graph.walk, 2) == 3
    assert reach(3, graph.forest.siblings, graph.walk, 5) == 4


def test_the_chance_to_go_on_walking_halves_with_every_doubling():
    graph = Graph([1, 2, 3, 4, 5, 5])  # five nodes reach node 4: limits 1, 2, 4, 8
    found = [count_reach(4, graph.forest, graph.walk, 6, 1, graph.rng) for _ in range(4000)]
    assert set(found) == {0, 5}
    assert abs(np.mean(np.array(found) == 5) - 1 / 8) < 5 * np.sqrt(1 / 8 * 7 / 8 / 4000)


def test_giving_up_does_not_depend_on_the_link_of_the_node_itself():
    """A root, whose walk is spared, gives up as often as the same node with a link elsewhere."""
    shares = []
    for link in (4, 5):
        graph = Graph([1, 2, 3, 4, link, 5])
        found = [
            count_reach(4, graph.forest, graph.walk, 5 + (link == 5), 1, graph.rng)
            for _ in range(4000)
        ]
        shares.append(np.mean(np.array(found) == 5))
    assert abs(shares[0] - shares[1]) < 5 * np.sqrt(2 / 8 * 7 / 8 / 4000)


@pytest.mark.parametrize("few", [1000, 0])
def test_sweeps_keep_labels_and_counts_right(few):
    rng = np.random.default_rng(0)
    states = rng.uniform(0, 10, size=(300, 2))
    problem = Problem(rng.integers(300, size=400), rng.normal(size=(400, N_ACTIONS)), states)
    prior = DistanceDependent(0.5, GaussianDecay(1.0, 0.01))
    bound = prior.bind(problem)
    bound.shortcuts = shortcuts_for(300)._replace(max_exact=few)
    chain = make_chain(problem, prior, bound=bound, alpha=0.5, rng=rng)
    for _ in range(30):
        chain.sweep()
        state = chain.state
        check(
            state.partition,
            state.labels,
            state.slots,
            state.counts,
            state.actions,
            state.data.first,
        )
