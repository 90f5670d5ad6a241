"""What a failed request is answered with: a status, one sentence, and the next step."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from clawmark.model.errors import (
    ClawmarkError,
    FileMissing,
    FilterError,
    PathDenied,
    SpaceDenied,
    SpaceInputError,
    ToolInputError,
    WriteConflict,
)

RETRY_SECONDS = 2
"""What clients are asked to wait for while the database does not answer."""
STATUS: tuple[tuple[type[ClawmarkError], int], ...] = (
    (SpaceDenied, 403),
    (SpaceInputError, 422),
    (FileMissing, 404),
    (PathDenied, 422),
    (WriteConflict, 409),
    (FilterError, 422),
    (ToolInputError, 422),
)
"""The status of an error, by the first class that fits; 503 for all others."""


class Problem(NamedTuple):
    """Why a request failed."""

    status: int
    type: str
    message: str
    hint: str = ""
    retry_after: int = 0
    """Seconds; 0 without the header."""
    allow: str = ""
    """The methods of the address, for a 405."""

    @property
    def body(self) -> bytes:
        error = {"type": self.type, "message": self.message, "hint": self.hint}
        return msgspec.json.encode({"error": error})

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        made = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
        ]
        if self.retry_after:
            made.append((b"retry-after", str(self.retry_after).encode()))
        if self.allow:
            made.append((b"allow", self.allow.encode()))
        if self.status == 401:
            made.append((b"www-authenticate", b'Bearer realm="clawmark"'))
        return made


class RequestFailed(Exception):
    """Raised to answer a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


UNEXPECTED = Problem(
    status=500,
    type="Unexpected",
    message="The server failed to answer this request.",
    hint="Try again; the log of the server says what happened.",
)
UNAVAILABLE = Problem(
    status=503,
    type="SpacesUnavailable",
    message="The team's memory is not available at the moment.",
    hint="Try again in a few seconds.",
    retry_after=RETRY_SECONDS,
)
"""For every failure of the database: its address and its messages are for the log only."""
STOPPING = Problem(
    status=503,
    type="Stopping",
    message="This server is stopping.",
    hint="Send the request again; another replica answers it.",
    retry_after=1,
)
OVERLOADED = Problem(
    status=503,
    type="Overloaded",
    message="The server has too many requests to answer.",
    hint="Send the request again in a moment.",
    retry_after=1,
)
NO_TOKEN = Problem(
    status=401,
    type="TokenMissing",
    message="The request has no token.",
    hint="Send `Authorization: Bearer cmk_…`; `clawmark token create` makes a token.",
)
WRONG_TOKEN = Problem(
    status=401,
    type="TokenInvalid",
    message="The token is not valid: it is unknown, expired or revoked.",
    hint="Ask the owner of the memory for a new one: `clawmark token create`.",
)
NOT_FOUND = Problem(
    status=404,
    type="NotFound",
    message="There is no such address.",
    hint="/openapi.json lists them all.",
)
NOT_DIRECT = Problem(
    status=403,
    type="NotProxied",
    message="Tokens are accepted only from the reverse proxy, which encrypts the connection.",
    hint="Use the https address of the server.",
)


def too_large(limit: int) -> Problem:
    return Problem(
        status=413,
        type="BodyTooLarge",
        message=f"The body is larger than {limit:,} bytes.",
        hint="Send less at once, for example fewer documents.",
    )


def too_slow(seconds: float) -> Problem:
    return Problem(
        status=408,
        type="BodyTooSlow",
        message=f"The body did not arrive within {seconds:g} seconds.",
        hint="Send it again.",
    )


def too_many(seconds: int, of: str) -> Problem:
    """Return the problem of a client that makes too many requests; `of` names what is limited."""
    return Problem(
        status=429,
        type="TooManyRequests",
        message=f"There were too many requests of this {of}.",
        hint=f"Wait {seconds} s.",
        retry_after=seconds,
    )


def invalid(message: str, hint: str = "/openapi.json describes every request.") -> Problem:
    return Problem(status=422, type="InvalidRequest", message=message, hint=hint)


def denied(permission: str) -> Problem:
    return Problem(
        status=403,
        type="PermissionDenied",
        message=f"The token does not have the permission `{permission}`.",
        hint=f"Ask for a token with it: `clawmark token create NAME --permission {permission}`.",
    )


def problem_of(error: ClawmarkError) -> Problem:
    """Return what a client learns of an error.

    The form of a key has been checked, so that only its use for another text can be wrong."""
    if isinstance(error, SpaceInputError) and error.argument == "key":
        return Problem(status=409, type="KeyUsed", message=error.message, hint=error.hint)
    status = next((code for kind, code in STATUS if isinstance(error, kind)), 503)
    if status == 503:
        return UNAVAILABLE
    return Problem(status=status, type=type(error).__name__, message=error.message, hint=error.hint)
