"""A run goes on with its settings: those that differ are named, in the words of the user."""

from pathlib import Path

import pytest

from onlooker.fitting.model_file import Model
from onlooker.fitting.resuming import other_settings, settings_of
from onlooker.hyper import Gamma
from onlooker.partitions import Continuation
from onlooker.runs.header import StoreMismatchError

RUN = Path("run")


def made(**tables):
    return settings_of(Model(**tables), 7)


def test_settings_have_the_names_of_their_options_and_values_as_one_writes_them():
    found = made(
        data={"states": ["x", "y"], "geographic": True, "hold_out": 0.25},
        cleaning={"max_speed": 1e-3, "interval": "6h"},
        prior={
            "kind": "ddcrp",
            "decay": {"kind": "gaussian", "scale": 2.0},
            "self_link": Gamma(2.0, 1.0),
        },
        concentration=0.1,
        repertoire="actions",
        features=("heading", "speed"),
        sampling={"tune": 30, "thin": 2, "draws": 9, "chains": 3, "jobs": 1},
    )
    expected = {
        "--seed": "7",
        "--hold-out": "0.25",
        "--max-speed": "0.001",
        "interval of [cleaning] in the model file": "6h",
        "--prior": "ddcrp",
        "--scale": "2",
        "decay.kind of [prior] in the model file": "gaussian",
        "concentration in the model file": "0.1",
        "--repertoire": "actions",
        "--features": "heading,speed",
        "--tune": "30",
        "thin of [sampling] in the model file": "2",
    }
    assert expected.items() <= found.items()
    assert found["--states"] == "x,y"
    assert found["--geographic"] == "yes"
    assert found["self_link of [prior] in the model file"].startswith("gamma")
    assert not [name for name in found if "draws" in name or "chains" in name or "jobs" in name]


def test_features_are_written_by_kind_with_their_numbers():
    assert made(features=())["--features"] == "none"
    tables = [{"kind": "heading", "weight": 2.0}, {"kind": "speed", "weight": 0.5}]
    told = made(features=tables)["[[features]] in the model file"]
    assert told == "heading (weight 2); speed (weight 0.5)"
    assert tables[0]["kind"] == "heading"  # nothing is taken from the model
    assert not any("eatures" in name for name in made())
    continued = made(prior={"continuation": Continuation()})
    assert "sharpness 1" in continued["continuation of [prior] in the model file"]


def test_settings_that_differ_are_named_with_both_values():
    stored, asked = made(sampling={"tune": 30}), made(sampling={"tune": 40}, repertoire="auto")
    found = other_settings(RUN, stored, asked)
    assert isinstance(found, StoreMismatchError)
    assert "(--tune: stored: 30, asked: 40; --repertoire: stored: " in str(found)
    assert "asked: auto)" in str(found)
    assert other_settings(RUN, stored, dict(reversed(stored.items()))) is None
    assert other_settings(RUN, None, asked) is None  # it is not known


@pytest.mark.parametrize(("scale", "named"), [(3.0, "--scale"), (2.0, "decay.kind of [prior]")])
def test_what_other_settings_say_is_named_only_if_all_else_is_the_same(scale, named):
    stored = made(prior={"decay": {"kind": "gaussian", "scale": 2.0}})
    asked = made(prior={"decay": {"kind": "window", "scale": scale}})
    told = str(other_settings(RUN, stored, asked))
    assert named in told
    assert told.count("stored: ") == 1
