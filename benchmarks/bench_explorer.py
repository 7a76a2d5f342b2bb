"""How fast the explorer is, measured in a browser: ``python -m benchmarks explorer``.

A made-up run of 5,000 nodes and 2,000 draws (4 chains) is stored and opened by ``onlooker explore``
in a process of its own; a headless chromium then loads the page, clicks, and slides. Wanted: the
page up in 3 s, a click answered in 200 ms, 20 frames a second while sliding. On a busy machine only
the processor times (Linux) mean anything.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from chromium import open_browser

from benchmarks._measure import print_table
from onlooker import Problem
from onlooker.demonstrations import Demonstrations
from onlooker.dynamics import DisplacementDynamics
from onlooker.files import write_arrays
from onlooker.inference.draws import Draws
from onlooker.inference.runner import Schedule
from onlooker.inference.target import Target
from onlooker.partitions import DistanceDependent
from onlooker.repertoire import Actions
from onlooker.runs.header import describe_run

_PARTS = 10  # that a chain's draws are stored in

_UP = """() => typeof onlooker !== "undefined"
    && onlooker.mainMap && onlooker.mainMap.drawn > 0"""

_CLICKS = """async (n) => {
    const canvas = document.getElementById('map');
    const detail = document.getElementById('detail');
    const box = canvas.getBoundingClientRect();
    const took = [];
    for (let k = 0; k < n; k++) {
        const x = box.left + box.width * (0.15 + 0.7 * ((k * 0.618) % 1));
        const y = box.top + box.height * (0.15 + 0.7 * ((k * 0.381) % 1));
        const began = performance.now();
        const answered = new Promise((done) => {
            const watcher = new MutationObserver(() => { watcher.disconnect(); done(); });
            watcher.observe(detail, { childList: true });
        });
        for (const type of ['pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(
            type, { clientX: x, clientY: y, button: 0, pointerId: 1, bubbles: true }));
        await answered;
        took.push(performance.now() - began);
        await new Promise((done) => setTimeout(done, 30));
    }
    return took;
}"""

_SLIDE = """async (seconds) => {
    const slider = document.getElementById('draw');
    const n = Number(slider.max) + 1;
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const drawn = onlooker.mainMap.drawn;
    const gaps = [];
    let last = performance.now();
    const began = last;
    for (let k = 0; performance.now() - began < 1000 * seconds; k++) {
        slider.value = String(k % n);
        slider.dispatchEvent(new Event('input'));
        await frame();
        await frame();  // the map draws in the frame after
        gaps.push(performance.now() - last);
        last = performance.now();
    }
    const elapsed = (performance.now() - began) / 1000;
    gaps.sort((a, b) => a - b);
    const frames = onlooker.mainMap.drawn - drawn;
    return { frames, rate: frames / elapsed, slow: 1000 / gaps[Math.floor(0.95 * gaps.length)] };
}"""


def store_run(
    path: Path, n_nodes: int, n_draws: int, chains: int = 4, n_clusters: int = 12
) -> None:
    """Store draws of a posterior that never was: borders of a map that move from draw to draw."""
    rng = np.random.default_rng(0)
    dynamics = DisplacementDynamics.compass(24, 0.01, 0.003)
    length = 100
    walks = np.cumsum(rng.normal(0, 0.01, (n_nodes // length, length, 2)), axis=1)
    walks += rng.random((len(walks), 1, 2))
    problem = Problem.from_demonstrations(
        Demonstrations(list(walks)), dynamics, repertoire=[Actions()]
    )
    centres = rng.random((12, 2))
    target = Target(problem, DistanceDependent())
    schedule = Schedule(draws=n_draws, tune=100, chains=chains)
    header, arrays = describe_run(target, schedule)
    path.mkdir(parents=True)
    write_arrays(path / "problem.npz", arrays)
    for chain in range(chains):
        folder = path / f"chain-{chain:03d}"
        folder.mkdir()
        for part, first in enumerate(range(0, n_draws, n_draws // _PARTS)):
            draws = _some_draws(problem, centres, n_draws // _PARTS, rng)
            stored = {f"draws.{name}": values for name, values in draws.arrays.items()}
            told = {"state": {}, "first": first, "sweeps": 100 + first + len(draws)}
            stored["rest"] = np.array(json.dumps(told))
            write_arrays(folder / f"part-{part:012d}.npz", stored)
    (path / "run.json").write_text(json.dumps(header))


def _some_draws(problem: Problem, centres: Any, n: int, rng: np.random.Generator) -> Draws:
    labels = np.empty((n, problem.n_nodes), dtype=np.int16)
    for row in labels:
        moved = centres + rng.normal(0, 0.04, centres.shape)
        nearest = ((problem.states[:, None] - moved) ** 2).sum(axis=2).argmin(axis=1)
        seen, first = np.unique(nearest, return_index=True)
        number = np.empty(len(centres), dtype=np.int64)
        number[seen[np.argsort(first)]] = np.arange(len(seen))
        row[:] = number[nearest]
    heading = 2 * labels[:, problem.node_of] + rng.integers(-1, 2, (n, problem.n_transitions))
    return Draws(
        {
            "labels": labels,
            "actions": (heading % 24).astype(np.int8),
            "log_joint": rng.normal(size=n),
            "hyper.alpha": np.ones(n),
            "hyper.nu": rng.exponential(0.1, n),
            "links": labels,
        }
    )


def _used(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy(session: Any) -> float:
    """Processor seconds that the page's own thread has used."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def measure(run: Path, n_clicks: int, seconds: float) -> dict[str, Any]:
    """Open `run` as a user would, and measure what the user waits for."""
    began = time.monotonic()
    command = [sys.executable, "-m", "onlooker.cli", "explore", "--no-browser", str(run)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        answering = time.monotonic() - began
        with open_browser() as browser:
            found: dict[str, Any] = {"answering": answering}
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            started = time.monotonic()
            page.goto(url)
            page.wait_for_function(_UP, polling=20, timeout=120_000)
            found["up_cold"] = time.monotonic() - started
            page.wait_for_function("() => onlooker.mainMap.run.policy", timeout=120_000)
            found["clicks_early"] = page.evaluate(_CLICKS, n_clicks)
            page.wait_for_function(
                "() => onlooker.mainMap.run.complete", polling=200, timeout=600_000
            )
            found["complete"] = time.monotonic() - began
            before = _used(server.pid)
            found["clicks"] = page.evaluate(_CLICKS, n_clicks)
            found["click_cost"] = (_used(server.pid) - before) / n_clicks
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            before = _busy(session)
            found["slide"] = page.evaluate(_SLIDE, seconds)
            found["frame_cost"] = (_busy(session) - before) / max(1, found["slide"]["frames"])
            again = browser.new_page(viewport={"width": 1400, "height": 1000})
            started = time.monotonic()
            again.goto(url)
            again.wait_for_function(_UP, polling=20, timeout=120_000)
            found["up_warm"] = time.monotonic() - started
        return found
    finally:
        server.terminate()
        server.wait()


def main(quick: bool = False) -> None:
    """Measure, and print a table."""
    n_nodes, n_draws = (1_000, 100) if quick else (5_000, 500)
    folder = Path(tempfile.mkdtemp())
    try:
        store_run(folder / "run", n_nodes, n_draws)
        found = measure(folder / "run", n_clicks=20, seconds=4.0)
    finally:
        shutil.rmtree(folder)
    clicks, early = np.array(found["clicks"]), np.array(found["clicks_early"])
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    rows = [
        ("command answers", f"{found['answering']:.2f} s", ""),
        ("page up, command just started", f"{found['up_cold']:.2f} s", "3 s"),
        ("page up, run already read", f"{found['up_warm']:.2f} s", "3 s"),
        ("click answered, median", f"{np.median(clicks):.0f} ms", "200 ms"),
        ("click answered, slowest of 20", f"{clicks.max():.0f} ms", "200 ms"),
        ("the same while the consensus is sought, median", f"{np.median(early):.0f} ms", "200 ms"),
        ("frames a second while sliding", f"{found['slide']['rate']:.0f}", "20"),
        ("the slowest 5 % of frames, a second", f"{found['slide']['slow']:.0f}", "20"),
        ("processor time of a click, server", f"{1000 * found['click_cost']:.0f} ms", ""),
        ("processor time of a frame, page", f"{1000 * found['frame_cost']:.0f} ms", "50 ms"),
        ("all findings there after", f"{found['complete']:.0f} s", ""),
        ("load of the machine, a core", f"{load:.1f}", ""),
    ]
    title = f"Explorer: {n_nodes:,} nodes, {4 * n_draws:,} draws"
    print_table(title, ("", "measured", "wanted"), rows)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
