"""What `onlooker anomaly` prints of made up scores."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from onlooker import Demonstrations

anomaly = import_module("onlooker.cli.anomaly")  # the name in its package is the command
DEMOS = Demonstrations([np.arange(8), np.arange(40)])


def of_steps(misfits):
    """Scores of the second track, whose steps are explained where they are no misfits."""
    misfit = np.array(misfits)
    explained = misfit < 4
    steps = SimpleNamespace(
        explained=explained, trajectory=np.ones(len(misfit), int), step=np.arange(len(misfit))
    )
    frame = pd.DataFrame({"misfit": misfit})
    return SimpleNamespace(steps=steps, to_frame=lambda what: frame.copy())


def test_steps_without_an_explanation_are_told_worst_first_with_their_places(capsys):
    anomaly._print_alarms(of_steps([0.0, 5.0, 1.0, 7.25]), DEMOS)
    assert capsys.readouterr().out.splitlines() == [
        "Alarm: no action explains 2 of 4 steps; the worst first:",
        "  trajectory 1, step 3: 7.25 sigma off",
        "  trajectory 1, step 1: 5 sigma off",
    ]


@pytest.mark.parametrize("more", [0, 1, 3])
def test_of_many_such_steps_the_rest_is_counted(more, capsys):
    n = anomaly._MAX_ALARMS + more
    anomaly._print_alarms(of_steps([9.0] * n), DEMOS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Alarm: no action explains {n} of {n} steps")
    assert len(lines) == 1 + anomaly._MAX_ALARMS + (more > 0)
    assert (lines[-1] == f"  and {more} more") == (more > 0)


def test_that_every_step_is_explained_is_told(capsys):
    anomaly._print_alarms(of_steps([0.0, 1.0]), DEMOS)
    assert capsys.readouterr().out == "Every step is explained by some action.\n"


def test_what_deviating_tracks_do_instead_is_told_if_anything_is_known(capsys):
    columns = {"behaviour": ["heads for 3", "", "turns left"], "gain": [12.4, 0.0, 3.6]}
    ranking = pd.DataFrame(columns, index=["ann", "bob", "cy"])
    anomaly._print_behaviours(ranking)
    assert capsys.readouterr().out.splitlines() == [
        "Best explanations of the tracks that deviate:",
        "  ann: heads for 3 (12 nats better than the run's policy)",
        "  cy: turns left (4 nats better than the run's policy)",
    ]
    anomaly._print_behaviours(ranking[1:2])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("n_reference", "level"), [(0, 0.05), (10, 1 / 11), (19, 0.05), (18, 1 / 19), (60, 0.05)]
)
def test_few_references_raise_the_level_to_the_least_p_value_there_is(n_reference, level):
    scores = SimpleNamespace(settings={"n_reference": n_reference})
    assert anomaly._level(scores) == pytest.approx(level)


def test_a_track_has_a_reason_only_if_all_respects_together_are_odd():
    names = list(anomaly._P_VALUES)
    row = dict.fromkeys(names, 0.5) | {names[1]: 0.001, "p_combined": 0.05}
    assert anomaly._reason(row, 0.05) == anomaly._P_VALUES[names[1]]
    assert anomaly._reason(row | {"p_combined": 0.0501}, 0.05) == "none"


def changed(level):
    common = {"onset_low": 2, "onset_high": 5, "end": 7}
    return pd.DataFrame(
        [
            {"changed": "action_surprise", "onset": 3, "p_change": 0.01} | common,
            {"changed": "noise_surprise", "onset": -1, "p_change": 0.02} | common,
        ]
    )


def test_changes_are_told_with_the_place_of_their_onset(capsys):
    scores = SimpleNamespace(
        settings={"n_reference": 0},
        trajectories=SimpleNamespace(p_change=np.array([0.02, 0.01])),
        changes=changed,
    )
    anomaly._print_changes(scores, DEMOS, 2)
    assert capsys.readouterr().out.splitlines() == [
        "Change points (5 % level):",
        "  trajectory 1, step 3: other actions from there (steps 2 to 5) to step 7, p 0.01",
        "  trajectory 0, step 0: noisier steps from there (steps 2 to 5) to step 7, p 0.02",
    ]
    anomaly._print_changes(scores, DEMOS, 1)
    assert capsys.readouterr().out.splitlines()[2:] == ["  and 1 more"]
