"""Pack texts into an upload and create exactly one job from it.

A job costs money and the response to its creation may get lost. Before another attempt the
provider's list of jobs is searched for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from clawmark.embed.batch.calls import Calls, Dialect
from clawmark.embed.services import packing
from clawmark.model.errors import EmbeddingError
from clawmark.model.providers import batch_facts
from clawmark.system.backoff import Backoff

ATTEMPTS = 3
BACKOFF = Backoff(first=0.5, longest=60.0)


class Unsure(Exception):
    """It is not known whether there is a job; there may be one, and it would be paid for."""


def pack(
    rest: deque[str], texts: Mapping[str, str], calls: Calls, dialect: Dialect
) -> tuple[tuple[str, ...], bytes]:
    """Take as many hashes from `rest` as fit into one job; return them and the upload."""
    hashes: list[str] = []
    lines: list[bytes] = []
    size = 0
    longest = calls.provider.wire.limits.text_tokens
    limits = batch_facts(calls.provider.name)
    while rest and len(hashes) < limits.requests:
        line = dialect.line(rest[0], packing.sendable(texts[rest[0]], longest))
        if hashes and size + len(line) > limits.bytes:
            break
        hashes.append(rest.popleft())
        lines.append(line)
        size += len(line)
    return tuple(hashes), b"".join(lines)


def create(calls: Calls, dialect: Dialect, upload: str, sleep: Callable[[float], None]) -> str:
    """Create a job from an upload; raise EmbeddingError when there is none, or Unsure."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return dialect.create(calls, upload)
        except EmbeddingError as error:
            status = calls.status
            if 400 <= status < 500 and status not in (408, 409, 429):
                raise
            if job := find(calls, dialect, upload):
                return job
            # After a 2xx that cannot be read there is a job: another one would be paid as well.
            if attempt == ATTEMPTS or 200 <= status < 300:
                raise
            pause = BACKOFF.wait(attempt, at_least=getattr(error, "retry_after", 0.0))
        sleep(min(pause, BACKOFF.longest))
    raise AssertionError("the last attempt returns or raises")


def find(calls: Calls, dialect: Dialect, upload: str) -> str:
    """Return the job of an upload; empty without one. Raise Unsure when it is not known."""
    try:
        return dialect.find(calls, upload)
    except EmbeddingError as error:
        if calls.status in (404, 405):
            return ""  # the service has no list of jobs
        raise Unsure(error.message) from None
