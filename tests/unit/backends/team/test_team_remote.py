"""The client of a team's server, against servers that fail in every way they can."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loopback import Gone, Link, Loopback, Request

from clawmark.backends.team.remote import Limit, Limits, RemoteSpaces
from clawmark.model.errors import (
    ClawmarkError,
    FilterError,
    SpaceDenied,
    SpaceInputError,
    SpacesUnavailable,
)
from clawmark.model.values import Filters, Query

TOKEN = "cmk_" + "s3cret" * 7 + "x"
LIMITS = Limits(search=Limit(2, 5.0), publish=Limit(3, 5.0), other=Limit(3, 5.0))
ENTRY = {
    "path": "spaces/team/2026-11-18.md",
    "startLine": 3,
    "endLine": 3,
    "author": "ada",
    "at": "2026-11-18T10:00:00Z",
    "isRepeated": False,
}


class Team:
    """A server that gives prepared answers, and the requests it was sent."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Callable[[Link], None]] = []
        self.server = Loopback(self._handle)
        self.waits: list[float] = []
        self.spaces = RemoteSpaces(
            f"http://127.0.0.1:{self.server.port}/", TOKEN, limits=LIMITS, sleep=self.waits.append
        )

    def _handle(self, request: Request, link: Link) -> bool:
        self.requests.append(request)
        self.answers.pop(0)(link)
        return True

    def says(self, status: int, body: object, **headers: str) -> Team:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.append(lambda link: link.answer(status, data, headers))
        return self

    def fails(self, status: int, kind: str, message: str = "It failed.") -> Team:
        return self.says(status, {"error": {"type": kind, "message": message, "hint": "Do it."}})

    def hangs_up(self) -> Team:
        def leave(link: Link) -> None:
            raise Gone

        self.answers.append(leave)
        return self


@pytest.fixture
def team() -> Iterator[Team]:
    made = Team()
    yield made
    made.spaces.close()
    made.server.close()


def test_an_append_without_an_answer_is_sent_again_with_the_same_key(team: Team) -> None:
    team.hangs_up().says(503, {}, **{"Retry-After": "1"}).says(201, ENTRY)
    assert team.spaces.append("team", "Hello.", key="k1").author == "ada"
    assert [json.loads(one.body) for one in team.requests] == [{"text": "Hello.", "key": "k1"}] * 3
    assert team.waits[1] >= 1.0


def test_the_token_is_in_a_header_and_nowhere_else(team: Team) -> None:
    team.says(200, {"spaces": []})
    assert team.spaces.spaces() == ()
    (request,) = team.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in request.target
    assert TOKEN not in repr(team.spaces.__dict__["_client"])


def test_a_server_that_repeats_the_token_does_not_make_us_show_it(team: Team) -> None:
    team.fails(401, "TokenInvalid", f"The token {TOKEN} is\x1b[31m wrong.")
    with pytest.raises(SpacesUnavailable, match="refused the token") as raised:
        team.spaces.spaces()
    assert TOKEN not in str(raised.value) and "\x1b" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, "SpaceDenied", SpaceDenied),
        (403, "PermissionDenied", SpaceDenied),
        (403, "NotProxied", SpacesUnavailable),
        (400, "NotJson", SpaceInputError),
        (409, "SpaceInputError", SpaceInputError),
        (422, "InvalidRequest", SpaceInputError),
        (422, "FilterError", FilterError),
        (413, "BodyTooLarge", SpaceInputError),
        (405, "MethodNotAllowed", SpacesUnavailable),
    ],
)
def test_errors_keep_their_kind(
    team: Team, status: int, kind: str, error: type[ClawmarkError]
) -> None:
    team.fails(status, kind)
    with pytest.raises(error, match="It failed") as raised:
        team.spaces.append("team", "Hello.", key="k1")
    assert type(raised.value) is error
    assert len(team.requests) == 1  # repeating it cannot help


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome</html>",
        b"[]",
        b"{}",
        b'{"spaces": {}}',
        b'{"spaces": [1]}',
        b'{"spaces": [{"name": 1, "mayWrite": true, "documents": 0, "entries": 0}]}',
        b'{"spaces": [{"name": "x", "mayWrite": 1, "documents": 0, "entries": 0}]}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_an_answer_that_cannot_be_read_is_one_clear_error(team: Team, body: bytes) -> None:
    team.says(200, body)
    with pytest.raises(SpacesUnavailable, match="cannot be read"):
        team.spaces.spaces()


@pytest.mark.parametrize("status", [301, 302, 404, 418, 500, 502])
def test_a_server_that_is_not_clawmark_is_one_clear_error(team: Team, status: int) -> None:
    for _ in range(3):
        team.says(status, b"<html></html>", Location="http://127.0.0.1:9/")
    with pytest.raises(SpacesUnavailable):
        team.spaces.spaces()
    assert len(team.requests) == (3 if status >= 500 else 1)


def test_a_missing_document_is_an_empty_excerpt(team: Team) -> None:
    team.fails(404, "FileMissing")
    found = team.spaces.read("spaces/team/ada/Plan für März.md#L3-L4")
    assert found.missing and found.path == "spaces/team/ada/Plan für März.md"
    target = team.requests[0].target
    assert target.startswith("/v1/documents/team/ada/Plan%20f%C3%BCr%20M%C3%A4rz.md?")
    assert "from=3" in target and "lines=2" in target


def test_a_query_is_sent_with_its_filters(team: Team) -> None:
    answer: dict[str, Any] = {
        "results": [],
        "mode": "fts-only",
        "provider": "none",
        "model": "",
        "milliseconds": 1.0,
        "nothing": {"code": "no-such-words", "message": "None.", "bestScore": None},
    }
    team.says(200, answer)
    filters = Filters(since="2026-11-01", path="spaces/team/**")
    query = Query("a\0b\ud800", min_score=0.0, max_results=3, filters=filters)
    found = team.spaces.search(query, ["team"])
    assert found.nothing is not None and found.nothing.code == "no-such-words"
    assert json.loads(team.requests[0].body) == {
        "query": "a b\ufffd",
        "explain": False,
        "spaces": ["team"],
        "maxResults": 3,
        "minScore": 0.0,
        "since": "2026-11-01",
        "path": "spaces/team/**",
    }


def test_a_page_of_changes_that_is_too_large_is_asked_for_in_smaller_ones(team: Team) -> None:
    def too_large(link: Link) -> None:
        link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        raise Gone

    team.answers.append(too_large)
    team.says(200, {"documents": [], "version": 7, "isComplete": True})
    assert team.spaces.changes("team", 5, 100).version == 7
    assert [one.query for one in team.requests] == ["since=5&limit=100", "since=5&limit=12"]


def test_many_withdrawn_files_are_sent_in_parts(team: Team) -> None:
    team.says(204, b"").says(204, b"")
    team.spaces.withdraw("team", [f"memory/{number}.md" for number in range(150)])
    assert [len(json.loads(one.body)["paths"]) for one in team.requests] == [100, 50]


def test_a_closed_port_is_one_clear_error(team: Team) -> None:
    team.server.close()
    with pytest.raises(SpacesUnavailable, match="cannot be reached"):
        team.spaces.spaces()
    assert len(team.waits) == 2
