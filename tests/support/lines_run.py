"""Which tests run which lines of the package, and how long they take: found once, then kept.

What is kept lies in build/. It only says where to look first, so it need not be renewed when the
package changes. Files of tests that are new or have changed are looked at again.
"""

import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "lines-run"
SETTINGS = "[run]\nsource = onlooker\nparallel = true\nconcurrency = thread\n"


# -- as a plugin of pytest: seconds of each test that passes ---------------------------------------

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_runtest_logreport(report):
    """Add up what a test takes, with what it sets up."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session):
    """Write them, once for all workers."""
    if not hasattr(session.config, "workerinput"):
        passed = {test: seconds for test, seconds in _seconds.items() if test not in _failed}
        Path(os.environ["ONLOOKER_SECONDS"]).write_text(json.dumps(passed), encoding="utf-8")


# -- what is kept ----------------------------------------------------------------------------------


class LinesRun:
    """The tests that run a line, and the seconds of each; only those that passed."""

    def __init__(self, package, files, kept=KEPT, jobs=2):
        self.package, self.kept = package, kept
        index = kept / "tests.json"
        known = json.loads(index.read_text(encoding="utf-8")) if index.exists() else {}
        hashes = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        self._known = {
            file: known[file] for file in hashes if known.get(file, {}).get("hash") == hashes[file]
        }
        changed = [file for file in hashes if file not in self._known]
        if changed:
            look = f"look-{len(list(kept.glob('look-*')))}"
            tests = self._look_at(changed, kept / look, jobs)
            for file in changed:
                mine = {test: spent for test, spent in tests.items() if test.split("::")[0] == file}
                self._known[file] = {"hash": hashes[file], "look": look, "tests": mine}
            index.write_text(json.dumps(self._known), encoding="utf-8")

    def _look_at(self, files, folder, jobs):
        """Run files of tests, note the lines; their seconds by test."""
        print(f"which lines do {len(files)} files of tests run? ...", flush=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(self.package, folder / "package", ignore=ignored)
        (folder / "settings").write_text(SETTINGS, encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-m", "not slow"),
            *(("-n", str(jobs), "--dist", "loadfile") if jobs > 1 else ()),
            *("-p", "no:cacheprovider", "-p", "lines_run"),
            *("--cov", "--cov-context=test", "--cov-report=", f"--cov-config={folder}/settings"),
            *files,
        ]
        path = os.pathsep.join([str(self.package.parent), str(Path(__file__).parent)])
        env = os.environ | {
            "PYTHONPATH": path,
            "COVERAGE_FILE": str(folder / "lines"),
            "ONLOOKER_SECONDS": str(folder / "seconds"),
        }
        subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=False)
        tests = json.loads((folder / "seconds").read_text(encoding="utf-8"))
        return {_here(test): spent for test, spent in tests.items()}

    def tests(self):
        """All tests by file, each with its seconds."""
        return {file: known["tests"] for file, known in self._known.items()}

    @cache  # noqa: B019 (there is one, as long as the program)
    def of(self, path, line):
        """Tests that run a line of a file of the package.

        What sets up something with it may be shared: then it is all tests of that file.
        """
        found = set()
        for look in {known["look"] for known in self._known.values()}:
            data = coverage.CoverageData(str(self.kept / look / "lines"))
            data.read()
            contexts = data.contexts_by_lineno(str(self.package / path))
            for context in contexts.get(self._line_then(look, path, line), ()):
                test, _, phase = context.rpartition("|")
                file = _here(test.split("::")[0])
                if self._known.get(file, {}).get("look") == look:
                    tests = set(self._known[file]["tests"])
                    found |= tests & {_here(test)} if phase == "run" else tests
        return found

    def _line_then(self, look, path, line):
        """The number that a line had when the lines were found; 0 if it was not there."""
        then, now = self.kept / look / "package" / path, self.package / path
        if not then.exists():
            return 0
        before, after = (file.read_text(encoding="utf-8").splitlines() for file in (then, now))
        same = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        return next((line - b + a for a, b, n in same if b < line <= b + n), 0)


def _here(test):
    return f"{ROOT}/{test}"  # no path: two slashes in the name of a case are two
