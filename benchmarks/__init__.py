"""Benchmarks; they borrow helpers and twins from ``tests/support``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
