"""The oracle: tiny posteriors, enumerated.

Every action sequence (A^M of them) times every set partition of the nodes, with the prior of a
partition summed by brute force over all labelings (K^N) or link graphs (N^N) that lead to it. A
hyper-parameter given as a frozen `scipy.stats` distribution is integrated out by quadrature.
Nothing here comes from the library; N, M up to 5 and A up to 3 take a few seconds at most.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from agreement import Floats, Partition, canonical
from agreement import compare as compare
from exact_parts import components, grid, is_distribution, log_dm, set_partitions
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

LogPrior = dict[Partition, Floats]  # partition -> its log probability, one for each grid value


@dataclass(frozen=True)
class Table:
    """The whole joint posterior: p(alpha, partition, actions | data) and p(theta | partition)."""

    partitions: list[Partition]
    sequences: NDArray[np.int64]  # (S, M)
    alphas: Floats  # (G,)
    joint: Floats  # (G, P, S), sums to 1
    hyper_values: Floats  # (H,) grid of the prior's own hyper-parameter
    hyper_given_partition: Floats  # (P, H), rows sum to 1


@dataclass(frozen=True)
class Exact:
    """Posterior quantities that do not depend on how clusters are numbered."""

    co_clustering: Floats  # (N, N) P(z_i = z_j | data)
    policy: Floats  # (N, A) E[(xi_z + alpha) / (xi_z. + A alpha) | data]
    policy_sd: Floats  # (N, A) posterior sd of the same
    actions: Floats  # (M, A) P(a_t = j | data)
    n_clusters: dict[int, float]  # non-empty clusters -> probability
    partitions: dict[Partition, float]  # restricted-growth labels -> probability
    hyper: dict[str, tuple[float, float]]  # inferred hyper-parameters -> posterior mean, sd
    hyper_by_size: dict[tuple[str, int], tuple[float, float]]  # mean, sd of x · 1[k clusters]
    log_evidence: float
    node_of: NDArray[np.int64]  # (M,) node where each transition starts
    table: Table | None = field(default=None, repr=False)


# ---------------------------------------------------------------- the joint, summed


def _posterior(
    node_of: ArrayLike,
    loglik: ArrayLike,
    n_nodes: int,
    alpha: Any,
    log_prior: LogPrior,
    hyper_name: str = "",
    hyper: Any = 0.0,
) -> Exact:
    """Sum p(partition | hyper) · Π_k DM(ξ_k) · Π_t ℓ[t, a_t] over everything."""
    node_of = np.asarray(node_of, dtype=int).reshape(-1)
    loglik = np.asarray(loglik, dtype=float)
    n_transitions, n_actions = loglik.shape
    if node_of.shape != (n_transitions,):
        raise ValueError(f"node_of has {node_of.size} entries, loglik {n_transitions} rows")
    alphas, alpha_weights = grid(alpha)
    values, value_weights = grid(hyper)

    partitions = sorted(log_prior)
    log_p_hyper = np.array([log_prior[p] for p in partitions]) + np.log(value_weights)  # (P, H)
    log_p = logsumexp(log_p_hyper, axis=1)

    sequences = np.array(
        list(itertools.product(range(n_actions), repeat=n_transitions)), dtype=int
    ).reshape(n_actions**n_transitions, n_transitions)
    phi = np.zeros((len(sequences), n_nodes, n_actions))
    log_l = np.zeros(len(sequences))
    for s, actions in enumerate(sequences):
        for t, j in enumerate(actions):
            phi[s, node_of[t], j] += 1
            log_l[s] += loglik[t, j]

    log_joint = np.empty((len(alphas), len(partitions), len(sequences)))
    for p, partition in enumerate(partitions):
        log_joint[:, p] = np.log(alpha_weights)[:, None] + log_p[p] + log_l
        for members in _blocks(partition):
            xi = phi[:, members].sum(axis=1)
            log_joint[:, p] += log_dm(xi, alphas[:, None])
    log_evidence = float(logsumexp(log_joint))
    joint = np.exp(log_joint - log_evidence)

    table = Table(
        partitions,
        sequences,
        alphas,
        joint,
        values,
        np.exp(log_p_hyper - log_p[:, None]),
    )
    policy, policy_sd = _policy(table, phi)
    p_partition = joint.sum(axis=(0, 2))
    p_sequence = joint.sum(axis=(0, 1))
    same = np.array([np.equal.outer(p, p) for p in map(np.array, partitions)])
    # Inferred hyper-parameters: grid values and p(value, partition | data).
    inferred = {}
    if is_distribution(alpha):
        inferred["alpha"] = (alphas, joint.sum(axis=2))
    if is_distribution(hyper):
        inferred[hyper_name] = (values, (p_partition[:, None] * table.hyper_given_partition).T)
    return Exact(
        co_clustering=np.einsum("p,pij->ij", p_partition, same),
        policy=policy,
        policy_sd=policy_sd,
        actions=np.stack([(p_sequence @ (sequences == j)) for j in range(n_actions)], axis=-1),
        n_clusters=n_of_size(dict(zip(partitions, p_partition, strict=True))),
        partitions={p: float(w) for p, w in zip(partitions, p_partition, strict=True)},
        hyper={name: _mean_sd(x, w.sum(axis=1)) for name, (x, w) in inferred.items()},
        hyper_by_size=_by_size(inferred, partitions),
        log_evidence=log_evidence,
        node_of=node_of,
        table=table,
    )


def _blocks(partition: Partition) -> list[list[int]]:
    return [[i for i, label in enumerate(partition) if label == k] for k in sorted(set(partition))]


def _policy(table: Table, phi: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and sd of (xi_z + alpha) / (xi_z. + A alpha) at every node."""
    _, n_nodes, n_actions = phi.shape
    mean, square = np.zeros((2, n_nodes, n_actions))
    alphas = table.alphas[:, None, None]
    for p, partition in enumerate(table.partitions):
        for members in _blocks(partition):
            xi = phi[:, members].sum(axis=1)
            policy = (xi + alphas) / (xi.sum(-1, keepdims=True) + n_actions * alphas)
            mean[members] += np.einsum("gs,gsj->j", table.joint[:, p], policy)
            square[members] += np.einsum("gs,gsj->j", table.joint[:, p], policy**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _mean_sd(values: Floats, probabilities: Floats) -> tuple[float, float]:
    mean = float(probabilities @ values)
    return mean, float(np.sqrt(probabilities @ (values - mean) ** 2))


def _by_size(
    inferred: Mapping[str, tuple[Floats, Floats]], partitions: Sequence[Partition]
) -> dict[tuple[str, int], tuple[float, float]]:
    """Mean and sd of x · 1[k clusters]: what a sampler that ignores the partition gets wrong."""
    sizes = np.array([len(set(p)) for p in partitions])
    result = {}
    for name, (x, w) in inferred.items():
        for k in sorted(set(sizes.tolist())):
            mean = float(x @ w[:, sizes == k].sum(axis=1))
            square = float(x**2 @ w[:, sizes == k].sum(axis=1))
            result[name, k] = (mean, float(np.sqrt(max(square - mean**2, 0.0))))
    return result


def n_of_size(partitions: Mapping[Partition, float]) -> dict[int, float]:
    counts: dict[int, float] = {}
    for partition, probability in partitions.items():
        size = len(set(partition))
        counts[size] = counts.get(size, 0.0) + float(probability)
    return counts


def _collect(cases: Iterable[tuple[Partition, Floats]]) -> LogPrior:
    """Add up the probabilities of all labelings, or link graphs, that give the same partition."""
    found: dict[Partition, list[Floats]] = {}
    for partition, log_probability in cases:
        found.setdefault(partition, []).append(log_probability)
    return {p: np.asarray(logsumexp(terms, axis=0)) for p, terms in found.items()}


# ---------------------------------------------------------------- one function for each prior


def static(node_of: ArrayLike, loglik: ArrayLike, n_nodes: int, alpha: Any) -> Exact:
    """z_i = i, fixed."""
    return _posterior(node_of, loglik, n_nodes, alpha, {tuple(range(n_nodes)): np.zeros(1)})


def uniform(
    node_of: ArrayLike, loglik: ArrayLike, n_nodes: int, alpha: Any, n_clusters: int
) -> Exact:
    """p(z) = K^-N for each of the K^N labelings."""
    log_p = np.array([-n_nodes * np.log(n_clusters)])
    labelings = itertools.product(range(n_clusters), repeat=n_nodes)
    prior = _collect((canonical(z), log_p) for z in labelings)
    return _posterior(node_of, loglik, n_nodes, alpha, prior)


def mixing(
    node_of: ArrayLike, loglik: ArrayLike, n_nodes: int, alpha: Any, n_clusters: int, gamma: Any
) -> Exact:
    """p(z) = ∫ Π_i q_{z_i} Dir(q; γ/K) dq = Γ(γ)/Γ(γ+N) · Π_k Γ(ζ_k + γ/K)/Γ(γ/K)."""
    values, _ = grid(gamma)

    def cases() -> Iterable[tuple[Partition, Floats]]:
        for z in itertools.product(range(n_clusters), repeat=n_nodes):
            zeta = np.bincount(np.array(z, dtype=int), minlength=n_clusters)
            yield canonical(z), log_dm(zeta, values / n_clusters)

    return _posterior(node_of, loglik, n_nodes, alpha, _collect(cases()), "gamma", gamma)


def potts(
    node_of: ArrayLike,
    loglik: ArrayLike,
    n_nodes: int,
    alpha: Any,
    n_clusters: int,
    beta: Any,
    weights: ArrayLike,
) -> Exact:
    """p(z) = exp(β Σ_{i<j} w_ij δ(z_i, z_j)) / Z(β), with Z enumerated."""
    weights = np.asarray(weights, dtype=float)
    if not np.array_equal(weights, weights.T):
        raise ValueError("weights must be symmetric")
    values, _ = grid(beta)

    def cases() -> Iterable[tuple[Partition, Floats]]:
        for z in itertools.product(range(n_clusters), repeat=n_nodes):
            pairs = itertools.combinations(range(n_nodes), 2)
            agreement = sum(weights[i, j] for i, j in pairs if z[i] == z[j])
            yield canonical(z), values * agreement

    unnormalised = _collect(cases())
    log_z = logsumexp(list(unnormalised.values()), axis=0)
    prior = {partition: log_p - log_z for partition, log_p in unnormalised.items()}
    return _posterior(node_of, loglik, n_nodes, alpha, prior, "beta", beta)


def crp(node_of: ArrayLike, loglik: ArrayLike, n_nodes: int, alpha: Any, gamma: Any) -> Exact:
    """Seat the nodes one after the other: weight ζ_k at an old table, γ at a new one."""
    values, _ = grid(gamma)
    prior: LogPrior = {}
    for partition in set_partitions(n_nodes):
        log_p = np.zeros(len(values))
        for i, k in enumerate(partition):
            seated = partition[:i].count(k)
            log_p += np.log(seated if seated else values) - np.log(i + values)
        prior[partition] = log_p
    return _posterior(node_of, loglik, n_nodes, alpha, prior, "gamma", gamma)


def ddcrp(
    node_of: ArrayLike, loglik: ArrayLike, n_nodes: int, alpha: Any, nu: Any, weights: ArrayLike
) -> Exact:
    """p(c) = Π_i [ν if c_i = i else f_{i,c_i}] / (ν + Σ_{j≠i} f_ij), over all N^N link graphs."""
    weights = np.asarray(weights, dtype=float)
    values, _ = grid(nu)
    link = np.empty((n_nodes, n_nodes, len(values)))  # log p(c_i = j | nu)
    for i in range(n_nodes):
        for j in range(n_nodes):
            with np.errstate(divide="ignore"):  # a weight of 0 forbids the link
                link[i, j] = np.log(values if i == j else weights[i, j])
        others = sum(weights[i, j] for j in range(n_nodes) if j != i)
        link[i] -= np.log(values + others)

    def cases() -> Iterable[tuple[Partition, Floats]]:
        for links in itertools.product(range(n_nodes), repeat=n_nodes):
            log_p = np.zeros(len(values)) + sum(link[i, j] for i, j in enumerate(links))
            if np.any(log_p > -np.inf):
                yield components(links), log_p

    return _posterior(node_of, loglik, n_nodes, alpha, _collect(cases()), "nu", nu)


def mix(name: str, values: ArrayLike, probabilities: ArrayLike, cases: Sequence[Exact]) -> Exact:
    """The posterior when one more unknown takes `values[g]` with prior `probabilities[g]`.

    `cases[g]` is the posterior given that value. Serves for unknowns on a grid (the scale of a
    decay) and for those of the dynamics, which change `loglik`.
    """
    values = np.asarray(values, dtype=float)
    log_w = np.log(probabilities) + np.array([case.log_evidence for case in cases])
    log_evidence = float(logsumexp(log_w))
    w = np.exp(log_w - log_evidence)

    def average(terms: Iterable[Any]) -> Any:
        return sum(weight * term for weight, term in zip(w, terms, strict=True))

    def moments(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        mean = average(m for m, _ in pairs)
        square = average(m**2 + sd**2 for m, sd in pairs)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    partitions = {p: 0.0 for case in cases for p in case.partitions}
    for p in partitions:
        partitions[p] = float(average(case.partitions.get(p, 0.0) for case in cases))
    hyper = {name: _mean_sd(values, w)}
    for other in cases[0].hyper:
        hyper[other] = moments([case.hyper[other] for case in cases])
    by_size = {}
    for k in n_of_size(partitions):
        sizes = [case.n_clusters.get(k, 0.0) for case in cases]
        mean = average(x * p for x, p in zip(values, sizes, strict=True))
        square = average(x**2 * p for x, p in zip(values, sizes, strict=True))
        by_size[name, k] = (float(mean), float(np.sqrt(max(square - mean**2, 0.0))))
        for other in cases[0].hyper:
            by_size[other, k] = moments(
                [case.hyper_by_size.get((other, k), (0.0, 0.0)) for case in cases]
            )
    policy, policy_sd = moments([(case.policy, case.policy_sd) for case in cases])
    return Exact(
        co_clustering=average(case.co_clustering for case in cases),
        policy=policy,
        policy_sd=policy_sd,
        actions=average(case.actions for case in cases),
        n_clusters=n_of_size(partitions),
        partitions=partitions,
        hyper=hyper,
        hyper_by_size=by_size,
        log_evidence=log_evidence,
        node_of=cases[0].node_of,
    )


# ---------------------------------------------------------------- weights and problems


def gaussian_decay(scale: float = 1.0, offset: float = 0.0) -> Callable[[Floats], Floats]:
    """f(d) = (1 - ε) exp(-d²/σ_f²) + ε."""
    return lambda d: (1.0 - offset) * np.exp(-((d / scale) ** 2)) + offset


def pairwise_distances(coordinates: ArrayLike) -> Floats:
    x = np.asarray(coordinates, dtype=float)
    return np.asarray(np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)))


def weights_potts(
    distances: ArrayLike, decay: Callable[[Floats], Floats], n_neighbors: int | None = None
) -> Floats:
    """w_ij = ½ f(d_ij) (1[j∈N_i] + 1[i∈N_j]), or f(d_ij) without a rule; zero diagonal.

    N_i holds the n_neighbors nodes nearest to i, never i itself, ties to the lower index.
    """
    distances = np.asarray(distances, dtype=float)
    n_nodes = len(distances)
    weights = np.zeros((n_nodes, n_nodes))
    f = np.asarray(decay(distances), dtype=float)
    for i in range(n_nodes):
        others = [j for j in range(n_nodes) if j != i]
        nearest = sorted(others, key=lambda j: (distances[i, j], j))[:n_neighbors]
        for j in nearest:
            weights[i, j] += 0.5 * f[i, j]
            weights[j, i] += 0.5 * f[i, j]
    return weights


def small_problem(
    seed: int = 0, n_nodes: int = 4, n_actions: int = 3
) -> tuple[NDArray[np.int64], Floats, int, Floats]:
    """Five transitions, a node visited twice, one without any: (node_of, loglik, N, coordinates).

    Actions 0 and 1 rule the left and the right half of the nodes; the likelihoods hint at them,
    but leave doubt.
    """
    if not 3 <= n_nodes <= 5:
        raise ValueError(f"n_nodes must be 3 to 5, got {n_nodes}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_nodes)
    node_of = order[np.arange(5) % (n_nodes - 1)]
    coordinates = rng.uniform(0.0, 2.0, size=(n_nodes, 2))
    right = coordinates[:, 0] > np.median(coordinates[:, 0])
    loglik = rng.normal(size=(5, n_actions))
    loglik[np.arange(5), right[node_of].astype(int)] += 2.0
    return node_of, loglik, n_nodes, coordinates


def sharp_problem() -> tuple[NDArray[np.int64], Floats, int, Floats]:
    """Four nodes: two that were visited twice and agree, one that differs, one without a move.

    The sharper the actions are known, the more a wrong count shows.
    """
    rng = np.random.default_rng(0)
    loglik = rng.normal(scale=0.3, size=(5, 3))
    loglik[np.arange(5), [0, 0, 0, 0, 1]] += 4.0
    return np.array([0, 0, 1, 1, 2]), loglik, 4, np.array([[0.0], [1.0], [1.8], [3.2]])


def draw(exact: Exact, chains: int, draws: int, rng: np.random.Generator) -> SimpleNamespace:
    """Independent draws from the enumerated posterior, in the shape of a sampler's."""
    table = exact.table
    if table is None:
        raise ValueError("this posterior was mixed from several; it holds no joint table")
    flat = rng.choice(table.joint.size, size=(chains, draws), p=table.joint.ravel())
    g, p, s = np.unravel_index(flat, table.joint.shape)
    cumulative = np.cumsum(table.hyper_given_partition, axis=1)
    below = cumulative[p] < rng.random((chains, draws, 1)) * cumulative[p][..., -1:]
    theta = table.hyper_values[below.sum(axis=-1)]
    hyper = {name: table.alphas[g] if name == "alpha" else theta for name in exact.hyper}
    return SimpleNamespace(
        labels=np.array(table.partitions)[p], actions=table.sequences[s], hyper=hyper
    )
