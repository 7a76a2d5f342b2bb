"""Settings as the command line writes them."""

import pytest

from onlooker.checks import Setting, SettingError
from onlooker.fitting.wording import as_option, worded
from onlooker.warnings import ChainFailedWarning


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("missing", ("drop", "split")), "--missing drop or --missing split"),
        (Setting("resume", (True,)), "--resume"),
        (Setting("max_speed", (2.5,)), "--max-speed 2.5"),
        (Setting("max_speed", (1000.0,)), "--max-speed 1000"),
        (Setting("store"), "--output"),
        (Setting("interval"), "interval of [cleaning] in the model file"),
        (Setting("n_neighbors", (100,)), "neighbors = 100 of [prior] in the model file"),
        (Setting("nodes", ("all",)), 'nodes = "all" of [sampling] in the model file'),
    ],
)
def test_a_setting_is_an_option_or_a_key_of_the_model_file(setting, text):
    assert as_option(setting) == text


@pytest.mark.parametrize("kind", [SettingError, ChainFailedWarning])
def test_errors_and_warnings_are_worded_alike(kind):
    message = kind("chain 2 failed; ", Setting("resume", (True,)), " tries again")
    assert worded(message) == "chain 2 failed; --resume tries again"
    assert str(message) == "chain 2 failed; resume=True tries again"
