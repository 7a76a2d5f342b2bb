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
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import gammaln, logsumexp

Partition = tuple[int, ...]
Floats = NDArray[np.float64]
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
    log_evidence: float
    node_of: NDArray[np.int64]  # (M,) node where each transition starts
    table: Table | None = field(default=None, repr=False)


# ---------------------------------------------------------------- partitions, grids, DM


def canonical(labels: Iterable[int]) -> Partition:
    """Labels renumbered in order of first appearance (restricted growth)."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in labels)


def set_partitions(n_nodes: int) -> list[Partition]:
    """All set partitions of the nodes, as restricted-growth labels."""
    labelings = itertools.product(range(max(n_nodes, 1)), repeat=n_nodes)
    return sorted({canonical(labels) for labels in labelings})


def components(links: Sequence[int]) -> Partition:
    """Connected components of the link graph {(i, links[i])}."""
    labels = list(range(len(links)))
    for i, j in enumerate(links):
        old, new = labels[i], labels[j]
        labels = [new if k == old else k for k in labels]
    return canonical(labels)


def log_dm(xi: ArrayLike, alpha: ArrayLike) -> Floats:
    """ln DM(xi) = ln of Γ(Aα)/Γ(Aα + Σ_j ξ_j) · Π_j Γ(α + ξ_j)/Γ(α); xi is (..., A)."""
    xi = np.asarray(xi, dtype=float)
    alpha = np.asarray(alpha, dtype=float)
    total = xi.shape[-1] * alpha
    per_action = gammaln(alpha[..., None] + xi) - gammaln(alpha)[..., None]
    return gammaln(total) - gammaln(total + xi.sum(-1)) + per_action.sum(-1)


def is_distribution(parameter: Any) -> bool:
    return hasattr(parameter, "ppf")


def grid(parameter: Any) -> tuple[Floats, Floats]:
    """Quadrature points and weights (they sum to 1) for E[g(x)], x from a distribution.

    A number is one point of weight 1. A distribution is integrated over its quantiles u in (0, 1)
    by the tanh-sinh rule, which forgives singular ends such as ln(1 - u).
    """
    if not is_distribution(parameter):
        return np.array([float(parameter)]), np.ones(1)
    t = np.linspace(-3.0, 3.0, 121)
    tail = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))  # min(u, 1 - u), without cancellation
    values = np.where(t < 0, parameter.ppf(tail), parameter.isf(tail))
    weights = np.cosh(t) * tail * (1.0 - tail)
    return values, weights / weights.sum()


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
    ).reshape(-1, n_transitions)
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
    moments = {}
    if is_distribution(alpha):
        moments["alpha"] = _mean_sd(alphas, joint.sum(axis=(1, 2)))
    if is_distribution(hyper):
        moments[hyper_name] = _mean_sd(values, p_partition @ table.hyper_given_partition)
    return Exact(
        co_clustering=np.einsum("p,pij->ij", p_partition, same),
        policy=policy,
        policy_sd=policy_sd,
        actions=np.stack([(p_sequence @ (sequences == j)) for j in range(n_actions)], axis=-1),
        n_clusters=_n_clusters(dict(zip(partitions, p_partition, strict=True))),
        partitions={p: float(w) for p, w in zip(partitions, p_partition, strict=True)},
        hyper=moments,
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


def _n_clusters(partitions: Mapping[Partition, float]) -> dict[int, float]:
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
    log_w = np.log(probabilities) + np.array([case.log_evidence for case in cases])
    log_evidence = float(logsumexp(log_w))
    w = np.exp(log_w - log_evidence)

    def average(of: Callable[[Exact], Any]) -> Any:
        return sum(weight * of(case) for weight, case in zip(w, cases, strict=True))

    policy = average(lambda c: c.policy)
    square = average(lambda c: c.policy**2 + c.policy_sd**2)
    keys = sorted({p for case in cases for p in case.partitions})
    partitions = {p: float(average(lambda c, p=p: c.partitions.get(p, 0.0))) for p in keys}
    hyper = {name: _mean_sd(np.asarray(values, dtype=float), w)}
    for other in cases[0].hyper:
        mean = average(lambda c, o=other: c.hyper[o][0])
        second = average(lambda c, o=other: c.hyper[o][0] ** 2 + c.hyper[o][1] ** 2)
        hyper[other] = (float(mean), float(np.sqrt(second - mean**2)))
    return Exact(
        co_clustering=average(lambda c: c.co_clustering),
        policy=policy,
        policy_sd=np.sqrt(np.maximum(square - policy**2, 0.0)),
        actions=average(lambda c: c.actions),
        n_clusters=_n_clusters(partitions),
        partitions=partitions,
        hyper=hyper,
        log_evidence=log_evidence,
        node_of=cases[0].node_of,
    )


# ---------------------------------------------------------------- weights and problems


def gaussian_decay(scale: float = 1.0, offset: float = 0.0) -> Callable[[Floats], Floats]:
    """f(d) = (1 - ε) exp(-d²/σ_f²) + ε."""
    return lambda d: (1.0 - offset) * np.exp(-(d**2) / scale**2) + offset


def pairwise_distances(coordinates: ArrayLike) -> Floats:
    x = np.asarray(coordinates, dtype=float)
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))


def weights_potts(
    distances: ArrayLike, decay: Callable[[Floats], Floats], n_neighbors: int | None = None
) -> Floats:
    """w_ij = ½ f(d_ij) (1[j∈N_i] + 1[i∈N_j]), or f(d_ij) without a rule; zero diagonal.

    N_i holds the n_neighbors nodes nearest to i, never i itself, ties to the lower index.
    """
    distances = np.asarray(distances, dtype=float)
    n_nodes = len(distances)
    weights = np.zeros((n_nodes, n_nodes))
    f = decay(distances)
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

    The likelihoods tell actions apart by factors of about e: informative, but ambiguous.
    """
    if not 2 <= n_nodes <= 5:
        raise ValueError(f"n_nodes must be 2 to 5, got {n_nodes}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_nodes)
    node_of = order[np.arange(5) % (n_nodes - 1)]
    loglik = rng.normal(scale=1.2, size=(5, n_actions))
    coordinates = rng.uniform(0.0, 2.0, size=(n_nodes, 2))
    return node_of, loglik, n_nodes, coordinates


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


# ---------------------------------------------------------------- do draws match?


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


def compare(posterior: Any, exact: Exact, *, alpha: Any = None, level: float = 1e-4) -> list[str]:
    """What the draws get wrong: one line for each number beyond Monte Carlo error; [] if none.

    Compared are co-clustering, number of clusters, partitions, action marginals, policies and the
    means of inferred hyper-parameters. Standard errors come from batch means (at least 30 batches
    a chain and 120 in all), so autocorrelated chains are judged fairly as long as a batch is
    several autocorrelation times long.

    Parameters
    ----------
    posterior : has `labels` (chain, draw, N), `actions` (chain, draw, M), and, where `exact`
        infers hyper-parameters, `hyper[name]` (chain, draw).
    alpha : number or (chain, draw); by default `posterior.hyper["alpha"]`.
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
    for name in exact.hyper:
        if name in hyper:
            mean, sd = exact.hyper[name]
            groups.append(_Group())
            groups[-1].add(f"E[{name}]", hyper[name], mean, sd, scale=2.0 * sd)
    share = level / sum(len(group.names) for group in groups)
    for group in groups:
        if group.names:
            problems += _discrepancies(group, share)
    return problems


def _label_numbers(labels: NDArray[np.int64], exact: Exact) -> _Group:
    group = _Group()
    n_nodes = labels.shape[-1]
    for i, j in itertools.combinations(range(n_nodes), 2):
        together = labels[..., i] == labels[..., j]
        group.event(f"P(z_{i} = z_{j})", together, exact.co_clustering[i, j])
    rows, which = np.unique(labels.reshape(-1, n_nodes), axis=0, return_inverse=True)
    which = which.reshape(labels.shape[:-1])
    seen = [canonical(row) for row in rows]
    sizes = np.array([len(set(partition)) for partition in seen])[which]
    for k in range(1, n_nodes + 1):
        group.event(f"P({k} clusters)", sizes == k, exact.n_clusters.get(k, 0.0))
    for partition in sorted({*seen, *exact.partitions}):
        hit = np.array([other == partition for other in seen])[which]
        group.event(f"P(partition {partition})", hit, exact.partitions.get(partition, 0.0))
    return group


def _action_numbers(actions: NDArray[np.int64], exact: Exact) -> _Group:
    group = _Group()
    for (t, j), p in np.ndenumerate(exact.actions):
        group.event(f"P(a_{t} = {j})", actions[..., t] == j, p)
    return group


def _policy_numbers(
    labels: NDArray[np.int64], actions: NDArray[np.int64], alpha: Any, exact: Exact
) -> _Group:
    """Policies of the draws, (xi_z + alpha) / (xi_z. + A alpha), at every node."""
    group = _Group()
    n_nodes, n_actions = exact.policy.shape
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), labels.shape[:-1])
    for i in range(n_nodes):
        xi = np.zeros((*labels.shape[:-1], n_actions))
        for t, node in enumerate(exact.node_of):
            together = labels[..., i] == labels[..., node]
            for j in range(n_actions):
                xi[..., j] += together & (actions[..., t] == j)
        total = xi.sum(axis=-1) + n_actions * alpha
        for j in range(n_actions):
            policy = (xi[..., j] + alpha) / total
            group.add(f"policy({j} | node {i})", policy, exact.policy[i, j], exact.policy_sd[i, j])
    return group


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
