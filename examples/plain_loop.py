"""A plain loop around a model, with a memory: five calls, and everything else is yours.

    python examples/plain_loop.py ~/agent openai:gpt-4o-mini

Type a message; an empty line or the end of the input leaves. `/new` starts another session. Needs
the extra `chat` and the key of the model's provider, here `OPENAI_API_KEY`; `OPENAI_BASE_URL` names
another server with OpenAI's API."""

from __future__ import annotations

import os
import sys

from clawmark import ClawmarkError, Memory
from clawmark.agent.models.catalog import choose_completer, parse_model
from clawmark.agent.models.completer import Completer, Message, complete_with_tools


def main(workspace: str, model: str) -> None:
    completer = choose_completer(model, os.environ)
    with Memory.open(workspace) as memory:
        talk = memory.conversation(
            completer=completer, context_window=parse_model(model).window, append=True
        )
        tools = memory.tools(talk.session_key, append=True)
        talk.start()
        history: list[Message] = []
        while message := read():
            turn = talk.on_user(message)
            if turn.note is not None:  # /new, or a new day: what was said before is in a note now
                history = []
            if not turn.message:
                continue
            if turn.compact:
                talk.before_compaction()
                history = shortened(completer, history)
            history.append(Message("user", turn.message))
            answer = complete_with_tools(completer, turn.system, history, tools)
            history += answer.added
            talk.on_usage(answer.input_tokens + answer.output_tokens, reply=answer.text)
            print(answer.text, flush=True)
        print(talk.end(), file=sys.stderr)


def with_address(model: str) -> str:
    """The model at the server that `OPENAI_BASE_URL` names, unless the model has an address of its
    own.
    """
    base_url = os.environ.get("OPENAI_BASE_URL", "").strip()
    return (
        f"{model}@{base_url}"
        if base_url and model.startswith("openai:") and "@" not in model
        else model
    )


def read() -> str:
    """What the user types; empty at the end."""
    if sys.stdin.isatty():
        print("> ", end="", flush=True)
    return sys.stdin.readline().strip()


def shortened(completer: Completer, history: list[Message]) -> list[Message]:
    """The history as one summary. What matters for later is in the memory already."""
    asked = Message(
        "user",
        "Summarise our conversation so far in a few sentences, so that you can go on from there.",
    )
    summary = completer.complete("You summarise conversations.", [*history, asked]).text
    return [Message("user", "What we talked about so far?"), Message("assistant", summary)]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], with_address(sys.argv[2]))
    except ClawmarkError as error:
        sys.exit(f"{error.message} {error.hint}".rstrip())
    except KeyboardInterrupt:
        sys.exit(130)
