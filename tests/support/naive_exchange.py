"""The slow, readable twin of the exchange algorithm and its Swendsen–Wang sweeps."""

import math


def agreement(labels, weights):
    """S(z), from the dense symmetric matrix of weights."""
    pairs = ((i, j) for i in range(len(labels)) for j in range(i))
    return math.fsum(weights[i][j] for i, j in pairs if labels[i] == labels[j])


def swendsen_wang(labels, weights, beta, n_labels, rng):
    """Bond equal neighbours, then give every component of the bonds a label at random."""
    n = len(labels)
    bonds = {i: [] for i in range(n)}
    for i in range(n):
        for j in range(i + 1, n):
            if weights[i][j] > 0 and labels[i] == labels[j]:
                stays_free = math.exp(-beta * weights[i][j])
                if math.exp(-rng.standard_exponential()) > stays_free:
                    bonds[i].append(j)
                    bonds[j].append(i)
    fresh = {}
    for i in range(n):
        if i in fresh:
            continue
        label, reached = int(rng.random() * n_labels), [i]
        while reached:
            j = reached.pop()
            if j not in fresh:
                fresh[j] = label
                reached += bonds[j]
    return [fresh[i] for i in range(n)]


def exchange(beta, labels, weights, n_labels, prior, sweeps, widths, rng):
    """One step for β; `prior` is its density, `widths` the range of ln of a step's width."""
    width = math.exp(rng.uniform(*widths))
    step = width * rng.standard_normal()
    candidate = beta * math.exp(step)
    if prior(candidate) == 0:
        return beta
    auxiliary = list(labels)
    for _ in range(sweeps):
        auxiliary = swendsen_wang(auxiliary, weights, candidate, n_labels, rng)
    s, t = agreement(labels, weights), agreement(auxiliary, weights)
    ratio = math.exp((candidate - beta) * (s - t))
    ratio *= prior(candidate) / prior(beta) * candidate / beta
    return candidate if 1 - rng.random() < ratio else beta
