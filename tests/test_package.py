"""What is built and shipped; `make package` also installs it in an environment of its own."""

import email
import pkgutil
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import onlooker

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "onlooker"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source archive, made without the network."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def shipped():
    """Every file of the package that is not made by running it."""
    made = {".pyc", ".nbi", ".nbc"}
    files = (path for path in SOURCE.rglob("*") if path.is_file() and path.suffix not in made)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[0]).namelist()
    inside = {name.removeprefix("onlooker/") for name in names if ".dist-info/" not in name}
    assert inside == shipped()


@pytest.mark.parametrize(
    "name",
    ["py.typed", "datasets/storms_6h.csv.gz", "datasets/README.md", "explorer/web/page.html"],
)
def test_the_wheel_holds_more_than_code(built, name):
    assert f"onlooker/{name}" in zipfile.ZipFile(built[0]).namelist()


def test_the_source_archive_can_be_tested_and_documented(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert tests <= names
    assert {f"src/onlooker/{name}" for name in shipped()} <= names
    wanted = {"Makefile", "README.md", "CHANGELOG.md", "LICENSE", "requirements.lock"}
    assert wanted <= names
    assert not {name for name in names if name.startswith((".venv", ".git/", ".benchmarks", "run"))}


def test_the_lock_holds_versions_of_everything_and_nothing_else():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = {re.fullmatch(r"([a-z0-9-]+)==[\w.]+( ; [^/@]+)?", line)[1] for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["all"], *extras["test"], *extras["lint"]]
    names = {re.match(r"[\w-]+", item)[0].lower() for item in wanted}
    assert names - {"onlooker"} <= locked


def test_hooks_fetch_nothing_and_check_what_make_lint_checks():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"repo: (\S+)", text)) == {"local"}
    assert set(re.findall(r"language: (\S+)", text)) == {"system"}
    checked = re.search(r"^CHECKED +:= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert set(re.findall(r"files: (\S+)", text)) == {f"^({'|'.join(checked.split())})(/|$)"}


def test_the_metadata_say_what_the_project_says(built):
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(wheel.read(name))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert told["Version"] == onlooker.__version__
    assert told["Requires-Python"] == project["requires-python"]
    assert set(project["optional-dependencies"]) == set(told.get_all("Provides-Extra"))
    assert told.get_payload().startswith("# onlooker")


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.search(r"^## (.+)$", text, re.MULTILINE)[1]
    assert re.match(r"(\d+\.\d+\.\d+), \d{4}-\d{2}-\d{2}$", latest), latest
    assert latest.partition(",")[0] == onlooker.__version__


def test_no_import_of_any_module_warns():
    names = [module.name for module in pkgutil.walk_packages([str(SOURCE)], "onlooker.")]
    assert {"onlooker.cli", "onlooker.sampling", "onlooker.explorer.server"} <= set(names)
    code = f"import importlib\nfor name in {names!r}:\n    importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


PROGRAM = """
import numpy as np
from onlooker import Demonstrations, PolicyRecognizer, Problem, sample
from onlooker.dynamics import DisplacementDynamics
from onlooker.partitions import DistanceDependent

demos = Demonstrations([np.zeros((3, 2))])
dynamics = DisplacementDynamics.compass(8, step=1.0, sigma=0.2)
problem = Problem.from_demonstrations(demos, dynamics)
reveal_type(sample(problem, DistanceDependent(), draws=10))
reveal_type(PolicyRecognizer(dynamics).fit(demos).posterior_.policy(interval=0.9).low)
sample(problem, DistanceDependent(), draws="many")
"""


def test_a_program_that_uses_the_package_sees_its_types(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    told = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert len(told) == 3, done.stdout
    assert 'Revealed type is "onlooker.posterior.Posterior"' in told[0]
    assert 'Revealed type is "numpy.ndarray' in told[1]
    assert 'Argument "draws" to "sample" has incompatible type "str"; expected "int"' in told[2]
