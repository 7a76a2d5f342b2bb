"""What each kind of behaviours offers in each world, and what it is called."""

import time
from dataclasses import replace

import numpy as np
import pytest

from onlooker import Demonstrations
from onlooker.dynamics import (
    DisplacementDynamics,
    GeographicDynamics,
    PerturbedDynamics,
    SlipperyDynamics,
    TabularDynamics,
)
from onlooker.dynamics.actions import action_rings
from onlooker.dynamics.features import Heading, Speed, with_features
from onlooker.repertoire import Actions, Behaviour, Blurs, Goals, Overall, Stay, Turns
from onlooker.repertoire.base import Everywhere, Merged, Own, Part, World, merge_equal
from onlooker.repertoire.making import decode_policies, encode_policies, make_policies
from onlooker.warnings import RepertoireWarning
from onlooker.worlds import GridWorld

LINE = DisplacementDynamics([[-1.0], [0.0], [1.0], [2.0]], 0.3)
ON_LINE = Demonstrations([np.array([[0.0], [1.0], [3.0], [3.0]])])
PLANE = Demonstrations([np.array([[0.0, 0.0], [1.0, 0.1], [1.1, 1.0], [2.0, 1.0]])])


def corridor(n=6, **about):
    """Left, stay and right; the ends are walls."""
    table = np.zeros((n, 3, n))
    for s in range(n):
        for a, move in enumerate((-1, 0, 1)):
            table[s, a, min(max(s + move, 0), n - 1)] = 1.0
    return TabularDynamics(table, **about)


IN_CORRIDOR = Demonstrations([np.array([1, 2, 3, 4, 4])])


# -- which actions are neighbours -----------------------------------------------------------------


def test_directions_make_a_circle_for_each_speed_and_a_stay_is_in_none():
    steps = DisplacementDynamics.compass(6).steps
    dynamics = DisplacementDynamics(np.vstack([steps[::-1], 2 * steps, np.zeros((1, 2))]), 0.1)
    slow, fast = action_rings(dynamics)
    assert slow.actions.tolist() == [5, 4, 3, 2, 1, 0]
    assert fast.actions.tolist() == [6, 7, 8, 9, 10, 11]
    assert slow.closed
    assert slow.spacing == pytest.approx(60.0)


def test_directions_with_a_gap_make_a_line_that_begins_behind_it():
    dynamics = DisplacementDynamics([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0]], 0.1)
    (ring,) = action_rings(dynamics)
    assert not ring.closed
    assert ring.actions.tolist() == [1, 2, 0]


def test_steps_on_the_line_are_ordered_by_size_and_steps_in_space_are_not_ordered():
    (ring,) = action_rings(DisplacementDynamics([[2.0], [0.0], [-1.0]], 0.1))
    assert ring.actions.tolist() == [2, 1, 0]
    assert action_rings(DisplacementDynamics(np.eye(3), 0.1)) == []


def test_tables_have_the_order_that_they_are_given_and_hand_it_on():
    table = corridor(action_order="line", action_names=["left", "stay", "right"])
    for one in (table, PerturbedDynamics(table, 0.1, 0), SlipperyDynamics(table)):
        assert [ring.actions.tolist() for ring in action_rings(one)] == [[0, 1, 2]]
        assert one.action_names == ["left", "stay", "right"]
    assert action_rings(corridor()) == []
    with pytest.raises(ValueError, match="action_order"):
        corridor(action_order="ring")
    with pytest.raises(ValueError, match="2 names; there are 3 actions"):
        corridor(action_names=["left", "right"])


def test_features_hand_on_the_order_of_the_positions():
    demos, dynamics = with_features(PLANE, [Heading(1.0)], DisplacementDynamics.compass(8))
    assert [part.kind for part in Blurs().build(World(dynamics, demos))] == [
        "blurs of 3", "blurs of 5", "any action",
    ]  # fmt: skip


# -- names and policies ---------------------------------------------------------------------------


def build(kind, dynamics, demos):
    """The only part, and its policies at the demonstrations' states."""
    (part,) = kind.build(World(dynamics, demos))
    return part.names, part.block.policies(demos.states)


def test_actions_are_themselves():
    names, policies = build(Actions(), LINE, ON_LINE)
    assert names == ["-1", "stay", "+1", "+2"]
    np.testing.assert_array_equal(policies, np.broadcast_to(np.eye(4), (4, 4, 4)))


def test_a_blur_is_an_action_and_its_neighbours():
    three, _ = Blurs((3,)).build(World(GridWorld(5, 8).dynamics, Demonstrations([[0, 1, 2]])))
    assert three.names[:2] == ["E ± 1", "NE ± 1"]
    np.testing.assert_allclose(three.block.table[0], np.array([1, 1, 0, 0, 0, 0, 0, 1]) / 3)
    turned, _ = Blurs((5,)).build(World(DisplacementDynamics.compass(24), PLANE))
    assert turned.names[2] == "30° ± 30°"
    ends, _ = Blurs((3,)).build(World(LINE, ON_LINE))
    assert ends.names == ["-1 to stay", "-1 to +1", "stay to +2", "+1 to +2"]
    np.testing.assert_allclose(ends.block.table[0], [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(ends.block.table.sum(axis=1), 1.0)


def test_every_width_is_a_kind_and_any_action_needs_no_order():
    kinds = [part.kind for part in Blurs().build(World(DisplacementDynamics.compass(24), PLANE))]
    assert kinds == ["blurs of 3", "blurs of 5", "blurs of 7", "blurs of 9", "any action"]
    names, policies = build(Blurs(), corridor(), IN_CORRIDOR)
    assert names == ["any action"]
    np.testing.assert_allclose(policies, 1 / 3)
    with pytest.raises(ValueError, match="odd numbers"):
        Blurs((4,))


def test_staying_needs_an_action_that_does():
    assert build(Stay(), LINE, ON_LINE)[1][0].tolist() == [[0, 1, 0, 0]]
    assert Stay().build(World(DisplacementDynamics.compass(4), PLANE)) == []
    assert build(Stay(), corridor(), IN_CORRIDOR)[1][0].tolist() == [[0, 1, 0]]


def test_overall_frequencies_are_those_of_the_steps():
    right = Demonstrations([np.arange(9.0)[:, None], np.array([[3.0], [2.0], [1.0]])])
    _, policies = build(Overall(), LINE, right)
    np.testing.assert_allclose(policies[0, 0], [0.2, 0.0, 0.8, 0.0], atol=0.01)


def test_a_planned_goal_is_headed_for_by_the_shortest_way_with_ties_shared():
    names, policies = build(Goals(), corridor(), IN_CORRIDOR)
    assert names == [f"heads for state {g}" for g in range(6)]
    np.testing.assert_array_equal(policies[0, 3], [0, 0, 1])  # at 1, heading for 3
    np.testing.assert_array_equal(policies[2, 3], [0, 1, 0])  # at 3
    _, policies = build(Goals(), corridor(), Demonstrations([np.array([0, 5])]))
    np.testing.assert_array_equal(policies[0, 0], [0.5, 0.5, 0])  # the wall is as good as staying


def test_the_discount_decides_between_a_risky_way_and_a_long_one():
    # 0: short but risky (action 0: goal 3 with .6, else trap 4), or long and safe (0 → 1 → 2 → 3)
    table = np.zeros((5, 2, 5))
    table[0, 0, [3, 4]] = 0.6, 0.4
    table[0, 1, 1] = table[1, :, 2] = table[2, :, 3] = table[3, :, 3] = table[4, :, 4] = 1.0
    demos = Demonstrations([np.array([0, 1, 2, 3])])

    def first(discount):
        return build(Goals(discount=discount), TabularDynamics(table), demos)[1][0, 3]

    np.testing.assert_array_equal(first(0.5), [1, 0])
    np.testing.assert_array_equal(first(0.95), [0, 1])


def test_goals_of_large_worlds_are_thinned_to_ends_and_landmarks():
    states = np.arange(900) % 700
    demos = Demonstrations([states[:800], np.array([3, 699])])
    (part,) = Goals(candidates=30).build(World(corridor(700), demos))
    assert len(part.names) == 30
    assert {"heads for state 99", "heads for state 699"} <= set(part.names)
    (part,) = Goals().build(World(corridor(700), demos))
    assert len(part.names) == 500


def test_a_large_table_leaves_two_hundred_goals_and_says_how_many(monkeypatch):
    def instead(move, goals, discount):
        return np.ones((len(goals), move.n_states, move.n_actions), dtype=bool)

    monkeypatch.setattr("onlooker.planning.goal_actions", instead)
    world = GridWorld(45, 8)
    demos, _ = world.rollout(3, 10, random_state=0)
    with pytest.warns(RepertoireWarning, match=r"2025 states is large to plan in, so \d+ of them"):
        (part,) = Goals().build(World(world.dynamics, demos))
    assert len(part.names) >= 200
    assert {f"heads for state {state}" for state in demos.states} <= set(part.names)


def test_all_goals_of_the_papers_grid_are_planned_in_under_five_seconds():
    world = GridWorld(21, 8)
    demos, _ = world.rollout(3, 10, random_state=0)

    def seconds():
        began = time.process_time()
        (part,) = Goals().build(World(world.dynamics, demos))
        assert len(part.names) == 441
        return time.process_time() - began

    assert any(seconds() < 5.0 for _ in range(3))  # a busy machine is slower


def test_in_the_plane_the_step_that_points_to_the_goal_is_taken_whatever_its_length():
    steps = DisplacementDynamics.compass(4).steps
    dynamics = DisplacementDynamics(np.vstack([steps, 2 * steps]), 0.1)
    names, policies = build(Goals(), dynamics, PLANE)
    assert names[0] == "heads for (2.00, 1.00)"
    np.testing.assert_allclose(policies[0, 0], [0.5, 0, 0, 0, 0.5, 0, 0, 0])
    np.testing.assert_allclose(policies[3, 0], 1 / 8)  # there already
    diagonal = Demonstrations([np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 3.0]])])
    policies = build(Goals(), DisplacementDynamics.compass(4), diagonal)[1]
    np.testing.assert_allclose(policies[0, 0], [0.5, 0.5, 0, 0])  # a tie


def test_on_the_sphere_goals_are_headed_for_over_the_date_line():
    demos = Demonstrations([np.array([[178.0, 0.0], [179.0, 0.0], [-179.0, 0.0]])])
    names, policies = build(Goals(), GeographicDynamics.compass(4, 111.0, 20.0), demos)
    assert names[0] == "heads for (179.0°W, 0.0°N)"
    np.testing.assert_array_equal(policies[0, 0], [1, 0, 0, 0])


def test_landmarks_are_few_and_the_same_each_time():
    rng = np.random.default_rng(0)
    many = Demonstrations([rng.normal(size=(50, 2)).cumsum(axis=0) for _ in range(30)])
    first, second = (build(Goals(), DisplacementDynamics.compass(8), many)[0] for _ in range(2))
    assert first == second
    assert len(first) == 300


# -- turns ----------------------------------------------------------------------------------------


def turning(widths, n_directions=8, angle=0.3):
    demos, dynamics = with_features(
        PLANE, [Heading(2.0)], DisplacementDynamics.compass(n_directions)
    )
    (part,) = Turns(widths).build(World(dynamics, demos))
    state = dynamics.join([[0.0, 0.0]], moves=[[np.cos(angle), np.sin(angle)]])
    return part, part.block.policies(state)[0], dynamics


def test_a_turn_has_the_masses_of_a_wrapped_normal_around_the_unrounded_heading():
    part, policies, _ = turning((0.8,))
    rng = np.random.default_rng(1)
    for k in (0, 3, 9):
        angles = 0.3 + k * np.pi / 8 + 0.8 * np.pi / 4 * rng.normal(size=400_000)
        drawn = np.bincount(np.round(angles / (np.pi / 4)).astype(int) % 8, minlength=8) / 400_000
        np.testing.assert_allclose(policies[k], drawn, atol=0.004)
    assert part.names[0] == "goes straight on ± 36°"
    assert part.names[1] == "turns left by 22.5° ± 36°"
    assert part.names[-1] == "turns right by 22.5° ± 36°"


def test_a_heading_rounded_to_a_direction_would_be_caught():
    exact, rounded = turning((0.3,), angle=0.3)[1], turning((0.3,), angle=0.0)[1]
    assert np.abs(exact - rounded).max() > 0.2


def test_any_direction_is_as_likely_where_there_is_no_heading():
    part, _, dynamics = turning((0.1, 2.0))
    np.testing.assert_allclose(part.block.policies(dynamics.join([[0.0, 0.0]])), 1 / 8)


@pytest.mark.parametrize("widths", [(0.1,), (2.0,), (9.0,)])
def test_masses_of_turns_sum_to_one(widths):
    np.testing.assert_allclose(turning(widths, angle=-3.0)[1].sum(axis=1), 1.0)


def test_turns_need_a_heading():
    assert Turns().build(World(DisplacementDynamics.compass(8), PLANE)) == []


def keeping(widths=(0.1, 0.8), unit=None):
    """Two speeds and a stay; the part that keeps the speed, and the dynamics."""
    steps = DisplacementDynamics.compass(8).steps
    steps = np.vstack([np.zeros((1, 2)), steps, 4 * steps])
    moving = DisplacementDynamics(steps, [0.1] + [0.3] * 8 + [1.0] * 8)
    demos, dynamics = with_features(PLANE, [Heading(2.0), Speed(3.0, unit)], moving)
    *_, part = Turns(widths).build(World(dynamics, demos))
    return part, dynamics


@pytest.mark.parametrize("unit", [None, 0.2])
@pytest.mark.parametrize("move", [[0.9, 0.3], [-3.0, 2.0], [0.02, 0.01], [0.3, -0.1]])
def test_a_kept_speed_is_that_of_the_actions_that_may_have_made_the_last_step(unit, move):
    part, dynamics = keeping(unit=unit)
    state = dynamics.join([[5.0, 5.0]], moves=[move])
    ahead = [[np.hypot(*move), 0.0]]  # turned, so that it is as far from the directions as assumed
    density = np.exp(dynamics.dynamics.log_likelihood([[0.0, 0.0]], ahead))[0]
    shares = part.block.shares
    wanted = np.array([density[1:9].mean(), density[9:].mean(), density[0]]) * shares
    policies = part.block.policies(state)
    for k, actions in enumerate((slice(1, 9), slice(9, 17), slice(0, 1))):
        of_speed = policies[0, :, actions].sum(axis=1)
        np.testing.assert_allclose(of_speed, wanted[k] / wanted.sum(), atol=1e-9)
    np.testing.assert_allclose(policies.sum(axis=2), 1.0)


def test_a_kept_speed_turns_as_turns_do():
    part, dynamics = keeping((0.8,))
    state = dynamics.join([[0.0, 0.0]], moves=[[4 * np.cos(0.3), 4 * np.sin(0.3)]])
    fast = part.block.policies(state)[0, :, 9:]
    np.testing.assert_allclose(fast, turning((0.8,))[1], atol=1e-4)
    assert part.names[1] == "turns left by 22.5° ± 36°, speed unchanged"
    assert part.kind == "kept speed"


def test_the_likelihood_of_a_kept_speed_is_that_of_its_policies():
    part, dynamics = keeping()
    rng = np.random.default_rng(0)
    states = dynamics.join(rng.normal(size=(30, 2)), moves=rng.normal(size=(30, 2)) * 3)
    likelihood = rng.random((30, 17))
    by_action = np.einsum("nba,na->nb", part.block.policies(states), likelihood)
    np.testing.assert_allclose(part.block.likelihood(states, likelihood), by_action)


def test_a_step_of_any_length_was_made_at_some_speed():
    part, dynamics = keeping()
    states = dynamics.join([[0.0, 0.0]] * 3, moves=[[0.0, 0.0], [1e9, 0.0], [1e-9, 0.0]])
    policies = part.block.policies(states)
    np.testing.assert_allclose(policies.sum(axis=2), 1.0)
    assert (policies[1, :, 9:].sum(axis=1) > 0.99).all()


def test_a_speed_is_kept_only_where_it_is_known_and_may_change():
    steps = DisplacementDynamics.compass(4).steps
    one, two = DisplacementDynamics(steps, 0.2), DisplacementDynamics([*steps, *2 * steps], 0.2)

    class Shifted(DisplacementDynamics):
        def action_rings(self):
            slow, fast = super().action_rings()
            return [slow, fast._replace(actions=np.roll(fast.actions, 1))]

    def kinds(moving, *features):
        demos, dynamics = with_features(PLANE, features, moving)
        return {part.kind for part in Turns().build(World(dynamics, demos))}

    assert kinds(two, Heading(1.0)) == {"turns"}
    assert kinds(one, Heading(1.0), Speed(1.0)) == {"turns"}
    assert kinds(Shifted(two.steps, 0.2), Heading(1.0), Speed(1.0)) == {"turns"}
    assert kinds(two, Heading(1.0), Speed(1.0)) == {"turns", "kept speed"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("still", 17), ("column", -1), ("actions", np.zeros((2, 3), dtype=int)),
        ("noise", np.zeros(3)), ("shares", np.ones(2)), ("feature", Heading(1.0)),
        ("turning", None),
    ],
)  # fmt: skip
def test_a_stored_kept_speed_that_does_not_fit_together_is_refused(field, value):
    with pytest.raises(ValueError, match=field):
        replace(keeping()[0].block, **{field: value})


# -- together -------------------------------------------------------------------------------------


def test_the_default_repertoire_is_what_the_dynamics_can_offer():
    def kinds(dynamics, demos):
        return make_policies("auto", dynamics, demos).kinds

    assert kinds(LINE, ON_LINE) == ["actions", "blurs of 3", "any action", "goals"]
    assert kinds(corridor(), IN_CORRIDOR) == ["actions", "any action", "goals"]
    demos, dynamics = with_features(PLANE, [Heading(1.0)], DisplacementDynamics.compass(4))
    assert kinds(dynamics, demos) == [
        "actions", "blurs of 3", "any action", "turns", "goals", "overall",
    ]  # fmt: skip


def test_behaviours_that_agree_wherever_somebody_was_seen_are_one():
    (part,) = Goals().build(World(corridor(), IN_CORRIDOR))
    merged = merge_equal(part, np.array([2, 3]), 3)
    assert merged.names == [
        "heads for state 0 or heads for state 1",
        "heads for state 2",
        "heads for state 3",
        "heads for state 4 or heads for state 5",
    ]
    np.testing.assert_array_equal(merged.block.policies(np.array([2, 3]))[:, 3], [[0, 0, 1]] * 2)
    np.testing.assert_allclose(merged.block.policies(np.array([4]))[0, 3], [0, 0.5, 0.5])
    drawn = [merged.block.picture(number).goals.tolist() for number in range(4)]
    assert drawn == [[0, 1], [2], [3], [4, 5]]


def test_blurs_that_agree_are_drawn_as_one_of_them_and_what_has_no_picture_has_none():
    twice = Everywhere(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    merged = merge_equal(Part("blurs", ["a", "b", "c"], twice), np.array([2]), 3)
    drawn = [merged.block.picture(number).actions.tolist() for number in range(2)]
    assert drawn == [[0, 1], [1, 2]]
    assert Merged(Own(lambda states: None, "own", 3), np.array([0])).picture(0) is None


def test_policies_of_many_states_are_mixed_and_drawn_as_their_table_says():
    policies = make_policies("auto", corridor(), IN_CORRIDOR)
    states, rng = np.array([0, 2, 5, 2]), np.random.default_rng(0)
    table = policies(states)
    np.testing.assert_allclose(table.sum(axis=2), 1.0)
    weights = rng.dirichlet(np.ones(policies.n_behaviours), size=(3, 4))
    expected = np.einsum("dnb,nba->dna", weights, table)
    np.testing.assert_allclose(policies.mixed(states, weights), expected)
    loglik = np.log(rng.dirichlet(np.ones(3), size=4))
    expected = np.log(np.einsum("nba,na->nb", table, np.exp(loglik)))
    np.testing.assert_allclose(policies.log_likelihood(states, loglik), expected)


def test_actions_are_drawn_given_behaviour_and_transition():
    policies = make_policies([Blurs()], corridor(action_order="line"), IN_CORRIDOR)
    states, behaviours = np.array([2]), np.zeros((30_000, 1), dtype=int)
    loglik = np.log([[0.7, 0.2, 0.1]])
    drawn = policies.actions_given(states, behaviours, loglik, np.random.default_rng(3))
    weights = policies(states)[0, 0] * [0.7, 0.2, 0.1]
    shares = np.bincount(drawn[:, 0], minlength=3) / 30_000
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.012)
    without = policies.actions_given(states, behaviours, None, np.random.default_rng(3))
    shares = np.bincount(without[:, 0], minlength=3) / 30_000
    np.testing.assert_allclose(shares, policies(states)[0, 0], atol=0.012)


@pytest.mark.parametrize("known", [True, False])
def test_each_state_has_the_actions_of_the_behaviour_drawn_there(known):
    policies = make_policies([Blurs(), Stay()], corridor(action_order="line"), IN_CORRIDOR)
    states, rng = np.array([0, 2, 5, 2, 3]), np.random.default_rng(0)
    behaviours = rng.integers(policies.n_behaviours, size=(40, 5))
    loglik = np.log(rng.dirichlet(np.ones(3), size=5)) if known else None
    drawn = policies.actions_given(states, behaviours, loglik, np.random.default_rng(3))
    uniforms, table = np.random.default_rng(3).random((40, 5)), policies(states)
    for d, t in np.ndindex(40, 5):
        weights = table[t, behaviours[d, t]] * (np.exp(loglik[t]) if known else 1.0)
        assert drawn[d, t] == np.searchsorted(np.cumsum(weights / weights.sum()), uniforms[d, t])


def test_a_behaviour_of_ones_own_is_checked_when_it_is_asked():
    wrong = Behaviour("wrong", lambda states: np.full((len(states), 3), 0.5))
    with pytest.raises(ValueError, match="policy of 'wrong'"):
        make_policies([Actions(), wrong], corridor(), IN_CORRIDOR)
    with pytest.raises(TypeError, match="callable"):
        Behaviour("x", policy=3)
    with pytest.raises(TypeError, match=r"repertoire\[1\]"):
        make_policies([Actions(), "goals"], corridor(), IN_CORRIDOR)
    with pytest.raises(ValueError, match="has no behaviours"):
        make_policies([Turns()], corridor(), IN_CORRIDOR)


def test_repertoires_survive_a_file():
    own = Behaviour("east", lambda states: np.tile([0.0, 0.0, 1.0], (len(states), 1)))
    policies = make_policies([Actions(), Blurs(), Goals(), own], corridor(), IN_CORRIDOR)
    arrays = {}
    stored = encode_policies(policies, np.arange(5), arrays)
    again = decode_policies(stored, np.arange(5), arrays)
    assert again.names == policies.names
    assert again.kinds == policies.kinds
    np.testing.assert_array_equal(again(np.arange(5)), policies(np.arange(5)))
    with pytest.raises(TypeError, match="code of your own"):
        again(np.array([5]))


def test_goals_are_thinned_where_likelihoods_would_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr("onlooker.repertoire.making.MAX_LIKELIHOODS", 60 * 100)
    demos = Demonstrations([np.arange(100) % 60 for _ in range(1)])
    with pytest.warns(RepertoireWarning, match="of 60 goals are kept"):
        policies = make_policies("auto", corridor(60), demos)
    assert policies.n_behaviours <= 60
