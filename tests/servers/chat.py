"""A scripted chat model on loopback with OpenAI's and Anthropic's API, streamed or not.

    python tests/servers/chat.py --port 8124 --say "Hello."

For a test:

    with ChatServer([call("memory_search", query="database"), say("PostgreSQL.")]) as server:
        ...    # server.openai_url, server.anthropic_url, server.seen

A script is a list of turns, used in order, or a function of the request. `rules({"which database":
[call(...), say(...)]})` makes one that looks at the last user message. `fault("hang")` fails
instead; the faults are in `FAULTS`. The formats of the APIs are in `chat_apis`.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias

from chat_apis import Call, Seen, Turn, Wrong, events, refusal, render, understand
from loopback import Gone, Link, Loopback, Request, head

__all__ = ["FAULTS", "Call", "ChatServer", "Seen", "Turn", "call", "fault", "rules", "say"]

Script: TypeAlias = Sequence[Turn] | Callable[[Seen], Turn]

FAULTS: dict[str, tuple[int, str]] = {
    "busy": (429, "Rate limit reached, try again in a moment."),
    "quota": (429, "You exceeded your current quota, please check your plan and billing details."),
    "broken": (500, "The server had an error while processing your request."),
    "overloaded": (529, "Overloaded"),
    "key": (401, "Incorrect API key provided: {key}."),
    "too-long": (
        400,
        "prompt is too long: 210000 tokens > 200000 maximum. Reduce the length of the messages.",
    ),
    "no-model": (404, "The model does not exist."),
}
"""Error responses by name; there are also `hang`, `cut`, `garbage`, `empty` and `reset`."""


def say(text: str, *, input_tokens: int = 0, output_tokens: int = 0) -> Turn:
    """Return a turn with a text."""
    return Turn(text, (), input_tokens, output_tokens)


def call(name: str, text: str = "", /, **arguments: Any) -> Turn:
    """Return a turn with a tool call, and optionally a text before it."""
    return Turn(text, (Call(name, arguments),))


def fault(name: str) -> Turn:
    """Return a turn in which the server fails."""
    return Turn(fault=name)


def rules(
    table: Mapping[str, Sequence[Turn]], otherwise: Sequence[Turn] = (Turn("Understood."),)
) -> Callable[[Seen], Turn]:
    """Return a script that uses the turns of the first key found in the last user message."""

    def answer(seen: Seen) -> Turn:
        said = seen.last_user.lower()
        turns = next((turns for part, turns in table.items() if part.lower() in said), otherwise)
        return turns[min(seen.step, len(turns) - 1)]

    return answer


class ChatServer:
    """One server; `key` is the only key it accepts, or empty for any."""

    def __init__(self, script: Script = (), *, port: int = 0, key: str = "") -> None:
        self.key = key
        self.seen: list[Seen] = []
        """Every request that could be parsed, including failed ones."""
        self.requests: list[Request] = []
        """Every request, unparsed."""
        self._lock = threading.Lock()
        self._news = threading.Condition()
        self._script: Script = script
        self._at = 0
        self._calls = 0
        self._loopback = Loopback(self._handle, port)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._loopback.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's API."""
        return f"{self.root}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic's API, whose paths begin with /v1."""
        return self.root

    def script(self, script: Script) -> None:
        """Replace the script."""
        with self._lock:
            self._script, self._at = script, 0

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        """Wait until `count` requests have arrived."""
        with self._news:
            if not self._news.wait_for(lambda: len(self.seen) >= count, seconds):
                raise TimeoutError(f"{len(self.seen)} requests came, not {count}")

    def release(self) -> None:
        """Close the connections of requests that hang."""
        self._loopback.drop()

    def close(self) -> None:
        self._loopback.close()

    def __enter__(self) -> ChatServer:
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
        with self._lock:
            self.requests.append(request)
        if request.method == "GET" and request.path.endswith("/models"):
            link.answer(
                200,
                json.dumps(
                    {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
                ).encode(),
            )
            return keep
        try:
            seen = understand(request.path, request.body, dict(request.headers))
        except (Wrong, KeyError, TypeError) as wrong:
            link.answer(400, refusal("", 400, f"{type(wrong).__name__}: {wrong}"))
            return keep
        if seen is None:
            link.answer(404, refusal("", 404, f"Invalid URL ({request.method} {request.path})"))
            return keep
        return self._answer(seen, link) and keep

    def _answer(self, seen: Seen, link: Link) -> bool:
        with self._news:
            self.seen.append(seen)
            self._news.notify_all()
        key = _key_of(seen)
        if self.key and key != self.key:
            link.answer(
                401, refusal(seen.api, 401, f"Incorrect API key provided: {key or 'none'}.")
            )
            return True
        turn = self._next(seen)
        if turn is None:
            link.answer(400, refusal(seen.api, 400, "The script is over."))
            return True
        if turn.fault in FAULTS:
            status, words = FAULTS[turn.fault]
            link.answer(status, refusal(seen.api, status, words.replace("{key}", key)))
            return True
        if turn.fault:
            return _misbehave(seen, turn.fault, link)
        if seen.stream:
            return _stream(seen, turn, link)
        link.answer(200, render(seen, turn))
        return True

    def _next(self, seen: Seen) -> Turn | None:
        """Return the next turn with call ids and token counts; None at the end of the script."""
        with self._lock:
            if callable(self._script):
                turn = self._script(seen)
            elif self._at < len(self._script):
                turn = self._script[self._at]
                self._at += 1
            else:
                return None
            calls = []
            for one in turn.calls:
                self._calls += 1
                calls.append(one._replace(id=one.id or f"call_{self._calls}"))
        text = seen.system + "".join(one.text for one in seen.messages)
        return turn._replace(
            calls=tuple(calls),
            input_tokens=turn.input_tokens or len(text) // 4 + 1,
            output_tokens=turn.output_tokens
            or len(turn.text + "".join(one.json for one in calls)) // 4 + 1,
        )


def _stream(seen: Seen, turn: Turn, link: Link, *, cut: bool = False) -> bool:
    link.send(head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))
    pieces = list(events(seen, turn))
    for piece in pieces[: len(pieces) // 2] if cut else pieces:
        link.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if not cut:
        link.send(b"0\r\n\r\n")
    return not cut


def _misbehave(seen: Seen, how: str, link: Link) -> bool:
    """Send a faulty response; return whether the connection stays open."""
    turn = Turn("This answer is longer than what arrives of it.", input_tokens=9, output_tokens=9)
    match how:
        case "hang":
            link.wait(None)
            raise Gone
        case "cut" if seen.stream:
            return _stream(seen, turn, link, cut=True)
        case "cut":
            body = render(seen, turn)
            link.send(
                head(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
                + body[:20]
            )
        case "garbage":
            link.answer(200, b"<html>It works!</html>")
        case "empty":
            link.answer(200, b'{"choices":[],"content":[]}')
        case "reset":
            link.reset()
        case _:
            raise ValueError(f"there is no fault {how!r}")
    return how in ("garbage", "empty")


def _key_of(seen: Seen) -> str:
    bearer = seen.headers.get("authorization", "")
    return seen.headers.get("x-api-key") or (bearer[7:] if bearer.startswith("Bearer ") else "")


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A scripted chat model on loopback.")
    parser.add_argument("--port", type=int, default=8124)
    parser.add_argument("--key", default="", help="the only key that is taken; any, when left out")
    parser.add_argument("--say", default="Understood.", help="what it answers")
    args = parser.parse_args()
    with ChatServer(rules({}, [say(args.say)]), port=args.port, key=args.key) as server:
        print(f"listening on {server.openai_url} and {server.anthropic_url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{len(server.seen)} requests")


if __name__ == "__main__":
    main()
