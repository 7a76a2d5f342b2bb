"""What is shipped; `make package` builds it, looks inside, installs it and tries it."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import onlooker

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "onlooker"


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
