"""The client returns a response or an error with a reason, in time and in bounded memory."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Callable

import pytest
from rawserver import Peer, RawServer, answering, ok, serving

from clawmark.net.client import HttpClient, HttpError, Response

SECONDS = 20.0  # for responses that come, also on a busy machine
SOON = 1.0  # for responses that never come
BIG = 33 << 20


def ask(data: bytes, *, close: bool = True, method: str = "POST") -> Response:
    with serving(answering(data, close=close)) as server, closing(server.url) as client:
        return client.send(method, "/embed", b"{}", seconds=SECONDS)


def closing(url: str, **options: object) -> Closing:
    return Closing(HttpClient(url, **options))  # type: ignore[arg-type]


class Closing:
    def __init__(self, client: HttpClient) -> None:
        self.client = client

    def __enter__(self) -> HttpClient:
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()


def reason(data: bytes, *, close: bool = True) -> str:
    with pytest.raises(HttpError) as error:
        ask(data, close=close)
    return error.value.reason


def reason_for(
    script: Callable[[Peer, RawServer], None], seconds: float = SOON, body: bytes = b"{}"
) -> str:
    with (
        serving(script) as server,
        closing(server.url) as client,
        pytest.raises(HttpError) as error,
    ):
        client.send("POST", "/embed", body, seconds=seconds)
    return error.value.reason


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()


def test_response_has_status_lower_case_headers_and_body() -> None:
    response = ask(ok(b'{"a": 1}', "X-Thing:  one ", "x-thing: two"))
    assert (response.status, response.body) == (200, b'{"a": 1}')
    assert response.headers["x-thing"] == "one, two"


@pytest.mark.parametrize("status", [201, 204, 301, 302, 304, 400, 401, 429, 500, 529, 599, 999])
def test_every_status_is_returned_and_no_redirect_followed(status: int) -> None:
    with serving(
        answering(f"HTTP/1.1 {status} X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".encode())
    ) as server:
        with closing(server.url) as client:
            assert client.send("POST", "/embed", b"{}", seconds=SECONDS).status == status
        assert len(server.requests) == 1


def test_redirect_to_another_host_is_not_followed() -> None:
    with serving(answering(ok())) as other:
        response = ask(
            f"HTTP/1.1 302 Found\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
        )
        assert (response.status, other.connections) == (302, 0)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert ask(head() + b"abc").body == b"abc"


def test_http_1_0_response_is_understood() -> None:
    assert ask(b"HTTP/1.0 200 OK\r\n\r\nabc").body == b"abc"


def test_line_ends_may_lack_their_carriage_return() -> None:
    assert ask(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok").body == b"ok"


def test_a_folded_header_line_is_joined_with_a_space() -> None:
    assert ask(ok(b"ok", "A: b", " folded")).headers["a"] == "b folded"


def test_interim_responses_are_skipped() -> None:
    assert (
        ask(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + ok(b"yes")).body
        == b"yes"
    )


def test_chunked_body_is_joined() -> None:
    assert (
        ask(
            head("Transfer-Encoding: chunked")
            + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n"
        ).body
        == b"abcde"
    )


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("gzip", gzip.compress(b"hello " * 100, mtime=0)),
        ("x-gzip", gzip.compress(b"hello ", mtime=0) + gzip.compress(b"hello " * 99, mtime=0)),
        ("deflate", zlib.compress(b"hello " * 100)),
        (
            "deflate",
            zlib.compressobj(wbits=-15).compress(b"") + zlib.compress(b"hello " * 100)[2:-4],
        ),
        ("identity", b"hello " * 100),
    ],
)
def test_a_compressed_body_is_decompressed(name: str, packed: bytes) -> None:
    assert ask(ok(packed, f"Content-Encoding: {name}")).body == b"hello " * 100


@pytest.mark.parametrize("length", [1 << 20, (1 << 20) + 1, (1 << 20) + 100, (1 << 20) + 300])
def test_decompressed_body_of_any_length_is_complete(length: int) -> None:
    packed = zlib.compress(b"0" * length, 9)[2:-4]
    assert len(ask(ok(packed, "Content-Encoding: deflate")).body) == length


def test_a_gzip_bomb_is_stopped_at_the_limit() -> None:
    assert (
        reason(ok(gzip.compress(bytes(BIG * 4)), "Content-Encoding: gzip"))
        == "the response is larger than 32 MB"
    )


def test_empty_gzip_members_count_toward_the_limit() -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.request()
        peer.send(head("Content-Encoding: gzip"))
        peer.for_ever(gzip.compress(b"", mtime=0) * 500)

    assert reason_for(script) in (
        "the response was not complete within 1 s",
        "the response is larger than 32 MB",
    )


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("gzip", b'{"data": []}', "the response is malformed: it cannot be decompressed"),
        ("deflate", b"\xff" * 20, "the response is malformed: it cannot be decompressed"),
        ("gzip", gzip.compress(b"hello " * 100, mtime=0)[:-9], "the response was cut short"),
        ("br", b"x", "the response is compressed in a way that was not requested"),
        ("gzip, gzip", b"x", "the response is compressed in a way that was not requested"),
    ],
)
def test_wrongly_compressed_body_is_an_error(name: str, body: bytes, why: str) -> None:
    assert reason(ok(body, f"Content-Encoding: {name}")) == why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (head("Content-Length: 5") + b"abc", "the response was cut short"),
        (head("Content-Length: 2") + b"abc", "the response is longer than it says"),
        (
            head("Content-Length: -1") + b"abc",
            "the response is malformed: its length is not a number",
        ),
        (
            head("Content-Length: abc") + b"abc",
            "the response is malformed: its length is not a number",
        ),
        (head("Content-Length:") + b"abc", "the response is malformed: its length is not a number"),
        (
            head("Content-Length: 3, 4") + b"abc",
            "the response is malformed: its length is not a number",
        ),
        (
            head("Content-Length: 10000000000000000000") + b"abc",
            "the response is larger than 32 MB",
        ),
        (
            head("Content-Length: " + "9" * 5000) + b"abc",
            "the response is malformed: its length is not a number",
        ),
        (head(f"Content-Length: {BIG}") + b"abc", "the response is larger than 32 MB"),
        (
            head("Transfer-Encoding: chunked") + b"zz\r\nabc",
            "the response is malformed: a chunk has no size",
        ),
        (
            head("Transfer-Encoding: chunked") + b"-3\r\nabc",
            "the response is malformed: a chunk has no size",
        ),
        (
            head("Transfer-Encoding: chunked") + b"2\r\nabc\r\n0\r\n\r\n",
            "the response is malformed: a chunk is not as long as it says",
        ),
        (head("Transfer-Encoding: chunked") + b"5\r\nabc", "the response was cut short"),
        (head("Transfer-Encoding: chunked") + b"3\r\nabc\r\n", "the response was cut short"),
        (head("Transfer-Encoding: chunked") + b"0\r\nTrail", "the response was cut short"),
        (head("Transfer-Encoding: chunked") + b"fffffffff\r\n", "the response was cut short"),
        (head("Transfer-Encoding: chunked") + b"1" * 3000, "the response was cut short"),
        (
            head("Transfer-Encoding: gzip") + b"abc",
            "the response is malformed: its transfer encoding is unknown",
        ),
        (head("no header at all"), "the response is malformed: a header line cannot be read"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n", "the response was cut short"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "the response is not HTTP/1.1"),
        (b"HTTP/2 200\r\n\r\n", "the response is not HTTP/1.1"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "the server wants to speak another protocol"),
        (b"<html>an answer of 1991</html>", "the response is not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "the response is not HTTP"),
        (b"HT", "the response was cut short"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "the server speaks TLS on this port"),
        (b"\x16\x03\x03\x00\x7a\x02", "the server speaks TLS on this port"),
        (b"", "the connection was closed before a response came"),
    ],
    ids=range(29),
)
def test_malformed_response_is_an_error_with_a_reason(data: bytes, why: str) -> None:
    assert reason(data) == why


def after_the_request(
    data: bytes, then: Callable[[Peer], None]
) -> Callable[[Peer, RawServer], None]:
    def script(peer: Peer, server: RawServer) -> None:
        peer.request()
        peer.send(data)
        then(peer)

    return script


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (after_the_request(b"", Peer.until_closed), "no response within 1 s"),
        (
            after_the_request(b"HTTP/1.1 ", Peer.until_closed),
            "the response was not complete within 1 s",
        ),
        (
            after_the_request(head("Content-Length: 9") + b"half", Peer.until_closed),
            "the response was not complete within 1 s",
        ),
        (
            after_the_request(head("Content-Length: 99"), lambda p: p.for_ever(b"x", 0.02)),
            "the response was not complete within 1 s",
        ),
        (
            after_the_request(b"HTTP/1.1 200 OK\r\n", lambda p: p.for_ever(b"A", 0.02)),
            "the response was not complete within 1 s",
        ),
        (
            after_the_request(b"", lambda p: p.for_ever(b"HTTP/1.1 100 X\r\n\r\n", 0.02)),
            "the response was not complete within 1 s",
        ),
        (
            after_the_request(
                head("Transfer-Encoding: chunked"), lambda p: p.for_ever(b"1\r\nx\r\n", 0.02)
            ),
            "the response was not complete within 1 s",
        ),
    ],
    ids=[
        "silence",
        "half a status",
        "half a body",
        "a slow body",
        "slow headers",
        "slow interim answers",
        "slow chunks",
    ],
)
def test_slow_response_is_aborted_at_the_deadline(
    script: Callable[[Peer, RawServer], None], why: str
) -> None:
    assert reason_for(script) == why


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            after_the_request(head(), lambda p: p.for_ever(bytes(65536))),
            "the response is larger than 32 MB",
        ),
        (
            after_the_request(
                head("Transfer-Encoding: chunked"),
                lambda p: p.for_ever(b"10000\r\n" + bytes(65536) + b"\r\n"),
            ),
            "the response is larger than 32 MB",
        ),
        (
            after_the_request(b"HTTP/1.1 200 OK\r\n", lambda p: p.for_ever(b"A: b\r\n" * 100)),
            "the headers of the response are larger than 64 KB",
        ),
        (
            after_the_request(b"HTTP/1.1 200 OK\r\nA: ", lambda p: p.for_ever(b"b" * 1000)),
            "the headers of the response are larger than 64 KB",
        ),
        (
            after_the_request(b"", lambda p: p.for_ever(b"HTTP/1.1 100 X\r\n\r\n")),
            "the headers of the response are larger than 64 KB",
        ),
        (
            after_the_request(
                head("Transfer-Encoding: chunked") + b"0\r\n",
                lambda p: p.for_ever(b"A: b\r\n" * 100),
            ),
            "the headers of the response are larger than 64 KB",
        ),
    ],
    ids=["body", "chunks", "headers", "one header", "interim answers", "trailers"],
)
def test_endless_response_is_aborted_at_the_size_limit(
    script: Callable[[Peer, RawServer], None], why: str
) -> None:
    assert reason_for(script, SECONDS) == why


def test_server_that_never_reads_is_abandoned_at_the_deadline() -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.stopped.wait()

    assert reason_for(script, body=bytes(64 << 20)) == "no response within 1 s"


def test_response_sent_before_the_request_was_read_is_returned() -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with serving(script) as server, closing(server.url) as client:
        assert client.send("POST", "/embed", bytes(8 << 20), seconds=SECONDS).status == 413


def test_connection_reset_is_an_error() -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.request()
        peer.send(head("Content-Length: 9"))
        peer.reset()

    assert reason_for(script, SECONDS) in ("the connection was cut", "the response was cut short")


def test_refused_connection_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        closing(f"http://127.0.0.1:{port}") as client,
        pytest.raises(HttpError, match=r"^the connection was refused$"),
    ):
        client.send("POST", "/", b"{}", seconds=SECONDS)


def test_server_that_never_accepts_is_abandoned_at_the_deadline() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(url) as client, pytest.raises(HttpError, match="within 1 s"):
            client.send("POST", "/", b"{}", seconds=SOON)


def test_request_without_time_fails() -> None:
    with (
        serving(answering(ok())) as server,
        closing(server.url) as client,
        pytest.raises(HttpError, match="within 0 s"),
    ):
        client.send("POST", "/", b"{}", seconds=0)


def test_response_to_head_has_no_body() -> None:
    response = ask(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", method="HEAD")
    assert response.body == b""
