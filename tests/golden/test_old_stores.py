"""Runs that were stored by version 0.1 still open, with the draws and answers that they had."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from onlooker import Posterior

STORES = Path(__file__).with_name("stores")
EXPECTED = json.loads((STORES / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_run_opens_with_its_draws_and_its_policy(name):
    posterior, expected = Posterior.load(STORES / name), EXPECTED[name]
    np.testing.assert_array_equal(posterior.labels, expected["labels"])
    np.testing.assert_allclose(posterior.log_joint, expected["log_joint"], rtol=1e-12)
    np.testing.assert_allclose(posterior.policy(), expected["policy"], rtol=1e-9)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("options", "blocked", True),
        ("options", "concentration", {"class": "PerController", "params": {}}),
        ("options", "tempering", 4),
        ("prior", "split_merge", 3),
        ("prior", "method", "metropolis"),
    ],
)
def test_a_run_with_an_option_that_is_gone_is_refused_by_its_name(tmp_path, where, name, value):
    shutil.copytree(STORES / "ordinary", tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    header = json.loads(file.read_text())
    header[where].get("params", header[where])[name] = value
    file.write_text(json.dumps(header))
    told = value["class"] if isinstance(value, dict) else repr(value)
    with pytest.raises(ValueError, match=f"made with {name}={told}, which .* no longer has"):
        Posterior.load(tmp_path / "run")
