"""The flags every verb takes in; an open memory out, with what its configuration warns about said
beside it.
"""

from __future__ import annotations

from argparse import Namespace

from clawmark.cli.output import warn as print_warnings
from clawmark.cli.unsearched_files import current_folder, look_at
from clawmark.config.paths import NO_WORKSPACE
from clawmark.memory import Memory
from clawmark.model.errors import ConfigError


def open_memory(
    args: Namespace, *, provider: str | None = None, warn: bool = True, background: bool = False
) -> Memory:
    """Open the memory the flags name; the caller closes it. Without `warn` the verb shows the
    warnings itself.

    Most commands end with their answer and have no time for a `background`.
    """
    try:
        memory = Memory.open(
            args.workspace,
            agent=args.agent,
            config=args.config,
            state_dir=args.state_dir,
            provider=provider,
            background=background,
        )
    except ConfigError as error:
        if error.key == NO_WORKSPACE:
            error.hint = _hint_for_this_folder(args) or error.hint
        raise
    print_warnings(memory.loaded.warnings if warn else ())
    return memory


def _hint_for_this_folder(args: Namespace) -> str:
    """Where there is no memory at all, but the current folder holds Markdown: the command that
    makes it searchable.
    """
    folder = current_folder()
    found = look_at(folder, args) if folder else None
    return (
        f"{found.sentence[:1].upper()}{found.sentence[1:]}; to search them: {found.command}"
        if found
        else ""
    )
