"""Actions between unknown positions, the slow way: every density from the covariance of all seen.

Moves are made in the kernel's order with the kernel's uniforms; counts are counted anew each time.
"""

import itertools
from dataclasses import dataclass

import numpy as np


def log_seen(track, drift, sigma, noise):
    """``ln p(y | drift)`` of one trajectory up to a constant, with all positions integrated out.

    `drift` is ``(..., n - 1, d)``; nothing is known of where the trajectory starts.
    """
    total = 0.0
    for d in range(track.shape[1]):
        seen = np.flatnonzero(~np.isnan(track[:, d]))
        rest = seen[1:]
        if len(rest) == 0:
            continue
        since = rest - seen[0]
        covariance = sigma**2 * np.minimum.outer(since, since) + noise**2 * (1 + np.eye(len(rest)))
        walked = np.cumsum(drift[..., d], axis=-1)
        start = walked[..., seen[0] - 1, None] if seen[0] > 0 else 0.0
        error = track[rest, d] - track[seen[0], d] - (walked[..., rest - 1] - start)
        precision = np.linalg.inv(covariance)
        total = total - 0.5 * np.einsum("...i,ij,...j->...", error, precision, error)
    return total


@dataclass
class NaiveWalk:
    """One trajectory whose actions are drawn with the positions integrated out."""

    track: np.ndarray
    steps: np.ndarray
    sigma: float
    noise: float
    clusters: list
    """The cluster of each transition."""
    actions: list
    alpha: float
    controllers: np.ndarray | None
    others: np.ndarray
    """``(K, A)``: counts of other trajectories."""
    rng: np.random.Generator

    def log_density(self, actions):
        return log_seen(self.track, self.steps[np.asarray(actions)], self.sigma, self.noise)

    def policy_weight(self, moved, choice):
        """``Π w`` of actions that are put back one by one, all of them taken out before."""
        if self.controllers is not None:
            pairs = zip(moved, choice, strict=True)
            return np.prod([self.controllers[self.clusters[t], j] for t, j in pairs])
        counts = self.others.astype(float)
        for t, action in enumerate(self.actions):
            if t not in moved:
                counts[self.clusters[t], action] += 1
        weight = 1.0
        for t, j in zip(moved, choice, strict=True):
            weight *= counts[self.clusters[t], j] + self.alpha
            counts[self.clusters[t], j] += 1
        return weight

    def weights(self, moved):
        """Of all choices of the moved actions, as an array with an axis for each."""
        n = len(self.steps)
        choices = list(itertools.product(range(n), repeat=len(moved)))
        whole = np.tile(self.actions, (len(choices), 1))
        whole[:, moved] = choices
        log_l = self.log_density(whole)
        weight = [self.policy_weight(moved, choice) for choice in choices]
        return (np.array(weight) * np.exp(log_l - log_l.max())).reshape([n] * len(moved))

    def pick(self, weights):
        return int(np.searchsorted(np.cumsum(weights), self.rng.random() * weights.sum()))

    def draw(self, *moved):
        weights = self.weights(list(moved))
        if len(moved) < 3:
            for t in moved:  # row by row
                rows = weights.reshape(len(weights), -1).sum(axis=1)
                self.actions[t] = self.pick(rows)
                weights = weights[self.actions[t]]
            return
        first, second, third = moved
        left, variance = self.left(first)
        total = self.steps[np.array(list(np.ndindex(weights.shape)))].sum(axis=1)
        away = left + self.steps[[self.actions[t] for t in moved]].sum(axis=0) - total
        within = (away**2 / variance).sum(axis=1) <= 25.0
        if (left**2 / variance).sum() > 25.0:
            return
        weights = np.where(within.reshape(weights.shape), weights, 0.0)
        self.actions[third] = self.pick(weights.sum(axis=(0, 1)))
        pairs = np.array(list(itertools.product(range(len(self.steps)), repeat=2)))
        pairs = pairs[np.argsort(self.steps[pairs].sum(axis=1)[:, 0], kind="stable")]
        given = weights[pairs[:, 0], pairs[:, 1], self.actions[third]]
        self.actions[first], self.actions[second] = map(int, pairs[self.pick(given)])

    def swap(self, s, t):
        a, b = self.actions[s], self.actions[t]
        if a == b:
            return
        ratio = self.policy_weight([s, t], [b, a]) / self.policy_weight([s, t], [a, b])
        if self.rng.random() < ratio:
            self.actions[s], self.actions[t] = b, a

    def left(self, t):
        """What the actions of a run leave unexplained, and its variance, by coordinate.

        Up to a constant the density is that of a normal in a drift added to transition t.
        """
        left, variance = np.zeros((2, self.track.shape[1]))
        for d in range(self.track.shape[1]):
            drift = np.tile(self.steps[self.actions], (3, 1, 1))
            drift[:, t, d] += [-1.0, 0.0, 1.0]
            low, middle, high = log_seen(self.track, drift, self.sigma, self.noise)
            curvature = 2 * middle - low - high
            variance[d] = 1 / curvature if curvature > 1e-9 else np.inf
            left[d] = variance[d] * (high - low) / 2 if curvature > 1e-9 else 0.0
        return left, variance

    def any_of(self, n, k):
        """k of n, all different."""
        chosen = []
        for m in range(k):
            value = int((n - m) * self.rng.random())
            for other in sorted(chosen):
                value += value >= other
            chosen.append(value)
        return chosen

    def sweep(self):
        """All runs in turn."""
        square = ((self.steps[:, None] - self.steps[None]) ** 2).sum(axis=-1)
        apart = np.sqrt(square[square > 0].min())
        seen = np.flatnonzero(~np.isnan(self.track).all(axis=1))
        exact = (np.isnan(self.track).sum(axis=1) == 0) & (self.noise == 0.0)
        for p, q in itertools.pairwise(seen):
            n = int(q - p)
            if n > 1 or not (exact[p] and exact[q]):
                for t in range(p, q):
                    self.draw(t)
            if n == 2:
                self.draw(p, p + 1)
            if n > 2:
                for _ in range(4 * n):
                    self.swap(*(int(p) + m for m in self.any_of(n, 2)))
                for _ in range(n):
                    self.draw(*(int(p) + m for m in self.any_of(n, 2)))
                if 2 * np.sqrt(self.left(p)[1].max()) < apart:
                    self.draw(*(int(p) + m for m in self.any_of(n, 3)))
            if q < len(self.track) - 1 and not exact[q]:
                self.draw(q - 1, q)
