"""Requests, connections and proxies of the client, and what it never sends or shows."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rawserver import Peer, RawServer, answering, ok, serving

from clawmark.net import client as http
from clawmark.net.client import HttpClient, HttpError

SECONDS = 20.0
KEY = "sk-FAKE" + "0123456789abcdef"


@contextmanager
def client_of(
    url: str, headers: dict[str, str] | None = None, **options: object
) -> Iterator[HttpClient]:
    client = HttpClient(url, headers, **options)  # type: ignore[arg-type]
    yield client
    client.close()


def test_a_request_has_the_base_path_the_headers_and_the_body() -> None:
    with (
        serving(answering(ok())) as server,
        client_of(f"{server.url}/v1/", {"Authorization": f"Bearer {KEY}"}) as client,
    ):
        client.send(
            "POST", "/embeddings", b'{"input": []}', seconds=SECONDS, headers={"X-Once": "yes"}
        )
        request = server.requests[0]
    assert (request.method, request.target, request.body) == (
        "POST",
        "/v1/embeddings",
        b'{"input": []}',
    )
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-once"] == "yes"
    assert request.headers["user-agent"] == "clawmark"
    assert request.headers["accept-encoding"] == "gzip"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == "13"


def test_a_request_without_a_body_has_no_length_and_no_type() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        client.send("GET", "/models", seconds=SECONDS)
    assert {"content-length", "content-type"} & server.requests[0].headers.keys() == set()


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("", "/embed", "/embed"),
        ("/", "/embed", "/embed"),
        ("/a/b/", "/embed?x=1", "/a/b/embed?x=1"),
        ("/openai?api-version=7", "/embed", "/openai/embed?api-version=7"),
        ("?v=7", "/embed?x=1", "/embed?x=1&v=7"),
        ("", "", "/"),
    ],
)
def test_path_is_appended_to_the_base_url_and_its_query_kept(
    base: str, path: str, target: str
) -> None:
    with serving(answering(ok())) as server, client_of(server.url + base) as client:
        client.send("GET", path, seconds=SECONDS)
    assert server.requests[0].target == target


def test_headers_that_frame_a_message_cannot_be_configured() -> None:
    wrong = {
        "Content-Length": "5",
        "Transfer-Encoding": "chunked",
        "Host": "elsewhere",
        "Connection": "close",
        "Expect": "x",
    }
    with serving(answering(ok())) as server, client_of(server.url, wrong) as client:
        client.send("POST", "/", b"{}", seconds=SECONDS)
    headers = server.requests[0].headers
    assert headers["content-length"] == "2"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert {"transfer-encoding", "connection", "expect"} & headers.keys() == set()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {KEY}\n"},
        {"Authorization": f"Bearer {KEY}\r\nX: y"},
        {"X-Key": KEY + "ł"},
        {f"X {KEY}": "y"},
        {"": KEY},
    ],
)
def test_a_header_that_http_cannot_carry_is_refused_without_repeating_it(
    headers: dict[str, str],
) -> None:
    with serving(answering(ok())) as server, client_of(server.url, headers) as client:
        with pytest.raises(HttpError) as error:
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 0
    assert error.value.permanent
    assert KEY not in repr(error.value) + error.value.reason + error.value.hint + repr(
        error.value.__context__
    )


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä", "no-slash"])
def test_invalid_path_is_refused(path: str) -> None:
    with (
        client_of("http://127.0.0.1:9") as client,
        pytest.raises(HttpError, match="impossible address"),
    ):
        client.send("GET", path, seconds=SECONDS)


def test_a_key_never_becomes_part_of_the_address() -> None:
    with (
        client_of("http://127.0.0.1:9", secrets=[KEY]) as client,
        pytest.raises(HttpError) as error,
    ):
        client.send("GET", f"/embed?key={KEY}", seconds=SECONDS)
    assert KEY not in error.value.reason


def test_repr_of_a_client_holds_no_key() -> None:
    assert KEY not in repr(
        HttpClient("http://127.0.0.1:9/v1?key=1", {"Authorization": KEY}, secrets=[KEY])
    )


def test_errors_do_not_quote_the_server() -> None:
    echo = answering(f"ECHO {KEY}\r\n\r\n".encode(), close=True)
    with (
        serving(echo) as server,
        client_of(server.url) as client,
        pytest.raises(HttpError) as error,
    ):
        client.send("POST", "/", b"{}", seconds=SECONDS)
    assert KEY not in repr(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "http://me:pw@127.0.0.1/",
        "",
    ],
)
def test_refused_base_url_is_a_permanent_error(url: str) -> None:
    with (
        client_of(url) as client,
        pytest.raises(HttpError, match="the address is refused") as error,
    ):
        client.send("GET", "/", seconds=SECONDS)
    assert error.value.permanent


# --- connections ----------------------------------------------------------------------------------


def test_connection_is_reused() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        for _ in range(5):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert (server.connections, len(server.requests)) == (1, 5)


@pytest.mark.parametrize(
    "answer",
    [
        ok(b"{}", "Connection: close"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 204 No Content\r\n\r\nbut some",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nand more",
    ],
)
def test_connection_with_extra_bytes_or_close_is_not_reused(answer: bytes) -> None:
    with serving(answering(answer)) as server, client_of(server.url) as client:
        for _ in range(2):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 2


def test_unsolicited_bytes_are_never_taken_for_a_response() -> None:
    """They arrive after the response was read, on a connection that is kept."""
    was_read, was_forged = threading.Event(), threading.Event()

    def script(peer: Peer, server: RawServer) -> None:
        is_first = server.connections == 1
        peer.request()
        peer.send(ok(b"first" if is_first else b"second"))
        if is_first:
            was_read.wait()
            peer.send(ok(b"forged"))
            was_forged.set()
            peer.until_closed()

    with serving(script) as server, client_of(server.url) as client:
        assert client.send("POST", "/", b"{}", seconds=SECONDS).body == b"first"
        was_read.set()
        was_forged.wait()
        assert client.send("POST", "/", b"{}", seconds=SECONDS).body == b"second"


def test_idle_connection_closed_by_the_server_is_replaced() -> None:
    with serving(answering(ok(), close=True)) as server, client_of(server.url) as client:
        for _ in range(5):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        assert server.connections == 5


def test_idle_connection_that_fails_during_the_request_is_replaced() -> None:
    """The server closes when the second request arrives: the client cannot have seen it coming."""

    def script(peer: Peer, server: RawServer) -> None:
        server.requests += [r for r in [peer.request()] if r]
        peer.send(ok())
        if server.connections == 1:
            peer.sock.recv(1)
            peer.reset()

    with serving(script) as server, client_of(server.url) as client:
        for _ in range(2):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        assert (server.connections, len(server.requests)) == (2, 2)


def test_old_idle_connection_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_SECONDS", 0.0)
    with serving(answering(ok())) as server, client_of(server.url) as client:
        for _ in range(3):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 3


def test_four_threads_share_a_client_and_each_gets_its_own_response() -> None:
    def echo(peer: Peer, server: RawServer) -> None:
        while request := peer.request():
            peer.send(ok(request.body))

    wrong = []
    with serving(echo) as server, client_of(server.url) as client:

        def work(name: int) -> None:
            for number in range(25):
                body = f"{name}:{number}".encode()
                if client.send("POST", "/", body, seconds=SECONDS).body != body:
                    wrong.append(body)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.connections <= 4
    assert wrong == []


def test_forked_child_does_not_use_the_connection_of_its_parent() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        client.send("POST", "/", b"{}", seconds=SECONDS)
        client._idle[0].process = os.getpid() + 1
        client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 2


def test_closed_client_still_works_and_keeps_no_connection() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        client.close()
        for _ in range(2):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        assert server.connections == 2


# --- long bodies, other addresses -----------------------------------------------------------------


def test_a_long_body_is_received_in_pieces() -> None:
    body = bytes(40 << 20)
    with serving(answering(ok(body), close=True)) as server, client_of(server.url) as client:
        incoming = client.receive("/file", seconds=SECONDS, most=64 << 20)
        assert incoming.head.status == 200
        assert sum(map(len, incoming.pieces)) == len(body)
        incoming.close()


def test_body_longer_than_the_limit_is_an_error() -> None:
    with (
        serving(answering(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(3 << 20), close=True)) as server,
        client_of(server.url) as client,
    ):
        incoming = client.receive("/file", seconds=SECONDS, most=2 << 20)
        with pytest.raises(HttpError, match="larger than 2 MB"):
            list(incoming.pieces)
        incoming.close()


def test_failed_download_includes_its_body() -> None:
    with (
        serving(
            answering(b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone", close=True)
        ) as server,
        client_of(server.url) as client,
    ):
        incoming = client.receive("/file", seconds=SECONDS, most=1)
        incoming.close()
    assert (incoming.head.status, incoming.head.body, list(incoming.pieces)) == (404, b"gone", [])


def test_key_is_sent_to_another_path_but_not_to_another_host() -> None:
    with (
        serving(answering(ok())) as server,
        client_of(f"{server.url}/v1", {"Authorization": KEY}) as client,
    ):
        with_upload = client.at(f"{server.url}/upload/v1")
        with_upload.send("GET", "/files", seconds=SECONDS)
        with_upload.close()
        assert server.requests[0].target == "/upload/v1/files"
        for url in ("http://127.0.0.2/", f"https://127.0.0.1:{server.port}/", "http://127.0.0.1/"):
            with pytest.raises(HttpError, match="the key belongs to another host"):
                client.at(url)


# --- proxies --------------------------------------------------------------------------------------


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answering(ok())) as proxy, serving(answering(ok())) as server:
        for name in (
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ):
            monkeypatch.setenv(name, proxy.url)
        with client_of(server.url) as client:
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert (proxy.connections, server.connections) == (0, 1)


def test_configured_proxy_gets_the_full_url_and_its_password() -> None:
    with serving(answering(ok(b"via proxy"))) as proxy:
        place = proxy.url.removeprefix("http://")
        with client_of("http://ollama.test:11434", proxy=f"http://me:p%40ss@{place}") as client:
            assert client.send("POST", "/api/embed", b"{}", seconds=SECONDS).body == b"via proxy"
    request = proxy.requests[0]
    assert request.target == "http://ollama.test:11434/api/embed"
    assert request.headers["host"] == "ollama.test:11434"
    assert request.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            b"HTTP/1.1 407 Auth\r\nContent-Length: 0\r\n\r\n",
            "the proxy wants a user name and password (status 407)",
        ),
        (
            b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
            "the proxy does not connect to the service (status 403)",
        ),
        (b"nonsense nonsense", "the proxy cannot be used: the response is not HTTP"),
        (b"", "the proxy cannot be used: the connection was closed before a response came"),
    ],
)
def test_a_proxy_that_does_not_connect_is_named(answer: bytes, why: str) -> None:
    with (
        serving(answering(answer, close=True)) as proxy,
        client_of("https://api.test/v1", proxy=proxy.url) as client,
        pytest.raises(HttpError) as error,
    ):
        client.send("POST", "/embeddings", b"{}", seconds=SECONDS)
    assert error.value.reason == why
    assert (proxy.requests[0].method, proxy.requests[0].target) == ("CONNECT", "api.test:443")


@pytest.mark.parametrize(
    "proxy",
    [
        "https://127.0.0.1:9",
        "socks5://127.0.0.1:9",
        "127.0.0.1:9",
        "http://169.254.169.254:80",
        "http://127.0.0.1:9",
    ],
)
def test_unusable_proxy_is_an_error(proxy: str) -> None:
    with (
        client_of("http://127.0.0.1:9", proxy=proxy) as client,
        pytest.raises(HttpError, match="proxy"),
    ):
        client.send("GET", "/", seconds=SECONDS)


def test_key_echoed_in_response_headers_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(answering(ok(b"{}", f"X-Echo: {KEY}"))) as server, client_of(server.url) as client:
        assert client.send("POST", "/", b"{}", seconds=SECONDS).headers["x-echo"] == KEY
    assert KEY not in caplog.text


def test_httpcore_is_not_imported_before_the_first_request() -> None:
    """A cold search without a remote provider must not pay for it."""
    code = (
        "import sys, clawmark.composition, clawmark.embed.choose, clawmark.agent.models.catalog\n"
        "print('httpcore' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
