"""`clawmark migrate`: move the index between SQLite and PostgreSQL, with its vectors."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import duration, plural, table
from clawmark.cli.output import emit, note, plain, say
from clawmark.cli.progress import ProgressBar
from clawmark.composition.stores.moving import open_pair
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.engine.moving.comparing import Difference
from clawmark.engine.moving.run import MovePlan, MoveReport, check_plan, move, plan_move

SHOWN = 20
URI = "memorySearch.store.uri"

EXAMPLES = """\
examples:
  clawmark migrate --to '${CLAWMARK_DATABASE}' --dry-run
  clawmark migrate --to '${CLAWMARK_DATABASE}'   # from SQLite to PostgreSQL
  clawmark migrate --to sqlite                   # and back
  clawmark migrate --from sqlite                 # into the configured database

`${NAME}` is taken from the environment, so that no password is in the history
of the shell. The index that is moved stays as it is, and so do the settings.
If it was interrupted, run the same command again."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        type=some_text,
        metavar="ADDRESS",
        help="postgresql://…, sqlite, or the path of an SQLite file (default: the configured one)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=some_text,
        metavar="ADDRESS",
        help="where the index is now (default: the configured one)",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="overwrite an index of this agent that the target has already",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be moved without moving it"
    )


def run(args: Namespace) -> int:
    if not args.to and not args.source:
        raise UsageError(
            "--to or --from is missing.",
            hint="Write `clawmark migrate --to ADDRESS`; `clawmark migrate --help` has examples.",
        )
    places = resolve_places(args.workspace, args.agent, args.config, args.state_dir)
    settings = load(places).settings
    with open_pair(places, settings, source=args.source, target=args.to) as stores:
        plan = plan_move(*stores)
        if args.dry_run:
            return _show_plan(plan, args)
        check_plan(plan, replace=args.replace)
        with ProgressBar(enabled=not args.json) as bar:

            def show(what: str, done: int, total: int) -> None:
                if bar.is_shown:
                    bar.count("migrate", done, f"{what}, {total:,} in all")

            report = move(*stores, show)
    if args.json:
        emit(as_json(report))
    else:
        say("\n".join(_report_lines(report)))
        if not report.differences:
            note(_next_step(args, settings.memory_search.store.uri))
    return 1 if report.differences else 0


def _show_plan(plan: MovePlan, args: Namespace) -> int:
    if args.json:
        emit(as_json(plan))
        return 0
    rows = [
        ("From", plain(plan.source)),
        ("To", plain(plan.target)),
        ("Index", f"{plural(plan.files, 'file')}, {plural(plan.chunks, 'chunk')}"),
        ("Vectors", f"{plan.vectors:,}, and {plan.cached:,} cached"),
        ("To copy", plural(plan.copy, "file")),
        ("To delete", f"{plural(plan.delete, 'file')} of the target"),
    ]
    say("\n".join(table(rows)))
    return 0


def _report_lines(report: MoveReport) -> list[str]:
    compared = report.compared
    rows = [
        ("From", plain(report.source)),
        ("To", plain(report.target)),
        (
            "Copied",
            f"{plural(report.copied_files, 'file')}, {plural(report.copied_vectors, 'vector')}, "
            f"{report.copied_cached:,} cached",
        ),
        (
            "Compared",
            f"{plural(compared.files, 'file')}, {plural(compared.chunks, 'chunk')}, "
            f"{plural(compared.words, 'word')}, {plural(compared.vectors, 'vector')}, "
            f"{compared.cached:,} cached: "
            + (f"{len(report.differences):,} differ" if report.differences else "all the same"),
        ),
        ("Took", duration(report.seconds)),
    ]
    return [*table(rows), *_difference_lines(report.differences)]


def _difference_lines(differences: Sequence[Difference]) -> list[str]:
    lines = [f"{plain(one.place)} {plain(one.what)}" for one in differences[:SHOWN]]
    if len(differences) > SHOWN:
        lines.append(f"… and {len(differences) - SHOWN} more; --json lists them")
    if differences:
        lines.append("Stop what changes the index, then run the same command again.")
    return lines


def _next_step(args: Namespace, configured: object) -> str:
    """Return what to do to use the new index; the settings are the user's."""
    if not args.to:
        return "The settings use this index already; the old one is not deleted."
    if args.to.startswith("${"):
        return f"To use it: clawmark config set {URI} '{args.to}'. The old index is not deleted."
    if "://" in args.to:
        return f"To use it, set {URI} to its address. The old index is not deleted."
    what = f"remove {URI} from the settings" if configured else "set memorySearch.store.path to it"
    return f"To use it, {what}. The old index is not deleted."
