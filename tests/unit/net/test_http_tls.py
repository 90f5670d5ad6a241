"""TLS: the certificate must be trusted and for the configured name, also through a proxy."""

from __future__ import annotations

import shutil
import socket
import ssl
from pathlib import Path

import pytest
from rawserver import Peer, RawServer, answering, forward, new_certificate, ok, serving

from clawmark.net.client import HttpClient, HttpError

SECONDS = 20.0
NAME = "embeddings.test"

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="the program openssl, which makes certificates, is not here"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_certificate(tmp_path_factory.mktemp("tls"), NAME)


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


def client_of(host: str, port: int, **options: str) -> HttpClient:
    return HttpClient(
        f"https://{host}:{port}/v1",
        {"Authorization": "Bearer FAKE"},
        resolve=lambda host, port: ["127.0.0.1"],
        **options,
    )


def error_of(client: HttpClient, seconds: float = SECONDS) -> HttpError:
    with pytest.raises(HttpError) as error:
        client.send("POST", "/embeddings", b"{}", seconds=seconds)
    client.close()
    return error.value


@pytest.mark.usefixtures("trusted")
def test_trusted_server_gets_the_request_and_the_connection_is_kept(
    context: ssl.SSLContext,
) -> None:
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, context: names.append(name)
    with serving(answering(ok(b"secret")), context) as server:
        client = client_of(NAME, server.port)
        for _ in range(3):
            assert client.send("POST", "/embeddings", b"{}", seconds=SECONDS).body == b"secret"
        client.close()
        assert server.connections == 1
    assert names == [NAME]


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_refused_before_anything_is_sent(
    context: ssl.SSLContext,
) -> None:
    with serving(answering(ok()), context) as server:
        error = error_of(client_of("other.test", server.port))
        assert server.requests == []
    assert error.reason == "the certificate is for another name"
    assert error.permanent


@pytest.mark.usefixtures("trusted")
def test_a_certificate_may_be_for_an_address(context: ssl.SSLContext) -> None:
    with serving(answering(ok()), context) as server:
        client = HttpClient(f"https://127.0.0.1:{server.port}")
        assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        client.close()
        assert error_of(HttpClient(f"https://127.0.0.2:{server.port}")).reason in (
            "the certificate is for another address",
            "the connection was refused",
        )


def test_untrusted_certificate_is_refused(context: ssl.SSLContext) -> None:
    with serving(answering(ok()), context) as server:
        error = error_of(client_of(NAME, server.port))
        assert server.requests == []
    assert error.reason == "the certificate is self-signed and not trusted"
    assert "SSL_CERT_FILE" in error.hint


def test_https_to_a_plain_http_server_is_explained() -> None:
    with serving(lambda peer, server: peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")) as server:
        error = error_of(client_of(NAME, server.port))
    assert error.reason == "the server does not speak TLS (https) on this port"


def test_http_to_a_tls_server_is_an_error(context: ssl.SSLContext) -> None:
    with serving(answering(ok()), context) as server:
        reason = error_of(HttpClient(f"http://127.0.0.1:{server.port}")).reason
    # Some versions of OpenSSL say goodbye in TLS, others just hang up.
    assert reason in (
        "the server speaks TLS on this port",
        "the connection was closed before a response came",
    )


def test_hanging_tls_handshake_is_aborted_at_the_deadline() -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.until_closed()

    with serving(script) as server:
        assert (
            error_of(client_of(NAME, server.port), 0.3).reason == "no TLS connection within 0.3 s"
        )


@pytest.mark.usefixtures("trusted")
def test_slow_tls_response_is_aborted_at_the_deadline(context: ssl.SSLContext) -> None:
    def script(peer: Peer, server: RawServer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
        peer.for_ever(b"x", 0.02)

    with serving(script, context) as server:
        reason = error_of(client_of(NAME, server.port), 1.5).reason
    assert reason == "the response was not complete within 1.5 s"


def test_tls_key_log_is_never_written(
    context: ssl.SSLContext, trusted: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    with serving(answering(ok()), context) as server:
        client = client_of(NAME, server.port)
        client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()
    assert not (tmp_path / "keys.log").exists()


@pytest.mark.usefixtures("trusted")
def test_tunnelled_tls_checks_the_service_and_hides_the_key_from_the_proxy(
    context: ssl.SSLContext,
) -> None:
    with serving(answering(ok(b"tunnelled")), context) as server:

        def tunnel(peer: Peer, proxy: RawServer) -> None:
            proxy.requests += [request for request in [peer.request()] if request]
            with socket.create_connection(("127.0.0.1", server.port)) as there:
                peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                forward(peer.sock, there)

        with serving(tunnel) as proxy:
            client = client_of(NAME, server.port, proxy=proxy.url)
            assert client.send("POST", "/embeddings", b"{}", seconds=SECONDS).body == b"tunnelled"
            client.close()
            assert (
                error_of(client_of("other.test", server.port, proxy=proxy.url)).reason
                == "the certificate is for another name"
            )
        request = proxy.requests[0]
        assert (request.method, request.target) == ("CONNECT", f"{NAME}:{server.port}")
        assert "authorization" not in request.headers
