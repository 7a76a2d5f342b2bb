"""The slow, readable twins of controllers with concentrations of their own.

`alpha` is anything with `alphas` and `weights`, which sum to 1.
"""

import math

import naive
from naive_links import NaiveLinks
from naive_split_merge import NaiveSplitMerge


def log_terms(counts, mixture):
    """ln w_g DM_g(ξ) of every g."""
    pairs = zip(mixture.alphas, mixture.weights, strict=True)
    return [math.log(weight) + naive.log_dm(counts, alpha) for alpha, weight in pairs]


def log_sum(logs):
    largest = max(logs)
    return largest + math.log(sum(math.exp(x - largest) for x in logs))


def draw_component(counts, mixture, rng):
    """p(g) ∝ w_g DM_g(ξ)."""
    return naive.draw(naive.softmax(log_terms(counts, mixture)), rng.random())


class Mixed(naive.Naive):
    """Each cluster's controller has one of several concentrations."""

    def __init__(self, *args, **options):
        self.component = {}
        super().__init__(*args, **options)

    def alpha_of(self, k):
        return self.alpha.alphas[self.component[k]]

    def log_dm(self, counts):
        return log_sum(log_terms(counts, self.alpha))

    def draw_component(self, k, counts):
        self.component[k] = draw_component(counts, self.alpha, self.rng)

    def draw_components(self, clusters):
        for k in clusters:
            self.draw_component(k, self.xi.get(k, [0] * self.n_actions))


class MixedSplitMerge(Mixed, NaiveSplitMerge):
    """Their splits and merges."""


class MixedLinks(NaiveLinks):
    """Links of the ddCRP; the lists of `clusters` are known by their identity."""

    def __init__(self, *args):
        super().__init__(*args)
        self.drawn = {}

    def of(self, members):
        return self.drawn[id(members)]

    def draw_components(self):
        for members in self.clusters:
            counts = self.counts(members)
            self.drawn[id(members)] = draw_component(counts, self.alpha, self.rng)

    def merge_ratio(self, own, other):
        """The other's concentration is given, that of i's own component integrated out."""
        alpha = self.alpha.alphas[self.of(other)]
        a, b = self.counts(own), self.counts(other)
        gain = naive.log_dm(naive.plus(a, b), alpha) - naive.log_dm(b, alpha)
        return gain - log_sum(log_terms(a, self.alpha))

    def set_link(self, i, j, own):
        """Who joins another cluster takes its concentration; who stays draws a new one."""
        other = self.cluster_of(j)
        if other is own:
            g = draw_component(self.counts(own), self.alpha, self.rng)
        else:
            g = self.of(other)
        super().set_link(i, j, own)
        self.drawn[id(self.cluster_of(i))] = g
