"""`clawmark prompt`: print the memory part of a session's system prompt, with token counts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.agent.prompt.sections import PROMPT_MODES, Prompt
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, paint, plain, say
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.transcripts.session_keys import is_private

EXAMPLES = """\
examples:
  clawmark prompt                          # what the main session sees
  clawmark prompt --session agent:main:telegram:group:42   # what a group sees
  clawmark prompt --mode minimal --time    # for a sub-agent that needs the time
  clawmark prompt --sizes                  # how large each part is
  clawmark prompt --append > system.txt    # for an agent with memory_append"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--session", metavar="KEY", help="the session key (default: the main session)"
    )
    parser.add_argument(
        "--chat-type",
        default="",
        metavar="TYPE",
        help="the chat type of the host, such as direct or group",
    )
    parser.add_argument(
        "--append", action="store_true", help="for an agent with the tool memory_append"
    )
    parser.add_argument(
        "--mode",
        choices=PROMPT_MODES,
        default="full",
        help="minimal: without the memory rules and the last days; none: empty (default: full)",
    )
    parser.add_argument("--time", action="store_true", help="end with the current time")
    parser.add_argument("--sizes", action="store_true", help="print only the sizes")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        prompt = memory.prompt(
            args.session,
            append=args.append,
            chat_type=args.chat_type,
            mode=args.mode,
            time=args.time,
        )
    if args.json:
        emit(_as_json(prompt, args.session))
    elif args.sizes:
        for line in sizes(prompt):
            say(line)
    else:
        say(plain(prompt.text))
        for line in sizes(prompt):
            note(line)
    return 0


def sizes(prompt: Prompt, host: str = "") -> list[str]:
    """Return a table of the sections and files with their tokens; `host` adds its own part."""
    rows = [("host", estimate_tokens(host), "")] if host else []
    rows += [(section.name, section.tokens, "") for section in prompt.sections]
    rows.append(("total", prompt.tokens + estimate_tokens(host), ""))
    for file in (*prompt.context.files, *prompt.context.logs):
        cut = f"{len(file.text):,} of {file.chars:,} characters" if file.is_cut else ""
        rows.append((f"  {file.name}", estimate_tokens(file.text), cut))
    width = max(len(plain(name)) for name, _, _ in rows)
    title = f"{paint('tokens', 'bold')}  what this session sees ({prompt.context.kind})"
    return [
        title,
        *(f"{tokens:>6}  {plain(name):<{width}}  {cut}".rstrip() for name, tokens, cut in rows),
    ]


def _as_json(prompt: Prompt, session_key: str | None) -> dict[str, object]:
    context = prompt.context
    return {
        "session": session_key,
        "kind": context.kind,
        "private": is_private(context.kind),
        "tokens": prompt.tokens,
        "sections": [section._asdict() for section in prompt.sections],
        "files": [
            {
                "name": file.name,
                "tokens": estimate_tokens(file.text),
                "chars": file.chars,
                "shown": len(file.text),
            }
            for file in (*context.files, *context.logs)
        ],
        "notices": list(context.notices),
        "text": prompt.text,
    }
