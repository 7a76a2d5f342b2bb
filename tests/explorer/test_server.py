"""The server answers its own routes, to this machine, and changes nothing."""

import gzip
import http.client
import json
import socket

import numpy as np
import pytest

from onlooker.explorer.matching import block_size
from onlooker.explorer.packing import unpack
from onlooker.explorer.server import HOST, Explorer

READS = ("GET", "HEAD")
WRITES = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")


@pytest.fixture(scope="module")
def explorer(runs):
    server = Explorer([runs["plane"], runs["abstract"], runs["plane"].parent / "nothing"])
    server.start()
    for run in server.runs[:2]:
        while not (run.view and run.view.complete):
            run.wait(run.version, 1.0)
    yield server
    server.close()


def ask(explorer, path, method="GET", secret=None, **headers):
    connection = http.client.HTTPConnection(HOST, explorer.port, timeout=30)
    secret = explorer.secret if secret is None else secret
    try:
        connection.request(method, f"/{secret}/{path}", headers=headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.headers.get("Content-Encoding") == "gzip" and body:
        body = gzip.decompress(body)
    return response, body


def told(explorer, path):
    response, body = ask(explorer, path)
    assert response.status == 200, body
    return json.loads(body)


# -- routes -------------------------------------------------------------------------------------


def test_the_page_is_one_answer_that_loads_nothing_else(explorer):
    response, body = ask(explorer, "")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/html")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert b"http-equiv" in body
    assert b"unsafe-inline" not in body


def test_runs_are_listed_with_their_condition(explorer):
    runs = told(explorer, "api/runs")
    assert [run["name"] for run in runs] == ["plane", "abstract", "nothing"]
    assert [run["state"] for run in runs] == ["finished", "finished", "missing"]
    assert [run["ready"] for run in runs] == [True, True, False]


def test_news_are_told_at_once_to_who_knows_less(explorer):
    versions = [run["version"] for run in told(explorer, "api/runs")]
    behind = ",".join(str(max(0, version - 1)) for version in versions)
    assert told(explorer, f"api/runs?after={behind}")


def test_the_overview_names_the_reference_that_blocks_belong_to(explorer):
    seen = told(explorer, "api/runs/0/overview")
    view = explorer.runs[0].view
    np.testing.assert_array_equal(unpack(seen["reference"]), view.reference.labels)
    assert seen["epoch"] == view.reference.epoch


def test_blocks_of_draws_hold_named_clusters(explorer):
    view = explorer.runs[0].view
    epoch = view.reference.epoch
    response, body = ask(explorer, f"api/runs/0/draws?epoch={epoch}&chain=1&block=0")
    assert response.status == 200
    names = np.frombuffer(body, "<u2").reshape(-1, view.posterior.problem.n_nodes)
    assert len(names) == min(view.posterior.n_draws, block_size(names.shape[1]))
    names = names ^ view.reference.labels.astype(np.uint16)
    drawn = view.posterior.labels[1, 4]
    np.testing.assert_array_equal(drawn[:, None] == drawn, names[4][:, None] == names[4])


def test_blocks_of_an_older_reference_are_refused(explorer):
    assert ask(explorer, "api/runs/0/draws?epoch=0&chain=0&block=0")[0].status == 409


@pytest.mark.parametrize("query", ["chain=2&block=0", "chain=0&block=1", "chain=0&block=99999"])
def test_draws_that_there_are_not_are_not_found(explorer, query):
    epoch = explorer.runs[0].view.reference.epoch
    assert ask(explorer, f"api/runs/0/draws?epoch={epoch}&{query}")[0].status == 404


def test_a_place_is_answered_with_probabilities(explorer):
    answer = told(explorer, "api/runs/0/at?state=0.25,-1")
    assert sum(answer["mean"]) == pytest.approx(1.0)
    assert answer["node"] == -1
    assert answer["candidates"]
    assert told(explorer, "api/runs/1/at?state=3")["node"] >= 0


@pytest.mark.parametrize(
    "path",
    [
        "api/runs/0/at",
        "api/runs/0/at?state=",
        "api/runs/0/at?state=1",
        "api/runs/0/at?state=1,2,3",
        "api/runs/0/at?state=nan,1",
        "api/runs/0/at?state=1e999,1",
        "api/runs/0/at?state=x,y",
        "api/runs/1/at?state=-3",
        "api/runs/1/at?state=99999999999999999999",
        "api/runs/1/at?state=1.5",
        "api/runs/0/draws",
        "api/runs/0/draws?epoch=a&chain=b&block=c",
        "api/runs?after=x",
        "api/runs?&&&",
        "api/runs?" + "&".join(f"a{k}=1" for k in range(50)),
    ],
)
def test_bad_questions_are_refused_with_words(explorer, path):
    response, body = ask(explorer, path)
    assert response.status == 400
    assert json.loads(body)["error"]


def test_a_run_that_cannot_be_read_yet_is_unavailable(explorer):
    response, body = ask(explorer, "api/runs/2/overview")
    assert response.status == 503
    assert "nothing" in json.loads(body)["error"]


def test_two_runs_are_compared(explorer):
    assert told(explorer, "api/compare?a=0&b=0")["rand"] == pytest.approx(1.0)
    assert not told(explorer, "api/compare?a=0&b=1")["comparable"]
    assert ask(explorer, "api/compare?a=0")[0].status == 404
    assert ask(explorer, "api/compare?a=0&b=2")[0].status == 503


# -- what must not be possible ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "run.json",
        "../run.json",
        "..%2f..%2fetc%2fpasswd",
        "../../../../etc/passwd",
        "/etc/passwd",
        "api",
        "api/",
        "api/runs/",
        "api/runs/3/overview",
        "api/runs/-1/overview",
        "api/runs/0/../../etc/passwd",
        "api/runs/0/problem.npz",
        "api/runs/٣/overview",
        "page.html",
        "style.css",
        "\\..\\run.json",
        "api/runs/0/overview/more",
    ],
)
def test_nothing_but_the_routes_is_there(explorer, path):
    from urllib.parse import quote

    response, body = ask(explorer, quote(path, safe="/%.\\"))
    assert response.status == 404
    assert b"onlooker run" not in body
    assert b"root:" not in body


@pytest.mark.parametrize("secret", ["", "x", "api", "..", "%2e%2e"])
@pytest.mark.parametrize("path", ["", "api/runs"])
def test_without_the_secret_nothing_is_there(explorer, secret, path):
    assert ask(explorer, path, secret=secret)[0].status == 404


@pytest.mark.parametrize("method", WRITES)
def test_nothing_can_be_changed(explorer, method):
    response, _ = ask(explorer, "api/runs", method=method)
    assert response.status == 405


def test_a_head_request_has_no_body(explorer):
    response, body = ask(explorer, "api/runs", method="HEAD")
    assert response.status == 200
    assert body == b""


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_other_hosts_are_refused_so_that_a_renamed_site_cannot_ask(explorer, host):
    response, body = ask(explorer, "api/runs", Host=host.format(port=explorer.port))
    assert response.status == 403
    assert b"plane" not in body


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_welcome_by_both_its_names(explorer, host):
    own = f"{host}:{explorer.port}"
    assert ask(explorer, "api/runs", Host=own, Origin=f"http://{own}")[0].status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "*"]
)
def test_pages_of_other_origins_are_refused(explorer, origin):
    response, body = ask(explorer, "api/runs", Origin=origin.format(port=explorer.port))
    assert response.status == 403
    assert b"plane" not in body
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_where_a_request_comes_from_is_believed(explorer, site):
    assert ask(explorer, "api/runs", **{"Sec-Fetch-Site": site})[0].status == 403


@pytest.mark.parametrize("path", ["", "api/runs", "nowhere"])
def test_every_answer_carries_the_headers_that_keep_it_here(explorer, path):
    headers = ask(explorer, path)[0].headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_only_this_machine_can_connect(explorer):
    assert explorer.server_address[0] == "127.0.0.1"
    with (
        pytest.raises(OSError),
        socket.create_connection(("127.0.0.2", explorer.port), timeout=2),
    ):
        pass


def test_two_explorers_have_their_own_ports_and_secrets(runs, explorer):
    other = Explorer([runs["line"]])
    try:
        assert other.port != explorer.port
        assert other.secret != explorer.secret
        assert len(other.secret) >= 20
    finally:
        other.server_close()


def test_an_error_inside_is_an_answer_too(explorer, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr("onlooker.explorer.query.at_state", fail)
    response, body = ask(explorer, "api/runs/0/at?state=0,0")
    assert response.status == 500
    assert "a bug" in json.loads(body)["error"]


def test_an_address_that_is_none_is_refused(explorer):
    """The name of a host begins, and does not end."""
    connection = http.client.HTTPConnection(HOST, explorer.port, timeout=30)
    connection.putrequest("GET", f"http://[{explorer.secret}/", skip_host=True)
    connection.putheader("Host", f"{HOST}:{explorer.port}")
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 400
    assert "cannot be read" in json.loads(response.read())["error"]
    connection.close()


def test_garbage_is_survived(explorer):
    for garbage in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        with socket.create_connection((HOST, explorer.port), timeout=5) as connection:
            connection.sendall(garbage)
            connection.settimeout(5)
            connection.recv(1000)
    assert told(explorer, "api/runs")
