"""What the batch interfaces of all providers share: their types and their HTTP calls.

`openai` and `gemini` describe the interface of one provider, `run` uses it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from clawmark.embed.services.wire import Provider
from clawmark.model.errors import EmbeddingRejected, EmbeddingUnavailable
from clawmark.net.client import HttpClient, HttpError, IncomingResponse, Response
from clawmark.net.headers import join_headers
from clawmark.net.retry import INDEXING, Policy, send_with_retries
from clawmark.text.secrets.redact import Redactor

UPLOAD = Policy(attempts=3, total=1800.0, each=600.0)
ONCE = Policy(attempts=1, total=60.0, each=60.0)
"""For requests that must not be repeated: the first one may have succeeded."""
DOWNLOAD = Policy(attempts=4, total=1800.0, each=900.0)

MAX_LINE = 1 << 20
"""A vector of 3072 numbers takes 80 KB; the text of a longer line is left to plain requests."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


class Job(NamedTuple):
    """The state of a job; a failed one may have the output of what was done before."""

    state: Literal["running", "done", "failed"]
    done: int = 0
    total: int = 0
    output: str = ""
    errors: str = ""
    reason: str = ""


class Answer(NamedTuple):
    """One line of an output: the hash of the text, and its vector or an error message."""

    id: str
    vector: object
    error: str = ""


class Dialect(NamedTuple):
    """The batch interface of one provider."""

    line: Callable[[str, str], bytes]
    """(hash, text) -> a line of the upload; raises ValueError for another wire format."""
    upload: Callable[[Calls, bytes], str]
    create: Callable[[Calls, str], str]
    """(upload) -> the job; sent once, because a lost response may hide a paid job."""
    find: Callable[[Calls, str], str]
    """(upload) -> the job that was made of it; empty without one."""
    poll: Callable[[Calls, str], Job]
    output: Callable[[str], str]
    """(output) -> the path to download it from."""
    read: Callable[[Mapping[str, object]], Answer]
    discard: Callable[[str], str]
    """(file) -> the path to delete it at."""


class Calls:
    """Requests about batch jobs; `status` is that of the last response, 0 without one."""

    def __init__(
        self,
        provider: Provider,
        client: HttpClient,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self.provider = provider
        self.status = 0
        self._client = client
        self._sleep = sleep
        self._clock = clock

    def json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        policy: Policy = INDEXING,
        client: HttpClient | None = None,
        content_type: str = "",
    ) -> Mapping[str, object]:
        """Send one request and return the JSON object of the response; bytes are sent as is."""
        data = (
            body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        )
        # With its own headers: other requests alternate keys, and a job belongs to one key.
        headers = join_headers(
            self.provider.headers, {"Content-Type": content_type} if content_type else {}
        )
        channel = client or self._client

        def send(seconds: float) -> Response:
            self.status = 0
            response = channel.send(method, path, data, seconds=seconds, headers=headers)
            self.status = response.status
            return response

        response = self._ask(send, policy)
        try:
            answer = json.loads(response.body) if response.body.strip() else {}
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.rejected(
                f"{self.provider.name} sent a response about a batch job that is not JSON."
            )
        return answer

    def lines(self, path: str, most: int) -> Iterator[bytes]:
        """Yield the lines of a long output as they arrive, at most `most` bytes."""
        headers = join_headers(self.provider.headers, {"Accept": "*/*"})
        incoming: IncomingResponse | None = None

        def send(seconds: float) -> Response:
            nonlocal incoming
            if incoming is not None:
                incoming.close()
            self.status = 0
            incoming = self._client.receive(path, seconds=seconds, most=most, headers=headers)
            self.status = incoming.head.status
            return incoming.head

        try:
            self._ask(send, DOWNLOAD)
            if incoming is not None:
                yield from split(incoming.pieces, MAX_LINE)
        except HttpError as error:
            provider = self.provider
            message = (
                f"The output of a batch job could not be read from {provider.name}: {error.reason}."
            )
            raise EmbeddingUnavailable(
                message, provider=provider.name, model=provider.model, hint=error.hint
            ) from None
        finally:
            if incoming is not None:
                incoming.close()

    def at(self, base_url: str) -> HttpClient:
        """Return a client for another address of the same provider; close it after use."""
        return self._client.at(base_url)

    def rejected(self, message: str) -> EmbeddingRejected:
        return EmbeddingRejected(message, provider=self.provider.name, model=self.provider.model)

    def id(self, value: object, what: str) -> str:
        """Return an id that may stand in a URL; raise EmbeddingRejected for anything else."""
        if not isinstance(value, str) or not is_id(value):
            raise self.rejected(f"{self.provider.name} answered without the id of {what}.")
        return value

    def _ask(self, send: Callable[[float], Response], policy: Policy) -> Response:
        provider = self.provider
        return send_with_retries(
            send,
            policy,
            provider=provider.name,
            model=provider.model,
            redact=Redactor(provider.secrets).clean,
            sleep=self._sleep,
            clock=self._clock,
        )


def split(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the lines of a body that arrives in pieces; those longer than `most` are skipped."""
    line, is_too_long = bytearray(), False
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for end in ended:
            if not is_too_long and len(line) + len(end) <= most:
                yield bytes(line) + end
            line.clear()
            is_too_long = False
        is_too_long = is_too_long or len(line) + len(rest) > most
        if is_too_long:
            line.clear()
        else:
            line += rest
    if line:
        yield bytes(line)


def is_id(value: object) -> bool:
    """Return whether this may stand in a URL."""
    return isinstance(value, str) and bool(_ID.fullmatch(value)) and ".." not in value


def jsonl(value: object) -> bytes:
    """Return one line of an upload, in ASCII so that no character of a text ends the line."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def multipart(kind: str, parts: Sequence[tuple[Mapping[str, str], bytes]]) -> tuple[str, bytes]:
    """Return the content type and the body of parts with their headers."""
    border = f"clawmark-{os.urandom(16).hex()}"
    pieces: list[bytes] = []
    for headers, content in parts:
        lines = [f"--{border}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        pieces += ["\r\n".join(lines).encode(), content, b"\r\n"]
    return f"multipart/{kind}; boundary={border}", b"".join([*pieces, f"--{border}--\r\n".encode()])


def count(value: object) -> int:
    """Return a number of requests, which Google puts in quotes; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if type(value) is int and 0 <= value < 10**9 else 0


def part(value: object, *names: str) -> object:
    """Return the nested value under these names; None when one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def stamp() -> str:
    """Return a new name for an upload."""
    return hashlib.sha256(str(time.time_ns()).encode()).hexdigest()[:32]
