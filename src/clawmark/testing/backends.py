"""The contract of every `MemoryBackend`.

`backend_contract` is called by the tests of any implementation, ours or a third party's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from clawmark.backends.base import MemoryBackend
from clawmark.model.errors import ConfigError
from clawmark.model.values import Found, Query

NOTE = "memory/2026-02-24.md"
TEXT = "# 2026-02-24\n\nThe heron nests by the old pier.\nPostgreSQL keeps the invoices.\n"
QUESTION = "where does the heron nest?"
LATER = "memory/2026-02-25.md"


def backend_contract(make: Callable[[Path], MemoryBackend], *, searches: bool = True) -> None:
    """Check an implementation, and raise AssertionError with the promise that was broken.

    `make` opens a backend over a workspace folder, and is called several times for the same folder.
    `searches` is False for a backend that refuses to search with `ConfigError`.
    """
    for promise in (*COMMON, *(SEARCHING if searches else REFUSING)):
        with TemporaryDirectory() as folder:
            workspace = Path(folder) / "workspace"
            (workspace / "memory").mkdir(parents=True)
            (workspace / NOTE).write_text(TEXT, encoding="utf-8")
            promise(workspace, make)


def _reads_files(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        whole = backend.read(NOTE)
        _must("heron" in whole.text and whole.total_lines == 4, "a file is read whole by default")
        line = backend.read(NOTE, 3, 1)
        _must(line.text.strip() == TEXT.splitlines()[2], "lines are selected by number")
        _must(backend.read("memory/absent.md").text == "", "a file that does not exist is empty")
    finally:
        backend.close()


def _indexes_what_changed(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        _must(backend.status().due_files == 1, "a new file is due")
        _must(backend.status().files == 0, "asking for the status indexes nothing")
        _must(backend.sync().added == 1, "a sync indexes it")
        _must(backend.status().files == 1, "the status counts indexed files")
        _must(backend.status().due_files == 0, "nothing is due after a sync")
        (workspace / NOTE).unlink()
        _must(backend.sync(force=True).due_files == 0, "a forced sync leaves nothing due")
        _must(backend.status().files == 0, "a deleted file leaves the index")
    finally:
        backend.close()


def _keeps_its_index(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    for added in (1, 0):
        backend = make(workspace)
        try:
            _must(backend.sync().added == added, "an index outlives the backend that made it")
        finally:
            backend.close()


def _probes_without_raising(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        for probe in backend.probe():
            _must(bool(probe.part and probe.name), "a probe names what it used")
            _must(bool(probe.reason) or probe.state == "ok", "a failed probe has a reason")
    finally:
        backend.close()


def _closes_twice(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    backend.sync()
    backend.close()
    backend.close()


def _finds_with_citations(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        found = backend.search(_query(QUESTION))
        _must([hit.path for hit in found.hits[:1]] == [NOTE], "a first search finds a passage")
        hit = found.hits[0]
        cited = backend.read(NOTE, hit.start_line, hit.end_line - hit.start_line + 1)
        _must("heron" in cited.text and "heron" in hit.snippet, "the cited lines hold the answer")
        scores = [hit.score for hit in found.hits]
        _must(scores == sorted(scores, reverse=True), "the best hit comes first")
        _must(found.due_files in (0, None), "nothing is claimed to be due after freshening")
    finally:
        backend.close()


def _follows_the_files(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        backend.sync()
        (workspace / LATER).write_text("The osprey came later.\n", encoding="utf-8")
        backend.sync()
        _must(_has(backend.search(_query("osprey")), LATER), "a new file is found")
        (workspace / NOTE).unlink()
        _must(not _has(backend.search(_query(QUESTION)), NOTE), "a deleted file is never cited")
        _must(backend.refresh("session-start"), "a refresh is done or started")
    finally:
        backend.close()


def _explains_an_empty_answer(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    (workspace / NOTE).unlink()
    backend = make(workspace)
    try:
        for text in (QUESTION, "", " \n ", "***", "a\x00b", "\ud800"):
            found = backend.search(_query(text))
            _must(not found.hits and found.nothing is not None, "an empty answer has a reason")
    finally:
        backend.close()


def _searches_in_two_threads(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    answers: list[Found] = []
    try:
        backend.sync()
        ask = [lambda: answers.append(backend.search(_query(QUESTION)))] * 2
        threads = [threading.Thread(target=one) for one in ask]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _must(
            len(answers) == 2 and all(_has(found, NOTE) for found in answers),
            "two threads are answered at once",
        )
    finally:
        backend.close()


def _refuses_to_search(workspace: Path, make: Callable[[Path], MemoryBackend]) -> None:
    backend = make(workspace)
    try:
        backend.search(_query(QUESTION))
    except ConfigError as error:
        _must(bool(error.hint), "the refusal says how to switch search on")
    else:
        raise AssertionError("broken promise: a search is refused with ConfigError")
    finally:
        _must(not backend.refresh("session-start"), "nothing is indexed unasked")
        _must(not backend.status().search_enabled, "the status says that search is off")
        backend.close()


COMMON = (
    _reads_files,
    _indexes_what_changed,
    _keeps_its_index,
    _probes_without_raising,
    _closes_twice,
)
SEARCHING = (
    _finds_with_citations,
    _follows_the_files,
    _explains_an_empty_answer,
    _searches_in_two_threads,
)
REFUSING = (_refuses_to_search,)


def _query(text: str) -> Query:
    return Query(text=text, min_score=0.0)


def _has(found: Found, path: str) -> bool:
    return path in [hit.path for hit in found.hits]


def _must(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(f"broken promise: {promise}")
