"""A real embedding server on loopback that speaks every provider's language, counts, and fails on
request.

    python tests/servers/embeddings.py --port 8123 --dims 384 --delay-ms 0

For a test: `with EmbeddingServer(key="sk-test") as server:` … `server.url`, `server.script([429,
429, 200])`, `server.spoil("one-nan")`, `server.heal()`, `server.tally`. From outside: `GET /stats`,
`POST /reset`.

The languages are in `apis`, the batch interfaces in `batches`, the faults in `behaviours`, sockets
in `loopback`."""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from types import TracebackType
from typing import Any

from apis import MODELS, Answer, Asked, Row, Wrong, refusal, render, understand
from batches import Jobs
from behaviours import ACTS, ELSEWHERE, LISTENING, OK, TRIES, Behaviour, behaviour, fill_in, spoiled
from hashed import dense, numbers, packed
from loopback import Gone, Link, Loopback, Request
from sigv4 import problem_with_signature
from tally import Record, Tally

Given = Behaviour | Mapping[str, Any] | str | int


class EmbeddingServer:
    """One server; `key` is the only key it takes (any, when empty), `aws` an access key and its
    secret.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        dims: int = 1536,
        delay: float = 0.0,
        text_delay: float = 0.0,
        key: str = "",
        aws: tuple[str, str] = ("", ""),
        second: float = 1.0,
        is_dense: bool = False,
    ) -> None:
        self.dims = dims
        self.is_dense = is_dense
        """Whether right answers hold rows without zeros and without meaning, for benchmarks."""
        self.delay = delay
        self.text_delay = text_delay
        """The least time a request takes, and what each of its texts adds to it."""
        self.key = key
        self.aws = aws
        self.second = second
        """How long a second of a slow behaviour takes."""
        self.tally = Tally()
        self.jobs = Jobs(self._vectors, self._paid)
        self.requests: list[Request] = []
        """Every request to a provider's API, as it came."""
        self._lock = threading.Lock()
        self._script: list[Behaviour] = []
        self._standing = OK
        self._where = ""
        self._tries = 0
        self._loopback = Loopback(self._handle, port)

    @property
    def port(self) -> int:
        return self._loopback.port

    @property
    def root(self) -> str:
        """The base URL for Ollama and Bedrock."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for OpenAI, Mistral and Voyage."""
        return f"{self.root}/v1"

    @property
    def gemini_url(self) -> str:
        return f"{self.root}/v1beta"

    def wait_until_abandoned(self, seconds: float) -> None:
        """Wait until every connection that was made before this call has ended."""
        deadline = time.monotonic() + seconds
        # Connections are accepted in order: after this answer, all earlier ones are.
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=seconds)) as probe:
            probe.request("GET", "/stats", headers={"Connection": "close"})
            probe.getresponse().read()
        while self._loopback.connections:
            assert time.monotonic() < deadline, "a connection never ended"
            time.sleep(0.005)

    def script(self, given: Sequence[Given], *, where: str = "") -> None:
        """What to do with the next requests (of paths that hold `where`), one after the other."""
        with self._lock:
            self._script = [behaviour(one) for one in given]
            self._where = where

    def spoil(self, given: Given, *, where: str = "") -> None:
        """What to do with every request from now on."""
        self.heal()
        made = behaviour(given)
        if made.behave == "never-accept":
            self._loopback.never_accept()
        elif made.behave == "nothing-listens":
            self._loopback.silence()
        with self._lock:
            self._standing, self._where, self._tries = made, where, 0

    def heal(self) -> None:
        """Answer rightly again; who still waits for a spoiled answer is cut off."""
        with self._lock:
            was, self._standing, self._script, self._where = self._standing, OK, [], ""
        if was.behave in LISTENING:
            self._loopback.listen()
        elif was is not OK:
            self._loopback.drop()

    def release(self) -> None:
        """Answer everybody who waits out `delay` now."""
        self._loopback.release()

    def close(self) -> None:
        self._loopback.close()

    def __enter__(self) -> EmbeddingServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- one request

    def _handle(self, request: Request, link: Link) -> bool:
        keep = request.headers.get("connection", "").lower() != "close"
        if request.path in ("/stats", "/reset"):
            body = json.dumps({**self.tally.snapshot(), "dims": self.dims}).encode()
            if request.path == "/reset":
                self.tally.reset()
            link.answer(200, body)
            return keep
        with self._lock:
            self.requests.append(request)
        if self.key and self.key in request.target:
            self.tally.bumped("keys_in_url")
        try:
            asked = understand(request)
        except Wrong as wrong:
            self.tally.called("wrong")
            link.answer(wrong.status, refusal("", wrong.status, wrong.message))
            return keep
        if asked is None:
            self._answer_other(request, link)
        else:
            self._answer_texts(request, asked, link)
        return keep

    def _answer_texts(self, request: Request, asked: Asked, link: Link) -> None:
        self.tally.called(asked.api)
        record = self.tally.began(asked.api, asked.texts)
        answered = False
        try:
            answered = self._embed(request, asked, link, record)
        finally:
            self.tally.ended(record, answered=answered)

    def _embed(self, request: Request, asked: Asked, link: Link, record: Record) -> bool:
        """Answer a request for vectors; whether the answer was right."""
        began = time.monotonic()
        chosen = self._behaviour_for(request, len(asked.texts))
        if chosen.body is not None:
            self._answer_whole(chosen, request, link)
            return False
        if self._is_refused(request, asked.api, link):
            return False
        body = render(
            asked,
            self._right(asked)
            if chosen == OK
            else spoiled(chosen.make, asked, self._vectors(asked)),
        )
        least = self.delay + self.text_delay * len(asked.texts)
        if least:
            link.wait(max(0.0, least - (time.monotonic() - began)))
        if chosen.behave in ACTS:
            return ACTS[chosen.behave](link, body, self.second)
        if link.is_gone():
            raise Gone
        if chosen.is_right:
            self.tally.answering(record)
        link.answer(chosen.status, body, chosen.headers)
        return chosen.is_right

    def _answer_other(self, request: Request, link: Link) -> None:
        """Files, jobs and lists of models."""
        self.tally.called(f"{request.method} {request.path.rpartition('/')[0] or request.path}")
        chosen = self._behaviour_for(request, 0)
        if chosen.body is not None:
            self._answer_whole(chosen, request, link)
            return
        if self._is_refused(request, "ollama" if request.path.startswith("/api/") else "", link):
            return
        try:
            body = self._listing(request) or self.jobs.answer(request)
        except (Wrong, ValueError, KeyError) as wrong:
            status = wrong.status if isinstance(wrong, Wrong) else 400
            link.answer(status, refusal("", status, str(wrong)))
            return
        if body is None:
            link.answer(404, refusal("", 404, f"Invalid URL ({request.method} {request.path})"))
        elif chosen.behave in ACTS:
            ACTS[chosen.behave](link, body, self.second)
        else:
            link.answer(200, body)

    def _answer_whole(self, chosen: Behaviour, request: Request, link: Link) -> None:
        """An answer that has nothing to do with what was asked, as it is."""
        key = _key_of(request) or self.key
        headers, body = fill_in(chosen, key, self.root + request.target)
        link.answer(chosen.status, b"" if chosen.status in (204, 304) else body, headers)

    def _behaviour_for(self, request: Request, texts: int) -> Behaviour:
        with self._lock:
            if self._where not in request.target:
                return OK
            if self._script:
                return self._script.pop(0)
            if self._standing.behave in TRIES:
                self._tries += 1
                return TRIES[self._standing.behave](self._tries, texts)
            return OK if self._standing.behave in (*LISTENING, *ELSEWHERE) else self._standing

    def _is_refused(self, request: Request, api: str, link: Link) -> bool:
        """Check the key where the provider wants it; a refusal echoes it, as some providers do."""
        if (
            api in ("titan", "cohere")
            and self.aws[0]
            and not request.headers.get("authorization", "").startswith("Bearer")
        ):
            problem = problem_with_signature(request, *self.aws)
        elif not self.key or api == "ollama" or _key_of(request) == self.key:
            problem = ""
        else:
            problem = f"Incorrect API key provided: {_key_of(request) or 'none'}"
        if problem:
            self.tally.bumped("unauthorised")
            link.answer(403 if api in ("titan", "cohere") else 401, refusal(api, 401, problem))
        return bool(problem)

    def _listing(self, request: Request) -> bytes | None:
        """The models there are, as Ollama and OpenAI say it."""
        if request.path == "/api/tags":
            models = [
                {"name": name, "model": name, "details": {"family": name.partition(":")[0]}}
                for name in MODELS
            ]
            return json.dumps({"models": models}).encode()
        if request.path == "/api/version":
            return b'{"version":"0.12.0"}'
        if request.path == "/v1/models":
            return json.dumps(
                {"object": "list", "data": [{"id": "text-embedding-3-small", "object": "model"}]}
            ).encode()
        return None

    def _right(self, asked: Asked) -> Answer:
        """The right answer, without any detour: benchmarks wait for it."""
        dims = asked.dims or self.dims
        if self.is_dense:
            texts = [dense(text, dims) for text in asked.texts]
        elif asked.base64:
            texts = [f'"{base64.b64encode(packed(text, dims)).decode()}"' for text in asked.texts]
        else:
            texts = [f"[{','.join(numbers(text, dims))}]" for text in asked.texts]
        return Answer([Row(at, text) for at, text in enumerate(texts)], asked.model)

    def _vectors(self, asked: Asked) -> list[list[str]]:
        return [numbers(text, asked.dims or self.dims) for text in asked.texts]

    def _paid(self, api: str, texts: Sequence[str]) -> None:
        """A line of a completed batch job."""
        self.tally.ended(self.tally.began(f"{api} batch", texts), answered=True)


def _key_of(request: Request) -> str:
    bearer = request.headers.get("authorization", "")
    return request.headers.get("x-goog-api-key") or (
        bearer[7:] if bearer.startswith("Bearer ") else ""
    )


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A deterministic embedding server on loopback.")
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument(
        "--delay-ms", type=float, default=0.0, help="the least time a request takes"
    )
    parser.add_argument("--text-ms", type=float, default=0.0, help="what each text adds to it")
    parser.add_argument("--key", default="", help="the only key that is taken; any, when left out")
    parser.add_argument(
        "--dense",
        action="store_true",
        help="long rows that cost the server nothing and mean nothing",
    )
    parser.add_argument(
        "--behave", default="ok", help="a word of the hostile provider cases, such as one-nan"
    )
    args = parser.parse_args()
    delay, text_delay = args.delay_ms / 1000, args.text_ms / 1000
    words = {
        "dims": args.dims,
        "delay": delay,
        "text_delay": text_delay,
        "key": args.key,
        "is_dense": args.dense,
    }
    with EmbeddingServer(port=args.port, **words) as server:
        server.spoil(args.behave)
        print(
            f"listening on {server.url} and {server.gemini_url}, {args.dims} dimensions", flush=True
        )
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(json.dumps(server.tally.snapshot(), indent=2))


if __name__ == "__main__":
    main()
