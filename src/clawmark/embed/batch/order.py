"""Orders for batch jobs: texts packed into one upload, and one job made of it, whatever gets lost
on the way.

An order costs money and its answer may get lost, so it is never just repeated: between two attempts
the provider's own list of jobs is asked whether there is one already. Writing down what was ordered
is left to `batch_state`."""

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
    """Whether there is a job cannot be found out now; there may be one, and then it is paid for."""


def pack(
    rest: deque[str], texts: Mapping[str, str], calls: Calls, dialect: Dialect
) -> tuple[tuple[str, ...], bytes]:
    """Take as many hashes from `rest` as fit into one job; they and the upload they make."""
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
    """Make a job of an upload; raises EmbeddingError when there is none and will be none, and
    Unsure.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return dialect.create(calls, upload)
        except EmbeddingError as error:
            status = calls.status
            if 400 <= status < 500 and status not in (408, 409, 429):
                raise
            if job := find(calls, dialect, upload):
                return job
            # A yes that could not be read was a yes: ordering again would be paying again.
            if attempt == ATTEMPTS or 200 <= status < 300:
                raise
            pause = BACKOFF.wait(attempt, at_least=getattr(error, "retry_after", 0.0))
        sleep(min(pause, BACKOFF.longest))
    raise AssertionError("the last attempt returns or raises")


def find(calls: Calls, dialect: Dialect, upload: str) -> str:
    """The job that was made of an upload, or nothing; raises Unsure when nobody can say."""
    try:
        return dialect.find(calls, upload)
    except EmbeddingError as error:
        if calls.status in (404, 405):
            return ""  # a service without such a list: there is nothing to find out
        raise Unsure(error.message) from None
