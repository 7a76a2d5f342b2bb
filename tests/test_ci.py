"""What `.ci/run` decides, with every command that it calls replaced by a function of its name."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"


def call(code, folder, **variables):
    """Source the script without running it, then run some code with its functions."""
    return subprocess.run(
        ["bash", "-c", f'source "{SCRIPT}"\n{code}'],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder), **variables},
        capture_output=True,
        text=True,
    )


# -- what the system lacks ------------------------------------------------------------------------

SYSTEM = """
id() { echo "$USER_ID"; }
python3() { return 0; }
apt-get() { echo "apt-get $*"; }
command() { [[ " $PRESENT " == *" $2 "* ]]; }
install_missing
"""
ALL = "make git python3 chromium fc-match apt-get"


def test_nothing_is_installed_where_nothing_is_missing(tmp_path):
    done = call(SYSTEM, tmp_path, PRESENT=ALL, USER_ID="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_installs_exactly_what_is_missing(tmp_path):
    done = call(SYSTEM, tmp_path, PRESENT=ALL.replace("chromium ", ""), USER_ID="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends chromium",
    ]


@pytest.mark.parametrize("lacking", [{"USER_ID": "1000"}, {"PRESENT": "make git python3 chromium"}])
def test_whoever_cannot_install_is_told_what_is_missing(tmp_path, lacking):
    given = {"PRESENT": ALL.replace("fc-match ", ""), "USER_ID": "0"} | lacking
    done = call(SYSTEM, tmp_path, **given)
    assert done.returncode == 1
    assert done.stderr == "please install: fontconfig\n"
    assert done.stdout == ""


def test_a_python_that_can_make_no_environment_lacks_python3_venv(tmp_path):
    code = SYSTEM.replace("python3() { return 0; }", "python3() { return 1; }")
    done = call(code, tmp_path, PRESENT=ALL, USER_ID="1000")
    assert done.stderr == "please install: python3-venv\n"


# -- what decides ---------------------------------------------------------------------------------

CHECKS = """
make() {
  echo "made $1"
  [ "$1" != test ] || printf '%s\\n' "$SUMMARY"
  [[ " $BROKEN " != *" $1 "* ]]
}
check_everything
"""
PASSED = "== 3 passed in 0.12s =="
SKIPPED = "SKIPPED [1] tests/test_a.py:3: no browser\n== 2 passed, 1 skipped in 0.12s =="


def check(folder, summary=PASSED, broken="", code=CHECKS):
    return call(code, folder, SUMMARY=summary, BROKEN=broken)


def test_ci_passes_and_ends_with_pytests_closing_lines(tmp_path):
    done = check(tmp_path)
    assert done.returncode == 0, done.stderr
    parts = ("test", "demo", "bench-check", "lint", "docs", "package")
    assert [f"made {part}" in done.stdout.splitlines() for part in parts] == [True] * 6
    assert done.stdout.splitlines()[-2:] == [PASSED, "all passed"]
    assert list(tmp_path.iterdir()) == []


def test_ci_fails_with_the_tests_but_lints_all_the_same(tmp_path):
    done = check(tmp_path, "== 1 failed in 0.12s ==", broken="test")
    assert done.returncode == 1
    assert "made lint" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["== 1 failed in 0.12s ==", "failed: [make test]"]


@pytest.mark.parametrize("part", ["bench-check", "lint", "docs", "package"])
def test_ci_fails_with_any_other_part(tmp_path, part):
    done = check(tmp_path, broken=part)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"failed: [make {part}]"


def test_ci_fails_where_a_test_was_skipped(tmp_path):
    done = check(tmp_path, SKIPPED)
    assert done.returncode == 1
    assert "tests/test_a.py:3: no browser" in done.stderr
    assert done.stdout.splitlines()[-1] == "failed: [skipped tests]"


@pytest.mark.parametrize(("allowed", "code"), [("no browser", 0), ("no graphics card", 1)])
def test_ci_lets_listed_reasons_pass_and_no_others(tmp_path, allowed, code):
    done = check(tmp_path, SKIPPED, code=f"allowed_skips=('{allowed}')\n{CHECKS}")
    assert done.returncode == code


def test_ci_fails_where_pytest_never_finished(tmp_path):
    done = check(tmp_path, "collecting ...")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "failed: [pytest did not finish]"


def test_sourcing_the_script_does_nothing(tmp_path):
    done = call("", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
