"""The explorer's server: a few routes, for this machine only, that change nothing."""

from __future__ import annotations

import hmac
import math
import queue
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from onlooker._version import __version__
from onlooker.explorer.answers import Answer, Answers, as_json
from onlooker.explorer.page import page, policy
from onlooker.explorer.run import RunWatcher

HOST = "127.0.0.1"
_PATIENCE = 10.0  # seconds between the parts of a request, and of an answer
_SILENCE = 300.0  # seconds that a connection may say nothing; browsers open some in advance
_LONGEST_WAIT = 10.0  # seconds that a question for news is kept open
_SHORT_WAIT = 0.05
_THREADS = 32
_MAX_WAITING = 16  # threads that wait for news; who asks beyond that is answered soon
_BACKLOG = 512  # connections that wait for a thread
_MAX_PARAMETERS = 8


class Refused(Exception):
    """A request that is answered by an error."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Explorer(HTTPServer):
    """Serves some runs on a free port of this machine.

    The address holds a secret, so that other users of the machine cannot look in. Nothing is
    served but the page and answers about the runs given: there is no way to name a file.

    Parameters
    ----------
    paths
        Stores (or files of `Posterior.save`) to show.
    port
        0: any that is free.
    """

    allow_reuse_address = False
    request_queue_size = _BACKLOG

    def __init__(self, paths: Sequence[Path], port: int = 0) -> None:
        self.runs = [RunWatcher(path) for path in paths]
        self.secret = secrets.token_urlsafe(16)
        self._answers = Answers()
        self._waiting = threading.BoundedSemaphore(_MAX_WAITING)
        self._accepted: queue.SimpleQueue[tuple[socket.socket, Any] | None] = queue.SimpleQueue()
        self._stopping, self._stopped = threading.Event(), threading.Event()
        self._stopped.set()
        super().__init__((HOST, port), _Handler)
        for run in self.runs:
            run.start()
        for _ in range(_THREADS):
            threading.Thread(target=self._work, daemon=True).start()

    def serve_forever(self, poll_interval: float = 0.05) -> None:
        """Serve until `shutdown`. A connection takes a thread only once it says something."""
        self._stopped.clear()
        try:
            with selectors.DefaultSelector() as open_ones:
                if self._stopping.is_set():  # the port may be closed already
                    return
                open_ones.register(self, selectors.EVENT_READ)
                while not self._stopping.is_set():
                    for key, _ in open_ones.select(poll_interval):
                        if key.fileobj is self:
                            self._accept(open_ones)
                        else:
                            open_ones.unregister(key.fileobj)
                            self._accepted.put((key.fileobj, key.data[0]))  # type: ignore[arg-type]
                    self._hang_up(open_ones)
                for key in _silent(open_ones):
                    self.shutdown_request(key.fileobj)  # type: ignore[arg-type]
        finally:
            self._stopped.set()

    def shutdown(self) -> None:
        """End `serve_forever`."""
        self._stopping.set()
        self._stopped.wait()

    def _accept(self, open_ones: selectors.BaseSelector) -> None:
        try:
            connection, address = self.get_request()
        except OSError:  # gone already
            return
        open_ones.register(connection, selectors.EVENT_READ, (address, time.monotonic()))

    def _hang_up(self, open_ones: selectors.BaseSelector) -> None:
        """Close what has been silent for too long, or the oldest of too many."""
        silent = _silent(open_ones)
        too_many = len(silent) - _BACKLOG
        for k, key in enumerate(silent):
            if k >= too_many and time.monotonic() - key.data[1] < _SILENCE:
                break
            open_ones.unregister(key.fileobj)
            self.shutdown_request(key.fileobj)  # type: ignore[arg-type]

    def _work(self) -> None:
        while (accepted := self._accepted.get()) is not None:
            try:
                self.finish_request(*accepted)
            except Exception:
                self.handle_error(*accepted)
            finally:
                self.shutdown_request(accepted[0])

    @property
    def port(self) -> int:
        """The port that was free."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.port}/{self.secret}/"

    def start(self) -> threading.Thread:
        """Serve in a thread, until `close`."""
        thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._stopped.clear()  # whoever closes waits for the thread, even before it has begun
        thread.start()
        return thread

    def close(self) -> None:
        """Stop serving, and reading the stores."""
        for run in self.runs:
            run.stop()
        self.shutdown()
        self.server_close()

    def server_close(self) -> None:
        """Close the port, and end the threads."""
        super().server_close()
        for _ in range(_THREADS):
            self._accepted.put(None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no news."""

    # -- routes ---------------------------------------------------------------------------------

    def answer(self, parts: list[str], query: dict[str, str]) -> Answer:
        """Answer a path below the secret."""
        match parts:
            case [""]:
                return self._answers.get("page", self._page)
            case ["api", "runs"]:
                return self._list(query)
            case ["api", "runs", number, what] if what in _QUESTIONS:
                run = self._run(number)
                # an answer may be newer than the version that it is kept under, never older
                key = (run, run.version, what, tuple(sorted(query.items())))
                return self._answers.get(key, lambda: _QUESTIONS[what](run, query))
            case ["api", "compare"]:
                return self._compare(query)
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _page(self) -> Answer:
        title = " and ".join(run.name for run in self.runs)
        return Answer(page(title).encode(), "text/html; charset=utf-8", compress=True)

    def _run(self, number: str) -> RunWatcher:
        small = number.isascii() and number.isdigit() and len(number) < 6
        if not small or int(number) >= len(self.runs):
            raise Refused(HTTPStatus.NOT_FOUND, f"there are {len(self.runs)} runs, from 0")
        return self.runs[int(number)]

    def _list(self, query: dict[str, str]) -> Answer:
        """All runs; with ``after`` (versions, by commas) once one of them is newer."""
        if "after" in query:
            known = [_integer("after", text) for text in query["after"].split(",")]
            if len(known) == len(self.runs):
                self._wait(known)
        return as_json(
            [
                {
                    "name": run.name,
                    "version": run.version,
                    "state": run.status.state,
                    "text": run.text,
                    "changing": run.status.changing or _unfinished(run),
                    "ready": run.view is not None,
                }
                for run in self.runs
            ]
        )

    def _wait(self, known: list[int]) -> None:
        """Return when a run is newer than known, soon if one grows, or after some time."""
        if not self._waiting.acquire(blocking=False):
            time.sleep(_SHORT_WAIT)  # or the page would ask again at once
            return
        try:
            self._wait_for_news(known)
        finally:
            self._waiting.release()

    def _wait_for_news(self, known: list[int]) -> None:
        slice_ = 0.1 if len(self.runs) > 1 else 1.0
        growing = any(run.status.state == "growing" for run in self.runs)
        for _ in range(int((1.0 if growing else _LONGEST_WAIT) / slice_)):
            for run, version in zip(self.runs, known, strict=True):
                if run.version > version:
                    return
            self.runs[0].wait(known[0], slice_)

    def _compare(self, query: dict[str, str]) -> Answer:
        from onlooker.explorer.compare import compare

        first, second = (_ready(self._run(query.get(name, ""))) for name in ("a", "b"))
        return as_json(compare(first, second), compress=True)


def _silent(open_ones: selectors.BaseSelector) -> list[selectors.SelectorKey]:
    """Connections that have said nothing yet, the oldest first."""
    return [key for key in open_ones.get_map().values() if key.data is not None]


def _unfinished(run: RunWatcher) -> bool:
    return run.view is not None and not run.view.complete


def _ready(run: RunWatcher) -> Any:
    if run.view is None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, run.status.text)
    return run.view


def _integer(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} must be an integer, got {text[:40]!r}")
    return int(text)


def _overview(run: RunWatcher, query: dict[str, str]) -> Answer:
    from onlooker.explorer.overview import overview

    version = run.version  # taken first: an overview may be newer than it says, never older
    return as_json({"version": version, **overview(_ready(run))}, compress=True)


def _draws(run: RunWatcher, query: dict[str, str]) -> Answer:
    """A block of draws of one chain, named after the reference of an epoch."""
    from onlooker.explorer.matching import block_size

    view = _ready(run)
    reference = view.reference
    if _integer("epoch", query.get("epoch", "")) != reference.epoch:
        raise Refused(HTTPStatus.CONFLICT, "the run has changed since; ask for it again")
    n_draws = view.posterior.n_draws
    chain, block = (_integer(name, query.get(name, "")) for name in ("chain", "block"))
    size = block_size(view.posterior.problem.n_nodes)
    if chain >= view.posterior.n_chains or block * size >= n_draws:
        raise Refused(HTTPStatus.NOT_FOUND, "there are no such draws")
    start = chain * n_draws + block * size
    stop = min(start + size, (chain + 1) * n_draws)
    body = view.names(reference).encode(slice(start, stop))
    return Answer(body, "application/octet-stream", compress=True)


def _at(run: RunWatcher, query: dict[str, str]) -> Answer:
    """The policy at ``state``: an integer, or numbers by commas."""
    from onlooker.explorer.query import at_state

    view = _ready(run)
    text = query.get("state", "")
    if view.posterior.problem.states.ndim == 1:
        return as_json(_asked(at_state, view, _integer("state", text)))
    try:
        state = [float(number) for number in text.split(",")]
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, f"state must be numbers, got {text[:40]!r}") from None
    if not all(math.isfinite(number) for number in state):
        raise Refused(HTTPStatus.BAD_REQUEST, "state must be finite")
    return as_json(_asked(at_state, view, state))


def _asked(question: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return question(*arguments)
    except (ValueError, TypeError, IndexError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error


_QUESTIONS: dict[str, Callable[[RunWatcher, dict[str, str]], Answer]] = {
    "overview": _overview,
    "draws": _draws,
    "at": _at,
}


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    server_version = f"onlooker/{__version__}"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the user's."""

    def do_GET(self) -> None:
        self._respond(self._answered)

    def do_HEAD(self) -> None:
        self._respond(self._answered)

    def _not_allowed(self) -> None:
        def refuse() -> Answer:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "only GET: nothing can be changed here")

        self._respond(refuse)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _not_allowed

    def _answered(self) -> Answer:
        self._check_origin()
        try:
            address = urlsplit(self.path)
        except ValueError:  # it poses as an address of another host, and not even well
            raise Refused(HTTPStatus.BAD_REQUEST, "the address cannot be read") from None
        given, _, rest = address.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(given.encode(), self.server.secret.encode()):
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        try:
            fields = parse_qs(
                address.query, strict_parsing=bool(address.query), max_num_fields=_MAX_PARAMETERS
            )
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "the query cannot be read") from None
        query = {name: values[0] for name, values in fields.items()}
        return self.server.answer(rest.split("/"), query)

    def _check_origin(self) -> None:
        """Refuse pages of other hosts, also those that a name server points at this machine."""
        own = {f"{HOST}:{self.server.port}", f"localhost:{self.server.port}"}
        if self.headers.get_all("Host") is None or self.headers.get("Host") not in own:
            raise Refused(HTTPStatus.FORBIDDEN, "this page is for this machine only")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in own}:
            raise Refused(HTTPStatus.FORBIDDEN, "other pages may not ask")
        if self.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Refused(HTTPStatus.FORBIDDEN, "other pages may not ask")

    def _respond(self, ask: Callable[[], Answer]) -> None:
        status = HTTPStatus.OK
        try:
            answer = ask()
        except Refused as error:
            status, answer = error.status, as_json({"error": str(error)})
        except Exception as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            answer = as_json({"error": f"{type(error).__name__}: {error}"})
        self.close_connection = True  # a thread is for who asks, not for who might
        self.send_response(status)
        self.send_header("Connection", "close")
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.encoding:
            self.send_header("Content-Encoding", answer.encoding)
        for name, value in _ALWAYS.items():
            self.send_header(name, value)
        if answer.kind.startswith("text/html"):
            self.send_header(
                "Content-Security-Policy", policy(live=True) + "; frame-ancestors 'none'"
            )
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


_ALWAYS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of every answer."""
