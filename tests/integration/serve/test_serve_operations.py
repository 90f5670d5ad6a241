"""Health, metrics, limits, proxies, workers and the end of `clawmark serve`."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from team_server import HANG_SECONDS, Team, TeamServer, team_server, wait_until

from clawmark.config.schema.serve import ServeOptions
from clawmark.model.errors import ConfigError
from clawmark.serve.clients import client_of, limited_as, read_proxies
from clawmark.serve.server import check_options


def metric(server: TeamServer, name: str, **labels: str) -> float:
    text = server.request("GET", "/metrics").body.decode()
    wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
    line = re.escape(f"{name}{{{wanted}}}" if wanted else name)
    found = re.search(rf"^{line} ([0-9.]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def wait_for_lock(team: Team) -> None:
    """Wait until a transaction waits for a lock."""
    with psycopg.connect(team.owner_uri, autocommit=True) as watcher:
        wait_until(
            lambda: watcher.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database()"
            ).fetchone()
        )


def test_health_and_metrics_need_no_token(team: Team, server: TeamServer) -> None:
    assert server.request("GET", "/health/live").json() == {"status": "ok"}
    assert server.request("GET", "/health/ready").json() == {"status": "ok"}
    before = metric(server, "clawmark_searches_total")
    server.request("POST", "/v1/search", team.token("ada"), {"query": "tea"})
    assert metric(server, "clawmark_searches_total") == before + 1
    assert metric(server, "clawmark_requests_total", route="search", status="200") >= 1
    assert metric(server, "clawmark_pool_connections") >= 1
    text = server.request("GET", "/metrics").body.decode()
    for name in re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE):
        assert f"# HELP {name} " in text


def test_metrics_are_not_served_through_a_proxy(server: TeamServer) -> None:
    reply = server.request("GET", "/metrics", headers={"X-Forwarded-For": "203.0.113.7"})
    assert (reply.status, reply.error["type"]) == (403, "NotForClients")


def test_a_server_without_its_database_lives_but_is_not_ready(tmp_path: Path) -> None:
    with team_server(tmp_path, "postgresql://nobody@127.0.0.1:9/none") as server:
        assert server.request("GET", "/health/live").status == 200
        ready = server.request("GET", "/health/ready")
        assert (ready.status, ready.error["type"]) == (503, "SpacesUnavailable")
        reply = server.request("GET", "/v1/spaces", "cmk_" + "x" * 43)
        assert (reply.status, reply.headers["retry-after"]) == (503, "2")
        assert "127.0.0.1:9" not in reply.body.decode()
        assert server.stop() == 0
    assert "127.0.0.1:9" in server.errors()


def test_a_lost_database_is_reported_and_found_again(team: Team, tmp_path: Path) -> None:
    token = team.token("ada")
    with team_server(tmp_path, team.uri) as server:
        assert server.request("GET", "/v1/spaces", token).status == 200
        with psycopg.connect(team.owner_uri, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        assert server.request("GET", "/v1/spaces", token).status == 200


def test_limits_count_by_token_and_by_address(team: Team, tmp_path: Path) -> None:
    limits = {"serve": {"rateLimits": {"perToken": 30, "perAddress": 0}}}
    ada, bob = team.token("ada"), team.token("bob")
    with team_server(tmp_path / "token", team.uri, limits) as server:
        statuses = [server.request("GET", "/v1/spaces", ada).status for _ in range(8)]
        assert statuses[:5] == [200] * 5  # the allowance of ten seconds
        assert 429 in statuses
        refused = server.request("GET", "/v1/spaces", ada)
        assert (refused.status, refused.error["type"]) == (429, "TooManyRequests")
        assert int(refused.headers["retry-after"]) >= 1
        assert server.request("GET", "/v1/spaces", bob).status == 200
        assert metric(server, "clawmark_rate_limited_total", by="token") >= 1
    limits = {"serve": {"rateLimits": {"perToken": 0, "perAddress": 120}}}
    with team_server(tmp_path / "address", team.uri, limits) as server:
        wrong = [server.request("GET", "/v1/spaces", "cmk_" + "x" * 43).status for _ in range(4)]
        assert (wrong[0], wrong[-1]) == (401, 429)  # a wrong token costs ten requests
        other = {"X-Forwarded-For": "203.0.113.7"}
        assert server.request("GET", "/v1/spaces", ada, headers=other).status == 200
        assert server.request("GET", "/health/live").status == 200


def test_a_running_request_is_finished_and_a_new_one_refused_when_the_server_stops(
    team: Team, tmp_path: Path
) -> None:
    ada = team.token("ada")
    with team_server(tmp_path, team.uri) as server:
        path = "/v1/spaces/team/entries"
        first = server.request("POST", path, ada, {"text": "before", "key": "before"})
        assert first.status == 201
        # The lock of the space is held, so that the next append waits in the database.
        with psycopg.connect(team.owner_uri) as blocker:
            blocker.execute("SELECT 1 FROM clawmark.indexes FOR UPDATE")
            answers = list[int]()
            waiting = threading.Thread(
                target=lambda: answers.append(
                    server.request("POST", path, ada, {"text": "late", "key": "late"}).status
                )
            )
            waiting.start()
            wait_for_lock(team)
            with socket.create_connection(("127.0.0.1", server.port)) as early:
                server.process.send_signal(signal.SIGTERM)
                wait_until(lambda: server.request("GET", "/health/ready").status == 503)
                refused = server.request("GET", "/v1/spaces", ada)
                assert (refused.status, refused.error["type"]) == (503, "Stopping")
                assert refused.headers["retry-after"] == "1"
                assert refused.headers["connection"] == "close"
                early.sendall(b"GET /v1/spaces HTTP/1.1\r\nHost: x\r\n\r\n")
                assert early.recv(1000).startswith(b"HTTP/1.1 503 ")
            assert server.process.poll() is None
            blocker.rollback()
            waiting.join(HANG_SECONDS)
        assert answers == [201]
        assert server.wait() == 0
    assert "Traceback" not in server.errors()


def test_requests_that_do_not_finish_are_ended_after_the_limit(team: Team, tmp_path: Path) -> None:
    ada = team.token("ada")
    settings = {"serve": {"shutdownSeconds": 1}}
    with team_server(tmp_path, team.uri, settings) as server:
        with psycopg.connect(team.owner_uri) as blocker:
            blocker.execute("SELECT 1 FROM clawmark.indexes FOR UPDATE")
            waiting = threading.Thread(
                target=server.request,
                args=("POST", "/v1/spaces/team/entries", ada, {"text": "x", "key": "x"}),
            )
            waiting.start()
            wait_for_lock(team)
            assert server.stop() == 1
        waiting.join(HANG_SECONDS)
    assert "Traceback" not in server.errors()


def test_workers_share_a_port_and_their_metrics_and_are_replaced(
    team: Team, tmp_path: Path
) -> None:
    ada = team.token("ada")
    with team_server(tmp_path, team.uri, {"serve": {"workers": 3}}) as server:
        wait_until(lambda: metric(server, "clawmark_workers") == 3, server.errors)
        for _ in range(20):
            assert server.request("GET", "/v1/spaces", ada).status == 200
        counted = metric(server, "clawmark_requests_total", route="listSpaces", status="200")
        assert counted == 20
        tasks = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        if tasks.exists():
            victim = int(tasks.read_text().split()[0])
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: str(victim) not in tasks.read_text().split(), server.errors)
            wait_until(lambda: metric(server, "clawmark_workers") == 3, server.errors)
        # A worker that died has not lost what it had counted.
        counted = metric(server, "clawmark_requests_total", route="listSpaces", status="200")
        assert counted == 20
        assert server.stop() == 0
    assert "Traceback" not in server.errors()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"host": "0.0.0.0"}, "serve.publicUrl"),
        ({"host": "::"}, "serve.publicUrl"),
        ({"host": "0.0.0.0", "public_url": "https://memory.example"}, "serve.trustedProxies"),
        ({"host": "memory.example"}, "not an IP address"),
        ({"public_url": "http://memory.example"}, "https://"),
        ({"trusted_proxies": ("10.0.0.0/99",)}, "serve.trustedProxies"),
    ],
)
def test_an_address_without_encryption_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_options(ServeOptions(**changes))
    assert words in caught.value.message
    assert caught.value.hint


def test_addresses_behind_proxies_are_believed_from_trusted_ones_only() -> None:
    proxies = read_proxies(["10.0.0.0/8"])

    def address(peer: str, *forwarded: str) -> str:
        headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
        return client_of({"client": (peer, 1), "headers": headers}, proxies).address

    assert address("203.0.113.9", "198.51.100.1") == "203.0.113.9"
    assert address("127.0.0.1", "198.51.100.1") == "198.51.100.1"
    assert address("127.0.0.1", "6.6.6.6, 198.51.100.1, 10.1.1.1") == "198.51.100.1"
    assert address("10.0.0.4", "6.6.6.6", "198.51.100.1") == "198.51.100.1"
    assert address("127.0.0.1", "not an address") == "127.0.0.1"
    assert address("::ffff:127.0.0.1", "198.51.100.1") == "198.51.100.1"
    assert address("127.0.0.1", "6.6.6.6, unknown") == "127.0.0.1"
    assert address("127.0.0.1", "6.6.6.6, 198.51.100.1:4711") == "198.51.100.1"
    assert address("127.0.0.1", "6.6.6.6, [2001:db8::1]:4711") == "2001:db8::1"
    hidden = {"client": ("127.0.0.1", 1), "headers": [(b"x-forwarded-for", b"unknown")]}
    assert client_of(hidden, proxies).is_forwarded


def test_addresses_of_one_ipv6_network_share_a_limit() -> None:
    assert limited_as("2001:db8:0:1::1") == limited_as("2001:db8:0:1:ffff::9")
    assert limited_as("2001:db8:0:1::1") != limited_as("2001:db8:0:2::1")
    assert limited_as("::ffff:198.51.100.1") == limited_as("198.51.100.1") == "198.51.100.1"
    assert limited_as("0.0.0.0") != limited_as("0.0.0.1")


def test_a_wrong_configuration_ends_with_one_sentence(tmp_path: Path) -> None:
    for number, (uri, serve, code) in enumerate(
        (
            ("", {}, 2),
            ("https://memory.example", {}, 2),
            ("postgresql://u@localhost/x", {"host": "0.0.0.0"}, 2),
            ("postgresql://u@localhost/x", {"port": "many"}, 2),
        )
    ):
        server = TeamServer(tmp_path / str(number), uri, {"serve": serve})
        try:
            assert server.wait() == code, server.errors()
        finally:
            server.close()
        assert "Traceback" not in server.errors()
        assert server.errors().count("\n") <= 3, server.errors()
