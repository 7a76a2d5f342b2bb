"""Experiments on a cluster of two processes, one of which is killed on the way."""

import os
import signal
from pathlib import Path

import pytest
from toy_experiment import TOY, ToyConfig

from onlooker.experiments import runner
from onlooker.experiments.results import reproduce

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask tells of lost workers and busy ports
distributed = pytest.importorskip("distributed")

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.slow
def test_a_worker_killed_in_mid_run_changes_no_digit(tmp_path, monkeypatch):
    here = reproduce(TOY, ToyConfig(runs=12, seconds=0.1), tmp_path / "here", progress=False)
    stored = []
    right = runner.Store.put

    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env={
                "PYTHONPATH": os.pathsep.join(
                    [str(Path(__file__).parents[1] / "support"), *_paths()]
                )
            },
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        victim = min(before)

        def put(self, finished):
            right(self, finished)
            stored.append(finished.run)
            if len(stored) == 3:
                os.kill(victim, signal.SIGKILL)

        monkeypatch.setattr(runner.Store, "put", put)
        there = reproduce(
            TOY,
            ToyConfig(runs=12, seconds=0.1),
            tmp_path / "there",
            scheduler=client.scheduler.address,
            progress=False,
        )
        client.wait_for_workers(2, timeout=60)
        assert victim not in client.run(os.getpid).values()
    assert sorted(stored) == list(range(12))
    assert not there.failures
    for name in ("results.csv", "comparison.md"):
        assert (there.folder / name).read_bytes() == (here.folder / name).read_bytes()


def _paths():
    """Where this process finds the package, for the workers."""
    return [path for path in [os.environ.get("PYTHONPATH")] if path]
