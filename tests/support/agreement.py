"""Do a sampler's draws match an enumerated posterior, within Monte Carlo error?"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

if TYPE_CHECKING:
    from exact import Exact

Partition = tuple[int, ...]
Floats = NDArray[np.float64]


def canonical(labels: Iterable[int]) -> Partition:
    """Labels renumbered in order of first appearance (restricted growth)."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in labels)


def total_variation(p: Floats, q: Floats) -> Floats:
    """Between the rows of two tables of probabilities."""
    return np.asarray(0.5 * np.abs(p - q).sum(axis=-1))


@dataclass
class _Group:
    """Numbers estimated from the same random variables, so that they mix alike."""

    names: list[str] = field(default_factory=list)
    draws: list[Floats] = field(default_factory=list)  # each (chain, draw)
    exact: list[float] = field(default_factory=list)
    sd: list[float] = field(default_factory=list)  # of one draw, exact
    scale: list[float] = field(default_factory=list)  # bounds third moment / variance of one draw

    def add(self, name: str, draws: Any, exact: float, sd: float, scale: float = 1.0) -> None:
        self.names.append(name)
        self.draws.append(np.asarray(draws, dtype=float))
        self.exact.append(float(exact))
        self.sd.append(float(sd))
        self.scale.append(float(scale))

    def event(self, name: str, draws: Any, p: float) -> None:
        self.add(name, draws, p, np.sqrt(max(p * (1.0 - p), 0.0)))


def compare(posterior: Any, exact: "Exact", *, alpha: Any = None, level: float = 1e-4) -> list[str]:
    """What the draws get wrong: one line for each number beyond Monte Carlo error; [] if none.

    Compared are co-clustering, number of clusters, partitions, action marginals, policies and the
    means of inferred hyper-parameters, over all and by number of clusters. Standard errors come
    from batch means (at least 30 batches a chain and 120 in all), so autocorrelated chains are
    judged fairly as long as a batch is several autocorrelation times long.

    Parameters
    ----------
    posterior : has `labels` (chain, draw, N), `actions` (chain, draw, M), and, where `exact`
        infers hyper-parameters, `hyper[name]` (chain, draw).
    alpha : number, (chain, draw) or `exact.Mixture`; by default `posterior.hyper["alpha"]`.
    level : probability that a right sampler is reported (Bonferroni over all numbers).
    """
    labels, actions = np.asarray(posterior.labels), np.asarray(posterior.actions)
    hyper = getattr(posterior, "hyper", None) or {}
    if alpha is None:
        if "alpha" not in hyper:
            raise ValueError("alpha: pass the concentration that the draws were made with")
        alpha = hyper["alpha"]
    expected = (len(exact.policy), len(exact.actions))
    if (labels.shape[-1], actions.shape[-1]) != expected:
        raise ValueError(f"labels and actions must end in {expected} nodes and transitions")

    problems = [f"{name}: no draws" for name in exact.hyper if name not in hyper]
    groups = [
        _label_numbers(labels, exact),
        _action_numbers(actions, exact),
        _policy_numbers(labels, actions, alpha, exact),
    ]
    groups += [
        _hyper_numbers(name, hyper[name], labels, exact) for name in exact.hyper if name in hyper
    ]
    if hasattr(exact, "pairs"):
        groups += _region_numbers(posterior, exact)
    share = level / sum(len(group.names) for group in groups)
    for group in groups:
        if group.names:
            problems += _discrepancies(group, share)
    return problems


def _region_numbers(posterior: Any, exact: Any) -> list[_Group]:
    """Regions and links as labels are, and regions and labels together."""
    labels, regions, links = (
        np.asarray(part) for part in (posterior.labels, posterior.regions, posterior.links)
    )
    both = _Group()
    rows, which = np.unique(
        np.concatenate([regions, labels], axis=-1).reshape(-1, 2 * labels.shape[-1]),
        axis=0,
        return_inverse=True,
    )
    seen = [tuple(map(canonical, np.split(row, 2))) for row in rows]
    for pair in sorted({*seen, *exact.pairs}):
        hit = np.array([other == pair for other in seen])[which.reshape(labels.shape[:-1])]
        both.event(f"P(regions and clusters {pair})", hit, exact.pairs.get(pair, 0.0))
    linked = _Group()
    for (i, j), p in np.ndenumerate(exact.links):
        linked.event(f"P(c_{i} = {j})", links[..., i] == j, p)
    return [
        both,
        linked,
        _label_numbers(regions, exact.regions, "r"),
        *(
            _hyper_numbers(name, posterior.hyper[name], regions, exact.regions, "regions")
            for name in exact.hyper
        ),
    ]


def _label_numbers(labels: NDArray[np.int64], exact: Any, name: str = "z") -> _Group:
    group = _Group()
    n_nodes = labels.shape[-1]
    for i, j in itertools.combinations(range(n_nodes), 2):
        together = labels[..., i] == labels[..., j]
        group.event(f"P({name}_{i} = {name}_{j})", together, exact.co_clustering[i, j])
    rows, which = np.unique(labels.reshape(-1, n_nodes), axis=0, return_inverse=True)
    which = which.reshape(labels.shape[:-1])
    seen = [canonical(row) for row in rows]
    sizes = _sizes(labels)
    for k in range(1, n_nodes + 1):
        group.event(f"P({k} different {name})", sizes == k, exact.n_clusters.get(k, 0.0))
    for partition in sorted({*seen, *exact.partitions}):
        hit = np.array([other == partition for other in seen])[which]
        group.event(f"P({name} = {partition})", hit, exact.partitions.get(partition, 0.0))
    return group


def _sizes(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of clusters in use in each draw."""
    ordered = np.sort(labels, axis=-1)
    sizes: NDArray[np.int64] = 1 + (np.diff(ordered, axis=-1) != 0).sum(axis=-1)
    return sizes


def _hyper_numbers(
    name: str, draws: Any, labels: NDArray[np.int64], exact: Any, what: str = "clusters"
) -> _Group:
    group = _Group()
    mean, sd = exact.hyper[name]
    group.add(f"E[{name}]", draws, mean, sd, scale=2.0 * sd)
    sizes = _sizes(labels)
    for (other, k), (part, part_sd) in exact.hyper_by_size.items():
        if other == name:
            at_k = np.where(sizes == k, draws, 0.0)
            group.add(f"E[{name}; {k} {what}]", at_k, part, part_sd, scale=3.0 * sd)
    return group


def _action_numbers(actions: NDArray[np.int64], exact: "Exact") -> _Group:
    group = _Group()
    for (t, j), p in np.ndenumerate(exact.actions):
        group.event(f"P(a_{t} = {j})", actions[..., t] == j, p)
    return group


def _policy_numbers(
    labels: NDArray[np.int64], actions: NDArray[np.int64], alpha: Any, exact: "Exact"
) -> _Group:
    """Policies of the draws, (xi_z + alpha) / (xi_z. + A alpha), at every node."""
    group = _Group()
    n_nodes, n_actions = exact.policy.shape
    if not hasattr(alpha, "policy"):
        alpha = np.broadcast_to(np.asarray(alpha, dtype=float), labels.shape[:-1])
    for i in range(n_nodes):
        xi = np.zeros((*labels.shape[:-1], n_actions))
        for t, node in enumerate(exact.node_of):
            together = labels[..., i] == labels[..., node]
            for j in range(n_actions):
                xi[..., j] += together & (actions[..., t] == j)
        policy = _policy_of(xi, alpha)
        for j in range(n_actions):
            mean, sd = exact.policy[i, j], exact.policy_sd[i, j]
            group.add(f"policy({j} | node {i})", policy[..., j], mean, sd)
    return group


def _policy_of(xi: Floats, alpha: Any) -> Floats:
    if hasattr(alpha, "policy"):
        mixed: Floats = alpha.policy(xi)
        return mixed
    more: Floats = xi + alpha[..., None]
    return more / more.sum(axis=-1, keepdims=True)


def _discrepancies(group: _Group, level: float) -> list[str]:
    """Numbers of one group further from the truth than `level` (two-sided, each) allows."""
    x = np.stack(group.draws)  # (number, chain, draw)
    exact, sd, scale = map(np.array, (group.exact, group.sd, group.scale))
    chains, draws = x.shape[1:]
    per_chain = max(30, -(-120 // chains))
    length = draws // per_chain
    if length < 10:
        raise ValueError(f"{draws} draws a chain are too few, need {10 * per_chain}")
    x = x[..., draws - per_chain * length :]
    n = x.shape[1] * x.shape[2]
    batches = x.reshape(len(x), chains * per_chain, length).mean(axis=-1)
    estimate = batches.mean(axis=1)
    error = batches.std(axis=1, ddof=1) / np.sqrt(batches.shape[1])
    iid_error = x.std(axis=(1, 2)) / np.sqrt(n)

    # Independent draws' worth of the sample. A rare event may not be seen often enough to tell;
    # then its slowest sibling speaks for it.
    ratio = np.divide(iid_error, error, out=np.ones_like(error), where=error > iid_error)
    worth = n * ratio**2
    too_rare = sd**2 * worth.min() < 50.0 * scale**2
    worth[too_rare] = worth.min()

    # The exact sd keeps the error from vanishing by luck; the last term is Bernstein's (or
    # Cornish and Fisher's) correction for skewed draws.
    quantile = stats.t.isf(level / 2.0, df=batches.shape[1] - 1)
    error = np.maximum(error, sd / np.sqrt(worth))
    allowed = quantile * error + quantile**2 * scale / (6.0 * worth)
    allowed[sd < 1e-6] = 1e-8  # the impossible never happens, the certain always
    return [
        f"{group.names[q]}: draws say {estimate[q]:.5f}, exact is {exact[q]:.5f}, "
        f"allowed error {allowed[q]:.5f}"
        for q in np.flatnonzero(~(np.abs(estimate - exact) <= allowed))
    ]


def worst_z(prior_draws, sampler_draws):
    """The largest standardised difference of means and of second moments."""
    worst = 0.0
    for power in (1, 2):
        a, b = prior_draws**power, sampler_draws**power
        batches = b[len(b) % 50 :].reshape(50, -1, b.shape[1]).mean(axis=1)
        error = np.sqrt(a.var(axis=0, ddof=1) / len(a) + batches.var(axis=0, ddof=1) / len(batches))
        worst = max(worst, float(np.max(np.abs(a.mean(axis=0) - b.mean(axis=0)) / error)))
    return worst


LIMIT = 4.5  # of about 12 numbers with t(49) errors, a right sampler exceeds it once in 2,000 runs
