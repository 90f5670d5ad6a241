"""`clawmark status`: show the state of the memory; only --index and --fix change anything."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from clawmark.cli.as_json import as_json
from clawmark.cli.commands.add import other_files
from clawmark.cli.layout import duration, facts, middle, plural, short_path, size, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, one_line, paint, place, plain, say
from clawmark.cli.unsearched_files import find_unsearched
from clawmark.config.paths import Places
from clawmark.config.schema.plugins import MEMORY_CORE, NO_MEMORY
from clawmark.memory import Memory
from clawmark.model.errors import EmbeddingError
from clawmark.model.reports import FlushTimes, SourceReport, Status
from clawmark.model.values import Space

SHOWN = 3
SYNC_REASONS = {
    "manual": "manual",
    "watch": "by a watcher",
    "settle": "by a watcher",
    "search": "by a search",
    "interval": "by the timer",
    "identity": "after a settings change",
    "session-start": "at the start of a session",
    "session-delta": "for a transcript",
    "post-compaction": "after a compaction",
}
"""Why a sync ran, in words."""

EXAMPLES = """\
examples:
  clawmark status
  clawmark status --deep             # does the embedder answer?
  clawmark status --json --workspace ~/agent"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="list all skipped files")
    parser.add_argument("--deep", action="store_true", help="also test the embedder with one word")
    parser.add_argument(
        "--index",
        action="store_true",
        help="update the index first; implies --deep",
    )
    parser.add_argument("--fix", action="store_true", help="run `clawmark doctor --fix` first")


def run(args: Namespace) -> int:
    with open_memory(args, warn=False) as memory:
        status, probe = gather(memory, args)
        places, search = memory.places, memory.settings.memory_search
        unsearched = find_unsearched(memory, args)
    if args.json:
        body = as_json(status)
        assert isinstance(body, dict)
        body |= {"workspaceOrigin": places.workspace_origin, "extraPaths": list(search.extra_paths)}
        body |= {"embeddingProbe": probe} if probe is not None else {}
        emit(body | ({} if unsearched is None else {"unsearched": as_json(unsearched)}))
        return 0
    parts = ((path, ", ".join(search.extra_patterns.get(path, ()))) for path in search.extra_paths)
    extra = tuple(f"{path} ({patterns})" if patterns else path for path, patterns in parts)
    page = list(status_facts(status, places, extra, verbose=args.verbose))
    if probe is not None:
        ready = (
            "ready" if probe["ok"] else paint(f"unavailable: {plain(str(probe['error']))}", "red")
        )
        page.append(("Embeddings", ready))
    if unsearched is not None:
        page.append(
            (paint("Not searched", "yellow"), f"{unsearched.sentence}:\n{unsearched.command}")
        )
    say("\n".join(facts(page)))
    return 0


def gather(memory: Memory, args: Namespace) -> tuple[Status, dict[str, object] | None]:
    """Carry out --fix and --index, then return the status and the result of the probe."""
    if args.fix:
        memory.doctor(fix=True)
    if args.index:
        memory.sync()
    probe = probe_embedder(memory) if args.deep or args.index else None
    return memory.status(), probe


def probe_embedder(memory: Memory) -> dict[str, object]:
    """Embed one word with the best embedder; return `{"ok": true}`, or false and the error."""
    choice = memory.choice
    if choice.degraded is not None:
        return {"ok": False, "error": choice.degraded.reason}
    if not choice.embedders:
        return {"ok": False, "error": choice.reason}
    try:
        choice.embedders[-1].embed_query("ping")
    except EmbeddingError as error:
        return {"ok": False, "error": f"{error.message} {error.hint}".rstrip()}
    return {"ok": True}


def status_facts(
    status: Status, places: Places, extra: tuple[str, ...], *, verbose: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the page."""
    yield "Workspace", f"{short_path(status.workspace)} {paint(f'({_origin(places)})', 'dim')}"
    yield "Extra paths", ", ".join(place(path) for path in extra)
    yield "Sources", "\n".join(_source(source) for source in status.sources if source.name)
    yield "Agent", plain(status.agent_id)
    is_there = os.path.lexists(status.config_file)
    yield (
        "Config",
        short_path(status.config_file)
        + ("" if is_there else paint(" (missing: default settings)", "dim")),
    )
    yield "Index", _index(status)
    yield "Files", _files(status)
    yield "Media", _media(status.media)
    yield "Other", other_files(status.not_markdown) if status.not_markdown else ""
    yield "Plugin", "" if status.memory_plugin == MEMORY_CORE else plain(status.memory_plugin)
    for problem in status.plugin_problems:
        yield paint("Plugins", "yellow"), plain(problem)
    yield "Switched off", _unsearched(status.unsearched_files)
    yield "Backend", _backend(status)
    yield "Search", _search(status)
    if status.backend == "builtin":
        yield from _engine_facts(status)
    yield paint("Running", "yellow"), _running(status.running)
    yield (
        "Last sync",
        _last_sync(status.last_sync) or ("none finished yet" if status.running else "never"),
    )
    yield paint("Last error", "red"), plain(status.last_error)
    yield paint("Repaired", "yellow"), plain(status.healed)
    yield (
        "Path checks",
        f"by {status.containment}" + _denied(status),
    )
    yield (
        paint("Read errors", "yellow"),
        _event(status, "readErrors", "time") if "readErrors" in status.events else "",
    )
    yield (
        "Fallbacks",
        _event(status, "fallbacks", "answer") + " without the configured provider or backend"
        if "fallbacks" in status.events
        else "",
    )
    yield "Last flush", _flush(status.flush)
    yield paint("Review", "yellow"), _review(status.proposals)
    if status.degraded is not None:
        yield (
            paint("Degraded", "yellow"),
            f"{plain(status.degraded.reason)}\n{plain(status.degraded.fix)}".rstrip("\n"),
        )
    failures = [f"{place(item.path) or '.'}: {place(item.reason)}" for item in status.scan_failures]
    yield paint("Not listed", "red"), "\n".join(failures)
    shown = status.skipped if verbose else status.skipped[:SHOWN]
    skipped = [
        f"{place(item.path) if verbose else middle(item.path)}: {place(item.reason)}"
        for item in shown
    ]
    if len(status.skipped) > len(shown):
        skipped.append(
            paint(f"… and {len(status.skipped) - len(shown)} more; --verbose lists them", "dim")
        )
    yield "Skipped", "\n".join(skipped)
    yield paint("Warnings", "yellow"), "\n".join(plain(warning) for warning in status.warnings)


def _engine_facts(status: Status) -> Iterator[tuple[str, str]]:
    """Yield what only the built-in backend has."""
    yield (
        "Embedder",
        "\n".join((plain(status.embedder), *(paint(line, "dim") for line in _reason(status)))),
    )
    yield "Vectors", _vectors(status)
    yield "Spent", _spent(status.spent)
    yield (
        "SQLite",
        status.sqlite_version
        + ("" if status.sqlite_safe else paint(" (can lose commits: upgrade apsw)", "red")),
    )
    yield paint("Disk", "yellow"), _disk(status.shared_disk)
    yield "Cache", _cache(status)


def _event(status: Status, name: str, noun: str) -> str:
    """Describe what has happened in all processes: `3 paths (last 2026-11-15 09:30 UTC)`."""
    event = status.events[name]
    count, last = event.get("count"), str(event.get("last", ""))
    when = f" (last {_utc(last)})" if last else ""
    return f"{plural(count if isinstance(count, int) else 0, noun)}{when}"


def _denied(status: Status) -> str:
    """Describe the paths that were refused in all processes, at least those of this one."""
    if "denied" in status.events:
        return f" · {_event(status, 'denied', 'path')} denied"
    return f" · {plural(status.denied_paths, 'path')} denied" if status.denied_paths else ""


def _flush(times: FlushTimes | None) -> str:
    """Describe the last flush of any session, or return an empty string."""
    if times is None:
        return ""
    parts = [_utc(times.last) if times.last else "none yet"]
    if times.failures:
        failed = f"{plural(times.failures, 'attempt')} failed since, last {_utc(times.failed)}"
        parts += [paint(failed, "yellow"), f"next attempt after {_utc(times.next_attempt)}"]
    return " · ".join(parts)


def _review(proposals: int) -> str:
    """Say how many proposals wait, or return an empty string."""
    if not proposals:
        return ""
    wait = "waits" if proposals == 1 else "wait"
    return f"{plural(proposals, 'proposal')} {wait} for review: `clawmark review`"


def _utc(time: str) -> str:
    return f"{time[:10]} {time[11:16]} UTC"


def _reason(status: Status) -> list[str]:
    """Return why this embedder is used, wrapped to the right of the widest name of the page."""
    return wrap(one_line(status.embedder_reason), max(columns(), 80) - len("Extra paths  "))


def _index(status: Status) -> str:
    if not status.index_bytes and status.memory_plugin == NO_MEMORY:
        return "none"
    if not status.index_bytes:
        return short_path(status.index_path) + paint(" (not created yet: `clawmark index`)", "dim")
    parts = [short_path(status.index_path), size(status.index_bytes)]
    parts += [f"generation {status.generation}"] if status.backend == "builtin" else []
    return " · ".join([*parts, "rebuilding"] if status.rebuilding else parts)


def _cache(status: Status) -> str:
    if not status.cache_limit:
        return f"off: only {plural(status.cache_entries, 'vector')} of indexed passages"
    return f"{status.cache_entries:,} of {plural(status.cache_limit, 'vector')}"


def _disk(kind: str) -> str:
    """Describe a disk that other machines may share, or return an empty string."""
    if not kind:
        return ""
    return (
        f"{plain(kind)}: other machines may use it, so the index works without a write-ahead log, "
        f"and a search may wait for a writer"
    )


def _files(status: Status) -> str:
    if status.memory_plugin == NO_MEMORY:
        return "not indexed"
    text = plural(status.files, "file")
    text += f" · {plural(status.chunks, 'chunk')}" if status.backend == "builtin" else ""
    if not status.due_files:
        return f"{text} · up to date"
    due = plural(status.due_files, "file")
    if status.due_by_source.get("sessions"):
        counts = [
            f"{count:,} {plain(name)}" for name, count in status.due_by_source.items() if count
        ]
        due += f" ({', '.join(counts)})"
    return f"{text} · " + paint(f"{due} due: `clawmark index`", "yellow")


def _media(media: dict[str, int]) -> str:
    """Count the images and audio files, or return an empty string."""
    if not any(media.values()):
        return ""
    parts = [plural(media["image"], "image"), plural(media["audio"], "audio file")]
    rest = {"skipped": "skipped", "withoutVector": "without a vector"}
    return " · ".join(
        parts + [f"{media[key]:,} {words}" for key, words in rest.items() if media[key]]
    )


def _unsearched(files: int) -> str:
    """Describe files of a source that is switched off, or return an empty string."""
    if not files:
        return ""
    return (
        f"{plural(files, 'file')} of a source that is not in memorySearch.sources: "
        f"`clawmark index --force` removes them"
    )


def _backend(status: Status) -> str:
    """Name the backend that answers, unless it is the built-in one as configured."""
    fallback = status.fallback
    if fallback is None:
        is_default = status.backend == "builtin"
        return "" if is_default else plain(f"{status.backend} · {status.embedder_reason}")
    lines = [f"{plain(status.backend)} instead of {plain(fallback.from_)}: {fallback.reason}"]
    lines += [fallback.next_step] if fallback.next_step else []
    return "\n".join(paint(plain(line), "yellow") for line in lines)


def _search(status: Status) -> str:
    if status.memory_plugin == NO_MEMORY:
        return paint("switched off: the memory slot is empty (plugins.slots.memory)", "yellow")
    if not status.search_enabled:
        return paint("switched off: memorySearch.enabled is false", "yellow")
    names = {
        "hybrid": "hybrid: vectors and keywords",
        "fts-only": "keywords only",
        "vector-only": "vectors only",
    }
    return names[status.mode]


def _source(source: SourceReport) -> str:
    state = (
        paint(place(source.problem), "yellow")
        if source.problem
        else plural(source.files + source.media, "file")
    )
    return f"{place(source.name)} · {short_path(source.path)} · {state}"


def _spent(spent: dict[str, int]) -> str:
    """Format the usage of embedding services, or return an empty string."""
    if not spent:
        return ""
    budget = f" of {spent['dailyTokens']:,}" if spent["dailyTokens"] else ""
    today = f"today {plural(spent['callsToday'], 'call')}, {spent['tokensToday']:,}{budget} tokens"
    return f"{today} · total {plural(spent['calls'], 'call')}, {spent['tokens']:,} tokens"


def _vectors(status: Status) -> str:
    lines = [f"engine {plain(status.vector_engine)}"]
    if status.due_vectors:
        lines[0] += f" · {plural(status.due_vectors, 'better vector')} due: `clawmark index`"
    return "\n".join(lines + [_space(space) for space in status.spaces])


def _space(space: Space) -> str:
    state = "ready" if space.ready else "being built"
    identity = space.identity
    return (
        f"{plain(identity.provider)}/{plain(identity.model)} · "
        f"{identity.dims} dims · {space.vectors:,} · {state}"
    )


def _last_sync(last: dict[str, object]) -> str:
    """Format the stored summary of a sync; missing keys are left out."""
    parts = list[str]()
    at = last.get("at")
    if isinstance(at, (int, float)):
        parts.append(_when(at / 1000))
    reason = last.get("reason")
    if isinstance(reason, str):
        parts.append(plain(SYNC_REASONS.get(reason, reason)))
    parts += [
        f"{last[name]:,} {name}"
        for name in ("added", "updated", "deleted")
        if isinstance(last.get(name), int)
    ]
    trouble = {"failed": "could not be indexed", "unlisted": "not listed"}
    parts += [f"{last[name]:,} {words}" for name, words in trouble.items() if last.get(name)]
    seconds = last.get("seconds")
    if isinstance(seconds, (int, float)):
        parts.append(duration(float(seconds)))
    return " · ".join(parts)


def _running(running: dict[str, object]) -> str:
    """Format the sync that is running, or return an empty string."""
    if not running:
        return ""
    reason = str(running.get("reason", ""))
    parts = [f"a sync {plain(SYNC_REASONS.get(reason, reason))}"]
    began = running.get("startedAt")
    if isinstance(began, (int, float)):
        parts.append(f"since {_when(began / 1000)}")
    done, total = running.get("done"), running.get("total")
    if isinstance(done, int) and isinstance(total, int):
        noun = "vector" if running.get("stage") == "vectors" else "file"
        parts.append(f"{done:,} of {plural(total, noun)}")
    return " · ".join([*parts, f"process {plain(str(running.get('pid', 'unknown')))}"])


def _when(seconds: float) -> str:
    """Format a time in the local time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):  # out of range
        return "at an unknown time"


def _origin(places: Places) -> str:
    kind, _, _ = places.workspace_origin.partition(" ")
    return "configured" if kind == "file" else plain(places.workspace_origin)
