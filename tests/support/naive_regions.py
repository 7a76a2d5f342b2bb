"""The slow, readable twin of the kernels of regions: dictionaries, everything searched anew.

Uniforms are taken in the order of the kernels, so that both must end in the same state. Nothing
here comes from the library. Subclasses break it on purpose.
"""

import math

from naive import draw, plus, softmax

TOLERANCE = 1e-4
STEP = 0.025
WINDOW = 20


def log_dm(counts, shapes):
    """ln DM(ξ) under Dir(shapes)."""
    value = math.lgamma(sum(shapes)) - math.lgamma(sum(shapes) + sum(counts))
    for count, shape in zip(counts, shapes, strict=True):
        value += math.lgamma(shape + count) - math.lgamma(shape)
    return value


def slice_sample_log(log_density, value, rng, width=1.0, most=50):
    """One step of slice sampling on ln value, stepping out."""

    def target(x):
        return log_density(math.exp(x)) + x

    x = math.log(value)
    level = target(x) - rng.standard_exponential()
    low = x - width * rng.random()
    high = low + width
    down = int(most * rng.random())
    up = most - 1 - down
    while down > 0 and target(low) > level:
        low, down = low - width, down - 1
    while up > 0 and target(high) > level:
        high, up = high + width, up - 1
    while True:
        new = low + (high - low) * rng.random()
        if target(new) > level:
            return math.exp(new)
        low, high = (new, high) if new < x else (low, new)


def twin_alpha(alpha, share, counts, prior, rng):
    """One step of α, given the counts of all controllers."""
    return slice_sample_log(
        lambda a: sum(log_dm(xi, a * share) for xi in counts) + prior.logpdf(a), alpha, rng
    )


class NaiveRegions:
    """Links, controllers of regions, actions and hyper-parameters of one chain.

    `prior` holds a log density for each hyper-parameter that is inferred. ``anchor`` is the scale
    at point 0 of the grid.
    """

    def __init__(self, likelihood, owned, distances, share, hyper, prior, anchor, rng):
        self.likelihood = [list(map(float, row)) for row in likelihood]
        self.owned = [list(transitions) for transitions in owned]
        self.distances = [list(map(float, row)) for row in distances]
        self.share = list(map(float, share))
        self.hyper = dict(hyper)
        self.prior = dict(prior)
        self.anchor = anchor
        self.rng = rng
        self.n_nodes, self.n_actions = len(self.owned), len(self.share)
        self.at = 0  # on the grid
        self.longest, self.n_slots = 10.0, 9  # what tuning would change
        self.often = 1.0  # share of sweeps with a carry

    def start(self, links, labels, actions):
        self.links = [int(j) for j in links]
        self.labels = [int(k) for k in labels]
        self.actions = [int(a) for a in actions]
        return self

    # -- what is searched anew ------------------------------------------------------------------

    def scale(self, at):
        return self.anchor * math.exp(STEP * at)

    def g(self, i, at):
        """{j: similarity}, nearest first."""
        scale = self.scale(at)
        reach = scale * math.sqrt(-math.log(TOLERANCE))
        others = sorted((d, j) for j, d in enumerate(self.distances[i]) if j != i)
        return {j: math.exp(-((d / scale) ** 2)) for d, j in others if d <= reach}

    def sums(self, at):
        return [sum(self.g(i, at).values()) for i in range(self.n_nodes)]

    def branch(self, i):
        """The nodes whose links lead to i."""
        found = [i]
        for a in found:
            found += [b for b, j in enumerate(self.links) if j == a and b not in found]
        return found

    def regions(self):
        """Lists of nodes, in order of first appearance."""
        label = list(range(self.n_nodes))
        for i, j in enumerate(self.links):
            old = label[i]
            label = [label[j] if k == old else k for k in label]
        return [[i for i in range(self.n_nodes) if label[i] == k] for k in dict.fromkeys(label)]

    def n_regions(self, without=()):
        """{controller: m_k}, regions that lie in `without` aside."""
        m = {}
        for region in self.regions():
            if not set(region) <= set(without):
                m[self.labels[region[0]]] = m.get(self.labels[region[0]], 0) + 1
        return m

    def counts(self, nodes):
        xi = [0] * self.n_actions
        for i in nodes:
            for t in self.owned[i]:
                xi[self.actions[t]] += 1
        return xi

    def shapes(self):
        return [self.hyper["alpha"] * part for part in self.share]

    # -- how well nodes fit a controller --------------------------------------------------------

    def fit(self, nodes, k):
        """ln DM(ξ_k + ξ_R) - ln DM(ξ_k), or Σ_{x∈R} L_xk where controllers are drawn."""
        if self.theta is not None:
            return sum(self.log_fit(x, k) for x in nodes)
        others = [x for x in range(self.n_nodes) if self.labels[x] == k and x not in nodes]
        xi, shapes = self.counts(others), self.shapes()
        return log_dm(plus(xi, self.counts(nodes)), shapes) - log_dm(xi, shapes)

    def log_fit(self, x, k):
        total = 0.0
        for t in self.owned[x]:
            both = zip(self.likelihood[t], self.theta[k], strict=True)
            total += math.log(sum(a * b for a, b in both))
        return total

    theta = None

    def shares(self, m):
        """{controller: m_k, or its part of γ where it is free}."""
        if self.theta is None:
            fresh = min(set(range(self.n_nodes + 1)) - set(m))
            return dict(sorted({**m, fresh: self.hyper["gamma"]}.items()))
        free = [k for k in self.theta if k not in m]
        return {k: m.get(k) or self.hyper["gamma"] / len(free) for k in sorted(self.theta)}

    # -- links and sharing ----------------------------------------------------------------------

    def masses(self, i, branch, m, near, nu):
        """{controller: (mass of a region by itself, mass of joining one)}."""
        shares = self.shares(m)
        own = nu + sum(w for j, w in near.items() if j in branch)
        total = sum(m.values()) + self.hyper["gamma"]
        return {
            k: (
                own * share / total,
                sum(w for j, w in near.items() if j not in branch and self.labels[j] == k),
            )
            for k, share in shares.items()
        }

    def weigh(self, alone, join):
        """The mass of a controller."""
        return alone + join

    def draw_link(self, i, at, nu, before=None):
        """c_i and its branch's controller; ln of the ratio of masses to those at `before`."""
        self.links[i] = i
        branch = self.branch(i)
        m = self.n_regions(without=branch)
        near = self.g(i, at)
        masses = self.masses(i, branch, m, near, nu)
        fits = dict(zip(masses, softmax([self.fit(branch, k) for k in masses]), strict=True))
        weights = {k: fits[k] * self.weigh(*masses[k]) for k in masses}
        ratio = 0.0
        if before is not None:
            old = self.masses(i, branch, m, self.g(i, before[0]), before[1])
            old_weights = [fits[k] * self.weigh(*old[k]) for k in old]
            ratio = math.log(sum(weights.values()) / sum(old_weights))
        k = list(masses)[draw(list(weights.values()), self.rng.random())]
        alone, join = masses[k]
        rest = self.rng.random() * (alone + join)
        if rest < alone:
            inside = {j: w for j, w in near.items() if j in branch} | {i: nu}
            j = list(inside)[draw(list(inside.values()), rest / alone)]
        else:
            outside = {j: w for j, w in near.items() if j not in branch and self.labels[j] == k}
            j = list(outside)[draw(list(outside.values()), (rest - alone) / join)]
        self.links[i] = j
        for x in branch:
            self.labels[x] = k
        return ratio

    def link_weights(self, i):
        """{(c_i, controller of its branch): weight}, as `draw_link` draws them."""
        self.links[i] = i
        branch, near, nu = self.branch(i), self.g(i, self.at), self.hyper["nu"]
        masses = self.masses(i, branch, self.n_regions(without=branch), near, nu)
        fits = dict(zip(masses, softmax([self.fit(branch, k) for k in masses]), strict=True))
        inside = {j: w for j, w in near.items() if j in branch} | {i: nu}
        weights = {}
        for k, (alone, join) in masses.items():
            part = fits[k] * self.weigh(alone, join) / (alone + join)
            for j, w in inside.items():
                weights[j, k] = part * alone * w / sum(inside.values())
            for j, w in near.items():
                if j not in branch and self.labels[j] == k:
                    weights[j, k] = part * w
        return weights

    def draw_links(self):
        for i in range(self.n_nodes):
            self.draw_link(i, self.at, self.hyper["nu"])

    def sharing_weights(self, region):
        """{controller: weight}."""
        shares = self.shares(self.n_regions(without=region))
        fits = softmax([self.fit(region, k) for k in shares])
        return {k: shares[k] * fit for k, fit in zip(shares, fits, strict=True)}

    def draw_sharing(self):
        for region in self.regions():
            weights = self.sharing_weights(region)
            k = list(weights)[draw(list(weights.values()), self.rng.random())]
            for x in region:
                self.labels[x] = k

    def tidy(self):
        used = sorted(set(self.labels))
        self.labels = [used.index(k) for k in self.labels]

    # -- actions and controllers ----------------------------------------------------------------

    def draw_actions(self):
        """p(a_t = j) ∝ ℓ[t, j] (ξ_kj - 1[a_t = j] + α share_j)."""
        for i, transitions in enumerate(self.owned):
            for t in transitions:
                same = [x for x in range(self.n_nodes) if self.labels[x] == self.labels[i]]
                xi = self.counts(same)
                xi[self.actions[t]] -= 1
                weights = [
                    ell * (n + shape)
                    for ell, n, shape in zip(self.likelihood[t], xi, self.shapes(), strict=True)
                ]
                self.actions[t] = draw(weights, self.rng.random())

    def draw_controllers(self):
        """Of every slot: from the counts where it is in use, else from the prior."""
        shapes = [
            plus(
                self.counts([x for x in range(self.n_nodes) if self.labels[x] == k]), self.shapes()
            )
            for k in range(self.n_slots)
        ]
        less = [[self.rng.standard_exponential() / shape for shape in row] for row in shapes]
        self.theta = {}
        for k, row in enumerate(shapes):
            weights = softmax(
                [
                    math.log(self.rng.standard_gamma(shape + 1)) - lost
                    for lost, shape in zip(less[k], row, strict=True)
                ]
            )
            self.theta[k] = [w / sum(weights) for w in weights]

    def draw_actions_given(self):
        for i, transitions in enumerate(self.owned):
            theta = self.theta[self.labels[i]]
            for t in transitions:
                weights = [a * b for a, b in zip(self.likelihood[t], theta, strict=True)]
                self.actions[t] = draw(weights, self.rng.random())

    # -- scale and ν ----------------------------------------------------------------------------

    def log_links(self, at, nu):
        """ln p(c | scale, ν); -inf if a link is out of reach."""
        value = 0.0
        for i, j in enumerate(self.links):
            near = self.g(i, at)
            if i != j and j not in near:
                return -math.inf
            value += math.log(nu if i == j else near[j])
            value -= math.log(nu + sum(near.values()))
        return value

    def along(self, at, other):
        """ν at another scale: it is to Σ_i F_i as it was."""
        if "nu" not in self.prior:
            return self.hyper["nu"]
        total = {one: max(sum(self.sums(one)), TOLERANCE) for one in (at, other)}
        return self.hyper["nu"] * total[other] / total[at]

    def log_prior(self, at, nu):
        """ln p(scale) scale p(ν)."""
        value = self.prior["scale"](self.scale(at)) + math.log(self.scale(at))
        return value + (self.prior["nu"](nu) if "nu" in self.prior else 0.0)

    def draw_scale(self):
        low = self.at - int(self.rng.random() * WINDOW)
        points, logs = [], []
        for at in range(low, low + WINDOW):
            if self.prior["scale"](self.scale(at)) == -math.inf:
                continue
            nu = self.along(self.at, at)
            points.append((at, nu))
            logs.append(self.log_links(at, nu) + self.log_prior(at, nu) + math.log(nu))
        self.at, self.hyper["nu"] = points[draw(softmax(logs), self.rng.random())]
        self.hyper["scale"] = self.scale(self.at)

    def draw_nu(self):
        self.hyper["nu"] = slice_sample_log(
            lambda nu: self.log_links(self.at, nu) + self.prior["nu"](nu),
            self.hyper["nu"],
            self.rng,
        )

    def draw_reach(self):
        if "scale" in self.prior:
            self.draw_scale()
        if "nu" in self.prior:
            self.draw_nu()

    def log_normalisers(self, at, nu):
        """-Σ_i ln(ν + F_i)."""
        return -sum(math.log(nu + total) for total in self.sums(at))

    def log_jacobian(self, nu, nu_other):
        return math.log(nu_other / nu)

    def carry(self):
        """Another scale, and all links with it, accepted or not."""
        at, nu = self.at, self.hyper["nu"]
        step = math.ceil(self.rng.random() * self.longest)
        other = at + (step if self.rng.random() < 0.5 else -step)
        backwards = self.rng.random() < 0.5
        if self.prior["scale"](self.scale(other)) == -math.inf:
            return
        nu_other = self.along(at, other)
        kept = self.links[:], self.labels[:]
        order = range(self.n_nodes)
        ratio = sum(
            self.draw_link(i, other, nu_other, (at, nu))
            for i in (reversed(order) if backwards else order)
        )
        ratio += self.log_normalisers(other, nu_other) - self.log_normalisers(at, nu)
        ratio += self.log_prior(other, nu_other) - self.log_prior(at, nu)
        ratio += self.log_jacobian(nu, nu_other)
        if math.log1p(-self.rng.random()) < ratio:
            self.at, self.hyper["nu"] = other, nu_other
            self.hyper["scale"] = self.scale(other)
        else:
            self.links, self.labels = kept

    # -- the other hyper-parameters -------------------------------------------------------------

    def n_seated(self):
        """What γ is the concentration of: regions."""
        return self.n_regions()

    def draw_gamma(self):
        m = self.n_seated()
        n = sum(m.values())

        def log_density(gamma):
            seated = len(m) * math.log(gamma) + math.lgamma(gamma) - math.lgamma(gamma + n)
            return seated + self.prior["gamma"](gamma)

        self.hyper["gamma"] = slice_sample_log(log_density, self.hyper["gamma"], self.rng)

    def draw_alpha(self):
        nodes = range(self.n_nodes)
        xis = [self.counts([i for i in nodes if self.labels[i] == k]) for k in set(self.labels)]

        def log_density(alpha):
            shapes = [alpha * part for part in self.share]
            return sum(log_dm(xi, shapes) for xi in xis) + self.prior["alpha"](alpha)

        self.hyper["alpha"] = slice_sample_log(log_density, self.hyper["alpha"], self.rng)

    # -- sweeps ---------------------------------------------------------------------------------

    def collapsed(self):
        self.draw_links()
        self.tidy()
        self.draw_reach()
        self.draw_sharing()
        self.tidy()

    def summed(self, carried=True):
        if len(set(self.labels)) > self.n_slots:
            return
        self.draw_controllers()
        if carried and "scale" in self.prior and self.rng.random() < self.often:
            self.carry()
            self.draw_reach()
        self.draw_links()
        self.draw_reach()
        self.draw_sharing()
        self.draw_actions_given()
        self.tidy()
        self.theta = None

    def sweep(self):
        self.draw_actions()
        if "alpha" in self.prior:
            self.draw_alpha()
        self.collapsed()
        self.summed()
        if "gamma" in self.prior:
            self.draw_gamma()

    # -- the joint density, for conditionals by brute force -------------------------------------

    def log_joint(self):
        """ln p(links, sharing, actions | hyper-parameters), or, given θ, with actions summed out.

        Given θ, controllers are names of slots: of K in use among S slots, all names are as likely.
        """
        value = self.log_links(self.at, self.hyper["nu"])
        gamma, m = self.hyper["gamma"], self.n_regions()
        n = sum(m.values())
        value += len(m) * math.log(gamma) + math.lgamma(gamma) - math.lgamma(gamma + n)
        value += sum(math.lgamma(one) for one in m.values())
        for k in m:
            members = [x for x in range(self.n_nodes) if self.labels[x] == k]
            if self.theta is None:
                value += log_dm(self.counts(members), self.shapes())
            else:
                value += sum(self.log_fit(x, k) for x in members)
        if self.theta is not None:
            value -= sum(math.log(len(self.theta) - q) for q in range(len(m)))
        return value
