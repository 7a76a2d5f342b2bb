"""Diagnostics: label-free scalars, warnings with remedy, and ArviZ on the export."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from chains import make_posterior
from small_runs import made_up, plane_problem, quick

from onlooker import sample
from onlooker.diagnostics import at_bounds, check_convergence, scalars, summary
from onlooker.dynamics import DisplacementDynamics
from onlooker.hyper import CONCENTRATION, Gamma, LogUniform
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
    largest = [np.bincount(row).max() for row in flat]
    np.testing.assert_array_equal(found["largest_cluster"].ravel(), largest)
    np.testing.assert_array_equal(found["n_controllers"], posterior.n_controllers)
    np.testing.assert_array_equal(found["nu"], posterior.hyper["nu"])
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


def test_a_scalar_that_never_changes_has_no_r_hat_and_raises_no_warning():
    table = summary(_with(NOISE))
    assert np.isnan(table.loc["alpha", "r_hat"])
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
    with pytest.warns(ConvergenceWarning, match=r"sample size is \d+ per chain for log_joint"):
        check_convergence(_with(slow))


def test_too_few_draws_say_so():
    with pytest.warns(ConvergenceWarning, match="too few"):
        check_convergence(_with(NOISE[:, :3]))


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
        assert len(table) == 8  # nu, two sizes, five policies; alpha was fixed
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


# -- bounds of priors -----------------------------------------------------------------------------


def _drawn(prior, hyper, concentration=CONCENTRATION):
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
