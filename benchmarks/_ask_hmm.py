"""A hidden Markov model on steps and turns; runs in the environment of hmmlearn.

python _ask_hmm.py INPUT OUTPUT
"""

import sys

import numpy as np
from hmmlearn.hmm import GaussianHMM

STATES = (2, 3, 5, 8)


def fit(values, lengths, n_states):
    """The best of two starts; None if none of them comes to an end."""
    best, score = None, -np.inf
    for seed in range(2):
        model = GaussianHMM(n_states, "diag", min_covar=1e-2, n_iter=50, random_state=seed)
        try:
            found = model.fit(values, lengths).score(values, lengths)
        except ValueError:  # a state without steps
            continue
        if found > score:
            best, score = model, found
    return best


def log_normal(model, values):
    """``(n, states)``: log density of every emission."""
    variance = np.array([np.diag(one) for one in model.covars_])
    squares = np.square(values[:, None] - model.means_) / variance
    return -0.5 * (squares + np.log(variance)).sum(axis=2)


def predicted(model, values, lengths):
    """``(n, states)``: probabilities of the state of each step, given the steps before it."""
    out, start = np.empty((len(values), model.n_components)), 0
    logs = log_normal(model, values)
    for length in lengths:
        now = model.startprob_
        for t in range(start, start + length):
            out[t] = now
            seen = np.log(now + 1e-12) + logs[t]
            seen = np.exp(seen - seen.max())
            now = (seen / seen.sum()) @ model.transmat_
        start += length
    return out


def policies(model, values, lengths, actions):
    """``(n, A)``: densities of what each action would be, of which `actions` has the values."""
    states = predicted(model, values, lengths)
    n, n_actions, d = actions.shape
    density = np.exp(log_normal(model, actions.reshape(-1, d))).reshape(n, n_actions, -1)
    weight = np.einsum("nas,ns->na", density, states) + 1e-12
    return weight / weight.sum(axis=1, keepdims=True)


def main():
    """All folds' candidates."""
    with np.load(sys.argv[1]) as given:
        arrays = dict(given)
    train, test = (
        (arrays[f"{part}.values"], arrays[f"{part}.lengths"]) for part in ("train", "test")
    )
    inner = arrays["inner.values"], arrays["inner.lengths"]
    found = {}
    for n_states in STATES:
        part, whole = fit(*inner, n_states), fit(*train, n_states)
        if part is None or whole is None:
            continue
        outer = arrays["outer.values"], arrays["outer.lengths"], arrays["outer.actions"]
        found[f"outer.{n_states}"] = policies(part, *outer)
        found[f"test.{n_states}"] = policies(whole, *test, arrays["test.actions"])
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
