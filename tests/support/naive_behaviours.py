"""Actions of a controller anew, in plain Python: the twin of `onlooker.gibbs.anew`.

Uniforms are taken in the order of the kernel. Nothing here comes from the library.
"""

import math
from itertools import accumulate


def draw(weights, rng):
    """The first running sum beyond a uniform part of the total."""
    running = list(accumulate(weights))
    target = rng.random() * running[-1]
    return next(k for k, total in enumerate(running) if total > target)


def from_base(row, share, kind_of, rng):
    """A kind first, then an action of it."""
    kinds = sorted(set(kind_of))
    kind = kinds[0]
    if len(kinds) > 1:
        members = [[j for j, q in enumerate(kind_of) if q == kind] for kind in kinds]
        kind = kinds[draw([sum(row[j] * share[j] for j in inside) for inside in members], rng)]
    inside = [j for j, q in enumerate(kind_of) if q == kind]
    return inside[draw([row[j] for j in inside], rng)]


def sequence(rows, alpha, share, kind_of, rng, given=None):
    """One action after the other given those before, and the logarithm of what that is worth."""
    times, drawn, log_worth = {}, [], 0.0
    for p, row in enumerate(rows):
        counted = [row[j] * n for j, n in times.items()]
        base = alpha * sum(a * b for a, b in zip(row, share, strict=True))
        log_worth += math.log((sum(counted) + base) / (p + alpha * len(share)))
        if given is not None:
            new = given[p]
        else:
            q = draw([*counted, base], rng)
            new = list(times)[q] if q < len(counted) else from_base(row, share, kind_of, rng)
        times[new] = times.get(new, 0) + 1
        drawn.append(new)
    return drawn, log_worth


def draw_anew(at, actions, likelihood, alpha, share, kind_of, rng, sequences, worth_of=None):
    """All actions of one controller, at the transitions `at`: new ones in place, or as they were.

    ``worth_of(log_worth, is_present)`` breaks it on purpose.
    """
    at = list(at)
    for p in range(len(at) - 1, 0, -1):
        q = int(rng.random() * (p + 1))
        at[p], at[q] = at[q], at[p]
    rows = [likelihood[t] for t in at]
    worth_of = worth_of or (lambda log_worth, is_present: log_worth)
    chosen, log_worth = sequence(
        rows, alpha, share, kind_of, rng, given=[int(actions[t]) for t in at]
    )
    total = worth_of(log_worth, True)
    for _ in range(sequences):
        drawn, log_worth = sequence(rows, alpha, share, kind_of, rng)
        other = worth_of(log_worth, False)
        total = max(total, other) + math.log1p(math.exp(-abs(total - other)))
        if math.log(rng.random()) < other - total:
            chosen = drawn
    for t, new in zip(at, chosen, strict=True):
        actions[t] = new
