"""The slow, readable twin of the ddCRP's kernels: components by search, everything recounted."""

import math

from naive import draw, log_dm, plus


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
