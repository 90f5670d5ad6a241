"""`clawmark plugins`: list the memory plugins, which one is used, and why not the others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.as_json import as_json
from clawmark.cli.layout import cells, table, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, paint, plain, say
from clawmark.model.reports import PluginReport

EXAMPLES = """\
examples:
  clawmark plugins
  clawmark plugins --json

`plugins.slots.memory` in the configuration chooses the plugin."""


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        found = memory.plugins()
    if args.json:
        emit({"plugins": as_json(found)})
    else:
        say("\n".join(listing(found)))
    return 0


def listing(found: tuple[PluginReport, ...]) -> list[str]:
    """Return the plugins as a table."""
    rows = [("NAME", "STATE", "PACKAGE", "WHY")]
    rows += [
        (plain(one.name), one.state, plain(one.owner) or "not installed", plain(one.reason))
        for one in found
    ]
    start = sum(max(cells(row[column]) for row in rows) + 2 for column in range(3))
    width = max(columns() - start, 30)
    folded = [
        (*(first if number == 0 else ("", "", "")), piece)
        for *first, reason in rows
        for number, piece in enumerate(wrap(reason, width) or [""])
    ]
    head, *others = table(folded)
    return [paint(head, "dim"), *others]
