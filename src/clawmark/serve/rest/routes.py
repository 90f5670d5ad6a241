"""The table of REST routes, and what each of them does with the spaces of the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from clawmark.backends.team.base import Published, TeamSpaces
from clawmark.cli.as_json import found_as_json
from clawmark.model.as_json import as_json
from clawmark.model.values import Found, Query
from clawmark.serve.problems import Problem, RequestFailed
from clawmark.serve.rest.bodies import (
    Answer,
    AppendedAnswer,
    AppendRequest,
    ChangesAnswer,
    ChangesQuery,
    ExcerptAnswer,
    FoundAnswer,
    NoQuery,
    PublishedAnswer,
    PublishRequest,
    ReadQuery,
    Request,
    SearchRequest,
    SpacesAnswer,
    WithdrawRequest,
)
from clawmark.text.space_paths import FOLDER

LAST_VERSION = 2**62
"""Larger than any version of a space; the database has no larger whole numbers."""
MakeQuery: TypeAlias = Callable[[SearchRequest], Query]
"""Completes a search with the server's settings."""


class Given(NamedTuple):
    """A request whose parts have been checked."""

    path: Mapping[str, str]
    query: Any
    body: Any
    make_query: MakeQuery


class Reply(NamedTuple):
    """An answer, and what it adds to the metrics."""

    status: int
    body: object = None
    counts: tuple[tuple[str, int], ...] = ()
    has_due: bool = False
    """Whether passages may have no vectors of the best embedder yet."""


class RestRoute(NamedTuple):
    """One route; `name` is its label in logs and metrics and its id in the OpenAPI description."""

    name: str
    method: str
    path: str
    permission: str
    summary: str
    handle: Callable[[TeamSpaces, Given], Reply]
    status: int = 200
    query: type[Request] = NoQuery
    body: type[Request] | None = None
    answer: type[Answer] | None = None


def list_spaces(spaces: TeamSpaces, given: Given) -> Reply:
    return Reply(200, {"spaces": as_json(spaces.spaces())})


def search(spaces: TeamSpaces, given: Given) -> Reply:
    asked: SearchRequest = given.body
    found = spaces.search(given.make_query(asked), asked.spaces)
    counts = (("clawmark_searches_total", 1),)
    return Reply(200, found_body(found), counts, has_due=found.due_vectors > 0)


def found_body(found: Found) -> dict[str, object]:
    """Return the answer to a search; each hit names its space and its author."""
    body = found_as_json(found)
    results: Any = body["results"]
    for result, hit in zip(results, found.hits, strict=True):
        result |= {"space": hit.space, "author": hit.author}
    return body


def read_document(spaces: TeamSpaces, given: Given) -> Reply:
    asked: ReadQuery = given.query
    path = f"{FOLDER}/{given.path['path']}"
    excerpt = spaces.read(path, asked.from_, asked.lines, asked.max_chars)
    if excerpt.missing:
        raise RequestFailed(
            Problem(
                status=404,
                type="DocumentMissing",
                message="There is no such document in the space.",
                hint="Search for it: its path is part of every hit.",
            )
        )
    return Reply(200, as_json(excerpt))


def append_entry(spaces: TeamSpaces, given: Given) -> Reply:
    asked: AppendRequest = given.body
    appended = spaces.append(given.path["space"], asked.text, key=asked.key)
    name = "repeated" if appended.is_repeated else "appended"
    return Reply(
        200 if appended.is_repeated else 201,
        as_json(appended),
        ((f"clawmark_entries_{name}_total", 1),),
        has_due=not appended.is_repeated,
    )


def list_published(spaces: TeamSpaces, given: Given) -> Reply:
    return Reply(200, {"documents": spaces.published(given.path["space"])})


def publish(spaces: TeamSpaces, given: Given) -> Reply:
    asked: PublishRequest = given.body
    documents = [Published(one.path, one.text, one.hash) for one in asked.documents]
    spaces.publish(given.path["space"], documents)
    counts = (("clawmark_documents_published_total", len(documents)),)
    return Reply(204, counts=counts, has_due=True)


def withdraw(spaces: TeamSpaces, given: Given) -> Reply:
    asked: WithdrawRequest = given.body
    spaces.withdraw(given.path["space"], asked.paths)
    return Reply(204, counts=(("clawmark_documents_withdrawn_total", len(asked.paths)),))


def list_changes(spaces: TeamSpaces, given: Given) -> Reply:
    asked: ChangesQuery = given.query
    since = min(asked.since, LAST_VERSION)
    return Reply(200, as_json(spaces.changes(given.path["space"], since, asked.limit)))


ROUTES = (
    RestRoute(
        name="listSpaces",
        method="GET",
        path="/v1/spaces",
        permission="read",
        summary="List the spaces that the caller may read.",
        handle=list_spaces,
        answer=SpacesAnswer,
    ),
    RestRoute(
        name="search",
        method="POST",
        path="/v1/search",
        permission="read",
        summary="Search some spaces, or all that the caller may read.",
        handle=search,
        body=SearchRequest,
        answer=FoundAnswer,
    ),
    RestRoute(
        name="readDocument",
        method="GET",
        path="/v1/documents/{path}",
        permission="read",
        summary="Read lines of a document; its address is the cited path without `spaces/`.",
        handle=read_document,
        query=ReadQuery,
        answer=ExcerptAnswer,
    ),
    RestRoute(
        name="appendEntry",
        method="POST",
        path="/v1/spaces/{space}/entries",
        permission="append",
        summary="Append an entry to today's log of a space; 200 if it was stored before.",
        handle=append_entry,
        status=201,
        body=AppendRequest,
        answer=AppendedAnswer,
    ),
    RestRoute(
        name="listPublished",
        method="GET",
        path="/v1/spaces/{space}/published",
        permission="read",
        summary="List the files that the caller has published in a space.",
        handle=list_published,
        answer=PublishedAnswer,
    ),
    RestRoute(
        name="publish",
        method="POST",
        path="/v1/spaces/{space}/publish",
        permission="publish",
        summary="Store or replace files of the caller, all of them or none.",
        handle=publish,
        status=204,
        body=PublishRequest,
    ),
    RestRoute(
        name="withdraw",
        method="POST",
        path="/v1/spaces/{space}/withdraw",
        permission="publish",
        summary="Remove files of the caller from a space.",
        handle=withdraw,
        status=204,
        body=WithdrawRequest,
    ),
    RestRoute(
        name="listChanges",
        method="GET",
        path="/v1/spaces/{space}/changes",
        permission="read",
        summary="List what has changed in a space after a version, with its text.",
        handle=list_changes,
        query=ChangesQuery,
        answer=ChangesAnswer,
    ),
)
