"""Errors that carry what they are about."""

import pickle

import numpy as np
import pytest

from onlooker.checks import (
    Advice,
    ChoiceError,
    Setting,
    SettingError,
    alternatives,
    as_array,
    as_policy,
    finite_array,
    one_of,
)


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


def test_the_first_of_several_bad_numbers_is_named():
    values = np.zeros((3, 4))
    values[1, 2], values[2, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"x holds nan at index \(1, 2\)"):
        finite_array("x", values, ndim=2)
    with pytest.raises(ValueError, match=r"x is masked at index \(1, 2\)"):
        as_array("x", np.ma.masked_invalid(values))


def test_a_policy_may_have_zeros_and_not_less():
    assert as_policy("p", [[0.0, 1.0]], (1, 2)).tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match=r"p\[1\] sums to 1 with smallest entry -0\.5"):
        as_policy("p", [[0.5, 0.5], [-0.5, 1.5]], (2, 2))
