"""`clawmark index`: update the index from the files and report what was done."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.layout import duration, middle, plural
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, note_degraded, paint, place, plain, say
from clawmark.cli.progress import ProgressBar
from clawmark.cli.unsearched_files import find_unsearched
from clawmark.composition import require_index
from clawmark.memory import Memory
from clawmark.model.sync_report import FileFailure, SpaceSync, SyncReport
from clawmark.model.values import ScanFailure, Skipped, SyncPlan

if TYPE_CHECKING:
    from clawmark.backends.team.files.publishing import PublishPlan

SHOWN = 5

EXAMPLES = """\
examples:
  clawmark index
  clawmark index --dry-run       # show what would be done
  clawmark index --estimate      # show texts, tokens and price
  clawmark index --force         # rebuild; the old index answers until then
  clawmark index --as-of 2w      # for `clawmark search --as-of 2w`"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--force",
        action="store_true",
        help="rebuild the whole index; the old one answers until it is ready",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the plan without carrying it out"
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="show what the vectors would cost without making them",
    )
    parser.add_argument(
        "--instant",
        action="store_true",
        help="make only the instant vectors; the better ones follow later",
    )
    parser.add_argument(
        "--as-of",
        type=some_text,
        metavar="DAY",
        help="index the memory files as they were on this day, with all vectors",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="list all skipped files and all files of the plan"
    )


def run(args: Namespace) -> int:
    if args.as_of and (args.force or args.dry_run or args.estimate or args.instant):
        raise UsageError(
            "--as-of cannot be combined with --force, --dry-run, --estimate or --instant."
        )
    with open_memory(args) as memory:
        require_index(memory.settings)
        if args.dry_run:
            return _dry_run(memory, args)
        if args.estimate:
            return _estimate(memory, args)
        with ProgressBar(enabled=not args.json) as bar:
            report = memory.sync(
                force=args.force,
                progress=bar.update if bar.is_shown else None,
                instant_only=args.instant,
                as_of=args.as_of,
            )
        unsearched = None
        if not args.as_of and not report.added + report.updated:
            unsearched = find_unsearched(memory, args, report)
    if args.json:
        body = _as_json(report)
        assert isinstance(body, dict)
        emit(body | ({} if unsearched is None else {"unsearched": _as_json(unsearched)}))
        return _exit_code(report)
    if report.healed:
        note(f"clawmark: {plain(report.healed)}")
    if report.degraded is not None:
        note_degraded(report.degraded)
    say("\n".join(report_lines(report, verbose=args.verbose)))
    if unsearched is not None:
        note(unsearched.hint)
    return _exit_code(report)


def _as_json(value: object) -> Any:
    # Imported late: most syncs print text.
    from clawmark.cli.as_json import as_json

    return as_json(value)


def _exit_code(report: SyncReport) -> int:
    """Return 2 if the settings must change before the vectors can be made."""
    return 2 if report.degraded is not None and report.degraded.needs_change else 0


def _estimate(memory: Memory, args: Namespace) -> int:
    # Imported late: a sync does not need it.
    from clawmark.cli.estimate import estimate_lines, make_estimate

    found = memory.spending()
    estimate = make_estimate(
        found.due,
        found.cached,
        provider=found.provider,
        model=found.model,
        price_per_million=found.price_per_million,
        batch=found.uses_batches,
        tokens_left_today=found.tokens_left_today,
    )
    if args.json:
        emit(_as_json(estimate))
    else:
        say("\n".join(estimate_lines(estimate)))
    return 0


def report_lines(report: SyncReport, *, verbose: bool = False) -> list[str]:
    """Return what a sync did and what it left out."""
    done = {
        "added": report.added,
        "updated": report.updated,
        "deleted": report.deleted,
        "unchanged": report.unchanged + report.touched,
    }
    lines = ["Files    " + " · ".join(f"{number:,} {word}" for word, number in done.items())]
    vectors = [f"{report.chunks:,} written", f"{report.embedded:,} embedded"]
    if report.reused:
        vectors.append(f"{report.reused:,} reused")
    if report.generation:  # other backends than the built-in one have neither
        lines.append("Chunks   " + " · ".join(vectors))
    due = [f"{plural(report.due_files, 'file')} due"] if report.due_files else []
    due += [f"{plural(report.due_vectors, 'vector')} due"] if report.due_vectors else []
    if report.jobs:
        lines.append(f"Jobs     {place(report.jobs)}")
    lines += [
        f"{'Shared' if number == 0 else '':<9}{line}"
        for number, line in enumerate(_space_line(one) for one in report.spaces)
    ]
    lines.append("Took     " + " · ".join([duration(report.seconds), *_generation(report), *due]))
    lines += _listed("could not be indexed", "file", report.failures, verbose, "red")
    lines += _listed("could not be listed", "folder", report.scan_failures, verbose, "red")
    lines += _listed("skipped", "file", report.skipped, verbose, "yellow")
    return [*lines, *_space_problems(report.spaces, verbose=verbose)]


def _space_line(one: SpaceSync) -> str:
    """Return what was done with a space: `team: 2 published · 1 withdrawn · 5 unchanged`."""
    counts = {"published": one.published, "withdrawn": one.withdrawn, "unchanged": one.unchanged}
    done = " · ".join(f"{number:,} {word}" for word, number in counts.items())
    return f"{plain(one.space)}: {done}"


def _space_problems(spaces: Sequence[SpaceSync], *, verbose: bool) -> list[str]:
    """Return which spaces are not up to date and which files were not published, and why."""
    lines = [
        paint(f"The space {plain(one.space)} is not up to date: {plain(one.problem)}", "red")
        + (f"\n  {plain(one.next_step)}" if one.next_step else "")
        for one in spaces
        if one.problem
    ]
    withheld = tuple(dict.fromkeys(item for one in spaces for item in one.withheld))
    return [*lines, *_listed("not published", "file", withheld, verbose, "yellow")]


def _generation(report: SyncReport) -> list[str]:
    return [f"generation {report.generation}"] if report.generation else []


def _listed(
    what: str,
    noun: str,
    items: Sequence[Skipped | FileFailure | ScanFailure],
    verbose: bool,
    colour: str,
) -> list[str]:
    if not items:
        return []
    shown = items if verbose else items[:SHOWN]
    lines = ["", paint(f"{plural(len(items), noun)} {what}:", colour)]
    lines += ["  " + _item(item.path, place(item.reason), verbose=verbose) for item in shown]
    if len(items) > len(shown):
        lines.append(paint(f"  … and {len(items) - len(shown)} more; --verbose lists them", "dim"))
    return lines


def _item(path: str, reason: str, *, verbose: bool) -> str:
    """Return a path with a reason, which may begin with the path itself."""
    if reason.startswith(f"{place(path)} "):
        return reason
    return f"{(place(path) if verbose else middle(path)) or '.'}: {reason}"


def _dry_run(memory: Memory, args: Namespace) -> int:
    plan, scan = memory.plan(force=args.force)
    spaces = memory.team.plan() if memory.settings.has_team else ()
    if args.json:
        emit(
            {
                "dryRun": True,
                "add": [state.path for state in plan.add],
                "check": [state.path for state in plan.check],
                "recheck": [state.path for state in plan.recheck],
                "delete": list(plan.delete),
                "unchanged": plan.unchanged,
                "kept": list(plan.kept),
                "skipped": [{"path": item.path, "reason": item.reason} for item in scan.skipped],
                "scanFailures": [
                    {"path": item.path, "reason": item.reason} for item in scan.failures
                ],
            }
            | ({"spaces": [_planned_space(*one) for one in spaces]} if spaces else {})
        )
        return 0
    say("\n".join(plan_lines(plan, verbose=args.verbose)))
    shared = [line for todo, _ in spaces for line in _publish_lines(todo)]
    shared += _space_problems([state for _, state in spaces], verbose=args.verbose)
    if shared:
        say("\n".join(shared))
    rest = _listed("could not be listed", "folder", scan.failures, args.verbose, "red")
    rest += _listed("skipped", "file", scan.skipped, args.verbose, "yellow")
    if rest:
        say("\n".join(rest))
    return 0


def _planned_space(plan: PublishPlan, state: SpaceSync) -> dict[str, object]:
    return {
        "space": plan.space,
        "publish": list(plan.publish),
        "withdraw": list(plan.withdraw),
        "unchanged": plan.unchanged,
        "withheld": [{"path": one.path, "reason": one.reason} for one in state.withheld],
        "problem": state.problem,
    }


def _publish_lines(plan: PublishPlan) -> list[str]:
    """Return what would be published and withdrawn, file by file."""
    todo = [("publish", path) for path in plan.publish]
    todo += [("withdraw", path) for path in plan.withdraw]
    where = f"spaces/{plain(plan.space)}"
    lines = [f"{verb:<10}{place(path)} ({where})" for verb, path in todo]
    counts = f"{len(plan.publish)} to publish, {len(plan.withdraw)} to withdraw"
    return [*lines, paint(f"{where}: {counts}, {plan.unchanged} unchanged", "dim")]


def plan_lines(plan: SyncPlan, *, verbose: bool = False) -> list[str]:
    """Return what `index` would do, file by file."""
    todo = [("add", state.path) for state in plan.add] + [
        ("check", state.path) for state in plan.check
    ]
    todo += [("delete", path) for path in plan.delete]
    todo += [("recheck", state.path) for state in plan.recheck] if verbose else []
    shown = todo if verbose else todo[:200]
    lines = [f"{verb:<8}{place(path)}" for verb, path in shown]
    if len(todo) > len(shown):
        lines.append(f"… and {len(todo) - len(shown)} more; --verbose lists them")
    if plan.kept:
        lines.append(f"{plural(len(plan.kept), 'file')} kept: their folder could not be listed")
    same = plan.unchanged + len(plan.recheck)
    counts = (
        f"{len(plan.add)} to add, {len(plan.check)} to check, "
        f"{len(plan.delete)} to delete, {same} unchanged"
    )
    return [*lines, paint(counts, "dim") if plan.due else f"Nothing to do: {counts}"]
