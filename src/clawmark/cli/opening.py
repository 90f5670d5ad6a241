"""The flags every verb takes in; an open memory out, with what its configuration warns about said beside it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from clawmark.cli.output import warn as print_warnings

if TYPE_CHECKING:
    from clawmark.memory import Memory


def open_memory(args: Namespace, *, provider: str | None = None, warn: bool = True, background: bool = False) -> Memory:
    """Open the memory the flags name; the caller closes it. Without `warn` the verb shows the warnings itself.

    Most commands end with their answer and have no time for a `background`.
    """
    from clawmark.memory import Memory

    memory = Memory.open(
        args.workspace,
        agent=args.agent,
        config=args.config,
        state_dir=args.state_dir,
        provider=provider,
        background=background,
    )
    print_warnings(memory.loaded.warnings if warn else ())
    return memory
