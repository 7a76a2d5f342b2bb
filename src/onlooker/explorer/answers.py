"""Answers of the explorer's server, and a store of those that were given."""

from __future__ import annotations

import gzip
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

_MAX_BYTES = 1 << 26  # of the answers that are kept
_MAX_ANSWERS = 500


class Answer:
    """Bytes of some type, compressed where that is worth it."""

    def __init__(self, body: bytes, kind: str, *, compress: bool = False) -> None:
        self.kind = kind
        self.encoding = "gzip" if compress else None
        self.body = gzip.compress(body, 1) if compress else body


def as_json(value: Any, *, compress: bool = False) -> Answer:
    """An answer in strict JSON."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Answer(body, "application/json", compress=compress)


class Answers:
    """Answers by what was asked: made once, however many ask at the same time."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Future[Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer to `key`; what fails is not kept."""
        with self._lock:
            known = self._known.pop(key, None)
            answer = known or Future()
            self._known[key] = answer  # the last used is the last to go
        if known is None:
            try:
                answer.set_result(make())
                self._forget()
            except BaseException as error:
                with self._lock:  # before others can find it done
                    self._known.pop(key, None)
                answer.set_exception(error)
        return answer.result()

    def _forget(self) -> None:
        with self._lock:
            sizes = {k: len(a.result().body) for k, a in self._known.items() if a.done()}
            total = sum(sizes.values())
            for key, size in sizes.items():
                if total <= _MAX_BYTES and len(self._known) <= _MAX_ANSWERS:
                    return
                del self._known[key]
                total -= size
