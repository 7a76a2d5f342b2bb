"""Clusters of draws get names that stay where the clusters stay."""

import numpy as np
import pytest

from onlooker.explorer.matching import Names, aligned, block_size


def naive_names(labels, reference):
    """The twin: overlaps of every pair, by counting."""
    k = max(reference) + 1
    out = []
    for draw in labels:
        shared = {}
        for c in sorted(set(draw)):
            overlap = [sum((draw == c) & (reference == p)) for p in range(k)]
            shared[c] = (max(overlap), int(np.argmax(overlap)))
        level, names = dict.fromkeys(range(k), 0), {}
        for c in sorted(shared, key=lambda c: (-shared[c][0], c)):
            parent = shared[c][1]
            names[c] = level[parent] * k + parent
            level[parent] += 1
        out.append([names[c] for c in draw])
    return np.array(out)


def decoded(names, draws):
    raw = np.frombuffer(names.encode(draws), dtype="<u2").reshape(-1, names.labels.shape[1])
    return raw ^ names.reference.astype(np.uint16)


def first_appearance(labels):
    out = np.empty_like(labels)
    for row, draw in zip(out, labels, strict=True):
        seen = {}
        row[:] = [seen.setdefault(c, len(seen)) for c in draw]
    return out


@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_names_clusters_as_its_twin_does(seed):
    rng = np.random.default_rng(seed)
    n_nodes, n_clusters = int(rng.integers(1, 30)), int(rng.integers(1, 8))
    labels = first_appearance(rng.integers(n_clusters, size=(7, n_nodes)))
    reference = first_appearance(rng.integers(int(rng.integers(1, 5)), size=(1, n_nodes)))[0]
    names = Names.of(labels, reference)
    np.testing.assert_array_equal(decoded(names, slice(None)), naive_names(labels, reference))


def test_a_draw_that_is_the_reference_has_its_names_whatever_its_numbers():
    reference = np.array([0, 0, 1, 1, 1, 2])
    names = Names.of(np.array([[2, 2, 0, 0, 0, 1]]), reference)
    np.testing.assert_array_equal(decoded(names, slice(None))[0], reference)


def test_the_smaller_part_of_a_split_cluster_is_its_splinter():
    reference = np.array([0, 0, 0, 0, 0, 1])
    names = decoded(Names.of(np.array([[0, 0, 1, 1, 1, 2]]), reference), slice(None))[0]
    np.testing.assert_array_equal(names, [2, 2, 0, 0, 0, 1])


def test_merged_clusters_take_the_name_of_the_larger():
    reference = np.array([0, 0, 1, 1, 1])
    names = decoded(Names.of(np.array([[0, 0, 0, 0, 0]]), reference), slice(None))[0]
    np.testing.assert_array_equal(names, [1, 1, 1, 1, 1])


def test_any_choice_of_draws_decodes_to_the_same_names():
    rng = np.random.default_rng(0)
    labels = first_appearance(rng.integers(5, size=(20, 40)))
    names = Names.of(labels, labels[3].astype(np.int64))
    every = decoded(names, slice(None))
    np.testing.assert_array_equal(decoded(names, slice(4, 9)), every[4:9])
    np.testing.assert_array_equal(decoded(names, np.array([17, 2])), every[[17, 2]])


def test_more_splinters_than_sixteen_bits_can_name_share_the_last_name():
    n = 70_000
    names = Names.of(np.arange(n)[None], np.zeros(n, dtype=np.int64))
    assert names.names.max() == 65_535
    assert names.names.min() == 0


def test_a_block_holds_some_draws_however_many_nodes_there_are():
    assert block_size(10**7) == 1
    assert block_size(100) * 100 <= 1 << 18


def test_aligned_clusters_keep_their_numbers():
    before = np.array([2, 2, 2, 0, 0, 1])
    same = np.array([0, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(aligned(same, before), before)


@pytest.mark.parametrize("seed", range(6))
def test_alignment_renames_and_does_no_more(seed):
    rng = np.random.default_rng(seed)
    labels = first_appearance(rng.integers(5, size=(1, 30)))[0]
    renamed = aligned(labels, first_appearance(rng.integers(3, size=(1, 30)))[0])
    assert sorted(set(renamed)) == list(range(labels.max() + 1))
    together = labels[:, None] == labels
    np.testing.assert_array_equal(renamed[:, None] == renamed, together)
