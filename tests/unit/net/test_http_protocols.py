"""HTTP/2, and proxies that are reached by TLS or by SOCKS 5."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
import struct
import threading

import h2.config
import h2.connection
import h2.events
import hpack
import pytest
from rawserver import Peer, RawServer, answering, forward, new_certificate, ok, serving

from clawmark.net.client import HttpClient, HttpError

SECONDS = 20.0
NAME = "embeddings.test"
REQUEST_BODY = b'{"input": ["words"]}'

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="the program openssl, which makes certificates, is missing"
)


@pytest.fixture
def context(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> ssl.SSLContext:
    """A server's context whose certificate the client trusts."""
    certificate = new_certificate(tmp_path_factory.mktemp("tls"), NAME)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


def client_of(url: str, proxy: str = "") -> HttpClient:
    return HttpClient(url, resolve=lambda host, port: ["127.0.0.1"], proxy=proxy)


# --- HTTP/2 ---------------------------------------------------------------------------------------


def speak_http2(peer: Peer, server: RawServer, body: bytes = b"two", *, drip: bool = False) -> None:
    """Answer every request with the body, or with its first byte and nothing more."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    peer.send(connection.data_to_send())
    while data := peer.sock.recv(65536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.StreamEnded):
                connection.send_headers(event.stream_id, [(":status", "200"), ("x-a", "1")])
                sent = body[:1] if drip else body
                for start in range(0, len(sent), 16384):
                    piece = sent[start : start + 16384]
                    connection.send_data(event.stream_id, piece)
                if not drip:
                    connection.end_stream(event.stream_id)
        peer.send(connection.data_to_send())


def test_http2_is_spoken_with_a_server_that_offers_it(context: ssl.SSLContext) -> None:
    context.set_alpn_protocols(["h2"])
    with serving(speak_http2, context) as server:
        client = client_of(f"https://{NAME}:{server.port}")
        for _ in range(3):
            response = client.send("POST", "/", b"{}", seconds=SECONDS)
            assert (response.status, response.headers["x-a"], response.body) == (200, "1", b"two")
        client.close()
        assert server.connections == 1


def test_slow_http2_response_is_aborted_at_the_deadline(context: ssl.SSLContext) -> None:
    context.set_alpn_protocols(["h2"])
    with serving(lambda peer, server: speak_http2(peer, server, drip=True), context) as server:
        client = client_of(f"https://{NAME}:{server.port}")
        with pytest.raises(HttpError, match=r"^the response was not complete within 1 s$"):
            client.send("POST", "/", b"{}", seconds=1)
        client.close()


def test_malformed_http2_is_an_error(context: ssl.SSLContext) -> None:
    context.set_alpn_protocols(["h2"])
    with serving(lambda peer, server: peer.send(b"HTTP/1.1 200 OK\r\n\r\n"), context) as server:
        client = client_of(f"https://{NAME}:{server.port}")
        with pytest.raises(HttpError):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()


def http2_frame(kind: int, flags: int, payload: bytes, stream: int = 1) -> bytes:
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + struct.pack(">I", stream) + payload


def http2_head(*fields: tuple[str, str]) -> bytes:
    return http2_frame(1, 0x4, hpack.Encoder().encode(fields))


LAST_DATA = http2_frame(0, 0x1, b"x")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(http2_head((":status", "abc")) + LAST_DATA, id="status that is a word"),
        pytest.param(http2_head((":status", "9" * 5000)) + LAST_DATA, id="endless status"),
        pytest.param(http2_head((":status", "-1")) + LAST_DATA, id="negative status"),
        pytest.param(http2_frame(1, 0x4, b"\xff" * 9), id="compressed headers"),
        pytest.param(
            http2_head((":status", "200"), ("content-length", "5")) + LAST_DATA, id="length"
        ),
        pytest.param(LAST_DATA, id="data without headers"),
    ],
)
def test_http2_response_against_the_protocol_is_the_fault_of_the_server(
    context: ssl.SSLContext, sent: bytes
) -> None:
    def speak(peer: Peer, server: RawServer) -> None:
        peer.send(http2_frame(4, 0, b"", stream=0))
        received = b""
        while REQUEST_BODY not in received:
            received += peer.sock.recv(65536)
        peer.send(sent)
        while peer.sock.recv(65536):
            pass

    context.set_alpn_protocols(["h2"])
    with serving(speak, context) as server:
        client = client_of(f"https://{NAME}:{server.port}")
        with pytest.raises(HttpError, match=r"^the response is malformed$") as error:
            client.send("POST", "/", REQUEST_BODY, seconds=SECONDS)
        client.close()
    assert not error.value.permanent  # so it is tried again


def test_http2_connection_that_the_server_closed_while_idle_is_replaced(
    context: ssl.SSLContext,
) -> None:
    closed = threading.Event()

    def answer_once(peer: Peer, server: RawServer) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        peer.send(connection.data_to_send())
        while data := peer.sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    connection.send_headers(event.stream_id, [(":status", "200")])
                    connection.send_data(event.stream_id, b"two", end_stream=True)
                    peer.send(connection.data_to_send())
                    peer.sock.close()
                    closed.set()
                    return

    context.set_alpn_protocols(["h2"])
    with serving(answer_once, context) as server:
        client = client_of(f"https://{NAME}:{server.port}")
        for _ in range(3):
            closed.clear()
            assert client.send("POST", "/", b"{}", seconds=SECONDS).body == b"two"
            assert closed.wait(SECONDS)
        client.close()
        assert server.connections == 3


# --- a proxy over TLS -----------------------------------------------------------------------------


def test_https_service_is_reached_through_an_https_proxy(context: ssl.SSLContext) -> None:
    with serving(answering(ok(b"tunnelled")), context) as server:

        def tunnel(peer: Peer, proxy: RawServer) -> None:
            proxy.requests += [request for request in [peer.request()] if request]
            with socket.create_connection(("127.0.0.1", server.port)) as there:
                peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                forward(peer.sock, there)

        with serving(tunnel, context) as proxy:
            url = f"https://{NAME}:{server.port}"
            client = client_of(url, proxy=f"https://me:pw@127.0.0.1:{proxy.port}")
            assert client.send("POST", "/", b"{}", seconds=SECONDS).body == b"tunnelled"
            client.close()
        assert proxy.requests[0].target == f"{NAME}:{server.port}"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6cHc="


def test_https_proxy_without_tls_is_named() -> None:
    with serving(lambda peer, proxy: peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")) as proxy:
        client = client_of("http://service.test", proxy=f"https://127.0.0.1:{proxy.port}")
        with pytest.raises(HttpError, match=r"^the proxy cannot be used: ") as error:
            client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()
    assert "TLS" in error.value.reason


# --- SOCKS 5 --------------------------------------------------------------------------------------


def speak_socks(peer: Peer, proxy: RawServer, port: int, *, reply: int = 0) -> None:
    """Accept any user name and password, note the wanted host, and connect to `port`."""
    peer.sock.recv(64)
    peer.send(b"\x05\x02")
    length = peer.sock.recv(2)[1]
    user = peer.sock.recv(length)
    password = peer.sock.recv(peer.sock.recv(1)[0])
    peer.send(b"\x01\x00" if password == b"p@ss" else b"\x01\x01")
    _, _, _, kind, size = peer.sock.recv(5)
    host = peer.sock.recv(size).decode()
    (wanted,) = struct.unpack(">H", peer.sock.recv(2))
    proxy.hosts.append(f"{user.decode()} {kind} {host}:{wanted}")
    peer.send(bytes([5, reply, 0, 1]) + bytes(6))
    if not reply:
        with socket.create_connection(("127.0.0.1", port)) as there:
            forward(peer.sock, there)


def test_https_service_is_reached_through_a_socks_proxy_that_resolves_its_name(
    context: ssl.SSLContext,
) -> None:
    with (
        serving(answering(ok(b"by socks")), context) as server,
        serving(lambda peer, proxy: speak_socks(peer, proxy, server.port)) as proxy,
    ):
        client = client_of(
            f"https://{NAME}:{server.port}", proxy=f"socks5://me:p%40ss@127.0.0.1:{proxy.port}"
        )
        for _ in range(2):
            assert client.send("POST", "/", b"{}", seconds=SECONDS).body == b"by socks"
        client.close()
        assert proxy.hosts == [f"me 3 {NAME}:{server.port}"]


@pytest.mark.parametrize(
    ("password", "reply", "reason"),
    [
        ("wrong", 0, "the proxy wants a user name and password"),
        ("p%40ss", 5, "the proxy does not connect to the service"),
    ],
)
def test_socks_proxy_that_refuses_is_named_and_its_password_is_not_logged(
    password: str, reply: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda peer, proxy: speak_socks(peer, proxy, 9, reply=reply)) as proxy:
        url = f"socks5://me:{password}@127.0.0.1:{proxy.port}"
        client = client_of("http://service.test", proxy=url)
        with pytest.raises(HttpError) as error:
            client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()
    assert error.value.reason == reason
    assert "p@ss" not in caplog.text and "wrong" not in caplog.text


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad\r\n\r\n", b"\x05\xff", b"\x04\x02"])
def test_what_does_not_speak_socks_is_named(answer: bytes) -> None:
    def script(peer: Peer, proxy: RawServer) -> None:
        peer.sock.recv(64)
        peer.send(answer)

    with serving(script) as proxy:
        client = client_of("http://service.test", proxy=f"socks5://127.0.0.1:{proxy.port}")
        with pytest.raises(HttpError, match=r"^the proxy "):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()


def test_silent_socks_proxy_is_aborted_at_the_deadline() -> None:
    with serving(lambda peer, proxy: peer.until_closed()) as proxy:
        client = client_of("http://service.test", proxy=f"socks5://127.0.0.1:{proxy.port}")
        with pytest.raises(
            HttpError, match=r"^the proxy cannot be used: no response within 0.5 s$"
        ):
            client.send("POST", "/", b"{}", seconds=0.5)
        client.close()
