"""Errors that carry what they are about."""

import pickle

import pytest

from onlooker.checks import Advice, ChoiceError, Setting, SettingError, alternatives, one_of


def test_a_choice_error_tells_argument_value_and_choices():
    with pytest.raises(ValueError, match=r"^missing must be one of 'error', 'drop'; got 'dorp'$"):
        one_of("missing", "dorp", ("error", "drop"))
    again = pickle.loads(pickle.dumps(ChoiceError("missing", "dorp", ("error", "drop"))))
    assert (again.argument, again.value, again.choices) == ("missing", "dorp", ("error", "drop"))
    assert one_of("missing", "drop", ("error", "drop")) == "drop"


def test_settings_in_a_message_are_written_by_whoever_shows_it():
    error = SettingError("{no} time; choose ", Setting("gaps", ("keep", "split")), " or give ",
                         Setting("time"))  # fmt: skip
    assert str(error) == "{no} time; choose gaps='keep' or 'split' or give time"
    assert error.worded(lambda setting: f"--{setting.argument}") == (
        "{no} time; choose --gaps or give --time"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, Advice)


@pytest.mark.parametrize(
    ("items", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (list("abc"), "a, b or c")]
)
def test_alternatives(items, text):
    assert alternatives(items) == text
