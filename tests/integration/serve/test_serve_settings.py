"""The settings of the section `serve` have their effect."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from embeddings import EmbeddingServer
from team_server import HANG_SECONDS, Team, TeamServer, team_server, wait_until


@pytest.fixture
def embedding_server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=64) as running:
        yield running


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def test_the_port_and_the_log_are_those_of_the_settings(team: Team, tmp_path: Path) -> None:
    wanted = free_port()
    for is_logged in (True, False):
        settings = {"serve": {"port": wanted, "accessLog": is_logged}}
        with team_server(tmp_path / str(is_logged), team.uri, settings) as server:
            assert server.port == wanted
            assert server.request("GET", "/v1/spaces", team.token("ada")).status == 200
            assert server.stop() == 0
        assert ("GET listSpaces 200" in server.errors()) is is_logged


def test_bodies_are_limited_in_size_and_time(team: Team, tmp_path: Path) -> None:
    settings = {"serve": {"maxBodyBytes": 2000, "requestSeconds": 1}}
    with team_server(tmp_path, team.uri, settings) as server:
        large = server.request("POST", "/v1/search", team.token("ada"), {"query": "x" * 3000})
        assert (large.status, large.error["type"]) == (413, "BodyTooLarge")
        head = b"POST /v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
        assert b"within 0.8 seconds" in server.send(head)


def test_a_process_opens_no_more_connections_than_configured(team: Team, tmp_path: Path) -> None:
    with team_server(tmp_path, team.uri, {"serve": {"connections": 1}}) as server:
        token = team.token("ada")
        for _ in range(5):
            assert server.request("GET", "/v1/spaces", token).status == 200
        text = server.request("GET", "/metrics").body.decode()
        assert "\nclawmark_pool_connections 1\n" in text


def test_behind_a_proxy_tokens_are_accepted_from_it_only(team: Team, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address of its own")
        own = probe.getsockname()[0]
    head = (
        f"GET /v1/spaces HTTP/1.1\r\nHost: memory.example\r\nConnection: close\r\n"
        f"X-Forwarded-For: 203.0.113.7\r\nAuthorization: Bearer {team.token('ada')}\r\n\r\n"
    ).encode()

    def ask(server: TeamServer, address: str) -> bytes:
        with socket.create_connection((address, server.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(head)
            return connection.makefile("rb").read()

    settings: dict[str, Any] = {
        "host": "0.0.0.0",
        "publicUrl": "https://memory.example",
        "trustedProxies": ["10.0.0.0/8"],
    }
    with team_server(tmp_path / "other", team.uri, {"serve": settings}) as server:
        refused = ask(server, own)
        assert refused.startswith(b"HTTP/1.1 403 ")
        assert b"NotProxied" in refused
        assert ask(server, "127.0.0.1").startswith(b"HTTP/1.1 200 ")
        page = server.request("GET", "/sign-in", headers={"Host": "memory.example"})
        assert page.status == 200
        signed_in = server.request(
            "POST",
            "/sign-in",
            "",
            f"token={team.token('ada')}".encode(),
            {
                "Host": "memory.example",
                "Origin": "https://memory.example",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        assert signed_in.headers["set-cookie"].startswith("__Host-clawmark=cmk_")
        assert "Secure" in signed_in.headers["set-cookie"]
    settings["trustedProxies"] = [own]
    with team_server(tmp_path / "trusted", team.uri, {"serve": settings}) as server:
        assert ask(server, own).startswith(b"HTTP/1.1 200 ")
        assert server.stop() == 0
    assert "203.0.113.7 GET listSpaces 200" in server.errors()


def due(team: Team, model: str) -> int:
    """Count the passages that have no vector of a model."""
    with psycopg.connect(team.owner_uri) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM clawmark.chunks), "
            "(SELECT count(*) FROM clawmark.vectors v JOIN clawmark.spaces s "
            "ON s.scope = v.scope AND s.id = v.space WHERE s.model = %s)",
            (model,),
        ).fetchone()
    assert row is not None
    return int(row[0]) - int(row[1])


def test_missing_vectors_are_made_in_the_background(
    team: Team, tmp_path: Path, embedding_server: EmbeddingServer
) -> None:
    model = "text-embedding-3-small"
    search = {
        "provider": "openai",
        "model": model,
        "outputDimensionality": 64,
        "remote": {"baseUrl": embedding_server.url, "apiKey": "not-a-real-key"},
    }
    ada = team.token("ada")
    for is_embedding in (False, True):
        settings = {"memorySearch": search, "serve": {"embed": is_embedding}}
        with team_server(tmp_path / str(is_embedding), team.uri, settings) as server:
            entry = {"text": f"A heron, {is_embedding}.", "key": f"embed-{is_embedding}"}
            reply = server.request("POST", "/v1/spaces/team/entries", ada, entry)
            assert reply.status == 201
            if is_embedding:
                wait_until(lambda: due(team, model) == 0, server.errors)
                found = server.request("POST", "/v1/search", ada, {"query": "heron"}).json()
                assert (found["mode"], found["dueVectors"]) == ("hybrid", 0)
            assert server.stop() == 0
        if not is_embedding:
            assert due(team, model) > 0
        assert "Traceback" not in server.errors()
