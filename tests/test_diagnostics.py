"""Diagnostics: label-free scalars, warnings with remedy, and ArviZ on the export."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from bare import bare_problem
from chains import make_posterior
from small_runs import made_up, plane_problem, quick, ring_dynamics

from onlooker import Demonstrations, diagnostics, sample
from onlooker.diagnostics import (
    MIN_ESS,
    at_bounds,
    check_convergence,
    part_of,
    scalars,
    settled,
    summary,
)
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import Gamma, LogUniform
from onlooker.partitions import ChineseRestaurant, DistanceDependent, GaussianDecay, Mixing
from onlooker.warnings import ConvergenceWarning

PROBLEM = plane_problem()


def _with(log_joint, labels=None, nu=None, prior=None):
    """A posterior of two clusters with a chosen log joint, labels and self-link."""
    rng = np.random.default_rng(0)
    shape = log_joint.shape
    if labels is None:
        labels = rng.integers(2, size=(*shape, 15))
        labels[..., 0] = 0
    arrays = {
        "labels": labels.astype(np.int8),
        "actions": rng.integers(4, size=(*shape, 40)).astype(np.int8),
        "log_joint": log_joint,
        "hyper.alpha": np.ones(shape),
    }
    if nu is not None:
        arrays["hyper.nu"] = nu
    return make_posterior(PROBLEM, prior or Mixing(2), arrays, seed=0)


NOISE = np.random.default_rng(3).normal(size=(4, 400))


def test_scalars_do_not_depend_on_the_names_of_clusters():
    posterior = _with(NOISE)
    arrays = {**posterior.draws.arrays, "labels": 1 - posterior.labels}
    swapped = make_posterior(PROBLEM, posterior.prior, arrays, seed=0)
    one, other = scalars(posterior), scalars(swapped)
    assert one.keys() == other.keys()
    for name in one:
        if name != "n_controllers":  # labels in use are counted up to the largest
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_the_scalars_are_what_they_are_called():
    posterior = quick(PROBLEM, DistanceDependent(), draws=6)
    found = scalars(posterior)
    flat = posterior.labels.reshape(-1, 15)
    largest = [np.bincount(row).max() / 15 for row in flat]
    np.testing.assert_allclose(found["largest_share"].ravel(), largest)
    np.testing.assert_array_equal(found["n_controllers"], posterior.n_controllers)
    np.testing.assert_array_equal(found["nu"], posterior.hyper["nu"])
    policy = [
        np.array(list(posterior.predictor.each(PROBLEM.states, [b])))[0] for b in range(len(flat))
    ]
    entropy = -(np.array(policy) * np.log(policy)).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(found["mean_entropy"].ravel(), entropy)
    policies = {name: values for name, values in found.items() if name.startswith("policy")}
    assert len(policies) == 5
    for name, values in policies.items():
        node, action = (int(word) for word in name[:-1].replace(",", "").split() if word.isdigit())
        assert values.mean() == pytest.approx(posterior.policy()[node, action])


def test_the_summary_has_arviz_figures():
    from arviz_stats.base import array_stats

    drifting = NOISE + np.arange(4)[:, None]
    table = summary(_with(drifting))
    row = table.loc["log_joint"]
    assert row["mean"] == pytest.approx(drifting.mean())
    assert row["sd"] == pytest.approx(drifting.std(ddof=1))
    assert row["r_hat"] == pytest.approx(float(array_stats.rhat(drifting)))
    assert row["ess_bulk"] == pytest.approx(float(array_stats.ess(drifting)))
    assert list(table.columns) == [
        "mean", "sd", "q5", "q95", "mcse_mean", "ess_bulk", "ess_tail", "r_hat",
    ]  # fmt: skip


def test_exactly_these_are_watched():
    probed = [name for name in scalars(_with(NOISE)) if name.startswith("policy[")]
    sizes = ["n_controllers", "largest_share", "mean_entropy"]
    assert list(scalars(_with(NOISE))) == [*sizes, *probed, "log_joint"]  # alpha is fixed
    assert list(scalars(_with(NOISE, nu=NOISE)))[-2:] == ["nu", "log_joint"]
    parts = ["partition", "partition", "policy", *["policy"] * 5, "hyper-parameters", "log joint"]
    assert [part_of(name) for name in scalars(_with(NOISE, nu=NOISE))] == parts


def test_regions_are_watched_where_draws_have_them():
    posterior = _with(NOISE)
    regions = np.zeros((4, 400, 15), dtype=np.int8)
    regions[1, :, 3:] = 1
    regions[2, :, 5:] = 2
    arrays = {**posterior.draws.arrays, "regions": regions}
    found = scalars(make_posterior(PROBLEM, posterior.prior, arrays, seed=0))
    np.testing.assert_array_equal(found["n_regions"][:, 0], [1, 2, 3, 1])
    assert part_of("n_regions") == "partition"


def test_an_inferred_hyper_parameter_is_watched_even_while_it_stands_still():
    arrays = _with(NOISE).draws.arrays
    target = make_posterior(PROBLEM, Mixing(2), arrays, concentration=Gamma(1, 1))
    assert "alpha" in scalars(target)


def test_a_scalar_that_never_changes_has_no_r_hat_and_raises_no_warning():
    table = summary(_with(NOISE))
    assert np.isnan(table.loc["n_controllers", "r_hat"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_convergence(_with(NOISE))


def test_chains_that_disagree_are_reported_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match=r"R-hat is .* for log_joint, .*raise tune"):
        check_convergence(_with(NOISE + np.arange(4)[:, None]))


@pytest.mark.parametrize(
    ("prior", "hint"),
    [
        (Mixing(2), "draws$"),
        (DistanceDependent(), "draws, or try reassign=1 on the prior"),
        (DistanceDependent(reassign=1), "draws$"),
    ],
)
def test_the_remedy_is_one_that_the_prior_has(prior, hint):
    with pytest.warns(ConvergenceWarning, match=hint):
        check_convergence(_with(NOISE + np.arange(4)[:, None], prior=prior))


def test_chains_that_are_stuck_in_different_places_are_reported():
    stuck = np.repeat(np.arange(4.0)[:, None], 400, axis=1)
    with pytest.warns(ConvergenceWarning, match="R-hat is inf for log_joint"):
        check_convergence(_with(stuck))
    one_stuck = NOISE.copy()
    one_stuck[1] = 5.0
    with pytest.warns(ConvergenceWarning, match="log_joint"):
        check_convergence(_with(one_stuck))


def test_slow_chains_are_reported_by_their_effective_sample_size():
    slow = np.repeat(NOISE[:, :40], 10, axis=1)
    with pytest.warns(ConvergenceWarning, match=r"sample size is \d+ for log_joint"):
        check_convergence(_with(slow))


def test_too_few_draws_say_so():
    for few in (NOISE[:, :3], NOISE[:1, :7]):
        with pytest.warns(ConvergenceWarning, match="too few"):
            check_convergence(_with(few))
        assert settled(summary(_with(few))).sentence == "It is unknown what has settled."


def test_one_chain_that_drifts_is_reported():
    drifting = NOISE[:1] + np.linspace(0, 3, 400)
    with pytest.warns(ConvergenceWarning, match="is 1.3.* for log_joint .*the chain has not mixed"):
        check_convergence(_with(drifting))
    steady = _with(np.random.default_rng(0).normal(size=(1, 4000)))
    assert steady.summary().attrs["settled"] == (
        "The policy, the partition and the log joint have settled."
    )


def test_the_effective_sample_size_is_that_of_all_chains():
    """Eight chains of 60 draws are worth 400, one of 300 is not."""
    rng = np.random.default_rng(0)
    for shape, enough in (((8, 60), True), ((1, 300), False)):
        row = summary(_with(rng.normal(size=shape))).loc["log_joint"]
        assert (min(row["ess_bulk"], row["ess_tail"]) >= MIN_ESS) == enough


# -- what has settled ------------------------------------------------------------------------------


def _table(**bad):
    """A table in which these parts have this R-hat; others are fine."""
    names = {
        "policy": "mean_entropy",
        "partition": "n_controllers",
        "hyper": "nu",
        "fit": "log_joint",
    }
    rows = {row: {"r_hat": bad.get(part, 1.0)} for part, row in names.items()}
    return pd.DataFrame(rows).T.assign(ess_bulk=900.0, ess_tail=900.0)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({}, "The policy, the partition, the hyper-parameters and the log joint have settled."),
        (
            {"partition": 1.2, "hyper": np.nan, "fit": np.nan},
            "The policy has settled, the partition has not.",
        ),
        (
            {"hyper": 1.02, "fit": np.inf},
            "The policy and the partition have settled, the hyper-parameters and the log joint "
            "have not.",
        ),
        (
            {"partition": 1.1, "policy": 1.1, "hyper": np.nan, "fit": 1.1},
            "The policy, the partition and the log joint have not settled.",
        ),
        (
            dict.fromkeys(("policy", "partition", "fit"), np.nan),
            "The hyper-parameters have settled.",
        ),
    ],
)
def test_what_has_settled_is_told_in_one_sentence(bad, sentence):
    found = settled(_table(**bad))
    assert found.sentence == sentence
    assert found.all == (" not" not in sentence)


def test_a_part_with_too_small_a_sample_has_not_settled():
    table = _table()
    table.loc["mean_entropy", "ess_tail"] = 399.0
    found = settled(table)
    assert not found.all
    assert found.parts["policy"] is False
    assert found.parts["partition"] is True


def test_where_nothing_changes_there_is_nothing_to_settle():
    found = settled(_table(policy=np.nan, partition=np.nan, hyper=np.nan, fit=np.nan))
    assert found.all
    assert found.sentence == "It is unknown what has settled."


def test_what_has_settled_is_told_apart():
    """Two states that were never left: one cluster in two of the chains, two in the others."""
    assert not np.isin([13, 14], PROBLEM.node_of).any()
    labels = np.random.default_rng(0).integers(2, size=(4, 400, 15))
    labels[..., 13:] = 2
    labels[2:, :, 14] = 3
    posterior = _with(NOISE, labels, nu=NOISE)
    sentence = (
        "The policy, the hyper-parameters and the log joint have settled, the partition has not."
    )
    assert posterior.summary().attrs["settled"] == sentence
    with pytest.warns(ConvergenceWarning, match=f"^{sentence} R-hat is .* for n_controllers"):
        check_convergence(posterior)


def told_of(rows, n_chains=4, ended="draws"):
    """What is said of a table with these R-hats and sample sizes."""
    table = pd.DataFrame(rows, columns=["r_hat", "ess_bulk", "ess_tail"], index=list("abc"))
    table.attrs["settled"] = "All has settled."
    posterior = SimpleNamespace(
        n_draws=100,
        n_chains=n_chains,
        ended=ended,
        problem=SimpleNamespace(landmarks=None),
        prior=SimpleNamespace(advice=lambda n: ""),
        n_controllers=np.ones((n_chains, 100)),
        summary=lambda: table,
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_convergence(posterior)
    fine = diagnostics.is_fine(table)
    return [str(one.message) for one in told], [bool(ok) for ok in fine]


def test_the_limits_themselves_are_fine():
    assert told_of([(1.01, 400, 400), (1.0, 401, 400), (np.nan, np.nan, np.nan)]) == (
        [],
        [True] * 3,
    )


def test_the_worst_is_named_and_the_others_are_counted():
    rows = [(1.02, 399, 500), (1.5, 500, 100.0), (1.0, 500, 500)]
    (said,), fine = told_of(rows)
    assert fine == [False, False, True]
    assert said == (
        "All has settled. R-hat is 1.5 for b (and 1 more), above 1.01: the chains have not mixed; "
        "raise tune and draws. The effective sample size is 100 for b (and 1 more), below 400: "
        "raise draws"
    )
    (said,), fine = told_of([(1.02, 500, 500), *rows[2:] * 2], n_chains=1, ended="time")
    assert said == (
        "The time budget ended before convergence. All has settled. R-hat is 1.02 for a, above "
        "1.01: the chain has not mixed; raise tune and draws"
    )


@pytest.mark.parametrize(("n_chains", "least"), [(1, 8), (2, 4), (4, 4)])
def test_chains_are_compared_from_four_draws_on_or_a_half_of_one_from_four(n_chains, least):
    for n_draws in (least - 1, least):
        posterior = SimpleNamespace(n_draws=n_draws, n_chains=n_chains)
        assert diagnostics.too_few_draws(posterior) == (n_draws < least)
    values = np.arange(4.0 * n_chains).reshape(n_chains, 4)
    assert np.isfinite(diagnostics.scalar_row(values)["r_hat"]) == (n_chains > 1)
    assert np.isnan(diagnostics.scalar_row(values[:, :3])["r_hat"])


def test_a_single_chain_is_compared_half_by_half():
    halves = diagnostics._halves(np.arange(7)[None])
    assert halves.tolist() == [[0, 1, 2], [4, 5, 6]]
    assert diagnostics._halves(np.arange(6)[None]).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_policy_is_watched_from_the_first_node_seen_to_the_last():
    nodes, actions, values = diagnostics.probes(_with(NOISE))
    seen = np.unique(PROBLEM.node_of)
    assert (nodes[0], nodes[-1], len(nodes)) == (seen[0], seen[-1], 5)
    assert values.shape == (4, 400, 5)
    mean = _with(NOISE).policy()[nodes]
    np.testing.assert_allclose(values.mean(axis=(0, 1)), mean[np.arange(5), actions])
    np.testing.assert_array_equal(mean.argmax(axis=1), actions)


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize("partition", [True, False])
def test_chains_with_landmarks_of_their_own_are_judged_by_halves(monkeypatch, policy, partition):
    halves = SimpleNamespace(policy_agrees=policy, partition_agrees=partition, sentence="They do.")
    posterior = SimpleNamespace(n_draws=100, n_chains=4, stability=halves)
    monkeypatch.setattr(diagnostics, "own_landmarks", lambda posterior: True)
    monkeypatch.setattr(diagnostics, "too_few_draws", lambda posterior: False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_convergence(posterior)
        posterior.stability = None  # a single chain
        check_convergence(posterior)
    assert [str(one.message) for one in told] == ["They do."] * (not (policy and partition))


def test_sample_warns_where_it_is_called_and_can_be_silenced():
    options = {"draws": 10, "tune": 0, "chains": 2, "random_state": 0, "progress": False}
    with pytest.warns(ConvergenceWarning) as told:
        sample(PROBLEM, Mixing(3), **options)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        sample(PROBLEM, Mixing(3), **options)


def test_long_runs_of_an_easy_problem_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(
            plane_problem(n_nodes=6, n_transitions=12),
            Mixing(2, concentration=50.0),
            draws=2000,
            tune=100,
            random_state=1,
            progress=False,
        )


@pytest.mark.filterwarnings("ignore")  # ArviZ tells of its own future
def test_arviz_reads_the_export():
    import arviz as az
    import arviz_stats
    import matplotlib as mpl

    mpl.use("Agg")
    posterior = quick(PROBLEM, DistanceDependent(), draws=50, chains=3)
    tree = posterior.to_datatree()
    assert set(tree.children) == {"posterior", "sample_stats", "partition", "constant_data"}
    before_1 = hasattr(az.InferenceData, "from_datatree")
    data = az.InferenceData.from_datatree(tree) if before_1 else tree
    ours = summary(posterior)
    for table in (az.summary(data), arviz_stats.summary(tree)):
        assert len(table) == 9  # nu, two sizes, entropy, five policies; alpha was fixed
        for column, error in (("mean", 0.01), ("r_hat", 0.02)):
            for name in ("nu", "n_controllers"):
                expected = ours.loc[name, column]
                assert float(table.loc[name, column]) == pytest.approx(expected, abs=error)
    drawn = az.plot_trace(data, var_names=["nu", "n_controllers", "policy"])
    assert drawn.shape == (3, 2) if before_1 else drawn.viz["trace/policy"].shape == (3, 5)
    np.testing.assert_array_equal(tree["partition/labels"], posterior.labels)
    np.testing.assert_array_equal(tree["sample_stats/lp"], posterior.log_joint)
    np.testing.assert_array_equal(tree["constant_data/states"], PROBLEM.states)


def test_the_export_survives_a_netcdf_file(tmp_path):
    import xarray as xr

    posterior = made_up(PROBLEM, Mixing(3))
    posterior.to_datatree().to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["partition/labels"], posterior.labels)
        for group in tree.children.values():
            assert group.attrs["inference_library"] == "onlooker"
            assert group.attrs["prior"] == repr(posterior.prior)
            assert group.attrs["tuning_steps"] == posterior.schedule.tune


# -- bounds of priors -----------------------------------------------------------------------------


BOUNDED = LogUniform(0.25, 10.0)


def _drawn(prior, hyper, concentration=BOUNDED):
    posterior = made_up(PROBLEM, prior, hyper)
    posterior.target = replace(posterior.target, concentration=concentration)
    return posterior


def test_hyper_parameters_at_a_bound_of_their_prior_are_listed():
    decay = GaussianDecay(LogUniform(0.1, 10.0), LogUniform(0.001, 0.1))
    prior = DistanceDependent(self_link=LogUniform(0.01, 1.0), decay=decay)
    found = at_bounds(_drawn(prior, {"alpha": 0.26, "nu": 0.1, "scale": 9.0, "offset": 0.0011}))
    assert found == [
        ("alpha", "lower", 0.25, 0.26),
        ("scale", "upper", 10.0, 9.0),
        ("offset", "lower", 0.001, 0.0011),
    ]
    assert found[0].name == "alpha"
    gamma = ChineseRestaurant(LogUniform(1.0, 100.0))
    assert [one.name for one in at_bounds(_drawn(gamma, {"alpha": 1.0, "gamma": 99.0}))] == [
        "gamma"
    ]


def test_the_median_decides_and_the_range_is_that_of_the_logarithm():
    low, inside = 0.25 * 40**0.049, 0.25 * 40**0.051
    assert len(at_bounds(_drawn(Mixing(2), {"alpha": low}))) == 1
    assert at_bounds(_drawn(Mixing(2), {"alpha": inside})) == []
    values = np.array([[0.25, 0.25, 2.0, 2.0, 2.0]] * 2)
    assert at_bounds(_drawn(Mixing(2), {"alpha": values})) == []


@pytest.mark.parametrize("concentration", [0.25, Gamma(2.0, 4.0)])
def test_what_is_fixed_or_has_no_bound_is_not_listed(concentration):
    assert at_bounds(_drawn(Mixing(2), {"alpha": 0.25}, concentration)) == []


def test_parameters_of_the_dynamics_have_bounds_too():
    problem = plane_problem()
    problem.set_world(
        DisplacementDynamics.compass(4, sigma=LogUniform(0.1, 1.0)), np.zeros((40, 2))
    )
    found = at_bounds(made_up(problem, Mixing(2), {"sigma": 0.99}))
    assert [one[:3] for one in found] == [("sigma", "upper", 1.0)]


# -- what was not seen ----------------------------------------------------------------------------


def corner(draws=200, **options):
    """East then north, or north then east: nothing seen tells."""
    track = np.array([[0.0, 0.0], [np.nan, np.nan], [1.0, 1.0]])
    problem = bare_problem(
        Demonstrations([track], missing="infer"), DisplacementDynamics.compass(4, sigma=0.1)
    )
    return quick(problem, Mixing(2), draws=draws, **options)


def test_an_unseen_position_and_action_are_watched():
    posterior = corner()
    found = scalars(posterior)
    names = [name for name in found if part_of(name) == "unseen states"]
    assert names[1] in ("imputed[action 0]", "imputed[action 1]")
    coordinate = int(names[0].removeprefix("imputed[state 1, coordinate ").rstrip("]"))
    np.testing.assert_array_equal(found[names[0]], posterior.imputed[:, :, 0, coordinate])
    at = int(names[1][len("imputed[action ") : -1])
    likeliest = np.bincount(posterior.actions[:, :, at].ravel()).argmax()
    np.testing.assert_array_equal(found[names[1]], posterior.actions[:, :, at] == likeliest)


def test_chains_that_never_turn_a_corner_round_are_noticed(monkeypatch):
    """As with actions drawn given positions alone."""
    fine = summary(corner(chains=8)).filter(like="imputed[", axis=0)
    assert (fine["r_hat"] < 1.02).all()
    monkeypatch.setattr("onlooker.inference.unseen.draw_actions", lambda *_: None)
    stuck = summary(corner(chains=8)).filter(like="imputed[", axis=0)
    assert (stuck["r_hat"] > 1.3).all()


def test_the_action_watched_is_at_an_unknown_state():
    track = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0], [np.nan, np.nan], [3.0, 1.0]])
    compass = DisplacementDynamics.compass(4, sigma=0.1)
    demos = Demonstrations([track], missing="infer")
    for noise, transitions in ((None, [2, 3]), (0.1, [0, 1, 2, 3])):
        problem = bare_problem(demos, compass, observation_noise=noise)
        found = scalars(quick(problem, Mixing(2), draws=20))
        watched = [name for name in found if name.startswith("imputed[action")]
        assert watched[0] in [f"imputed[action {t}]" for t in transitions]


def test_an_unseen_integer_state_is_watched_by_its_likeliest():
    demos = Demonstrations([[0, -1, -1, 3, 4, -1, 0]] * 3, missing="infer")
    problem = bare_problem(demos, ring_dynamics(6), nodes="all")
    posterior = quick(problem, Mixing(2), draws=20)
    found = {name: v for name, v in scalars(posterior).items() if name.startswith("imputed[state")}
    ((name, values),) = found.items()
    place = problem.incomplete.hidden.tolist().index(int(name[len("imputed[state ") : -1]))
    drawn = posterior.imputed[:, :, place]
    np.testing.assert_array_equal(values, drawn == np.bincount(drawn.ravel()).argmax())
