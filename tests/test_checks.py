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
    boolean,
    finite_array,
    one_of,
    positive_integer,
    positive_number,
    prefixed,
    printable,
    require_texts,
    share,
    stored_array,
    stored_offsets,
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
    for total, right in ((1 + 1e-7, True), (1 - 1e-7, True), (1.001, False), (0.5, False)):
        if right:
            as_policy("p", [[total, 0.0]], (1, 2))
        else:
            with pytest.raises(ValueError, match=f"sums to {total}"):
                as_policy("p", [[total, 0.0]], (1, 2))
    with pytest.raises(ValueError, match=r"p must be \(1, 3\), one action per column"):
        as_policy("p", [[0.5, 0.5]], (1, 3))


def test_what_a_terminal_would_obey_is_escaped_and_all_else_is_kept():
    assert printable("Zoë\n\x1b[2J \u202e ok") == "Zoë\n\\u001b[2J \\u202e ok"
    assert printable("\U000e0001") == "\\udb40\\udc01"  # as two halves, like JSON


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (positive_number, [5e-324, 3, np.float32(0.5)], [0, -1e-9, np.nan, np.inf, True, "1"]),
        (positive_integer, [1, np.int64(7)], [0, -1, 1.0, True]),
        (boolean, [True, False, np.bool_(True)], [0, 1, None, "yes"]),
        (share, [1e-9, 0.999], [0, 1, 1.0, 2, -0.5]),
        (require_texts, [[], ["a", "b"]], ["ab", ("a",), ["a", 1], None]),
    ],
)
def test_checks_end_where_they_should(check, right, wrong):
    for value in right:
        check("x", value)
    for value in wrong:
        with pytest.raises((ValueError, TypeError), match=r"^x must be"):
            check("x", value)


def test_bounds_of_a_check_may_be_chosen():
    assert positive_number("x", 0, zero_ok=True) == 0
    with pytest.raises(ValueError, match=r"at least 0, got -0\.1"):
        positive_number("x", -0.1, zero_ok=True)
    assert positive_integer("x", 2, minimum=2) == 2
    with pytest.raises(ValueError, match="x must be at least 2, got 1"):
        positive_integer("x", 1, minimum=2)


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_an_error_with_a_prefix_keeps_its_kind_and_its_settings(kind):
    assert type(prefixed("in a: ", kind("no"))) is kind
    assert str(prefixed("in a: ", kind("no"))) == "in a: no"
    found = prefixed("in a: ", SettingError("give ", Setting("time")))
    assert found.worded(lambda setting: f"--{setting.argument}") == "in a: give --time"


def test_a_stored_array_is_of_its_kind_and_shape_and_within_its_bounds():
    numbers = np.array([0, 3], dtype=np.int8)
    stored_array("x", numbers, "i", (2,), 0, 4)
    stored_array("x", numbers, np.int8, (2,), 0, 4)
    stored_array("x", np.array(["a"]), "U", (1,), 5, 5)
    stored_array("x", numbers[:0], "i", (0,), 5, 5)
    for kind, shape, low, high in (("f", (2,), 0, 4), (np.int16, (2,), 0, 4), ("i", (3,), 0, 4),
                                   ("i", (2,), 1, 4), ("i", (2,), 0, 3)):  # fmt: skip
        with pytest.raises(ValueError, match=r"^x "):
            stored_array("x", numbers, kind, shape, low, high)
    for bad in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="they must be finite"):
            stored_array("x", np.array([0.0, bad]), "f", (2,))


@pytest.mark.parametrize(
    "offsets",
    [[0, 1, 5], [0, 4, 3, 5], [1, 5], [0, 2, 4], [0, 2, 6], [0], [], [0, 4, 5], [0, 0, 5]],
)
def test_offsets_cut_all_states_into_pieces_of_two_or_more(offsets):
    stored_offsets("offsets", np.array([0, 2, 5]), 5)
    stored_offsets("offsets", np.array([0, 5]), 5)
    with pytest.raises(ValueError, match="offsets"):
        stored_offsets("offsets", np.array(offsets, dtype=np.int64), 5)
    small = np.array([0, 127, -127], dtype=np.int8)  # the difference of the last two wraps to 2
    with pytest.raises(ValueError, match="offsets"):
        stored_offsets("offsets", small, -127)
