"""What `onlooker fit` says of the state that it chose, and of what the model misses."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from onlooker import Posterior
from onlooker.choosing.features import StateChoice
from onlooker.choosing.left_out import Gain
from onlooker.choosing.noise import NoiseFit
from onlooker.cli import main
from onlooker.dynamics.features import Heading, Speed
from onlooker.findings.record import Record
from onlooker.fitting.model_file import Model, joined_features, read_model
from onlooker.fitting.state import Look, chosen_before
from onlooker.partitions import DistanceDependent, ScaledAxes

FINE = NoiseFit(1.0, Gain(0.0, 0.0))
MORE, LESS = Gain(0.5, 0.1), Gain(0.01, 0.02)


def found(names, features, gains, *, metric=None, local=MORE, noise=FINE):
    return Look(names, StateChoice(features, metric, gains, local), noise)


def test_what_is_chosen_is_said_with_what_it_gains():
    look = found(None, [Heading(2.0)], {("heading",): MORE, ("heading", "speed"): LESS})
    assert look.sentences == [
        "The state is position and heading: on left-out trajectories heading adds +0.500 ± 0.100 "
        "nats per step; speed does not help (+0.010 ± 0.020 nats per step)."
    ]
    alone = found(None, [], {("heading",): LESS})
    assert alone.sentences[0].startswith("The state is position alone: on left-out")
    assert alone.advice == []


def test_what_was_fixed_is_said_so_and_what_it_misses_has_a_remedy():
    look = found((), [], {("heading",): MORE})
    assert look.sentences[0] == "The state is position alone (--features)."
    (advice,) = look.advice
    assert advice.startswith("Steps depend on the step before: ")
    assert "+0.500 ± 0.100" in advice
    assert advice.endswith("--features heading.")
    both = found(("heading",), [Heading(1.0)], {("heading",): LESS, ("heading", "speed"): MORE})
    assert both.advice[0].endswith("--features heading,speed.")
    assert found(("heading", "speed"), [Heading(1.0), Speed(1.0)], {}).advice == []


def test_one_controller_that_is_as_good_and_noise_that_does_not_fit_are_said():
    look = found(None, [], {}, local=LESS, noise=NoiseFit(4.0, MORE))
    one, noise = look.advice
    assert one.startswith("A single policy for all states predicts left-out trajectories as well")
    assert "+0.010 ± 0.020" in one
    assert "4 times as much explains left-out trajectories better (+0.500" in noise
    assert "--sigma" in noise
    assert look.sentences[1:] == [f"Note: {one}", f"Note: {noise}"]


def test_factors_of_coordinates_are_said_and_stored():
    look = found(None, [], {}, metric=ScaledAxes((1.0, 0.25)))
    assert "weigh coordinate 1 by 1, coordinate 2 by 0.25, which" in look.sentences[1]
    named = replace(look, columns=["depth", "east"])
    assert "weigh depth by 1, east by 0.25, which" in named.sentences[1]
    assert look.to_dict()["factors"] == [1.0, 0.25]
    json.dumps(look.to_dict())
    assert chosen_before(json.loads(json.dumps(look.to_dict()))) == (look.features, look.metric)
    both = found(None, [Heading(0.5), Speed(2.0, 0.1)], {("heading",): MORE})
    assert chosen_before(both.to_dict()) == (both.features, None)
    nothing = Look(None, None, None)
    assert (nothing.sentences, nothing.to_dict(), nothing.features) == ([], None, [])


@pytest.mark.parametrize(
    ("text", "names"),
    [("none", ()), ("heading", ("heading",)), ("heading, speed", ("heading", "speed"))],
)
def test_features_by_name(text, names, tmp_path):
    assert joined_features(text) == names
    path = tmp_path / "model.toml"
    path.write_text(f'features = "{text}"\n')
    assert read_model(path).features == names
    assert Model().features is None


def test_features_that_are_none_are_refused(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text('features = "speed"\n')
    with pytest.raises(ValueError, match="none, heading or heading,speed"):
        read_model(path)
    path.write_text("features = 3\n")
    with pytest.raises(ValueError, match="a list of tables"):
        read_model(path)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """Correlated random walks."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(9):
        turned = rng.uniform(-np.pi, np.pi) + np.cumsum(rng.vonmises(0.0, 4.0, 40))
        steps = np.column_stack([np.cos(turned), np.sin(turned)])
        places = np.vstack([[0.0, 0.0], np.cumsum(steps, axis=0)])
        rows += [[f"walk {k}", t, *place] for t, place in enumerate(places)]
    path = tmp_path_factory.mktemp("walks") / "walks.csv"
    pd.DataFrame(rows, columns=["id", "t", "x", "y"]).to_csv(path, index=False)
    return path


def fit(walks, output, *more):
    words = (
        f"fit {walks} --trajectory id --time t --states x,y --draws 6 --tune 3 --chains 2 --jobs 1"
    )
    return CliRunner().invoke(main, [*words.split(), "--output", str(output), *more])


def test_correlated_walks_get_their_heading_and_new_tracks_do_too(walks, tmp_path):
    result = fit(walks, tmp_path / "run", "--json")
    assert result.exit_code == 0, result.output
    assert "The state is position and heading" in result.stderr
    state = json.loads(result.stdout)["state"]
    assert state["joined"][0] == "heading"
    assert state["gains"]["heading"]["mean"] > 2 * state["gains"]["heading"]["error"]
    assert Record.read(tmp_path / "run").state == state
    posterior = Posterior.load(tmp_path / "run")
    assert posterior.problem.dynamics.features[0] == Heading(state["weights"][0])
    assert "turns" in posterior.problem.kinds
    more = fit(walks, tmp_path / "run", "--resume", "--draws", "8")
    assert more.exit_code == 0, more.output
    assert "The state is" not in more.stdout
    assert Posterior.load(tmp_path / "run").n_draws == 8
    for words in (["predict", "--at", "1,2"], ["anomaly", str(walks), "--replicates", "20"]):
        again = CliRunner().invoke(main, [words[0], str(tmp_path / "run"), *words[1:]])
        assert again.exit_code == 0, again.output


def test_without_their_heading_the_remedy_is_given_and_kept(walks, tmp_path):
    result = fit(walks, tmp_path / "run", "--features", "none")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("Note: Steps depend on the step before: ") == 1
    summary = CliRunner().invoke(main, ["summary", str(tmp_path / "run")])
    assert "Steps depend on the step before: " in summary.stdout


def test_the_papers_model_has_a_name(walks, tmp_path):
    result = fit(walks, tmp_path / "run", "--model", "paper")
    assert result.exit_code == 0, result.output
    posterior = Posterior.load(tmp_path / "run")
    assert isinstance(posterior.prior, DistanceDependent)
    assert (posterior.prior.decay.offset, posterior.prior.reassign) == (0.01, 0)
    assert posterior.target.concentration == 1.0
    assert posterior.problem.policies is None
    assert posterior.problem.states.shape[1] == 2


def test_features_of_a_finite_space_are_refused(tmp_path):
    frame = pd.DataFrame({"place": np.arange(40) % 4})
    frame.to_csv(tmp_path / "ring.csv", index=False)
    np.save(tmp_path / "T.npy", np.stack([np.roll(np.eye(4), 1, axis=1)], axis=1))
    (tmp_path / "model.toml").write_text('[dynamics]\nkind = "tabular"\nfile = "T.npy"\n')
    words = (
        f"fit {tmp_path}/ring.csv --states place --model {tmp_path}/model.toml --features heading"
    )
    result = CliRunner().invoke(main, [*words.split(), "--output", str(tmp_path / "run")])
    assert result.exit_code == 1
    assert "--features needs positions" in result.stderr
    assert not (tmp_path / "run").exists()
