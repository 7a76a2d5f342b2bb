"""Draw ``report.png`` and ``explorer.png``: what a report and the explorer show of Atlantic storms.

python docs/images/screenshots.py

From the tracks that the package ships, every tenth storm; needs chromium and playwright
(``pip install -e ".[dev]"``), and takes some minutes.
"""

import contextlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from PIL import Image

import onlooker.datasets

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "support"))
from chromium import open_browser  # noqa: E402

STORMS = Path(onlooker.datasets.__file__).parent / "storms_6h.csv.gz"
FIT = """--states lon,lat --geographic --trajectory storm --time time --gaps split --hold-out 0
    --draws 600 --tune 600 --seed 0 -o storms"""
SIZE = {"width": 1280, "height": 860}
READY = "() => document.documentElement.dataset.up === 'yes'"


COMMAND = str(Path(sys.executable).with_name("onlooker"))


def shoot(page, path: Path) -> None:
    """What the window shows, in few colours: a small file."""
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Fit, report, and look at both pages."""
    frame = pd.read_csv(STORMS)
    frame = frame[frame["storm"].isin(frame["storm"].unique()[::10])]
    frame["storm"] = frame["name"] + " " + frame["time"].str[:4]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        frame.to_csv("storms.csv", index=False)
        subprocess.run([COMMAND, "fit", "storms.csv", *FIT.split()], check=True)
        subprocess.run([COMMAND, "report", "storms", "-o", "storms.html"], check=True)
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
