"""Model files: what they may say, and how they are refused."""

import pytest

from onlooker.fitting import model_file
from onlooker.fitting.model_file import Model, read_model
from onlooker.hyper import Exponential, Gamma, LogUniform


def write(folder, text):
    path = folder / "model.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_may_have_as_many_bytes_as_are_read_and_not_one_more(tmp_path):
    most = "#" * model_file._MAX_BYTES
    assert read_model(write(tmp_path, most)) == Model(folder=tmp_path)
    with pytest.raises(ValueError, match="it has more than"):
        read_model(write(tmp_path, most + "#"))


def test_an_empty_file_leaves_everything_open(tmp_path):
    assert read_model(write(tmp_path, "")) == Model(folder=tmp_path)


def test_all_tables_are_read(tmp_path):
    text = """
        concentration = 0.5
        [data]
        states = ["lon", "lat"]
        geographic = true
        [cleaning]
        gaps = "split"
        gap = "9h"
        periodic = {lon = 360}
        [dynamics]
        directions = 8
        stay = true
        [prior]
        kind = "ddcrp"
        neighbors = 50
        decay = {scale = 300, offset = 0}
        [[features]]
        kind = "heading"
        weight = 200
        [sampling]
        draws = 10
        tune = 0
    """
    model = read_model(write(tmp_path, text))
    assert model.data == {"states": ["lon", "lat"], "geographic": True}
    assert model.cleaning == {"gaps": "split", "gap": "9h", "periodic": {"lon": 360.0}}
    assert model.dynamics == {"kind": "displacement", "directions": 8, "stay": True}
    assert model.prior["decay"] == {"kind": "gaussian", "scale": 300.0, "offset": 0.0}
    assert model.features == [{"kind": "heading", "weight": 200.0}]
    assert model.sampling == {"draws": 10, "tune": 0}
    assert model.concentration == 0.5


@pytest.mark.parametrize(
    ("value", "prior"),
    [
        ('{prior = "exponential", mean = 0.1}', Exponential(0.1)),
        ('{prior = "gamma", shape = 2, rate = 4}', Gamma(2.0, 4.0)),
        ('{prior = "loguniform", low = 0.1, high = 10}', LogUniform(0.1, 10.0)),
        ("3", 3.0),
    ],
)
def test_a_number_fixes_a_hyper_parameter_and_a_prior_infers_it(tmp_path, value, prior):
    assert read_model(write(tmp_path, f"concentration = {value}")).concentration == prior


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[dynamcis]", "has no key 'dynamcis'; did you mean 'dynamics'?"),
        ("[dynamics]\ndirection = 8", "[dynamics] has no key 'direction'; did you mean 'dir"),
        ("[prior]\nkind = 'pots'", "[prior] kind must be one of "),
        ("[prior]\nkind = 'pots'", "did you mean 'potts'?"),
        ("[prior]\nkind = 'crp'\ndecay = {}", "[prior] has no key 'decay'; it has concentration"),
        ("[prior]\ndecay = {scael = 1}", "[prior] decay has no key 'scael'; did you mean 'scale'"),
        ("[prior]\nself_link = -1", "self_link must be finite and above 0, got -1"),
        ("[prior]\nneighbors = 0", "[prior] neighbors must be at least 1, got 0"),
        (
            "[prior]\nkind = 'ddcrp'\ntolerance = 2",
            "[prior] tolerance must be between 0 and 1, got 2",
        ),
        ("[prior]\ndecay = {offset = 2}", "[prior] decay offset must be below 1, got 2"),
        (
            "[prior]\nkind = 'ddcrp'\nstart = 'nearset'",
            'start must be one of "scattered", "nearest", "self"; got \'nearset\'',
        ),
        ("[prior]\ncoordinates = 3", "[prior] coordinates must be text, got 3"),
        ("[cleaning]\ngap = []", "[cleaning] gap must be a number or text, got []"),
        ("[prior]\nself_link = 'few'", "self_link must be a number, or a table such as {prior ="),
        ("[prior]\nself_link = {mean = 1}", "needs prior: one of exponential, gamma, loguniform"),
        ("concentration = {prior = 'gamma', shape = 1}", "concentration: gamma needs rate"),
        ("concentration = {prior = 'loguniform', low = 2, high = 1}", "low must be below high"),
        ("concentration = true", "concentration must be a number, or a table"),
        ("[sampling]\ndraws = 0", "[sampling] draws must be at least 1, got 0"),
        ("[sampling]\ndraws = 1.5", "[sampling] draws must be an integer, got float"),
        ("[data]\nstates = [1]", "[data] states[0] must be text, got 1"),
        ("[data]\nstates = []", "[data] states must be a list of names, got []"),
        ("[data]\ngeographic = 1", "[data] geographic must be true or false, got 1"),
        ("[data]\nhold_out = 1", "[data] hold_out must be a share from 0 to below 1, got 1"),
        ("[data]\nhold_out = -0.1", "hold_out must be a share from 0 to below 1, got -0.1"),
        ("[data]\nhold_out = true", "hold_out must be a share from 0 to below 1, got True"),
        ("[data]\nhold_out = 'few'", "hold_out must be a share from 0 to below 1, got 'few'"),
        ("[cleaning]\nmissing = 'dorp'", "did you mean 'drop'?"),
        ("[dynamics]\nstay = 'maybe'", 'stay must be one of true, false, "auto"'),
        ("data = 3", "[data] must be a table, got 3"),
        ("[features]\nkind = 'heading'", "write [[features]] for each"),
        ("[[features]]\nkind = 'heading'", "features[0] (heading) needs weight"),
        ("[[features]]\nweight = 1", "features[0] needs kind"),
        ("[dynamics\n", "is not a valid TOML file"),
        ("\xff", "is not a valid TOML file"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file_the_key_and_the_remedy(tmp_path, text, told):
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as refused:
        read_model(path)
    message = str(refused.value)
    assert told in message
    assert str(path) in message
    assert "\n" not in message


def test_a_file_that_is_not_there_is_said_to_be(tmp_path):
    with pytest.raises(ValueError, match=r"there is no model file .*nowhere.toml"):
        read_model(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5_000 + "]" * 5_000,
        "a = " + "[" * 50 + "]" * 50,
        ".".join(["a"] * 30_000) + " = 1",
        "# " + "x" * 200_000,
    ],
    ids=["deep", "deeper than of use", "long key", "long"],
)
def test_files_that_would_wear_out_the_parser_are_refused(text, tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"m\.toml is not a valid TOML file"):
        read_model(path)


def test_a_share_to_set_aside_may_be_none_at_all(tmp_path):
    assert read_model(write(tmp_path, "[data]\nhold_out = 0")).data == {"hold_out": 0.0}
