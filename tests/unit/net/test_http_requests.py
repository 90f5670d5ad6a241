"""What the client sends, to whom, over which connections; and what it never sends or says."""

from __future__ import annotations

import os
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
def test_the_path_is_below_the_base_url_whose_query_stays(
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
        with pytest.raises(HttpError) as trouble:
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 0
    assert trouble.value.permanent
    assert KEY not in repr(trouble.value) + trouble.value.reason + trouble.value.hint + repr(
        trouble.value.__context__
    )


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä", "no-slash"])
def test_an_impossible_path_is_refused(path: str) -> None:
    with (
        client_of("http://127.0.0.1:9") as client,
        pytest.raises(HttpError, match="impossible address"),
    ):
        client.send("GET", path, seconds=SECONDS)


def test_a_key_never_becomes_part_of_the_address() -> None:
    with (
        client_of("http://127.0.0.1:9", secrets=[KEY]) as client,
        pytest.raises(HttpError) as trouble,
    ):
        client.send("GET", f"/embed?key={KEY}", seconds=SECONDS)
    assert KEY not in trouble.value.reason


def test_what_a_client_shows_of_itself_holds_no_key() -> None:
    assert KEY not in repr(
        HttpClient("http://127.0.0.1:9/v1?key=1", {"Authorization": KEY}, secrets=[KEY])
    )


def test_no_trouble_repeats_what_the_server_said() -> None:
    echo = answering(f"ECHO {KEY}\r\n\r\n".encode(), close=True)
    with (
        serving(echo) as server,
        client_of(server.url) as client,
        pytest.raises(HttpError) as trouble,
    ):
        client.send("POST", "/", b"{}", seconds=SECONDS)
    assert KEY not in repr(trouble.value)


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
def test_an_address_that_is_no_service_is_refused_with_a_reason_that_stays(url: str) -> None:
    with (
        client_of(url) as client,
        pytest.raises(HttpError, match="the address is refused") as trouble,
    ):
        client.send("GET", "/", seconds=SECONDS)
    assert trouble.value.permanent


# --- connections --------------------------------------------------------------------------------------------------


def test_a_connection_is_used_again() -> None:
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
def test_a_connection_that_was_spoilt_or_given_up_is_not_used_again(answer: bytes) -> None:
    with serving(answering(answer)) as server, client_of(server.url) as client:
        for _ in range(2):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 2


def test_bytes_that_nobody_asked_for_never_become_an_answer() -> None:
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


def test_a_connection_that_the_server_closed_meanwhile_is_replaced_without_a_word() -> None:
    with serving(answering(ok(), close=True)) as server, client_of(server.url) as client:
        for _ in range(5):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        assert server.connections == 5


def test_a_kept_connection_that_dies_under_the_request_is_replaced_without_a_word() -> None:
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


def test_an_old_connection_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_SECONDS", 0.0)
    with serving(answering(ok())) as server, client_of(server.url) as client:
        for _ in range(3):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 3


def test_four_threads_share_a_client_and_each_gets_its_own_answer() -> None:
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


def test_after_a_fork_the_child_does_not_speak_on_the_connection_of_its_parent() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        client.send("POST", "/", b"{}", seconds=SECONDS)
        client._idle[0].process = os.getpid() + 1
        client.send("POST", "/", b"{}", seconds=SECONDS)
        assert server.connections == 2


def test_a_closed_client_keeps_no_connection_and_still_answers() -> None:
    with serving(answering(ok())) as server, client_of(server.url) as client:
        client.close()
        for _ in range(2):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        assert server.connections == 2


# --- long bodies, other addresses -----------------------------------------------------------------------------------


def test_a_long_body_is_received_in_pieces() -> None:
    body = bytes(40 << 20)
    with serving(answering(ok(body), close=True)) as server, client_of(server.url) as client:
        incoming = client.receive("/file", seconds=SECONDS, most=64 << 20)
        assert incoming.head.status == 200
        assert sum(map(len, incoming.pieces)) == len(body)
        incoming.close()


def test_a_body_that_is_longer_than_allowed_is_a_trouble() -> None:
    with (
        serving(answering(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(3 << 20), close=True)) as server,
        client_of(server.url) as client,
    ):
        incoming = client.receive("/file", seconds=SECONDS, most=2 << 20)
        with pytest.raises(HttpError, match="larger than 2 MB"):
            list(incoming.pieces)
        incoming.close()


def test_a_refused_download_has_its_words() -> None:
    with (
        serving(
            answering(b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone", close=True)
        ) as server,
        client_of(server.url) as client,
    ):
        incoming = client.receive("/file", seconds=SECONDS, most=1)
        incoming.close()
    assert (incoming.head.status, incoming.head.body, list(incoming.pieces)) == (404, b"gone", [])


def test_another_address_of_the_same_host_may_have_the_key_and_another_host_may_not() -> None:
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


# --- proxies --------------------------------------------------------------------------------------------------------


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


def test_a_configured_proxy_gets_the_whole_address_and_its_own_password() -> None:
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
        pytest.raises(HttpError) as trouble,
    ):
        client.send("POST", "/embeddings", b"{}", seconds=SECONDS)
    assert trouble.value.reason == why
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
def test_a_proxy_that_cannot_be_used_is_a_trouble(proxy: str) -> None:
    with (
        client_of("http://127.0.0.1:9", proxy=proxy) as client,
        pytest.raises(HttpError, match="proxy"),
    ):
        client.send("GET", "/", seconds=SECONDS)
