"""`clawmark chat`: talk to an agent with a memory in the terminal, or through a pipe."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from clawmark.agent.flush.flush import SkipFlush
from clawmark.agent.models.catalog import require_chat_extra
from clawmark.agent.session.setup import model_name
from clawmark.agent.session.transcript_reader import is_command
from clawmark.chat.chat import Chat, ChatCallbacks, open_chat
from clawmark.chat.history import Answer
from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.chat_screen import Screen
from clawmark.cli.commands.prompt import sizes
from clawmark.cli.layout import plural, short_path, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import Stopped, emit, paint, plain, say
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Settings
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, ConfigError
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.workspace.bootstrap import ensure_workspace
from clawmark.workspace.daily import daily_path

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
    "/new": "end this conversation with a note and start another",
    "/memory": "show what was remembered today",
    "/flush": "save what matters in the conversation now",
    "/prompt": "show the size of each part of the prompt; /prompt full shows its text",
    "/help": "show this list",
    "/quit": "leave with a note, as do Ctrl-D and Ctrl-C twice",
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
        help="the model's address, if not its provider's",
    )
    parser.add_argument(
        "--recall",
        action="store_true",
        help="send what the memory has about each message along with it",
    )
    parser.add_argument(
        "--session",
        type=some_text,
        metavar="KEY",
        help="the session (default: the agent's main one)",
    )


def run(args: Namespace) -> int:
    require_chat_extra()
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    model = _model(args, load(places, {}).settings)
    ensure_workspace(places.workspace)
    screen = Screen(quiet=args.json)
    with open_memory(args, background=True) as memory:
        key = args.session or f"agent:{memory.places.agent}:main"
        with open_chat(memory, model, key, os.environ, recall=args.recall) as chat:
            return _hold(chat, screen, memory, args)


def _model(args: Namespace, settings: Settings) -> str:
    """Return the name of the model, with its address if one is given."""
    name = args.model or model_name(settings, os.environ)
    if args.base_url and not args.base_url.startswith(("http://", "https://")):
        raise UsageError("--base-url takes an address that begins with http:// or https://.")
    if args.base_url and "@http" in name:
        raise UsageError("The model's name has an address already; leave --base-url out.")
    if args.base_url:
        return f"{name}@{args.base_url}" if name else str(args.base_url)
    if not name:
        raise ConfigError(
            "No chat model is configured.",
            key="agents.defaults.model",
            hint="Name one with --model, as in --model "
            "anthropic:claude-haiku-4-5, or in agents.defaults.model.",
        )
    return str(name)


def _hold(chat: Chat, screen: Screen, memory: Memory, args: Namespace) -> int:
    """Run the conversation from the first line to the session note; return the exit code."""
    is_first = chat.start()
    _greet(chat, screen, is_first)
    turns: list[dict[str, object]] = []
    try:
        code = _loop(chat, screen, turns)
    except KeyboardInterrupt:  # pressed again before the first one was handled
        code = INTERRUPTED
    except Stopped:
        screen.event(chat.end(hurried=True))
        raise
    except BaseException:  # also on KeyboardInterrupt
        chat.end()
        raise
    screen.wait()
    ended = chat.end(hurried=code == INTERRUPTED)
    screen.event(ended)
    screen.close()
    if args.json:
        where = {"session": chat.conversation.session_key, "model": chat.agent.name.model}
        emit({**where, "turns": turns, "note": getattr(ended, "path", None)})
    return code


def _greet(chat: Chat, screen: Screen, is_first: bool) -> None:
    if not screen.is_live:
        return
    model = f"{chat.agent.name.provider or chat.agent.name.base_url}:{chat.agent.name.model}"
    say(
        f"{paint('clawmark chat', 'bold')}  {plain(model)}  "
        f"{short_path(chat.memory.places.workspace)}"
    )
    if is_first:
        screen.status(
            "This is the first conversation here: say hello, and find out together who this is."
        )
    earlier = len(chat.history.exchanges)
    if earlier:
        screen.status(
            f"Continuing the interrupted conversation: {plural(earlier, 'exchange')}. "
            f"/new starts another."
        )
    screen.status("/help lists the commands.")
    say()


def _loop(chat: Chat, screen: Screen, turns: list[dict[str, object]]) -> int:
    """Read lines until the end of the input or /quit; return the exit code."""
    code, is_leaving = 0, False
    while True:
        try:
            message = screen.ask()
            if message is None or message.strip() in ("/quit", "/exit"):
                return code
            is_leaving = False
            answer = _respond(message.strip(), chat, screen, turns)
        except KeyboardInterrupt:
            answer = None
            screen.interrupted()
            if is_leaving or not screen.is_live:
                return INTERRUPTED
            is_leaving = True
            screen.status("Press Ctrl-C again or type /quit to leave.")
        if answer is not None and answer.stopped:
            if not screen.is_live:
                return INTERRUPTED
            is_leaving = True
        if answer is not None and not screen.is_live:
            code = 3 if answer.problem is not None else 0


def _respond(
    message: str, chat: Chat, screen: Screen, turns: list[dict[str, object]]
) -> Answer | None:
    """Answer a message or run a command; return None for a command."""
    word, _, rest = message.partition(" ")
    if not message:
        return None
    if word in ("/new", "/reset"):
        return _say(message, chat, screen, turns)
    if word in _ACTIONS:
        _ACTIONS[word](chat, screen, rest.strip())
        return None
    if is_command(message):
        screen.complain(f"There is no command {word}.", "/help lists them.")
        return None
    return _say(message, chat, screen, turns)


def _say(message: str, chat: Chat, screen: Screen, turns: list[dict[str, object]]) -> Answer | None:
    screen.wait()
    try:
        answer = chat.say(message, ChatCallbacks(screen.piece, screen.used, screen.event))
    except ClawmarkError as error:
        # The transcript or the session cannot be written; the conversation may continue.
        screen.complain(error.message, error.hint)
        return None
    screen.answered(answer, chat.tokens, chat.window)
    turns.append(
        {
            "message": message,
            "answer": answer.text,
            "citations": list(screen.citations),
            "tokens": chat.tokens,
            "problem": answer.problem.message if answer.problem is not None else None,
        }
    )
    return answer


# --- commands ------------------------------------------------------------------------------------


def _help(chat: Chat, screen: Screen, rest: str) -> None:
    _show(screen, table([(paint(name, "cyan"), words) for name, words in COMMANDS.items()]))


def _memory(chat: Chat, screen: Screen, rest: str) -> None:
    """Show today's log and the names of today's session notes."""
    memory = chat.memory
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
    _show(screen, lines or ["Nothing has been remembered today."])


def _flush(chat: Chat, screen: Screen, rest: str) -> None:
    outcome = chat.flush()
    if isinstance(outcome, SkipFlush):
        screen.status(f"nothing was saved: {outcome.message}")
    else:
        screen.event(outcome)


def _prompt(chat: Chat, screen: Screen, rest: str) -> None:
    prompt = chat.prompt()
    if rest == "full":
        _show(screen, plain(f"{chat.own_section}\n\n{prompt.text}").splitlines())
    _show(screen, sizes(prompt, chat.own_section))


def _show(screen: Screen, lines: list[str]) -> None:
    if not screen.quiet:
        say("\n".join([*lines, ""]) if screen.is_live else "\n".join(lines))


_ACTIONS = {"/help": _help, "/memory": _memory, "/flush": _flush, "/prompt": _prompt}
