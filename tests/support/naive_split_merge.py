"""The slow, readable twin of the split–merge moves."""

import math

import naive


class NaiveSplitMerge(naive.Naive):
    """Splits and merges in plain Python; subclasses break them on purpose.

    ``log_prior(self, i, k)`` is ln p(z_i = k | z_-i), ``log_labels(self)`` is ln p(z).
    """

    def sizes(self):
        return {k: self.labels.count(k) for k in self.clusters}

    def log_target(self, log_labels):
        return log_labels(self) + sum(self.log_dm(self.xi[k]) for k in self.clusters)

    def log_anchors(self, n_first, n_both):
        """ln p(i, j | two clusters) / p(i, j | one)."""
        return math.log((n_both - 1) / (self.n_nodes - n_first))

    def log_labels_to_choose(self, n_empty):
        return math.log(n_empty)

    def log_scan(self, log_probability):
        return log_probability

    def relabel(self, labels):
        self.labels = list(labels)
        self.recount()

    def scan(self, nodes, a, b, log_prior, wanted=None):
        """Draw a or b for each node, or put it where it is wanted; ln of the probability."""
        total = 0.0
        for i in nodes:
            if self.labels[i] is not None:
                self.take_out(i)
            logs = [log_prior(self, i, k) + self.fit(i, k) for k in (a, b)]
            weights = naive.softmax(logs)
            uniform = None if wanted else self.rng.random()
            k = wanted[i] if wanted else (a, b)[uniform >= weights[0] / sum(weights)]
            total += math.log(weights[(a, b).index(k)] / sum(weights))
            self.put_in(i, k)
        return total

    def divide(self, i, j, nodes, a, b, scans, log_prior, wanted=None):
        """Divide nodes between a and b; ln of the last scan's probability."""
        for p in range(len(nodes) - 1, 0, -1):
            q = int(self.rng.random() * (p + 1))
            nodes[p], nodes[q] = nodes[q], nodes[p]
        for m in [i, j, *nodes]:
            self.take_out(m)
            self.labels[m] = None
        self.put_in(i, a)
        self.put_in(j, b)
        for _ in range(scans + 1):
            self.draw_component(a, self.xi[a])
            self.draw_component(b, self.xi[b])
            self.scan(nodes, a, b, log_prior)
        self.draw_component(a, self.xi[a])
        self.draw_component(b, self.xi[b])
        return self.log_scan(self.scan(nodes, a, b, log_prior, wanted))

    def split_merge(self, scans, log_prior, log_labels, gamma=0.0, ordinary=False):
        """One move; with `gamma`, any number of clusters is possible (the CRP)."""
        rng = self.rng
        i, splits = int(rng.random() * self.n_nodes), rng.random() < 0.5
        a, before = self.labels[i], list(self.labels)
        others = [m for m in range(self.n_nodes) if (self.labels[m] == a) == splits and m != i]
        empty = [k for k in self.clusters if before.count(k) == 0]
        choice = int(rng.random() * len(empty))
        if not others or (splits and not empty and not gamma):
            return
        j = others[int(rng.random() * len(others))]
        level = math.log1p(-rng.random())
        if splits and gamma:
            b = max(self.clusters) + 1
            self.clusters.append(b)
            self.recount()
        else:
            b = empty[choice] if splits else self.labels[j]
        n_empty = 1 if gamma else len(empty) + (not splits)
        nodes = [m for m in range(self.n_nodes) if self.labels[m] in (a, b) and m not in (i, j)]
        merged = [a if k == b else k for k in before]
        n_both = len(nodes) + 2
        at_start = self.log_target(log_labels)
        if splits:
            undo = -self.divide(i, j, nodes, a, b, scans, log_prior)
            gain = self.log_target(log_labels) - at_start + undo
            gain += self.log_anchors(self.labels.count(a), n_both)
            gain += self.log_labels_to_choose(n_empty)
            after = list(self.labels)
        else:
            after = merged
            self.relabel(merged)
            gain = self.log_target(log_labels) - at_start
            gain -= self.log_anchors(before.count(a), n_both) + self.log_labels_to_choose(n_empty)
            if level < gain:
                self.relabel(before)
                gain += self.divide(i, j, nodes, a, b, scans, log_prior, before)
        self.finish(a, b, level < gain, before, after, gamma, ordinary)

    def finish(self, a, b, accepted, before, after, gamma, ordinary):
        """Go where the move led, or back."""
        self.relabel(after if accepted else before)
        if gamma and b not in self.labels:
            self.clusters[self.clusters.index(b)] = self.clusters[-1]
            self.clusters.pop()
        if accepted and ordinary:
            for k in (a, b):
                counts = self.xi.get(k, [0] * self.n_actions)
                self.draw_component(k, counts)
                self.draw_controller(k, counts)


# -- ln p(z) ------------------------------------------------------------------------------------


def uniform_labels(chain):
    return 0.0


def mixing_labels(gamma, n_clusters):
    share = gamma / n_clusters
    return lambda chain: sum(math.lgamma(n + share) for n in chain.sizes().values())


def crp_labels(gamma):
    return lambda chain: sum(
        math.log(gamma) + math.lgamma(n) for n in chain.sizes().values() if n > 0
    )


def potts_labels(beta, weights):
    def log_labels(chain):
        pairs = ((i, j) for i in range(chain.n_nodes) for j in range(i))
        return beta * sum(weights[i][j] for i, j in pairs if chain.labels[i] == chain.labels[j])

    return log_labels
