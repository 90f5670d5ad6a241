"""The REST routes of `clawmark serve`, over a real database."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from team_server import Team, TeamServer, team_server

PLAN = "# Plan\n\nThe ferry leaves at nine from pier four.\n"


def published(path: str, text: str) -> dict[str, str]:
    return {"path": path, "text": text, "hash": hashlib.sha256(text.encode()).hexdigest()}


def test_an_entry_is_appended_once_and_found_by_all_readers(team: Team, server: TeamServer) -> None:
    ada, eve = team.token("ada"), team.token("eve")
    entry = {"text": "We chose PostgreSQL for billing", "key": "billing-1"}
    first = server.request("POST", "/v1/spaces/team/entries", ada, entry)
    again = server.request("POST", "/v1/spaces/team/entries", ada, entry)
    assert (first.status, again.status) == (201, 200)
    assert first.json() == again.json() | {"isRepeated": False}
    assert first.json()["author"] == "ada"
    found = server.request("POST", "/v1/search", eve, {"query": "PostgreSQL billing"}).json()
    hit = found["results"][0]
    assert (hit["space"], hit["path"]) == ("team", first.json()["path"])
    path = hit["path"].removeprefix("spaces/")
    text = server.request("GET", f"/v1/documents/{path}", eve).json()["text"]
    assert text.count("We chose PostgreSQL for billing") == 1
    assert "ada: We chose" in text


def test_a_key_for_another_text_is_a_conflict(team: Team, server: TeamServer) -> None:
    ada = team.token("ada")
    path = "/v1/spaces/team/entries"
    assert server.request("POST", path, ada, {"text": "one", "key": "same"}).status == 201
    reply = server.request("POST", path, ada, {"text": "two", "key": "same"})
    assert (reply.status, reply.error["type"]) == (409, "KeyUsed")


def test_published_files_are_searched_read_listed_and_withdrawn(
    team: Team, server: TeamServer
) -> None:
    bob = team.token("bob")
    plan = published("memory/team/plan.md", PLAN)
    assert (
        server.request("POST", "/v1/spaces/team/publish", bob, {"documents": [plan]}).status == 204
    )
    listed = server.request("GET", "/v1/spaces/team/published", bob).json()
    assert listed == {"documents": {"memory/team/plan.md": plan["hash"]}}
    hit = server.request("POST", "/v1/search", bob, {"query": "ferry pier"}).json()["results"][0]
    assert (hit["author"], hit["space"]) == ("bob", "team")
    assert hit["path"] == "spaces/team/bob/memory/team/plan.md"
    read = server.request(
        "GET", "/v1/documents/team/bob/memory/team/plan.md?from=3&lines=1", bob
    ).json()
    assert read["text"].strip() == "The ferry leaves at nine from pier four."
    changes = server.request("GET", "/v1/spaces/team/changes?since=0", bob).json()
    assert plan["hash"] in [one["hash"] for one in changes["documents"]]
    gone = server.request(
        "POST", "/v1/spaces/team/withdraw", bob, {"paths": ["memory/team/plan.md"]}
    )
    assert gone.status == 204
    missing = server.request("GET", "/v1/documents/team/bob/memory/team/plan.md", bob)
    assert (missing.status, missing.error["type"]) == (404, "DocumentMissing")
    later = server.request(
        "GET", f"/v1/spaces/team/changes?since={changes['version']}", bob
    ).json()["documents"]
    assert [(one["path"], one["text"]) for one in later] == [
        ("spaces/team/bob/memory/team/plan.md", None)
    ]


def test_a_space_of_others_is_answered_like_one_that_does_not_exist(
    team: Team, server: TeamServer
) -> None:
    ada = team.token("ada")
    for method, path, body in (
        ("POST", "/v1/search", {"query": "tea", "spaces": ["{}"]}),
        ("GET", "/v1/documents/{}/2026-11-18.md", None),
        ("POST", "/v1/spaces/{}/entries", {"text": "tea", "key": "k"}),
        ("GET", "/v1/spaces/{}/published", None),
        ("GET", "/v1/spaces/{}/changes", None),
        ("POST", "/v1/spaces/{}/withdraw", {"paths": ["a.md"]}),
        ("POST", "/v1/spaces/{}/publish", {"documents": [published("a.md", "a")]}),
    ):
        answers = set()
        for name in ("secret", "absent"):
            filled = json.loads(json.dumps(body).replace("{}", name)) if body else None
            reply = server.request(method, path.replace("{}", name), ada, filled)
            answers.add((reply.status, reply.body.replace(name.encode(), b"NAME")))
        assert len(answers) == 1, answers
        assert answers.pop()[0] == 403
    names = [one["name"] for one in server.request("GET", "/v1/spaces", ada).json()["spaces"]]
    assert names == ["team"]


def test_a_token_permits_only_what_it_was_made_for(team: Team, server: TeamServer) -> None:
    reader = team.token("ada", ("read",))
    entry = {"text": "tea", "key": "reader"}
    refused = server.request("POST", "/v1/spaces/team/entries", reader, entry)
    assert (refused.status, refused.error["type"]) == (403, "PermissionDenied")
    writer = team.token("ada", ("append",))
    assert server.request("POST", "/v1/spaces/team/entries", writer, entry).status == 201
    assert server.request("POST", "/v1/search", writer, {"query": "tea"}).status == 403
    assert server.request("GET", "/v1/spaces", writer).status == 403
    narrow = team.token("eve", ("read",), ("secret",))
    spaces = server.request("GET", "/v1/spaces", narrow).json()["spaces"]
    assert [one["name"] for one in spaces] == ["secret"]
    assert server.request("GET", "/v1/spaces/team/changes", narrow).status == 403


def test_a_reader_may_not_write(team: Team, server: TeamServer) -> None:
    eve = team.token("eve")
    reply = server.request("POST", "/v1/spaces/team/entries", eve, {"text": "tea", "key": "k"})
    assert (reply.status, reply.error["type"]) == (403, "SpaceDenied")


def test_a_revoked_token_stops_working_at_once(team: Team, server: TeamServer) -> None:
    token, number = team.numbered_token("ada")
    assert server.request("GET", "/v1/spaces", token).status == 200
    team.revoke(number)
    reply = server.request("GET", "/v1/spaces", token)
    assert (reply.status, reply.error["type"]) == (401, "TokenInvalid")
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_filters_and_limits_of_a_search_have_their_effect(team: Team, server: TeamServer) -> None:
    ada = team.token("ada")
    for number in range(3):
        text = f"The heron number {number} nests by the mill"
        server.request(
            "POST", "/v1/spaces/team/entries", ada, {"text": text, "key": f"heron-{number}"}
        )
    files = [published(f"memory/team/heron-{n}.md", f"A heron note {n}.\n") for n in range(3)]
    server.request("POST", "/v1/spaces/team/publish", ada, {"documents": files})

    def hits(**more: Any) -> list[dict[str, Any]]:
        asked = {"query": "heron", "minScore": 0, **more}
        found: list[dict[str, Any]] = server.request("POST", "/v1/search", ada, asked).json()[
            "results"
        ]
        return found

    assert len(hits(maxResults=2)) == 2
    assert {hit["author"] for hit in hits(path="spaces/team/ada/**")} == {"ada"}
    assert all(hit["path"].startswith("spaces/team/20") for hit in hits(since="1d"))
    assert hits(until="2001-01-01") == []
    wrong = server.request("POST", "/v1/search", ada, {"query": "heron", "since": "someday"})
    assert (wrong.status, wrong.error["type"]) == (422, "FilterError")


def test_the_log_of_requests_has_no_token_and_no_text(team: Team, tmp_path: Path) -> None:
    token = team.token("ada")
    with team_server(tmp_path, team.uri) as server:
        server.request("POST", "/v1/search", token, {"query": "confidential heron"})
        server.request("GET", "/v1/documents/team/ada/private-name.md?from=1", token)
        server.request("GET", "/v1/spaces", "cmk_" + "x" * 43)
        assert server.stop() == 0
        log = server.errors()
    assert "POST search 200" in log
    assert "GET readDocument 404" in log
    assert "GET listSpaces 401" in log
    for secret in (token, "confidential", "heron", "private-name", "cmk_"):
        assert secret not in log
