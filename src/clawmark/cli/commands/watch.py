"""`clawmark watch`: keep the index up to date until stopped.

On a terminal one status line is redrawn; otherwise each event is a line of text or, with `--json`,
a JSON object."""

from __future__ import annotations

import logging
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from queue import Empty, SimpleQueue

from clawmark.backends.watching import Kept, Watching
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import duration, fitted, plural, short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import (
    Stopped,
    columns,
    emit,
    flush,
    is_terminal,
    one_line,
    paint,
    plain,
    say,
)
from clawmark.cli.progress import stage_name
from clawmark.model.reports import WatchEvent
from clawmark.model.sync_report import SyncReport
from clawmark.system import log_file

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_SECONDS = 0.1

EXAMPLES = """\
examples:
  clawmark watch
  clawmark watch --json | jq -r 'select(.event == "done")'"""


def add_arguments(parser: ArgumentParser) -> None:
    del parser  # only the common flags


def run(args: Namespace) -> int:
    # This command prints the events itself; without a handler Python would also print the log.
    logging.getLogger("clawmark").addHandler(logging.NullHandler())
    events: SimpleQueue[WatchEvent] = SimpleQueue()
    with open_memory(args) as memory:
        log_file.write("info", "clawmark watch: started")
        view: Lines | LiveLine
        if args.json:
            view = JsonLines(memory.places.workspace)
        elif is_terminal(sys.stdout):
            view = LiveLine(memory.places.workspace)
        else:
            view = Lines(memory.places.workspace)
        try:
            # The files are watched even if `sync.watch` is off for other processes.
            with memory.watch(events.put, files=True) as watching:
                view.begin(watching)
                while True:
                    view.show(_next(events, view))
        except (KeyboardInterrupt, Stopped) as stopped:
            if isinstance(stopped, Stopped) and stopped.exit_code == 141:  # the output was closed
                raise
            view.end()
    return 0


def _next(events: SimpleQueue[WatchEvent], view: Lines) -> WatchEvent | None:
    """Return the next event; None if the animation must be redrawn first."""
    try:
        return events.get(timeout=FRAME_SECONDS if view.is_animated else None)
    except Empty:
        return None


class Lines:
    """Print one line per event."""

    is_animated = False

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._path = ""
        self._polls_because = ""
        """Why files are polled, as printed at the start."""
        self._watching: Watching | None = None

    def begin(self, watching: Watching) -> None:
        self._watching, self._polls_because = watching, watching.polls_because
        self._say(
            f"watching {short_path(self._workspace)}"
            + (f", polling: {_why(watching)}" if _why(watching) else "")
        )

    def show(self, event: WatchEvent | None) -> None:
        if event is None:
            return
        if event.kind == "changed":
            self._path = event.path
        elif event.kind == "warning":
            self._say(self._warning(event))
        elif event.kind == "failed":
            self._say(
                f"failed: {plain(_reason(event.error))} "
                f"{plain(getattr(event.error, 'hint', ''))}".rstrip()
            )
        elif (
            event.kind == "done"
            and event.report is not None
            and (_work(event.report) or event.reason == "watch")
        ):
            kept = self._kept()
            state = (
                f" · {_held(kept)} · {_due(kept)} · {plain(kept.embedder)}"
                if kept is not None
                else ""
            )
            self._say(_done(event.report, self._path, self._workspace) + state)
            self._path = ""

    def end(self) -> None:
        self._say("stopped")

    def _warning(self, event: WatchEvent) -> str:
        """Return the warning without a reason that was already printed."""
        printed = f": {self._polls_because}. "
        return plain(event.message.rpartition(printed)[2] if self._polls_because else event.message)

    def _kept(self) -> Kept | None:
        return self._watching.kept() if self._watching is not None else None

    def _say(self, text: str) -> None:
        say(f"{time.strftime('%H:%M:%S')} {text}")
        flush()


class JsonLines(Lines):
    """Print one JSON object per event."""

    def begin(self, watching: Watching) -> None:
        self._watching = watching
        body = {
            "workspace": self._workspace,
            "folders": watching.watched_folders,
            "pollsBecause": watching.polls_because,
        }
        self._emit("started", body)

    def show(self, event: WatchEvent | None) -> None:
        if event is None:
            return
        body: dict[str, object] = {}
        if event.reason:
            body["reason"] = event.reason
        if event.kind == "changed":
            body["path"] = _relative(event.path, self._workspace)
        if event.message:
            body["message"] = event.message
        if event.progress is not None:
            body |= dict(_object(as_json(event.progress)))
        if event.report is not None:
            body["report"] = as_json(event.report)
            body |= dict(_object(as_json(self._kept())))
        if event.error is not None:
            hint = getattr(event.error, "hint", "")
            body["error"] = {
                "type": type(event.error).__name__,
                "message": _reason(event.error),
                "hint": hint,
            }
        self._emit(event.kind, body)

    def end(self) -> None:
        self._emit("stopped", {})

    def _emit(self, kind: str, body: dict[str, object]) -> None:
        emit({"event": kind, "at": round(time.time(), 3), **body})
        flush()


class LiveLine(Lines):
    """Redraw one status line; it is animated while a sync runs."""

    def __init__(self, workspace: str) -> None:
        super().__init__(workspace)
        self._frame = 0
        self._now = ""
        self._last = ""
        self._stage = ""
        self._state: Kept | None = None

    def begin(self, watching: Watching) -> None:
        self._watching, self._polls_because = watching, watching.polls_because
        say(paint(f"Watching {short_path(self._workspace)} · Ctrl-C to stop", "dim"))
        if _why(watching):
            say(paint(f"Polling: {_why(watching)}", "yellow"))
        self._state = self._kept()
        self._draw()

    def show(self, event: WatchEvent | None) -> None:
        if event is not None:
            self._take(event)
        self._draw()

    def end(self) -> None:
        say("\r\x1b[2K" + self._line(""))
        flush()

    def _take(self, event: WatchEvent) -> None:
        if event.kind == "changed":
            self._path = event.path
            self._now = self._now or f"{_relative(self._path, self._workspace) or 'files'} changed"
        elif event.kind == "began":
            self.is_animated, self._now = True, "scanning"
        elif event.kind == "progress" and event.progress is not None:
            progress = event.progress
            left = f" · {duration(progress.seconds_left)} left" if progress.seconds_left else ""
            if progress.stage != self._stage:
                self._stage, self._state = progress.stage, self._kept()
            self._now = f"{stage_name(progress)} {progress.done:,}/{progress.total:,}{left}"
        elif event.kind == "warning":
            say("\r\x1b[2K" + paint(self._warning(event), "yellow"))
        elif event.kind in ("done", "failed"):
            self._ended(event)

    def _ended(self, event: WatchEvent) -> None:
        self.is_animated, self._now, self._stage = False, "", ""
        self._state = self._kept()
        if event.report is None:
            self._last = paint(
                f"{time.strftime('%H:%M:%S')} failed: {plain(_reason(event.error))}", "red"
            )
        elif _work(event.report):
            self._last = (
                f"{time.strftime('%H:%M:%S')} {_done(event.report, self._path, self._workspace)}"
            )
            self._path = ""

    def _draw(self) -> None:
        mark = ""
        if self.is_animated:
            self._frame += 1
            mark = FRAMES[self._frame % len(FRAMES)]
        sys.stdout.write("\r\x1b[2K" + self._line(mark))
        flush()

    def _line(self, mark: str) -> str:
        kept = self._state
        parts = (
            [_held(kept), self._now or _due(kept), self._last, plain(kept.embedder)]
            if kept is not None
            else [self._now]
        )
        return fitted(f"{mark or '●'} {' · '.join(filter(None, parts))}", columns() - 1)


def _held(kept: Kept) -> str:
    return f"{plural(kept.files, 'file')} · {plural(kept.chunks, 'chunk')}"


def _due(kept: Kept) -> str:
    due = [plural(kept.due_files, "file")] if kept.due_files else []
    due += [plural(kept.due_vectors, "vector")] if kept.due_vectors else []
    return f"{' and '.join(due)} due" if due else "up to date"


def _done(report: SyncReport, path: str, workspace: str) -> str:
    """Format as `memory/2026-11-15.md: 1 updated in 41 ms`."""
    counts = {"added": report.added, "updated": report.updated, "deleted": report.deleted}
    done = [f"{number:,} {word}" for word, number in counts.items() if number]
    if report.embedded + report.reused:
        done.append(plural(report.embedded + report.reused, "vector"))
    if report.failures:
        done.append(f"{len(report.failures):,} could not be indexed")
    if report.scan_failures:
        done.append(f"{plural(len(report.scan_failures), 'folder')} could not be listed")
    what = ", ".join(done) or "nothing new"
    where = _relative(path, workspace)
    if report.degraded is not None:
        what += f" ({one_line(report.degraded.reason)})"
    return f"{plain(where) + ': ' if where else ''}{what} in {duration(report.seconds)}"


def _work(report: SyncReport) -> int:
    """Count what a sync did and what it could not do."""
    done = report.added + report.updated + report.deleted + report.embedded + report.reused
    return done + len(report.failures) + len(report.scan_failures)


def _why(watching: Watching) -> str:
    return plain(watching.polls_because)


def _reason(error: Exception | None) -> str:
    return getattr(error, "message", "") or f"{type(error).__name__}: {error}"


def _relative(path: str, workspace: str) -> str:
    return os.path.relpath(path, workspace) if path else ""


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
