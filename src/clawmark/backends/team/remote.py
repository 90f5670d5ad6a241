"""The shared spaces of a Clawmark server, over HTTP; a `TeamSpaces`.

Every request may be sent again: an entry carries a key by which the server recognizes it, and the
other requests have the same effect twice. So a request that got no answer, or found the server
busy, is repeated a few times. The token is sent only to the configured server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from clawmark.backends.team import answers
from clawmark.backends.team.base import Appended, Changes, Published, SpaceInfo
from clawmark.model.documents import Excerpt
from clawmark.model.errors import (
    ClawmarkError,
    FilterError,
    PathDenied,
    SpaceDenied,
    SpaceInputError,
    SpacesUnavailable,
)
from clawmark.model.values import Found, Query, parse_citation
from clawmark.net.client import HttpClient, Response
from clawmark.net.failures import retry_after
from clawmark.net.headers import as_json, bearer
from clawmark.net.http_error import HttpError
from clawmark.system.backoff import Backoff
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.space_paths import parse_space_path
from clawmark.workspace.read import absent

T = TypeVar("T")
BUSY = (408, 425, 429, 500, 502, 503, 504)
PAUSE = Backoff(first=0.2, longest=2.0)
MOST_DOCUMENTS = 100
"""Of one request to publish or withdraw."""
MAX_MESSAGE = 300
NEWEST = 2**62
"""No space has a later version."""


class Limit(NamedTuple):
    """How often a request is sent, and how long that may take in all, in seconds."""

    attempts: int
    seconds: float


class Limits(NamedTuple):
    """The limits of searches, of requests that publish, and of all others."""

    search: Limit = Limit(2, 5.0)
    publish: Limit = Limit(5, 120.0)
    other: Limit = Limit(5, 30.0)


class RemoteSpaces:
    """The spaces that a token gives access to."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a named tuple, never changed
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = url.partition("//")[2].partition("/")[0]
        self._token = token
        self._limits = limits
        self._sleep = sleep
        self._clock = clock
        self._client = HttpClient(url.rstrip("/"), bearer(token), secrets=(token,))

    def spaces(self) -> tuple[SpaceInfo, ...]:
        """Return the spaces that the caller may read, by name."""
        return self._get("/v1/spaces", answers.parse_spaces)

    def search(self, query: Query, names: Sequence[str] = ()) -> Found:
        """Search some spaces, or all that the caller may read."""
        filters = query.filters
        given: dict[str, object] = {
            "spaces": list(names),
            "maxResults": query.max_results,
            "minScore": query.min_score,
            "since": filters.since,
            "until": filters.until,
            "path": filters.path,
        }
        body: dict[str, object] = {"query": _sent(query.text, " "), "explain": query.explain}
        body |= {name: value for name, value in given.items() if value not in ("", [])}
        return self._send(
            "POST", "/v1/search", body, answers.parse_found, self._limits.search, names
        )

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a document by its cited path."""
        cited = parse_citation(path)
        if start is None:
            start, lines = cited.start, cited.lines if lines is None else lines
        place = parse_space_path(cited.path)
        if place is None:
            raise SpaceInputError(
                f"{cited.path[:80]!a} is not a path of a shared space.",
                argument="path",
                hint="Cite it as a search does: spaces/SPACE/…",
            )
        given = {"from": start, "lines": lines, "maxChars": min(max_chars, 200_000)}
        asked = urlencode({name: value for name, value in given.items() if value is not None})
        is_possible = place.path.isprintable() and ".." not in place.path.split("/")
        # A path that no document can have asks for an absent one: the space may be denied.
        rest = quote(f"{_sent(place.space, '')}/{place.path if is_possible else '0'}", safe="/")
        try:
            return self._get(f"/v1/documents/{rest}?{asked}", answers.parse_excerpt, place.space)
        except _Absent:
            return absent(place.cited, start)

    def append(self, space: str, text: str, *, key: str) -> Appended:
        """Append an entry to today's log of a space; repeated with the same key, it is stored
        once."""
        path = f"/v1/spaces/{quote(space, safe='')}/entries"
        body = {"text": _sent(text, ""), "key": _sent(key, "\ufffd")}
        return self._send("POST", path, body, answers.parse_appended, self._limits.other, (space,))

    def published(self, space: str) -> dict[str, str]:
        """Return the hashes of the files that the caller has published in a space."""
        path = f"/v1/spaces/{quote(space, safe='')}/published"
        return self._get(path, answers.parse_published, space)

    def publish(self, space: str, documents: Sequence[Published]) -> None:
        """Store or replace files of the caller, all of them or none."""
        if not documents:
            return
        path = f"/v1/spaces/{quote(space, safe='')}/publish"
        body = {
            "documents": [
                one._replace(text=_sent(one.text, "\ufffd"))._asdict() for one in documents
            ]
        }
        self._checked("POST", path, body, self._limits.publish, (space,))

    def withdraw(self, space: str, paths: Sequence[str]) -> None:
        """Remove files of the caller from a space; absent ones are ignored."""
        path = f"/v1/spaces/{quote(space, safe='')}/withdraw"
        for first in range(0, len(paths), MOST_DOCUMENTS):
            body = {"paths": list(paths[first : first + MOST_DOCUMENTS])}
            self._checked("POST", path, body, self._limits.publish, (space,))

    def changes(self, space: str, since: int = 0, limit: int = 100) -> Changes:
        """Return what has changed in a space after a version."""
        since = max(0, min(since, NEWEST))
        while True:
            asked = urlencode({"since": since, "limit": limit})
            path = f"/v1/spaces/{quote(space, safe='')}/changes?{asked}"
            try:
                return self._get(path, answers.parse_changes, space)
            except _TooLarge as error:
                if limit == 1:
                    raise SpacesUnavailable(error.message, hint=error.hint) from None
                limit = max(1, limit // 8)

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def _get(self, path: str, read: Callable[[dict[str, Any]], T], space: str = "") -> T:
        return self._send("GET", path, None, read, self._limits.other, (space,))

    def _send(
        self,
        method: str,
        path: str,
        body: object,
        read: Callable[[dict[str, Any]], T],
        limit: Limit,
        spaces: Sequence[str],
    ) -> T:
        response = self._checked(method, path, body, limit, spaces)
        try:
            return read(answers.parse_object(response.body))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SpacesUnavailable(
                f"{self._host} gave an answer that cannot be read.",
                hint="Check that team.uri is the address of a Clawmark server of this version.",
            ) from None

    def _checked(
        self, method: str, path: str, body: object, limit: Limit, spaces: Sequence[str]
    ) -> Response:
        """Return a successful answer; raise the error that another one stands for."""
        response = self._answer(method, path, body, limit)
        if not 200 <= response.status < 300:
            raise self._error(response, spaces)
        return response

    def _answer(self, method: str, path: str, body: object, limit: Limit) -> Response:
        """Send a request until it is answered, the server is not busy, or the time is over."""
        end = self._clock() + limit.seconds
        data = None if body is None else as_json(body)
        attempt = 0
        while True:
            attempt += 1
            wanted, failure, response = 0.0, None, None
            try:
                response = self._client.send(
                    method, path, data, seconds=max(0.01, end - self._clock())
                )
            except HttpError as error:
                if "is larger than" in error.reason:
                    raise _TooLarge(f"{self._host}: {error.reason}.") from None
                failure = SpacesUnavailable(
                    f"{self._host} cannot be reached: {error.reason}.",
                    hint=error.hint or "Check team.uri and the connection.",
                )
                if error.permanent:
                    raise failure from None
            else:
                if response.status not in BUSY:
                    return response
                wanted = retry_after(response, time.time())
            wait = PAUSE.wait(attempt, at_least=wanted)
            if attempt >= limit.attempts or self._clock() + wait >= end:
                if response is not None:
                    return response
                assert failure is not None
                raise failure
            self._sleep(wait)

    def _error(self, response: Response, spaces: Sequence[str]) -> ClawmarkError:
        """Return the error for an answer that is not a success, in the server's own words."""
        kind, message, hint = self._said(response)
        status = response.status
        if kind in ("SpaceDenied", "PermissionDenied"):
            named = [space for space in spaces if repr(space) in message] or [*spaces, ""]
            return SpaceDenied(message, space=named[0], hint=hint)
        if kind == "PathDenied":
            return PathDenied(message, path="", rule="not-memory", hint=hint)
        if kind == "FilterError":
            return FilterError(message, argument="", hint=hint)
        if status in (400, 409, 413, 422):
            return SpaceInputError(message, argument="", hint=hint)
        if kind and status == 404:
            return _Absent(message, hint=hint)
        if status == 401:
            return SpacesUnavailable(
                f"{self._host} refused the token: {message}", hint="Check team.token."
            )
        if 300 <= status < 400:
            return SpacesUnavailable(
                f"{self._host} answered with a redirect, which is not followed.",
                hint="Set team.uri to the final address of the server.",
            )
        if not kind:
            message = f"{self._host} answered with status {status}."
            return SpacesUnavailable(message, hint="Check that team.uri is a Clawmark server.")
        return SpacesUnavailable(f"{self._host}: {message}", hint=hint)

    def _said(self, response: Response) -> tuple[str, str, str]:
        """Return type, message and hint of an error, without the token; empty if it has none."""
        try:
            error = answers.parse_object(response.body)["error"]
            found = [str(error[name]) for name in ("type", "message", "hint")]
        except (ValueError, KeyError, TypeError):
            return "", "", ""
        kind, message, hint = (
            "".join(
                char if char.isprintable() else "?"
                for char in text.replace(self._token or "\0", "…")[:MAX_MESSAGE]
            )
            for text in found
        )
        return kind, message, hint


def _sent(text: str, nul: str) -> str:
    """Return a text as it can be sent: without lone surrogates, and with `nul` for each NUL."""
    return well_formed(text).replace("\0", nul)


class _Absent(SpacesUnavailable):
    """The server has no such document."""


class _TooLarge(SpacesUnavailable):
    """The answer is larger than one request may bring."""
