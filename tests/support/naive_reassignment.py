"""The slow, readable twin of reassignment: parts of clusters and their actions move together."""

import math

from naive import dirichlet, draw
from naive_links import NaiveLinks

WIDTH, MOST_STEPS = 4.0, 16


def mix(likelihood, theta):
    """Σ_j ℓ_j θ_j: a transition's probability, its action summed out."""
    return sum(x * p for x, p in zip(likelihood, theta, strict=True))


def log_of(x):
    return math.log(x) if x > 0 else -math.inf


def logistic(x):
    return 1 / (1 + math.exp(-x))


class NaiveReassignment(NaiveLinks):
    """As `NaiveLinks`, with the likelihoods ``likelihood[i]`` of the transitions of node i, and
    their actions; counts follow from the actions."""

    def __init__(self, links, near, offset, alpha, rng, likelihood, actions):
        self.likelihood = likelihood
        self.actions = actions
        super().__init__(links, self.counted(), near, offset, alpha, rng)

    def counted(self):
        n_actions = max(len(row) for rows in self.likelihood for row in rows)
        return [[list(a).count(j) for j in range(n_actions)] for a in self.actions]

    def reassign(self, few=10**9):
        if not 2 <= len(self.clusters) <= few:
            return
        thetas = []
        for members in self.clusters:
            shapes = [n + self.alpha for n in self.counts(members)]
            thetas.append(dirichlet(shapes, self.rng))
        for members, theta in zip(self.clusters, thetas, strict=True):
            self.move_controller(theta, members)
        for i in range(self.n_nodes):
            self.link_part(i, thetas)
        labels = self.labels()
        for i, rows in enumerate(self.likelihood):
            for t, row in enumerate(rows):
                weights = [x * p for x, p in zip(row, thetas[labels[i]], strict=True)]
                self.actions[i][t] = draw(weights, self.rng.random())
        self.phi = self.counted()

    # -- controllers, actions summed out --------------------------------------------------------

    def move_controller(self, theta, members):
        rows = [row for i in members for row in self.likelihood[i]]
        if not rows:
            return
        for i in range(len(theta)):
            j = int(self.rng.random() * (len(theta) - 1))
            j += j >= i
            self.share_anew(theta, i, j, self.alpha, rows)

    def share_anew(self, theta, i, j, alpha, rows):
        """A slice-sampling step for the logit of ``θ_i / (θ_i + θ_j)``, which is Beta(α, α)."""
        pair = theta[i] + theta[j]

        def shared(x):
            other = list(theta)
            other[i], other[j] = pair * logistic(x), pair * logistic(-x)
            return other

        def log_density(x):
            prior = alpha * (log_of(logistic(x)) + log_of(logistic(-x)))
            return prior + sum(log_of(mix(row, shared(x))) for row in rows)

        x = math.log(theta[i]) - math.log(theta[j])
        level = log_density(x) - self.rng.standard_exponential()
        low = x - WIDTH * self.rng.random()
        high = low + WIDTH
        steps = int(MOST_STEPS * self.rng.random())
        for _ in range(steps):
            if log_density(low) <= level:
                break
            low -= WIDTH
        for _ in range(MOST_STEPS - 1 - steps):
            if log_density(high) <= level:
                break
            high += WIDTH
        while True:
            y = low + (high - low) * self.rng.random()
            if log_density(y) > level:
                break
            if y < x:
                low = y
            else:
                high = y
        theta[:] = shared(y)

    # -- links, actions summed out --------------------------------------------------------------

    def link_part(self, i, thetas):
        """``p(c_i = j) ∝ f(d_ij) Π_{m ∈ P} L_{m, z_j}`` for j outside of P."""
        old = self.links[i]
        if old == i or old in self.reaching(i):
            return
        part = self.remove_link(i)
        clusters = self.clusters[:-1]  # the part is the last
        weights, locals_, fits = [0.0], [0.0], [0.0]
        for members, theta in zip(clusters, thetas, strict=True):
            local = sum(w for j, w in self.near[i] if j in members)
            locals_.append(local)
            weights.append(local + self.offset * len(members))
            rows = [row for m in part for row in self.likelihood[m]]
            fits.append(sum(log_of(mix(row, theta)) for row in rows))
        largest = max(fit for w, fit in zip(weights, fits, strict=True) if w > 0)
        weights = [
            w * math.exp(fit - largest) if w > 0 else 0.0
            for w, fit in zip(weights, fits, strict=True)
        ]
        drawn = draw(weights, self.rng.random())
        j = self.pick(i, clusters[drawn - 1], locals_[drawn], part, True)
        self.set_link(i, j, part)
