"""Draw ``report.png`` and ``explorer.png``: what a report and the explorer show of Atlantic storms.

python docs/images/screenshots.py [RUN]

From the tracks that the package ships, every tenth storm, by `onlooker fit`, or from a run of them
that is stored already; needs chromium and playwright (``pip install -e ".[dev]"``), and takes some minutes.
"""

import contextlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from onlooker.datasets import load_storms
from onlooker.explorer.report import write_report

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "support"))
from chromium import open_browser  # noqa: E402

GIVEN = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else None
SIZE = {"width": 1280, "height": 860}
READY = "() => document.documentElement.dataset.up === 'yes'"
COMMAND = str(Path(sys.executable).with_name("onlooker"))


def shoot(page, path: Path) -> None:
    """What the window shows, in few colours: a small file."""
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def open_page(browser, scheme: str):
    """An empty page; patient, since what it shows takes a while to compute."""
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)
    context.set_default_timeout(300_000)
    return context.new_page()


def recognise(store: Path) -> Path:
    """A run of every tenth storm by the default model, with few draws."""
    demos = load_storms().demos
    demos = demos[np.isin(demos.names, np.unique(demos.names)[::10])]
    columns = {"storm": np.repeat(demos.names, demos.lengths), "time": demos.times}
    columns |= dict(zip(("lon", "lat"), demos.states.T, strict=True))
    pd.DataFrame(columns).to_csv("storms.csv", index=False)
    fit = f"fit storms.csv --trajectory storm --time time --states lon,lat --geographic -o {store}"
    subprocess.run([COMMAND, *fit.split(), *["--draws", "150", "--tune", "150"]], check=True)
    return store


def main() -> None:
    """Fit, report, and look at both pages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run = GIVEN or recognise(Path("storms"))
        write_report(run, "storms.html", progress=True)
        with open_browser() as browser:
            page = open_page(browser, "light")
            page.goto(Path("storms.html").absolute().as_uri())
            page.wait_for_function(READY)
            shoot(page, HERE / "report.png")
            command = [COMMAND, "explore", str(run), "--no-browser"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                page = open_page(browser, "dark")
                page.goto(server.stdout.readline().strip() + "#at=-68,30&track=5")
                page.wait_for_function(
                    "() => document.querySelectorAll('#controllers article').length > 0"
                )
                page.wait_for_function("() => document.querySelector('#surprise') !== null")
                page.evaluate("document.querySelector('.stage').scrollIntoView()")
                shoot(page, HERE / "explorer.png")
                server.terminate()


if __name__ == "__main__":
    main()
