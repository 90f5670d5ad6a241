"""`clawmark chat`: lines that somebody types in; the answers of an agent with a memory out."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clawmark.agent.flush.flush import SkipFlush
from clawmark.agent.session.setup import model_name
from clawmark.agent.session.transcript_reader import is_command
from clawmark.chat.talk import Stage, open_talk
from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.chat_screen import Screen
from clawmark.cli.commands.prompt import sizes
from clawmark.cli.layout import plural, short_path, table
from clawmark.cli.opening import open_memory
from clawmark.cli.output import Stopped, emit, paint, plain, say
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.model.errors import ClawmarkError, ConfigError
from clawmark.text.recalled.origin import without_comments
from clawmark.workspace.bootstrap import ensure_workspace
from clawmark.workspace.daily import daily_path

if TYPE_CHECKING:
    from clawmark.chat.agent import Answer
    from clawmark.chat.talk import Talk
    from clawmark.cli.chat_screen import Screen
    from clawmark.memory import Memory

EXAMPLES = """\
examples:
  clawmark chat --model anthropic:claude-haiku-4-5
  clawmark chat --model ollama:qwen3
  clawmark chat --model openai:local --base-url http://127.0.0.1:8080/v1
  echo "What did we decide about billing?" | clawmark chat

The model is --model, CLAWMARK_MODEL or agents.defaults.model.
In the conversation /help lists the commands."""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

COMMANDS = {
    "/new": "end this conversation with a note and begin another",
    "/memory": "what is remembered today",
    "/flush": "save what matters of the conversation now",
    "/prompt": "how large each part is of what the model sees; /prompt full shows it",
    "/help": "this list",
    "/quit": "leave with a note; so do Ctrl-D and Ctrl-C twice",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        type=some_text,
        metavar="NAME",
        help="openai:…, anthropic:…, gemini:…, ollama:…, or an address",
    )
    parser.add_argument(
        "--base-url",
        type=some_text,
        metavar="URL",
        help="where the model is, if not at its provider's",
    )
    parser.add_argument(
        "--recall", action="store_true", help="send along what the memory has about each message"
    )
    parser.add_argument(
        "--session",
        type=some_text,
        metavar="KEY",
        help="the session (default: the agent's main one)",
    )


def run(args: Namespace) -> int:
    _need_extra()

    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    model = _model(args, load(places, {}).settings.runtime)
    ensure_workspace(places.workspace)
    screen = Screen(quiet=args.json)
    with open_memory(args, background=True) as memory:
        key = args.session or f"agent:{memory.places.agent}:main"
        with open_talk(memory, model, key, os.environ, recall=args.recall) as talk:
            return _hold(talk, screen, memory, args)


def _need_extra() -> None:
    if any(find_spec(name) is None for name in ("pydantic_ai", "openai", "anthropic")):
        raise ClawmarkError(
            "The chat needs the extra `chat`.", hint="Install it with: pip install 'clawmark[chat]'"
        )


def _model(args: Namespace, runtime: Mapping[str, object]) -> str:
    """The name of the model, with the address it is to be found at."""
    name = args.model or model_name(runtime, os.environ)
    if args.base_url and not args.base_url.startswith(("http://", "https://")):
        raise UsageError("--base-url takes an address that begins with http:// or https://.")
    if args.base_url and "@http" in name:
        raise UsageError("The model's name has an address already; leave --base-url out.")
    if args.base_url:
        return f"{name}@{args.base_url}" if name else str(args.base_url)
    if not name:
        raise ConfigError(
            "No model is named to talk with.",
            key="agents.defaults.model",
            hint="Name one with --model, as in --model "
            "anthropic:claude-haiku-4-5, or in agents.defaults.model.",
        )
    return str(name)


def _hold(talk: Talk, screen: Screen, memory: Memory, args: Namespace) -> int:
    """The conversation from its first line to its note, whatever ends it."""
    is_first = talk.start()
    _greet(talk, screen, is_first)
    turns: list[dict[str, object]] = []
    try:
        code = _loop(talk, screen, turns)
    except KeyboardInterrupt:  # pressed again before the first one was dealt with
        code = INTERRUPTED
    except Stopped:
        screen.event(talk.end(hurried=True))
        raise
    except BaseException:
        talk.end()
        raise
    screen.wait()
    ended = talk.end(hurried=code == INTERRUPTED)
    screen.event(ended)
    screen.close()
    if args.json:
        where = {"session": talk.conversation.session_key, "model": talk.voice.name.model}
        emit({**where, "turns": turns, "note": getattr(ended, "path", None)})
    return code


def _greet(talk: Talk, screen: Screen, is_first: bool) -> None:
    if not screen.is_live:
        return
    model = f"{talk.voice.name.provider or talk.voice.name.base_url}:{talk.voice.name.model}"
    say(
        f"{paint('clawmark chat', 'bold')}  {plain(model)}  "
        f"{short_path(talk.memory.places.workspace)}"
    )
    if is_first:
        screen.aside(
            "This is the first conversation here: say hello, and find out together who this is."
        )
    earlier = len(talk.history.exchanges)
    if earlier:
        screen.aside(
            f"Going on with the conversation that was cut off: {plural(earlier, 'exchange')}. "
            f"/new begins afresh."
        )
    screen.aside("/help lists the commands.")
    say()


def _loop(talk: Talk, screen: Screen, turns: list[dict[str, object]]) -> int:
    """Line after line until nobody wants to say more; the exit code."""
    code, is_leaving = 0, False
    while True:
        try:
            message = screen.ask()
            if message is None or message.strip() in ("/quit", "/exit"):
                return code
            is_leaving = False
            answer = _respond(message.strip(), talk, screen, turns)
        except KeyboardInterrupt:
            answer = None
            screen.interrupted()
            if is_leaving or not screen.is_live:
                return INTERRUPTED
            is_leaving = True
            screen.aside("Ctrl-C again leaves; so does /quit.")
        if answer is not None and answer.stopped:
            if not screen.is_live:
                return INTERRUPTED
            is_leaving = True
        if answer is not None and not screen.is_live:
            code = 3 if answer.problem is not None else 0


def _respond(
    message: str, talk: Talk, screen: Screen, turns: list[dict[str, object]]
) -> Answer | None:
    """Do what a line asks for; None when that was no message."""
    word, _, rest = message.partition(" ")
    if not message:
        return None
    if word in ("/new", "/reset"):
        return _say(message, talk, screen, turns)
    if word in _ACTIONS:
        _ACTIONS[word](talk, screen, rest.strip())
        return None
    if is_command(message):
        screen.complain(f"There is no command {word}.", "/help lists them.")
        return None
    return _say(message, talk, screen, turns)


def _say(message: str, talk: Talk, screen: Screen, turns: list[dict[str, object]]) -> Answer | None:
    screen.wait()
    try:
        answer = talk.say(message, Stage(screen.piece, screen.used, screen.event))
    except (
        ClawmarkError
    ) as error:  # a transcript or a session that cannot be written: the talk may go on
        screen.complain(error.message, error.hint)
        return None
    screen.answered(answer, talk.tokens, talk.window)
    turns.append(
        {
            "message": message,
            "answer": answer.text,
            "citations": list(screen.citations),
            "tokens": talk.tokens,
            "problem": answer.problem.message if answer.problem is not None else None,
        }
    )
    return answer


# --- commands ----------------------------------------------------------------------------------------------------


def _help(talk: Talk, screen: Screen, rest: str) -> None:
    _show(screen, table([(paint(name, "cyan"), words) for name, words in COMMANDS.items()]))


def _memory(talk: Talk, screen: Screen, rest: str) -> None:
    """Today's log, and the notes of the conversations that ended today."""
    memory = talk.memory
    path = daily_path(memory.today())
    log = memory.workspace.read_lines(path, 1, None)
    notes = [
        one.path
        for one in memory.workspace.scan().files
        if one.path.startswith(f"{path.removesuffix('.md')}-")
    ]
    lines = (
        [paint(path, "cyan"), *plain(without_comments(log.text)).strip().splitlines()]
        if log.text.strip()
        else []
    )
    if log.truncated:
        lines.append(paint(f"… and more: clawmark get {path}#L{log.next_start}", "dim"))
    lines += [paint(plain(note), "cyan") for note in notes]
    _show(screen, lines or ["Nothing is remembered today yet."])


def _flush(talk: Talk, screen: Screen, rest: str) -> None:
    outcome = talk.flush()
    if isinstance(outcome, SkipFlush):
        screen.aside(f"nothing was saved: {outcome.message}")
    else:
        screen.event(outcome)


def _prompt(talk: Talk, screen: Screen, rest: str) -> None:
    prompt = talk.prompt()
    if rest == "full":
        _show(screen, plain(f"{talk.own_section}\n\n{prompt.text}").splitlines())
    _show(screen, sizes(prompt, talk.own_section))


def _show(screen: Screen, lines: list[str]) -> None:
    if not screen.quiet:
        say("\n".join([*lines, ""]) if screen.is_live else "\n".join(lines))


_ACTIONS = {"/help": _help, "/memory": _memory, "/flush": _flush, "/prompt": _prompt}
