"""Some tests here use those of partitions, until they share what is in tests/support."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "partitions"))
