"""Chains on a real cluster of two processes, one of which is killed on the way."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from small_runs import assert_same_draws, plane_problem, quick

from onlooker import Posterior
from onlooker.inference import cluster
from onlooker.inference.cluster import _next_block
from onlooker.partitions import DistanceDependent, Mixing
from onlooker.warnings import ChainFailedWarning

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask tells of lost workers and busy ports
distributed = pytest.importorskip("distributed")

PROBLEM = plane_problem()
OPTIONS = {"draws": 60, "tune": 20, "chains": 3}


@pytest.fixture(scope="module")
def client():
    # Workers import these tests by name.
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env={"PYTHONPATH": str(Path(__file__).parents[1] / "support")},
        ) as made,
        distributed.Client(made) as connected,
    ):
        yield connected


def test_blocks_take_about_a_second_and_change_by_no_more_than_four_times():
    assert _next_block(8, 1e-3) == 32
    assert _next_block(8, 0.5) == 16
    assert _next_block(8, 1e9) == 2
    assert _next_block(1, 1e9) == 1  # a sweep that takes minutes is lost alone with its worker


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_this_machine(client, tmp_path):
    there = quick(PROBLEM, DistanceDependent(), client=client, store=tmp_path, **OPTIONS)
    here = quick(PROBLEM, DistanceDependent(), **OPTIONS)
    assert_same_draws(there, here)
    assert_same_draws(Posterior.load(tmp_path), here)


@pytest.mark.slow
def test_a_run_that_began_here_goes_on_there_by_the_address_of_the_scheduler(client, tmp_path):
    quick(PROBLEM, Mixing(3), store=tmp_path, **(OPTIONS | {"draws": 10}))
    address = client.scheduler.address
    there = quick(PROBLEM, Mixing(3), client=address, store=tmp_path, resume=True, **OPTIONS)
    assert_same_draws(there, quick(PROBLEM, Mixing(3), **OPTIONS))


@pytest.mark.slow
def test_a_run_until_converged_ends_there_as_here(client, tmp_path):
    options = {"draws": "auto", "tune": 20, "chains": 4, "random_state": 1}
    there = quick(PROBLEM, DistanceDependent(), client=client, store=tmp_path / "run", **options)
    assert there.ended == "converged"
    assert there.n_draws > 250  # it went on once, at least
    assert_same_draws(there, quick(PROBLEM, DistanceDependent(), **options))
    options |= {"store": tmp_path / "cut", "max_minutes": 1e-9}
    cut = quick(PROBLEM, DistanceDependent(), client=client, **options)
    assert cut.ended == "time"
    np.testing.assert_array_equal(cut.labels, there.labels[:, : cut.n_draws])
    assert_same_draws(cut, Posterior.load(tmp_path / "cut"))


def test_a_worker_that_is_killed_in_mid_run_costs_nothing(client, monkeypatch):
    monkeypatch.setattr(cluster, "_next_block", lambda n_sweeps, seconds: 2)  # many blocks
    options = OPTIONS | {"draws": 150}
    before = set(client.run(os.getpid).values())
    victim = min(before)
    progress = []
    right = cluster.Runner.absorb

    def absorb(self, *block):
        right(self, *block)
        progress.append(self.sweeps)

    monkeypatch.setattr(cluster.Runner, "absorb", absorb)

    def kill():
        while len(progress) < 20:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)
        progress.append("killed")

    killer = threading.Thread(target=kill)
    killer.start()
    there = quick(PROBLEM, Mixing(3), client=client, **options)
    killer.join()
    assert len(progress) - progress.index("killed") > 20  # it was in mid-run
    assert_same_draws(there, quick(PROBLEM, Mixing(3), **options))
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


class _Fragile(Mixing):
    """Fails in the second chain, wherever it runs."""

    def bind(self, problem):
        bound = super().bind(problem)
        right = bound.start

        def start(rng, chain):
            if chain == 1:
                raise ArithmeticError("out of luck")
            return right(rng, chain)

        bound.start = start
        return bound


@pytest.mark.slow
def test_a_chain_that_dies_there_is_reported_and_the_others_are_kept(client):
    with pytest.warns(ChainFailedWarning, match=r"chain 1 failed .*out of luck"):
        part = quick(PROBLEM, _Fragile(3), client=client, **OPTIONS)
    assert part.chain_ids == [0, 2]
    np.testing.assert_array_equal(part.labels, quick(PROBLEM, Mixing(3), **OPTIONS).labels[[0, 2]])
