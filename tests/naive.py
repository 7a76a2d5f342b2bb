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

    def collapsed_actions(self, skip_single=False):
        for i, transitions in enumerate(self.owned):
            if skip_single and len(transitions) == 1:
                continue
            for t in transitions:
                self.set_action(i, t, draw(self.action_weights(i, t), self.rng.random()))

    def ordinary_actions(self, skip_single=False):
        for i, transitions in enumerate(self.owned):
            if skip_single and len(transitions) == 1:
                continue
            theta = self.controllers[self.labels[i]]
            for t in transitions:
                weights = [x * y for x, y in zip(self.likelihood[t], theta, strict=True)]
                self.set_action(i, t, draw(weights, self.rng.random()))

    # -- controllers ----------------------------------------------------------------------------

    def draw_controllers(self):
        for k in sorted(self.clusters):
            self.controllers[k] = dirichlet([x + self.alpha for x in self.xi[k]], self.rng)

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

    def policy(self, k, ordinary):
        """p(a = j) in cluster k, for the blocked step."""
        if ordinary:
            return self.controllers[k]
        total = sum(self.xi[k]) + self.n_actions * self.alpha
        return [(x + self.alpha) / total for x in self.xi[k]]

    def update_indicators(self, log_prior, ordinary=False, blocked=False, gamma=0.0):
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
            single = blocked and len(self.owned[i]) == 1
            logs = []
            for k in self.clusters:
                logs.append(log_prior(self, i, k))
                if single:
                    row = self.likelihood[self.owned[i][0]]
                    policy = self.policy(k, ordinary)
                    logs[-1] += math.log(sum(x * y for x, y in zip(row, policy, strict=True)))
                elif ordinary:
                    logs[-1] += self.ordinary_fit(i, k)
                else:
                    logs[-1] += self.fit(i, k)
            if gamma and single:
                row = self.likelihood[self.owned[i][0]]
                logs.append(math.log(gamma) + math.log(sum(row) / self.n_actions))
            elif gamma:
                logs.append(math.log(gamma) + log_dm(self.phi[i], self.alpha))
            drawn = draw(softmax(logs), self.rng.random())
            fresh = drawn == len(self.clusters)
            if fresh:
                new = max(self.clusters, default=-1) + 1
                self.clusters.append(new)
                self.xi[new], self.zeta[new] = [0] * self.n_actions, 0
            k = self.clusters[drawn]
            if single:
                self.blocked_action(i, k, fresh, ordinary)
            if fresh and ordinary:
                self.controllers[k] = dirichlet([x + self.alpha for x in self.phi[i]], self.rng)
            self.put_in(i, k)

    def blocked_action(self, i, k, fresh, ordinary):
        t = self.owned[i][0]
        policy = [1.0] * self.n_actions if fresh else self.policy(k, ordinary)
        weights = [x * y for x, y in zip(self.likelihood[t], policy, strict=True)]
        self.phi[i][self.actions[t]] -= 1
        self.actions[t] = draw(weights, self.rng.random())
        self.phi[i][self.actions[t]] += 1


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


# -- the ddCRP: links, components by search, everything recounted ------------------------------


class NaiveLinks:
    """Links of the ddCRP, with components found from scratch at every step.

    ``near[i]`` lists (j, weight) of the decaying part, `offset` is the constant one. Clusters are
    lists of nodes, kept in the order in which the kernel keeps its slots: a new one goes last, the
    last one takes the place of one that is gone, and of two that merge the larger stays.
    """

    def __init__(self, links, phi, near, offset, alpha, rng):
        self.links = [int(j) for j in links]
        self.phi = [[int(x) for x in row] for row in phi]
        self.near = near
        self.offset = offset
        self.alpha = alpha
        self.rng = rng
        self.n_nodes = len(self.links)
        self.clusters = []
        for i in range(self.n_nodes):
            if not any(i in members for members in self.clusters):
                self.clusters.append(sorted(self.component(i)))

    def component(self, i):
        """All nodes connected with i, whichever way the links point."""
        found, border = {i}, [i]
        while border:
            a = border.pop()
            for b in range(self.n_nodes):
                if b not in found and (self.links[a] == b or self.links[b] == a):
                    found.add(b)
                    border.append(b)
        return found

    def labels(self):
        labels = [0] * self.n_nodes
        for k, members in enumerate(self.clusters):
            for i in members:
                labels[i] = k
        return labels

    def counts(self, members):
        total = [0] * len(self.phi[0])
        for i in members:
            total = plus(total, self.phi[i])
        return total

    def reaching(self, i):
        """The nodes whose links lead to i, nearest first, in-links latest first."""
        walk = [i]
        for a in walk:
            walk += [b for b in self.in_links[a] if b not in walk]
        return walk

    def list_in_links(self):
        self.in_links = [[] for _ in range(self.n_nodes)]
        for i, j in enumerate(self.links):
            if i != j:
                self.in_links[j].append(i)

    def remove_link(self, i):
        """Take c_i away; if its component falls apart, the part with i becomes a cluster.

        Its list is the walk from i; the rest stays in order, and `cut_from` remembers the list
        as it was, since most often the part goes back.
        """
        walk = self.reaching(i)
        if self.links[i] != i:
            self.in_links[self.links[i]].remove(i)
        self.links[i] = i
        own = self.cluster_of(i)
        part = self.component(i)
        self.cut_from = None
        if len(part) == len(own):
            return own
        assert part == set(walk)
        self.cut_from = own[:]
        own[:] = [j for j in own if j not in part]
        self.clusters.append(walk)
        return walk

    def merge_ratio(self, own, other):
        a, b = self.counts(own), self.counts(other)
        return log_dm(plus(a, b), self.alpha) - log_dm(a, self.alpha) - log_dm(b, self.alpha)

    def set_link(self, i, j, own):
        self.links[i] = j
        if i != j:
            self.in_links[j].insert(0, i)
        other = self.cluster_of(j)
        if self.cut_from is None:
            if other is not own:
                kept, gone = (own, other) if len(other) < len(own) else (other, own)
                kept += gone
                self.drop(gone)
            return
        home = self.cluster_of(next(b for b in self.cut_from if b not in own))
        if other is home:
            home[:] = self.cut_from
        else:
            home[:] = self.cut_from
            for b in own:  # the last one fills the gap, as in the kernel's lists
                home[home.index(b)] = home[-1]
                home.pop()
            if other is own:
                return
            other += own
        self.clusters.pop()  # the part was the last

    def drop(self, gone):
        position = next(p for p, members in enumerate(self.clusters) if members is gone)
        self.clusters[position] = self.clusters[-1]
        self.clusters.pop()

    def update_links(self, nu, few=10**9, tries=16):
        for i in range(self.n_nodes):
            old = self.links[i]
            own = self.remove_link(i)
            near = dict(self.near[i])
            weights, choices = [nu], [None]
            every = self.sums_all(few)
            if every:
                for members in self.clusters:
                    local = sum(w for j, w in self.near[i] if j in members)
                    others = len(members) - (members is own)
                    weights.append(local + self.offset * others)
                    choices.append((members, local))
            else:
                for members in self.touched(i):
                    local = sum(w for j, w in self.near[i] if j in members)
                    weights.append(local)
                    choices.append((members, local))
                if self.offset:
                    far = False
                    if old != i:
                        share = near.get(old, 0.0)
                        far = self.rng.random() * (share + self.offset) >= share
                    for p in range(tries):
                        j = old
                        if not far or p > 0:
                            j = int(self.rng.random() * (self.n_nodes - 1))
                            j += j >= i
                        weights.append(self.offset * (self.n_nodes - 1) / tries)
                        choices.append(j)
            ratios = [0.0]
            for choice in choices[1:]:
                members = choice[0] if isinstance(choice, tuple) else self.cluster_of(choice)
                ratios.append(0.0 if members is own else self.merge_ratio(own, members))
            largest = max(ratios)
            weights = [w * math.exp(r - largest) for w, r in zip(weights, ratios, strict=True)]
            drawn = draw(weights, self.rng.random())
            if drawn == 0:
                j = i
            elif isinstance(choices[drawn], int):
                j = choices[drawn]
            else:
                j = self.pick(i, *choices[drawn], own, every)
            self.set_link(i, j, own)

    def metropolis(self, candidates, log_weight, log_current):
        """Metropolis–Hastings: `log_weight` is ln [ν or f(d_ij)] - ln q(j | i), candidate by
        candidate."""
        for i in range(self.n_nodes):
            current = self.links[i]
            own = self.remove_link(i)

            def merge(j, own=own):
                other = self.cluster_of(j)
                return 0.0 if other is own else self.merge_ratio(own, other)

            weight = log_current[i] + merge(current)
            for j, log_w in zip(candidates[i], log_weight[i], strict=True):
                candidate = log_w + merge(j)
                if math.log1p(-self.rng.random()) < candidate - weight:
                    current, weight = j, candidate
            self.set_link(i, current, own)

    def sums_all(self, few):
        """Whether there are few clusters, i's own without its link included."""
        return len(self.clusters) <= few

    def cluster_of(self, j):
        return next(members for members in self.clusters if j in members)

    def touched(self, i):
        found = []
        for j, w in self.near[i]:
            members = self.cluster_of(j)
            if w > 0 and not any(members is other for other in found):
                found.append(members)
        return found

    def pick(self, i, members, local, own, with_offset):
        """One member of a cluster, with probability proportional to f(d_ij)."""
        others = [j for j in members if j != i]
        total = local + self.offset * len(others) * with_offset
        part = self.rng.random() * total
        if part < local or not with_offset or not self.offset:
            for j, w in self.near[i]:
                if j in members and w > 0:
                    chosen = j
                    part -= w
                    if part < 0:
                        break
            return chosen
        if self.cut_from is not None and members is not own and members[0] in self.cut_from:
            while True:  # what is left at home, by trial
                j = self.cut_from[int(self.rng.random() * len(self.cut_from))]
                if j in members:
                    return j
        return others[min(int((part - local) / self.offset), len(others) - 1)]

    # -- ν --------------------------------------------------------------------------------------

    def draw_nu(self, nu, mean):
        """Independence Metropolis–Hastings with the exponential prior as proposal."""
        candidate = self.rng.exponential(mean)
        gain = self.log_p_links(candidate) - self.log_p_links(nu)
        return candidate if math.log1p(-self.rng.random()) < gain else nu

    def log_p_links(self, nu):
        """ln p(c | ν), without the terms that do not depend on ν."""
        value = 0.0
        for i in range(self.n_nodes):
            rest = sum(w for _, w in self.near[i]) + self.offset * (self.n_nodes - 1)
            value += (math.log(nu) if self.links[i] == i else 0.0) - math.log(nu + rest)
        return value
