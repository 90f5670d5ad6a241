"""The command line: arguments in, text or one JSON document out, and an exit code that says how it
went.

Only the verb that is asked for is imported and has its parser built: a cold search must not pay for
the others. Exit codes: 0 done, 1 a check found something, 2 usage or configuration, 3 unavailable,
4 denied, 5 damaged, and 128 + n after signal n. This is one of the four places that catch
`Exception`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from clawmark.model.errors import ClawmarkError

if TYPE_CHECKING:
    from clawmark.model.errors import ClawmarkError

VERBS: dict[str, tuple[str, str]] = {
    "demo": ("Start", "See it work: a sample memory, indexed and asked three questions"),
    "init": ("Start", "Make a workspace with the files an agent begins with"),
    "add": ("Start", "Search a folder of Markdown too: notes, docs, a vault"),
    "sources": ("Start", "List the folders that were added, or remove one"),
    "remember": ("Use", "Add a note to today's log, or to MEMORY.md"),
    "search": ("Use", "Find what the memory holds about something, with citations"),
    "get": ("Use", "Print lines of a memory file, by path or by citation"),
    "chat": ("Use", "Talk with an agent that lives in the workspace and remembers"),
    "flush": ("Use", "Save what matters of a conversation now, or curate MEMORY.md"),
    "mcp": ("Connect", "Serve the memory to MCP hosts: Claude Code, Cursor and others"),
    "hook": ("Connect", "Answer a hook of Claude Code or Codex: JSON in, JSON out"),
    "install": ("Connect", "Connect a coding agent: its configuration edited, reversibly"),
    "sessions": ("Use", "List the transcripts of conversations, or print one as text"),
    "prompt": ("Use", "Print the memory's part of a session's system prompt, with sizes"),
    "import": ("Connect", "Bring in what other tools remember: chats, notes, vectors"),
    "index": ("Care", "Bring the index in step with the files"),
    "watch": ("Care", "Keep the index in step with the files until stopped"),
    "status": ("Care", "Show what is indexed, what is due, what embeds and why"),
    "doctor": ("Care", "Explain what is wrong and what to do; --fix does what is safe"),
    "verify": ("Care", "Derive every row of the index from its file and compare"),
    "memory": ("Care", "The commands of `openclaw memory`: status, index and search"),
    "eval": ("Care", "Measure how well questions with known answers are found"),
    "config": ("Care", "Show settings and where they come from"),
}
"""Every verb: its group in the overview and its one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; as the program itself (without `argv`) also end the
    process.
    """
    if argv is not None:
        return run(list(argv))
    from clawmark.cli.process import end, prepare

    prepare(sys.argv[1:])
    end(run(sys.argv[1:]))
    return 0


def run(argv: list[str]) -> int:
    """Run one command; every error becomes one message and an exit code."""
    from clawmark.cli import output

    as_json = "--json" in argv[: argv.index("--")] if "--" in argv else "--json" in argv
    output.warn(())
    try:
        code = dispatch(argv)
        output.flush()
        return code
    except ClawmarkError as error:
        return output.report(error, as_json=as_json)
    except output.Stopped as stopped:
        return stopped.exit_code
    except SystemExit as ended:  # argparse, after --help
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        return output.interrupted()
    except Exception as error:
        return output.report_unexpected(error, as_json=as_json)


def dispatch(argv: list[str]) -> int:
    """Find the verb, parse its arguments and carry it out."""
    from clawmark.cli.arguments import leading_flags, make_parser

    before = leading_flags(argv)
    rest = argv[len(before) :]
    verb = rest[0] if rest else ""
    if verb in ("", "-h", "--help", "help", "-V", "--version"):
        from clawmark.cli.verbs import answer_without_verb

        return answer_without_verb(rest)
    if verb not in VERBS:
        raise unknown_verb(verb)
    module = module_of(verb)
    parser = make_parser(verb, VERBS[verb][1], module)
    code: int = module.run(parser.parse_args([*before, *rest[1:]]))
    return code


def module_of(verb: str) -> ModuleType:
    """The module that carries a verb out; `import` is a word of Python's and no module's name."""
    return import_module(f"clawmark.cli.commands.{'imports' if verb == 'import' else verb}")


def unknown_verb(verb: str) -> ClawmarkError:
    """The error for a word that is not a verb; it names the verb that was probably meant."""
    from clawmark.cli.arguments import UsageError, closest

    meant = closest(verb, VERBS)
    hint = f"Did you mean `clawmark {meant}`?" if meant else "`clawmark --help` lists the commands."
    return UsageError(f"There is no command {verb!r}.", hint=hint)
