"""What is said of the paper's claims, on tables made up so that each holds, or fails by little."""

import numpy as np
import pandas as pd
import pytest

from onlooker.experiments import (
    controllers,
    grid_circular,
    grid_mdp,
    learning_curves,
    partition,
    robustness,
)
from onlooker.experiments.experiment import compare

MAX_MARGIN, MAX_ENT, EM = "max-margin", "max-ent greedy", "EM β=1.6"
RUNS = 5


def of_methods(config, column, values, error):
    """Errors of every method and value, ``error(method, value)``, with little noise over runs."""
    return pd.DataFrame(
        {"run": run, "method": method, column: value, "error": mean + spread * (run - 2)}
        for method in config.methods
        for value in values
        for mean, spread in [error(method, value)]
        for run in range(RUNS)
    )


def verdicts(claims):
    return [claim.holds for claim in claims]


# -- grids ----------------------------------------------------------------------------------------


def circling(**wrong):
    """As the paper says: intentional models are useless, EM is useful, the ddCRP is best."""
    level = {MAX_MARGIN: 1.1, MAX_ENT: 1.1, EM: 1.0, "ddCRP": 0.5} | wrong
    config = grid_circular.Config()
    table = of_methods(
        config, "trajectories", config.sizes, lambda method, _: (level.get(method, 0.9), 0.001)
    )
    return verdicts(grid_circular.claims(table, config))


def test_claims_of_the_circling_expert_follow_the_errors():
    assert circling() == [True, True, True]
    for name in (MAX_MARGIN, MAX_ENT):  # 1.047 is the error of a uniform policy
        assert circling(**{name: 1.04}) == [False, True, True]
        assert circling(**{name: 1.05}) == [True, True, True]
    assert circling(**{EM: 1.06}) == [True, False, True]
    assert circling(**{EM: 0.4}) == [True, False, False]
    assert circling(**{"max-ent soft": 0.5}) == [True, True, None]


def test_sizes_below_a_hundred_do_not_count_against_the_ddcrp():
    config = grid_circular.Config()

    def claimed(worse):
        def error(method, size):
            return (2.0 if size == worse else 0.5) if method == "ddCRP" else 1.0, 0.001

        table = of_methods(config, "trajectories", config.sizes, error)
        return grid_circular.claims(table, config)[2]

    assert claimed(30).holds is True
    assert claimed(100).holds is False
    assert claimed(30).evidence == "best beyond doubt at: 10, 100, 300, 1000, 3000"


def optimal(first=None, last=None, spread=None, middle=None):
    """As the paper says of the optimal expert, but for some errors at a size."""
    config = grid_mdp.Config()
    least, most = min(config.sizes), max(config.sizes)
    wrong = {least: first or {}, most: last or {}, 100: middle or {}}
    spreads = {MAX_MARGIN: 0.003, MAX_ENT: 0.003} | (spread or {})

    def error(method, size):
        early = {MAX_MARGIN: 0.3}
        late = {"ddCRP": 0.1, EM: 0.1, MAX_MARGIN: 0.3, MAX_ENT: 0.3}
        level = (late if size == most else early).get(method, 0.5)
        return wrong.get(size, {}).get(method, level), spreads.get(method, 0.001)

    return verdicts(
        grid_mdp.claims(of_methods(config, "trajectories", config.sizes, error), config)
    )


def test_claims_of_the_optimal_expert_follow_the_errors():
    assert optimal() == [True] * 4
    assert optimal(first={MAX_ENT: 0.2}) == [False, True, True, True]
    assert optimal(last={"ddCRP": 0.35}) == [True, False, True, False]
    assert optimal(last={MAX_ENT: 0.05}) == [True, False, True, True]
    assert optimal(spread={"ddCRP": 0.003})[2] is False  # no smaller
    assert optimal(spread={MAX_MARGIN: 0.0005})[2] is False
    assert optimal(middle={"ddCRP": 0.6})[3] is False
    assert optimal(middle={"ddCRP": 0.5005})[3] is False
    assert optimal(middle={EM: 0.5005})[3] is True


def rising(spread=0.001, **wrong):
    """Errors that rise with η, that of the ddCRP least."""
    config = robustness.Config()
    slope = {"ddCRP": 0.1, "max-ent soft": 0.0} | wrong

    def error(method, eta):
        return 0.3 + slope.get(method, 0.5) * eta, spread if method == "ddCRP" else 0.002

    table = of_methods(config, "eta", config.etas, error)
    both = pd.concat([table.assign(model="assumed"), table.assign(model="clean")])
    return robustness.claims(both, config)


def test_claims_of_robustness_follow_slopes_and_spreads():
    assert verdicts(rising()) == [True] * 3
    assert "ddCRP +0.099, " in rising()[0].evidence
    assert verdicts(rising(**{MAX_MARGIN: 0.05})) == [False, False, True]
    assert verdicts(rising(ddCRP=0.6)) == [False, False, True]
    assert verdicts(rising(spread=0.003)) == [True, True, False]


# -- the plane ------------------------------------------------------------------------------------


def test_claims_of_learning_curves_follow_the_errors():
    def claimed(last=1.6, **early):
        models = learning_curves.MODELS
        table = pd.DataFrame(
            {"run": run, "model": model, "where": "seen", "iteration": sweep, "error": error}
            for run in range(RUNS)
            for model in models
            for sweep, error in (
                (10, early.get(model, 0.2 if model == "ddCRP" else 1.0) + 0.001 * run * len(model)),
                (100, last),
            )
        )
        return verdicts(learning_curves.claims(table, learning_curves.Config()))

    collapsed = {f"Potts collapsed, β={beta}": 0.5 for beta in ("1.6", "0.8")}
    untrained = learning_curves.UNTRAINED
    assert claimed(**collapsed) == [True, True, True]
    assert claimed(last=0.91 * untrained, **collapsed)[0]
    assert not claimed(last=0.89 * untrained, **collapsed)[0]
    for beta in ("1.6", "0.8"):
        assert claimed(**(collapsed | {f"Potts ordinary, β={beta}": 0.4}))[1] is False


def of_controllers(shares, nu, other=(0.033, 0.033)):
    """Draws with these numbers of controllers, in hundredths, and moments of ν."""
    counts = np.repeat(list(shares), list(shares.values()))

    def drawn(prior, mean, sd):
        values = mean + sd * np.tile([-1.0, 1.0], len(counts) // 2)
        return pd.DataFrame({"prior": prior, "controllers": counts, "nu": values})

    tables = [drawn(controllers.MEAN, *nu), drawn(controllers.RATE, *other)]
    return pd.concat([table.assign(run=run) for table in tables for run in range(3)])


PAPER = {7: 4, 8: 39, 9: 32, 10: 16, 11: 6, 12: 3}


@pytest.mark.parametrize(
    ("nu", "holds"),
    [
        ((0.024, 0.023), True),
        ((0.0275, 0.0195), True),
        ((0.029, 0.023), False),
        ((0.019, 0.023), False),
        ((0.024, 0.028), False),
        ((0.024, 0.018), False),
    ],
)
def test_the_posterior_of_nu_is_the_papers_within_four_thousandths(nu, holds):
    found = controllers.claims(of_controllers(PAPER, nu), controllers.Config())
    assert verdicts(found) == [True, holds, False]
    assert found[0].evidence == "7: 4 %, 8: 39 %, 9: 32 %, 10: 16 %, 11: 6 %, 12: 3 %"
    assert found[1].evidence == f"{nu[0]:.4f} ± {nu[1]:.4f}"
    swapped = of_controllers(PAPER, (0.033, 0.033), nu)
    assert verdicts(controllers.claims(swapped, controllers.Config())) == [True, False, holds]


def test_a_peak_beside_eight_controllers_is_no_peak_at_eight():
    found = controllers.claims(of_controllers({8: 30, 9: 70}, (0.02, 0.02)), controllers.Config())
    assert found[0].holds is False


def test_references_of_controllers_are_read_from_the_table():
    table = of_controllers(PAPER, (0.024, 0.02))
    found = {
        reference.what: compare(reference, table).value
        for reference in controllers.EXPERIMENT.references
    }
    assert found == pytest.approx(
        {
            "P(7 controllers)": 0.04,
            "P(8 controllers)": 0.39,
            "P(9 controllers)": 0.32,
            "P(10 controllers)": 0.16,
            "P(≥ 11 controllers)": 0.09,
            "ν, mean, prior with mean 0.1": 0.024,
            "ν, standard deviation, prior with mean 0.1": 0.02,
            "ν, mean, prior with rate 0.1": 0.033,
            "ν, standard deviation, prior with rate 0.1": 0.033,
        }
    )


@pytest.mark.parametrize(
    ("module", "known"),
    [
        (
            controllers,
            {
                **dict(zip(range(7, 11), (0.04, 0.38, 0.32, 0.16), strict=True)),
                "≥ 11": 0.09,
                "mean, prior with mean": 0.024,
                "standard deviation, prior with mean": 0.024,
                "mean, prior with rate": 0.033,
                "standard deviation, prior with rate": 0.033,
            },
        ),
        (partition, {"averaged over draws": 0.425}),
        (
            robustness,
            {
                "ddCRP, η = 0.99, clean": 0.426,
                "EM β=1.6, η = 0.99, clean": 0.463,
                "max-margin, η = 0.99, clean": 0.569,
            },
        ),
    ],
    ids=["controllers", "partition", "robustness"],
)
def test_what_the_reproduction_gave_is_kept_as_it_was(module, known):
    for name, value in known.items():
        (found,) = (
            one for one in module.EXPERIMENT.references
            if (f"({name} c" if isinstance(name, int) else name) in one.what
        )  # fmt: skip
        assert found.value == value


def test_patterns_are_identified_if_most_runs_keep_them_apart():
    config = partition.Config()
    world = config.world()
    points = world.coordinates
    truth = world.controllers(points)

    def claimed(n_right):
        tables = [
            pd.DataFrame(
                {"run": run, "kind": "seen", "x": points[:, 0], "y": points[:, 1],
                 "cluster": truth if run < n_right else np.minimum(truth, 6)}
            )
            for run in range(4)
        ]  # fmt: skip
        return partition.claims(pd.concat(tables), config)[0]

    assert claimed(3).holds is True
    assert claimed(2).holds is False  # half are not most
    assert claimed(4).evidence.startswith("in 100 % of the runs")
    assert "Rand index 1.00" in claimed(4).evidence
