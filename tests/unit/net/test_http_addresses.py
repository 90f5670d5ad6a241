"""A name is resolved once, and only a checked address is connected to."""

from __future__ import annotations

import socket
import threading

import pytest
from rawserver import answering, ok, serving

from clawmark.net.addresses import AddressRefused, allowed_addresses, refusal_reason
from clawmark.net.client import HttpClient, HttpError

SECONDS = 20.0


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.1.1",
        "169.254.170.2",
        "fe80::1",
        "fe80::1%eth0",
        "febf::1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "255.255.255.255",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "ff02::1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2001:0:a9fe:a9fe::1",
        "2001:0:808:808::5601:5601",
        "fd00::5efe:a9fe:a9fe",
        "not an address",
        "",
    ],
)
def test_dangerous_addresses_are_refused_also_inside_ipv6(address: str) -> None:
    assert refusal_reason(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.1.2.3",
        "192.168.1.20",
        "172.17.0.1",
        "100.64.0.1",
        "fd12:3456::1",
        "::ffff:192.168.1.20",
        "104.18.7.192",
        "2606:4700::6812:7c0",
        "64:ff9b::6812:7c0",
    ],
)
def test_loopback_private_and_public_addresses_are_allowed(address: str) -> None:
    assert refusal_reason(address) == ""


def test_one_dangerous_address_refuses_the_name() -> None:
    with pytest.raises(AddressRefused, match="credentials"):
        allowed_addresses(["104.18.7.192", "169.254.169.254"])


def test_link_local_address_is_skipped_when_another_works() -> None:
    assert allowed_addresses(["fe80::1%en0", "192.168.1.20", "192.168.1.20"]) == ["192.168.1.20"]


@pytest.mark.parametrize("addresses", [[], ["fe80::1%en0"]])
def test_name_without_an_allowed_address_is_refused(addresses: list[str]) -> None:
    with pytest.raises(AddressRefused):
        allowed_addresses(addresses)


def error_of(client: HttpClient, seconds: float = SECONDS) -> HttpError:
    with pytest.raises(HttpError) as error:
        client.send("POST", "/", b"{}", seconds=seconds)
    client.close()
    return error.value


def test_name_that_resolves_to_a_dangerous_address_is_never_connected_to() -> None:
    error = error_of(
        HttpClient("http://service.test:9", resolve=lambda host, port: ["169.254.169.254"])
    )
    assert (
        error.reason
        == "service.test resolves to an address that serves a cloud's credentials, which is refused"
    )
    assert error.permanent


def test_checked_address_is_used_and_the_name_is_resolved_once() -> None:
    """A resolver that changes its result is not asked again."""
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return next(answers)

    with serving(answering(ok())) as server:
        client = HttpClient(f"http://service.test:{server.port}/v1", resolve=resolve)
        for _ in range(3):
            client.send("POST", "/", b"{}", seconds=SECONDS)
        client.close()
        assert asked == [("service.test", server.port)]
        assert server.requests[0].headers["host"] == f"service.test:{server.port}"


def test_next_address_is_tried_when_the_first_fails() -> None:
    with serving(answering(ok())) as server:
        client = HttpClient(
            f"http://service.test:{server.port}", resolve=lambda host, port: ["::1", "127.0.0.1"]
        )
        assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        client.close()


def test_localhost_works() -> None:
    with serving(answering(ok())) as server:
        client = HttpClient(f"http://LocalHost:{server.port}")
        assert client.send("POST", "/", b"{}", seconds=SECONDS).status == 200
        client.close()


def test_name_that_does_not_resolve_is_an_error() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert (
        error_of(HttpClient("http://service.test", resolve=resolve)).reason
        == "the name service.test does not resolve"
    )


def test_system_resolver_is_used() -> None:
    reason = error_of(HttpClient("http://service.invalid")).reason
    assert reason.startswith("the name service.invalid ")


def test_hanging_resolver_is_abandoned_at_the_deadline() -> None:
    released = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        released.wait()
        return []

    error = error_of(HttpClient("http://service.test", resolve=resolve), seconds=0.2)
    released.set()
    assert error.reason == "the name service.test was not resolved within 0.2 s"


@pytest.mark.parametrize("base", ["http://[::1]:{}", "http://[::1]:{}/v1"])
def test_ipv6_address_is_connected_to(base: str) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    port = listener.getsockname()[1]
    listener.close()
    assert error_of(HttpClient(base.format(port))).reason == "the connection was refused"
