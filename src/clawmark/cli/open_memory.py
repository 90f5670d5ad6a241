"""Open the memory that the common flags name, and print the warnings of its configuration."""

from __future__ import annotations

from argparse import Namespace

from clawmark.cli.output import warn as print_warnings
from clawmark.config.paths import NO_WORKSPACE
from clawmark.memory import Memory
from clawmark.model.errors import ConfigError
from clawmark.system import log_file


def open_memory(
    args: Namespace, *, provider: str | None = None, warn: bool = True, background: bool = False
) -> Memory:
    """Open the memory that the flags name; the caller closes it.

    Without `warn` the verb shows the warnings itself. `background` starts the background worker,
    which most commands are too short for."""
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
    log_file.start(memory.places.state_dir, memory.settings.memory.log)
    problems = _slot_problems(memory)
    print_warnings((*memory.loaded.warnings, *problems) if warn else ())
    return memory


def _slot_problems(memory: Memory) -> tuple[str, ...]:
    """Return why a configured memory plugin is not used; memory-core alone is not looked at."""
    if not memory.settings.plugins.has_hooks:
        return ()
    return memory.open_slot(log=False).slot.problems


def _hint_for_this_folder(args: Namespace) -> str:
    """Return the command that adds the Markdown files of the current folder, if it has any."""
    # Imported late: most commands find their workspace.
    from clawmark.cli.unsearched_files import count_unsearched, current_folder

    folder = current_folder()
    found = count_unsearched(folder, args) if folder else None
    return (
        f"{found.sentence[:1].upper()}{found.sentence[1:]}; to search them: {found.command}"
        if found
        else ""
    )
