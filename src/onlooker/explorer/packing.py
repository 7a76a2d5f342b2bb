"""Arrays inside JSON: base64 of their bytes, which a page decodes faster than a million digits."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

from onlooker.checks import Array


def pack(values: Any, dtype: str = "f4") -> dict[str, Any]:
    """An array as JSON; `dtype` is one of f4, f8, u1, u2, u4."""
    array = np.ascontiguousarray(values, dtype=f"<{dtype}")
    text = base64.b64encode(array.tobytes()).decode("ascii")
    return {"dtype": dtype, "shape": list(array.shape), "data": text}


def unpack(packed: dict[str, Any]) -> Array:
    """Undo `pack`."""
    raw = base64.b64decode(packed["data"])
    return np.frombuffer(raw, dtype=f"<{packed['dtype']}").reshape(packed["shape"])


def to_json(value: Any) -> bytes:
    """Strict JSON: NaN is a mistake here, since no browser reads it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def zipped(data: bytes, level: int = 6) -> str:
    """Compressed, as text that can stand in a page; the same for the same data."""
    return base64.b64encode(gzip.compress(data, level, mtime=0)).decode("ascii")
