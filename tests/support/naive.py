"""Slow, readable twins of every kernel, in plain Python.

A twin follows the mathematics of the model and takes its uniforms from the generator in the same
order as the kernel, so that both must end in the same state. Nothing here comes from the library.
"""

import math


def draw(weights, uniform):
    """An index with probability proportional to its weight, by inversion."""
    total = sum(weights)
    target = uniform * total
    running = 0.0
    for index, weight in enumerate(weights):
        running += weight
        if running > target and weight > 0:
            return index
    return max(index for index, weight in enumerate(weights) if weight > 0)


def softmax(log_weights):
    largest = max(log_weights)
    return [math.exp(w - largest) for w in log_weights]


def log_dm(counts, alpha):
    """ln DM(ξ): an ordered sequence of actions under one marginalised controller."""
    n_actions, n = len(counts), sum(counts)
    value = math.lgamma(n_actions * alpha) - math.lgamma(n_actions * alpha + n)
    for count in counts:
        value += math.lgamma(alpha + count) - math.lgamma(alpha)
    return value


def dirichlet(shapes, rng):
    """A Dirichlet draw, in logarithms."""
    logs = []
    for shape in shapes:
        if shape >= 1:
            logs.append(math.log(rng.standard_gamma(shape)))
        else:
            gamma = math.log(rng.standard_gamma(shape + 1))
            logs.append(gamma + math.log1p(-rng.random()) / shape)
    weights = softmax(logs)
    return [w / sum(weights) for w in weights]


def plus(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


class Naive:
    """A chain's state and its moves: actions, controllers and indicators.

    Transitions are sorted by node; ``owned[i]`` are those of node i. Subclasses break it on
    purpose, to see whether the tests notice.
    """

    def __init__(self, likelihood, owned, actions, labels, alpha, rng, clusters=None):
        self.likelihood = [list(map(float, row)) for row in likelihood]
        self.owned = [list(transitions) for transitions in owned]
        self.actions = [int(a) for a in actions]
        self.labels = [int(z) for z in labels]
        self.alpha = alpha
        self.rng = rng
        self.n_actions = len(self.likelihood[0])
        self.n_nodes = len(self.owned)
        self.clusters = list(clusters) if clusters is not None else sorted(set(self.labels))
        self.controllers = {}
        self.recount()

    def recount(self):
        """φ, ξ and ζ from scratch."""
        zeros = [0] * self.n_actions
        self.phi = [zeros[:] for _ in range(self.n_nodes)]
        for i, transitions in enumerate(self.owned):
            for t in transitions:
                self.phi[i][self.actions[t]] += 1
        self.xi = dict.fromkeys(self.clusters, zeros[:])
        self.zeta = dict.fromkeys(self.clusters, 0)
        for i, k in enumerate(self.labels):
            self.xi[k] = plus(self.xi[k], self.phi[i])
            self.zeta[k] += 1

    # -- actions --------------------------------------------------------------------------------

    def set_action(self, i, t, action):
        k, old = self.labels[i], self.actions[t]
        self.phi[i][old] -= 1
        self.xi[k][old] -= 1
        self.actions[t] = action
        self.phi[i][action] += 1
        self.xi[k][action] += 1

    def action_weights(self, i, t):
        """p(a_t = j) ∝ ℓ[t, j] (ξ_kj - 1[a_t = j] + α)."""
        xi = self.xi[self.labels[i]]
        return [
            self.likelihood[t][j] * (xi[j] - (self.actions[t] == j) + self.alpha)
            for j in range(self.n_actions)
        ]

    def collapsed_actions(self):
        for i, transitions in enumerate(self.owned):
            for t in transitions:
                self.set_action(i, t, draw(self.action_weights(i, t), self.rng.random()))

    def ordinary_actions(self):
        for i, transitions in enumerate(self.owned):
            theta = self.controllers[self.labels[i]]
            for t in transitions:
                weights = [x * y for x, y in zip(self.likelihood[t], theta, strict=True)]
                self.set_action(i, t, draw(weights, self.rng.random()))

    # -- controllers ----------------------------------------------------------------------------

    def draw_controller(self, k, counts):
        shapes = [x + self.alpha for x in counts]
        self.controllers[k] = dirichlet(shapes, self.rng)

    def draw_controllers(self):
        for k in sorted(self.clusters):
            self.draw_controller(k, self.xi[k])

    # -- indicators -----------------------------------------------------------------------------

    def take_out(self, i):
        k = self.labels[i]
        self.xi[k] = minus(self.xi[k], self.phi[i])
        self.zeta[k] -= 1

    def put_in(self, i, k):
        self.labels[i] = k
        self.xi[k] = plus(self.xi[k], self.phi[i])
        self.zeta[k] += 1

    def fit(self, i, k):
        """ln DM(ψ_k + φ_i) - ln DM(ψ_k)."""
        psi = self.xi[k]
        return log_dm(plus(psi, self.phi[i]), self.alpha) - log_dm(psi, self.alpha)

    def ordinary_fit(self, i, k):
        theta = self.controllers[k]
        return sum(n * math.log(p) for n, p in zip(self.phi[i], theta, strict=True) if n)

    def update_indicators(self, log_prior, ordinary=False, gamma=0.0):
        """Draw every z_i; ``log_prior(self, i, k)`` is ln p(z_i = k | z_-i).

        With `gamma`, a new cluster is possible and empty ones are dropped (the CRP).
        """
        for i in range(self.n_nodes):
            self.take_out(i)
            k = self.labels[i]
            if gamma and self.zeta[k] == 0:
                position = self.clusters.index(k)
                self.clusters[position] = self.clusters[-1]
                self.clusters.pop()
            logs = []
            for k in self.clusters:
                logs.append(log_prior(self, i, k))
                if ordinary:
                    logs[-1] += self.ordinary_fit(i, k)
                else:
                    logs[-1] += self.fit(i, k)
            if gamma:
                logs.append(math.log(gamma) + log_dm(self.phi[i], self.alpha))
            drawn = draw(softmax(logs), self.rng.random())
            fresh = drawn == len(self.clusters)
            if fresh:
                new = max(self.clusters, default=-1) + 1
                self.clusters.append(new)
                self.xi[new], self.zeta[new] = [0] * self.n_actions, 0
            k = self.clusters[drawn]
            if fresh and ordinary:
                self.draw_controller(k, self.phi[i])
            self.put_in(i, k)


# -- p(z_i = k | z_-i); node i is out of the counts --------------------------------------------


def uniform_prior(chain, i, k):
    return 0.0


def weights_prior(q):
    return lambda chain, i, k: math.log(q[k])


def mixing_prior(gamma, n_clusters):
    return lambda chain, i, k: math.log(chain.zeta[k] + gamma / n_clusters)


def crp_prior(chain, i, k):
    return math.log(chain.zeta[k])


def potts_prior(beta, weights):
    """`weights` is the dense symmetric (N, N) matrix."""

    def log_prior(chain, i, k):
        same = (j for j in range(chain.n_nodes) if j != i and chain.labels[j] == k)
        return beta * sum(weights[i][j] for j in same)

    return log_prior
