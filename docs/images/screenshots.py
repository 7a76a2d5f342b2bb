"""Draw ``report.png`` and ``explorer.png``: what a report and the explorer show of Atlantic storms.

python docs/images/screenshots.py

From the tracks that the package ships, every fifteenth storm; needs chromium and playwright
(``pip install -e ".[dev]"``), and takes some minutes.
"""

import contextlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from onlooker import Problem, sample
from onlooker.choosing.lengths import typical_step
from onlooker.datasets import load_storms
from onlooker.dynamics import GeographicDynamics
from onlooker.explorer.report import write_report
from onlooker.hyper import CONCENTRATION
from onlooker.partitions import Regions
from onlooker.repertoire import Actions

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "support"))
from chromium import open_browser  # noqa: E402

SIZE = {"width": 1280, "height": 860}
READY = "() => document.documentElement.dataset.up === 'yes'"
COMMAND = str(Path(sys.executable).with_name("onlooker"))


def shoot(page, path: Path) -> None:
    """What the window shows, in few colours: a small file."""
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def recognise(store: str) -> None:
    """A run of every fifteenth storm, with bare actions: half a minute of sampling."""
    demos = load_storms().demos
    demos = demos[np.isin(demos.names, np.unique(demos.names)[::15])]
    dynamics = GeographicDynamics.from_demonstrations(demos)
    problem = Problem.from_demonstrations(demos, dynamics, repertoire=[Actions()])
    reach = typical_step(demos, dynamics)
    sample(
        problem, Regions.inferred(reach, metric="haversine"), CONCENTRATION,
        draws=150, tune=300, chains=2, thin=2, random_state=0, store=store,
    )  # fmt: skip


def main() -> None:
    """Fit, report, and look at both pages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        recognise("storms")
        write_report("storms", "storms.html", progress=True)
        with open_browser() as browser:
            page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
            page.goto(Path("storms.html").absolute().as_uri())
            page.wait_for_function(READY)
            shoot(page, HERE / "report.png")
            command = [COMMAND, "explore", "storms", "--no-browser"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                page = browser.new_context(viewport=SIZE, color_scheme="dark").new_page()
                page.goto(server.stdout.readline().strip() + "#at=-68,30&track=5&policy=roses")
                page.wait_for_function(
                    "() => document.querySelectorAll('#controllers article').length > 0"
                )
                page.wait_for_function(
                    "() => document.querySelector('#surprise') !== null", timeout=120_000
                )
                page.evaluate("document.querySelector('.stage').scrollIntoView()")
                shoot(page, HERE / "explorer.png")
                server.terminate()


if __name__ == "__main__":
    main()
