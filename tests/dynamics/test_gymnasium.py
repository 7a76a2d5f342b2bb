"""Gymnasium environments: as tables, as simulators, and as places to record demonstrations."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from bare import bare_problem
from scipy import stats

from onlooker import Demonstrations
from onlooker.dynamics import Dynamics, GymnasiumDynamics, PerturbedDynamics, TabularDynamics
from onlooker.dynamics.actions import action_names
from onlooker.planning import value_iteration
from onlooker.worlds.record import rollout

gym = pytest.importorskip("gymnasium")

TABLES = [
    ("FrozenLake-v1", {"success_rate": 0.8, "map_name": "8x8"}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("CliffWalking-v1", {"is_slippery": True}),
    ("CliffWalking-v1", {}),
    ("Taxi-v4", {"is_rainy": True}),
    ("Taxi-v4", {}),
]


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), TABLES)
def test_a_table_says_what_the_environment_says(name, options):
    env = gym.make(name, **options)
    dynamics = GymnasiumDynamics(env, absorbing=False)
    assert isinstance(dynamics, TabularDynamics)
    assert isinstance(dynamics, GymnasiumDynamics)
    assert isinstance(dynamics, Dynamics)
    rng = np.random.default_rng(0)
    for s in rng.integers(dynamics.n_states, size=40):
        for a in range(dynamics.n_actions):
            row, reward = np.zeros(dynamics.n_states), 0.0
            for chance, target, gain, _ in env.unwrapped.P[s][a]:
                row[target] += chance
                reward += chance * gain
            np.testing.assert_allclose(dynamics.matrices[a][[s]].toarray()[0], row, atol=1e-12)
            assert dynamics.rewards[s, a] == pytest.approx(reward)


@pytest.mark.parametrize(
    ("name", "options", "terminal"),
    [
        ("FrozenLake-v1", {"desc": ["SFH", "FFF", "HFG"]}, [2, 6, 8]),
        ("CliffWalking-v1", {}, [47]),
        ("Taxi-v4", {}, [0, 85, 410, 475]),  # the passenger is where he wanted to be
    ],
)
def test_states_that_end_an_episode_absorb(name, options, terminal):
    dynamics = GymnasiumDynamics(gym.make(name, **options))
    assert np.flatnonzero(dynamics.terminal).tolist() == terminal
    for matrix in dynamics.matrices:
        np.testing.assert_array_equal(matrix[terminal, terminal], 1)
    assert (dynamics.rewards[terminal] == 0).all()


def test_large_tables_are_sparse():
    assert not GymnasiumDynamics(gym.make("FrozenLake-v1")).is_sparse
    assert GymnasiumDynamics(gym.make("Taxi-v4")).is_sparse


def test_where_starts_are_unknown_and_ends_are_passed_through_nothing_is_made_absorbing():
    def table(passes):
        back = [(1.0, 0, 0.0, False)]
        return {0: {0: [(0.5, 1, 0.0, True), (0.5, 0, 0.0, False)]}, 1: {0: back}, 2: {0: passes}}

    def make(passes):
        world = SimpleNamespace(P=table(passes))
        return GymnasiumDynamics(SimpleNamespace(unwrapped=world))

    assert make([(1.0, 0, 0.0, False)]).terminal.tolist() == [False, True, False]
    assert make([(1.0, 1, 0.0, False)]).terminal.tolist() == [False, False, False]
    assert make([(1.0, 1, 0.0, False)]).start is None


def test_an_expert_planned_on_the_table_walks_on_it():
    env = gym.make("FrozenLake-v1", map_name="8x8", success_rate=0.8)
    dynamics = GymnasiumDynamics(env)
    expert = value_iteration(dynamics, dynamics.rewards, 0.99).policy
    demos, actions = rollout(env, expert, 60, 100, random_state=0)
    assert np.mean([trajectory[-1] == 63 for trajectory in demos]) > 0.7  # a random one: 0.002
    loglik = dynamics.log_likelihood(*demos.transitions())
    taken = np.concatenate(actions)
    assert np.isfinite(loglik[np.arange(len(taken)), taken]).all()
    np.testing.assert_array_equal(demos.lengths - 1, [len(a) for a in actions])


def test_tables_can_be_perturbed_pickled_and_copied():
    dynamics = GymnasiumDynamics(gym.make("FrozenLake-v1"))
    for twin in (pickle.loads(pickle.dumps(dynamics)), copy.deepcopy(dynamics)):
        np.testing.assert_array_equal(twin.toarray(), dynamics.toarray())
    assert PerturbedDynamics(dynamics, 0.3, 0).n_states == 16


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({0: {0: [(1.0, 3, 0.0, False)]}}, r"P\[0\]\[0\] leads to 3, but has states 0 to 0"),
        ({0: {0: [(1.0, 1, 0.0, False)]}}, r"P\[0\]\[0\] leads to 1, but has states 0 to 0"),
        ({1: {0: [(1.0, 1, 0.0, False)]}}, "must count states and actions from 0"),
        ({0: {0: [(0.5, 0, 0.0, False)]}}, "sums to 0.5"),
    ],
)
def test_tables_that_do_not_hold_together_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        GymnasiumDynamics(SimpleNamespace(unwrapped=SimpleNamespace(P=table)))


# -- simulators ----------------------------------------------------------------------------------


def push(observation):
    """MountainCar's expert: push along the velocity."""
    return 2 if observation[1] >= 0 else 0


def mountain_car(n=3, length=60):
    env = gym.make("MountainCar-v0")
    return env, *rollout(env, push, n, length, random_state=1)


SIMULATED = [
    ("MountainCar-v0", push, {}, {}),
    ("CartPole-v1", lambda o: int(o[2] + o[3] > 0), {}, {}),
    ("Acrobot-v1", lambda o: 2 if o[4] >= 0 else 0, {"record": "state"}, {}),
    (
        "MountainCarContinuous-v0",
        lambda o: [1.0 if o[1] >= 0 else -1.0],
        {},
        {"actions": [-1, 0, 1]},
    ),
    ("Pendulum-v1", lambda o: [0.5], {"record": "state"}, {"actions": [-0.5, 0.5]}),
]


@pytest.mark.parametrize(("name", "policy", "how", "options"), SIMULATED)
def test_the_action_taken_is_the_likeliest(name, policy, how, options):
    env = gym.make(name)
    demos, actions = rollout(env, policy, 2, 40, random_state=0, **how)
    dynamics = GymnasiumDynamics.from_demonstrations(env, demos, **options)
    loglik = dynamics.log_likelihood(*demos.transitions())
    taken = np.concatenate(actions)
    if taken.ndim == 2:
        taken = np.searchsorted(options["actions"], taken[:, 0])
    np.testing.assert_array_equal(loglik.argmax(axis=1), taken)
    assert dynamics.n_actions == loglik.shape[1]
    assert dynamics.misfit(loglik).max() < 0.1


def test_the_likelihood_is_a_normal_density_around_one_step():
    env, demos, _ = mountain_car(1, 10)
    sigma = np.array([0.02, 0.003])
    dynamics = GymnasiumDynamics(env, sigma=sigma)
    states, next_states = demos.transitions()
    loglik = dynamics.log_likelihood(states, next_states)
    for i, state in enumerate(states):
        for action in range(3):
            fresh = gym.make("MountainCar-v0").unwrapped
            fresh.reset()
            fresh.state = state.copy()
            fresh.step(action)
            expected = stats.norm.logpdf(next_states[i], np.array(fresh.state), sigma).sum()
            assert loglik[i, action] == pytest.approx(expected)


def test_observations_are_turned_to_states_and_back():
    def state_of(o):
        return [np.arctan2(o[1], o[0]), np.arctan2(o[3], o[2]), o[4], o[5]]

    def observe(s):
        return [np.cos(s[0]), np.sin(s[0]), np.cos(s[1]), np.sin(s[1]), s[2], s[3]]

    env = gym.make("Acrobot-v1")
    demos, actions = rollout(env, lambda o: 2 if o[4] >= 0 else 0, 1, 40, random_state=0)
    with pytest.raises(ValueError, match=r"\(n, 4\) numbers.*\(39, 6\).*give state_of"):
        GymnasiumDynamics.from_demonstrations(env, demos)
    shown = GymnasiumDynamics.from_demonstrations(env, demos, state_of=state_of)
    loglik = shown.log_likelihood(*demos.transitions())
    np.testing.assert_array_equal(loglik.argmax(axis=1), actions[0])
    told = GymnasiumDynamics(env, sigma=shown.sigma, state_of=state_of, observe=observe)
    np.testing.assert_allclose(told.log_likelihood(*demos.transitions()), loglik, rtol=1e-3)


def test_angles_wrap_by_default_and_only_where_told():
    env = gym.make("Acrobot-v1")
    state = np.array([[np.pi - 0.01, 0.0, 1.0, 0.0]])
    reached = GymnasiumDynamics(env, sigma=0.1).means(state)[:, 0]
    assert reached[0, 0] < 0  # over the top
    turned = reached + np.array([[2 * np.pi, 0, 0, 0]])
    near = GymnasiumDynamics(env, sigma=0.1)
    assert near.log_likelihood(state, turned).max() == pytest.approx(
        near.log_likelihood(state, reached).max()
    )
    straight = GymnasiumDynamics(env, sigma=0.1, periodic={})
    assert straight.log_likelihood(state, turned).max() < -1000
    drawn = near.sample(np.repeat(state, 200, axis=0), np.zeros(200, int), np.random.default_rng(0))
    assert (np.abs(drawn[:, 0]) <= np.pi).all()
    assert (drawn[:, 0] < 0).any()
    assert (drawn[:, 0] > 0).any()


def test_samples_scatter_by_sigma_around_the_step():
    env, demos, _ = mountain_car()
    dynamics = GymnasiumDynamics(env, sigma=[0.01, 0.001])
    states = np.repeat(demos.states[20:21], 2000, axis=0)
    drawn = dynamics.sample(states, np.full(2000, 2), np.random.default_rng(0))
    away = drawn - dynamics.means(states[:1])[0, 2]
    np.testing.assert_allclose(away.std(axis=0), [0.01, 0.001], rtol=0.1)
    np.testing.assert_allclose(away.mean(axis=0), 0, atol=0.001)
    again = dynamics.sample(states, np.full(2000, 2), np.random.default_rng(0))
    np.testing.assert_array_equal(again, drawn)


def test_the_proposed_noise_covers_what_is_left_unexplained():
    env, demos, _ = mountain_car(4, 120)
    rng = np.random.default_rng(0)
    exact = GymnasiumDynamics.from_demonstrations(env, demos)
    # by default a quarter of what the choice of one of three pushes of ±0.001 changes
    np.testing.assert_allclose(exact.sigma, np.std([-1, 0, 1]) * 0.001 / 4, rtol=0.02)
    noisy = Demonstrations([t + rng.normal(0, [0.01, 1e-9], t.shape) for t in demos])
    proposed = GymnasiumDynamics.from_demonstrations(env, noisy).sigma
    assert 0.01 < proposed[0] < 0.02  # both ends of a step are noisy: 0.014


def test_a_dimension_that_no_action_changes_gets_a_noise_too():
    env = gym.make("CartPole-v1")
    demos, _ = rollout(env, lambda o: int(o[2] + o[3] > 0), 1, 60, random_state=0)
    sigma = GymnasiumDynamics.from_demonstrations(env, demos).sigma
    assert (sigma > 0).all()
    assert np.isfinite(sigma).all()


def test_the_environment_is_left_where_it_was():
    env, demos, _ = mountain_car(1, 20)
    dynamics = GymnasiumDynamics(env, sigma=0.01)
    env.reset(seed=3)
    before = np.array(env.unwrapped.state)
    dynamics.log_likelihood(*demos.transitions())
    dynamics.sample(demos.states, np.zeros(20, int), np.random.default_rng(0))
    np.testing.assert_array_equal(env.unwrapped.state, before)
    cart = gym.make("CartPole-v1")
    cart.reset(seed=0)
    GymnasiumDynamics(cart, sigma=0.1).means(np.array([[9.0, 0, 0, 0]] * 3))  # far off the track
    assert cart.unwrapped.steps_beyond_terminated is None


def test_a_state_elsewhere_is_reached_by_functions():
    class Hidden:
        """Moves along a line; its state is where no one looks."""

        action_space = gym.spaces.Discrete(2, start=1)

        def __init__(self):
            self.unwrapped, self._at = self, 0.0

        def step(self, action):
            assert action in (1, 2)
            self._at += 1.0 if action == 2 else -1.0
            return np.array([self._at]), 0.0, False, False, {}

        def reset(self, seed=None):
            return np.array([self._at]), {}

    with pytest.raises(TypeError, match=r"Hidden has neither .*give get_state and set_state"):
        GymnasiumDynamics(Hidden(), sigma=1.0)
    dynamics = GymnasiumDynamics(
        Hidden(),
        sigma=1.0,
        get_state=lambda env: [env._at],
        set_state=lambda env, state: setattr(env, "_at", float(state[0])),
    )
    assert dynamics.means([[5.0]]).tolist() == [[[4.0], [6.0]]]


def test_an_environment_that_moves_its_state_in_place_starts_every_action_anew():
    class Slider:
        action_space = gym.spaces.Discrete(3)

        def __init__(self):
            self.unwrapped, self.state = self, np.zeros(1)

        def step(self, action):
            self.state += action
            return self.state, 0.0, False, False, {}

    states = np.array([[5.0], [7.0]])
    means = GymnasiumDynamics(Slider(), sigma=1.0).means(states)
    assert means[:, :, 0].tolist() == [[5, 6, 7], [7, 8, 9]]
    assert states.tolist() == [[5], [7]]


def test_simulated_transitions_make_a_problem():
    env, demos, actions = mountain_car(2, 30)
    dynamics = GymnasiumDynamics.from_demonstrations(env, demos)
    problem = bare_problem(demos, dynamics)
    np.testing.assert_array_equal(problem.loglik.argmax(axis=1), np.concatenate(actions))
    twin = pickle.loads(pickle.dumps(dynamics))
    np.testing.assert_array_equal(twin.log_likelihood(*demos.transitions()), problem.loglik)
    assert repr(dynamics) == "GymnasiumDynamics(MountainCarEnv: 3 actions, 2 dimensions)"


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("MountainCar-v0", {}, ValueError, "give sigma.*from_demonstrations"),
        ("MountainCar-v0", {"sigma": 0}, ValueError, "sigma must be one number above 0"),
        ("MountainCar-v0", {"sigma": [1, 1, 1]}, ValueError, "one for each of 2 dimensions"),
        ("MountainCar-v0", {"sigma": 1, "periodic": {5: (0, 1)}}, ValueError, "dimension 5"),
        ("MountainCar-v0", {"sigma": 1, "periodic": {0: (1, 0)}}, ValueError, "low < high"),
        ("MountainCar-v0", {"sigma": 1, "actions": [7]}, ValueError, r"actions\[0\] = 7 is not in"),
        ("MountainCar-v0", {"sigma": 1, "actions": []}, ValueError, "actions is empty"),
        ("MountainCar-v0", {"sigma": 1, "get_state": id}, ValueError, "go together"),
        ("MountainCar-v0", {"sigma": 1, "observe": id}, ValueError, "observe needs state_of"),
        ("Pendulum-v1", {"sigma": 1}, ValueError, "not finitely many; give candidates, actions="),
        ("Pendulum-v1", {"sigma": 1, "actions": [9.0]}, ValueError, r"actions\[0\] = 9.0 is not"),
        ("Blackjack-v1", {"sigma": 1}, TypeError, r"neither a table of transitions \(P\) nor"),
        ("FrozenLake-v1", {"sigma": 1}, TypeError, "unexpected keyword argument 'sigma'"),
    ],
)
def test_bad_options_are_refused(name, options, error, message):
    with pytest.raises(error, match=message):
        GymnasiumDynamics(gym.make(name), **options)


def test_what_is_no_environment_is_refused():
    with pytest.raises(TypeError, match="env must be a Gymnasium environment, got list"):
        GymnasiumDynamics([1, 2])
    with pytest.raises(ValueError, match="states 0 to 15"):
        GymnasiumDynamics.from_demonstrations(gym.make("FrozenLake-v1"), Demonstrations([[0, 99]]))


# -- recording -----------------------------------------------------------------------------------


def test_episodes_end_where_the_environment_ends_them_and_never_run_into_each_other():
    env = gym.make("CliffWalking-v1", max_episode_steps=5)
    demos, _ = rollout(env, lambda o: 0, 3, 100, random_state=0)  # up, against the edge
    assert demos.lengths.tolist() == [6, 6, 6]  # cut off after five steps
    env = gym.make("FrozenLake-v1", is_slippery=False)
    demos, actions = rollout(env, lambda o: 2 if o == 0 else 1, 3, 100, random_state=0)
    assert [trajectory.tolist() for trajectory in demos] == [[0, 1, 5]] * 3  # into the hole
    assert [taken.tolist() for taken in actions] == [[2, 1]] * 3


def test_recording_stops_at_the_length_asked_for():
    _, demos, actions = mountain_car(2, 7)
    assert demos.lengths.tolist() == [7, 7]
    assert [len(a) for a in actions] == [6, 6]


def test_a_seed_makes_the_same_recording_and_another_seed_another():
    env = gym.make("FrozenLake-v1")
    policy = np.full((16, 4), 0.25)
    first, actions = rollout(env, policy, 5, 30, random_state=7)
    again, same = rollout(gym.make("FrozenLake-v1"), policy, 5, 30, random_state=7)
    assert again == first
    assert all((a == b).all() for a, b in zip(actions, same, strict=True))
    assert rollout(env, policy, 5, 30, random_state=8)[0] != first


@pytest.mark.parametrize("as_function", [False, True])
def test_probabilities_are_followed(as_function):
    env = gym.make("CliffWalking-v1", max_episode_steps=200)
    row = np.array([0.7, 0.0, 0.0, 0.3])
    policy = (lambda o: row) if as_function else np.tile(row, (48, 1))
    _, actions = rollout(env, policy, 10, 201, random_state=0)
    shares = np.bincount(np.concatenate(actions), minlength=4) / 2000
    np.testing.assert_allclose(shares, row, atol=0.05)
    assert (shares[1:3] == 0).all()


def test_what_is_recorded_is_what_was_asked_for():
    env = gym.make("Pendulum-v1")
    seen, actions = rollout(env, lambda o: [1.0], 1, 5, random_state=0)
    internal, _ = rollout(env, lambda o: [1.0], 1, 5, random_state=0, record="state")
    speed, _ = rollout(env, lambda o: [1.0], 1, 5, 0, record=lambda env, o: [env.state[1]])
    np.testing.assert_allclose(np.cos(internal.states[:, 0]), seen.states[:, 0], atol=1e-6)
    np.testing.assert_allclose(speed.states[:, 0], internal.states[:, 1])
    assert actions[0].tolist() == [[1.0]] * 4
    blackjack, _ = rollout(
        gym.make("Blackjack-v1"), lambda o: 0, 3, 5, 0, record=lambda env, o: o[0]
    )
    assert blackjack.is_discrete


class Counting(gym.Env):
    """Actions 3 and 4 lead on or nowhere; states are numbered from 10."""

    action_space = gym.spaces.Discrete(2, start=3)
    observation_space = gym.spaces.Discrete(5, start=10)

    def reset(self, *, seed=None, options=None):
        self.at = 10
        return self.at, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at += int(action == 3)
        return self.at, 0.0, False, False, {}


def test_spaces_that_do_not_begin_at_zero_keep_their_numbers():
    demos, actions = rollout(Counting(), lambda o: 3 if o < 12 else 4, 1, 5, random_state=0)
    assert demos[0].tolist() == [10, 11, 12, 12, 12]
    assert actions[0].tolist() == [0, 0, 1, 1]
    table = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    assert rollout(Counting(), table, 1, 5, random_state=0)[0] == demos
    with pytest.raises(ValueError, match="action -1; there are 2"):
        rollout(Counting(), lambda o: 2, 1, 5)


@pytest.mark.parametrize(
    ("name", "policy", "options", "error", "message"),
    [
        ("FrozenLake-v1", np.ones((16, 3)) / 3, {}, ValueError, r"policy must be \(16, 4\), one"),
        ("FrozenLake-v1", np.ones((16, 4)), {}, ValueError, r"policy\[0\] sums to 4"),
        ("FrozenLake-v1", lambda o: 9, {}, ValueError, "action 9; there are 4"),
        (
            "FrozenLake-v1",
            lambda o: np.ones(4),
            {},
            ValueError,
            r"policy\(observation\)\[0\] sums to 4",
        ),
        (
            "FrozenLake-v1",
            lambda o: "left",
            {},
            TypeError,
            "an action or the probabilities of all 4",
        ),
        (
            "MountainCar-v0",
            np.ones((2, 3)) / 3,
            {},
            TypeError,
            "give a function of the observation",
        ),
        ("Pendulum-v1", lambda o: [5.0], {}, ValueError, r"returned \[5.0\], which is not in"),
        ("Blackjack-v1", lambda o: 0, {}, TypeError, "choose what the state is by record="),
        ("Blackjack-v1", lambda o: 0, {"record": "state"}, TypeError, "no attribute state"),
        ("MountainCar-v0", push, {"record": "all"}, ValueError, "record must be"),
        ("MountainCar-v0", push, {"length": 1}, ValueError, "length must be at least 2"),
        ("MountainCar-v0", push, {"n_trajectories": 0}, ValueError, "n_trajectories must be"),
    ],
)
def test_bad_recordings_are_refused(name, policy, options, error, message):
    arguments = {"n_trajectories": 2, "length": 5, "random_state": 0} | options
    with pytest.raises(error, match=message):
        rollout(gym.make(name), policy, **arguments)


def test_actions_of_known_environments_have_names_that_are_stored():
    lake = GymnasiumDynamics(gym.make("FrozenLake-v1"))
    assert action_names(lake, 4) == ["left", "down", "right", "up"]
    description, arrays = lake.to_arrays("dynamics")
    stored = TabularDynamics.from_arrays(description, arrays, "dynamics")
    assert action_names(stored, 4) == action_names(lake, 4)
    car = GymnasiumDynamics(gym.make("MountainCar-v0"), sigma=0.1)
    assert action_names(car, 3) == ["push left", "do not push", "push right"]


def test_names_of_actions_are_where_they_lead():
    moves = {"left": -1, "right": 1, "up": -4, "down": 4}
    lake = GymnasiumDynamics(gym.make("FrozenLake-v1", is_slippery=False))
    middle = 9  # in the third of four rows, with free neighbours
    for action, name in enumerate(action_names(lake, 4)):
        assert lake.toarray()[middle, action].argmax() == middle + moves[name]
