"""Every hostile answer of an embedding provider, for a search and for an index: 114 cases, a real
server on loopback.

A search answers in the same call, from keywords where it must, and says why. An index loses
nothing: new text is found by its words at once and stays due for its vectors. A healed provider
completes what was due, and is sent no text again that it has answered before.

Each case has a state folder of its own, so that what one provider did is not held against the next.
The pauses and limits of retries are shortened (a second for a minute) where a test uses
`short_pauses`; CLAWMARK_ALL=1 leaves out nothing."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from behaviours import ELSEWHERE, LISTENING
from embeddings import EmbeddingServer
from hostile import MAKER, cases, needs_maker

from clawmark import Memory
from clawmark.embed.services import remote
from clawmark.model.values import Degraded
from clawmark.net.retry import INDEXING, QUERY, Policy
from clawmark.system.backoff import Backoff

pytestmark = needs_maker

ALL = bool(os.environ.get("CLAWMARK_ALL"))
KEY = "sk-FAKE-planted-9f3c1e7ab2d84650"
HANG_SECONDS = 20.0
HOST = "embeddings.test"
"""A name that resolves to loopback as long as the case lets it."""

NOTES = {
    "MEMORY.md": "# Facts\n\nWe chose PostgreSQL as the database "
    "for billing because MySQL was slow.\n",
    "memory/2026-11-13.md": "# 2026-11-13\n\nTea with Ann at the harbour, and "
    "a long talk about sailing boats.\n",
    "memory/2026-11-14.md": "# 2026-11-14\n\nThe router in the attic got a "
    "new cable; the wifi works again.\n",
}
QUESTION, ANSWER = "which database did we choose for billing?", "MEMORY.md"
NEW_FILE, NEW_QUESTION = "memory/2026-11-15.md", "lighthouse keeper number 17"
NEW_CHUNKS = 60
"""More than the 16 that some of the servers take at once, also when they go in several requests."""

SILENT = (
    "pr-hang-connect",
    "pr-hang-headers",
    "pr-hang-body",
    "pr-drip",
    "pr-100",
    "pr-slow-then-ok",
)
"""Cases that cost whatever time one gives them."""
BETTER_FOR_SEARCH = ("pr-split-400",)
"""A question is one text, and one text is not too many."""
BETTER_FOR_INDEX = ("pr-split-400", "pr-slow-then-ok")
"""An index may get the better of these: by splitting the request, by waiting for a late answer."""

# Words of a programmer; a person who reads a reason has no use for them.
_JARGON = re.compile(
    r"traceback|exception|errno|0x[0-9a-f]{6}|NoneType|\bself\.|\.py\b|Error\(|object "
    r"at|<class|KeyError"
)

T = TypeVar("T")


def _cases() -> dict[str, dict[str, Any]]:
    """The cases are parameters, so they are made while tests are collected; it takes a third of a
    second.
    """
    if not MAKER.is_file():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            [sys.executable, str(MAKER), str(tree), "--seed", "1"], check=True, capture_output=True
        )
        found = cases(tree, "provider")
        subprocess.run(
            [sys.executable, str(MAKER), str(tree), "--remove"], check=True, capture_output=True
        )
    return found


CASES = _cases()
every_case = pytest.mark.parametrize("name", list(CASES) or ["absent"])


class Resolver:
    """Knows one name, as long as it may."""

    def __init__(self) -> None:
        self.is_lost = False
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, *more: Any, **named: Any) -> Any:
        if host in (HOST, HOST.encode()):
            if self.is_lost:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = "127.0.0.1"
        return self._real(host, *more, **named)


class Place(NamedTuple):
    """A workspace, its state folder and the provider it is configured for."""

    workspace: Path
    state: Path
    server: EmbeddingServer
    resolver: Resolver

    def open(self) -> Memory:
        """As a new process would; every step of a test opens its own."""
        settings = {
            "memorySearch.provider": "openai",
            "memorySearch.remote.baseUrl": f"http://{HOST}:{self.server.port}/v1",
            "memorySearch.remote.apiKey": KEY,
            "memorySearch.chunking.tokens": 48,
            "memorySearch.chunking.overlap": 0,
        }
        return Memory.open(self.workspace, state_dir=self.state, overrides=settings)

    def write(self, path: str, text: str) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def write_new_file(self, chunks: int = NEW_CHUNKS) -> None:
        sections = [
            f"## Entry {number}\n\nThe lighthouse keeper number {number} counted {number * 7} "
            f"gulls over the northern bay "
            f"and wrote their names into the heavy book of station {number * 31}, which nobody "
            f"reads but the wind.\n"
            for number in range(chunks)
        ]
        self.write(NEW_FILE, "# 2026-11-15\n\n" + "\n".join(sections))

    def spoil(self, name: str) -> None:
        """Let the provider misbehave as the case says."""
        wanted = CASES[name]["input"]
        self.resolver.is_lost = wanted.get("behave") in ELSEWHERE
        self.server.requests.clear()
        self.server.spoil(wanted)

    def heal(self) -> None:
        """Let the provider be well, and a minute pass: the circuit breaker's file says until when
        it waits.
        """
        self.server.heal()
        self.resolver.is_lost = False
        for file in self.state.rglob("*breaker*"):
            file.unlink()

    def was_met(self, name: str) -> bool:
        """Whether the fault could happen: something came to a server that can be reached, nothing
        to one that cannot.
        """
        return bool(self.server.requests) != (
            CASES[name]["input"].get("behave") in (*ELSEWHERE, *LISTENING)
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Three notes, indexed while the provider was well."""
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    with EmbeddingServer(key=KEY) as server:
        made = Place(
            workspace=tmp_path / "workspace",
            state=tmp_path / "state",
            server=server,
            resolver=resolver,
        )
        for path, text in NOTES.items():
            made.write(path, text)
        with made.open() as memory:
            report = memory.sync()
            assert report.degraded is None
            assert memory.status().due_vectors == 0
            found = memory.search(QUESTION)
        assert (found.provider, found.degraded, found.hits[0].path) == ("openai", None, ANSWER)
        yield made


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same retries as ever, sooner."""
    soon = Backoff(first=0.02, longest=0.1)
    monkeypatch.setattr(remote, "INDEXING", Policy(attempts=3, backoff=soon, total=1.0, each=0.5))
    if not ALL:
        monkeypatch.setattr(remote, "QUERY", Policy(attempts=2, backoff=soon, total=0.6, each=0.6))


@pytest.fixture
def short_pauses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same retries, sooner, with time for the answer of a busy machine."""
    patient = Policy(attempts=3, backoff=Backoff(first=0.02, longest=0.1), total=60.0, each=60.0)
    monkeypatch.setattr(remote, "INDEXING", patient)


REAL_LIMITS = {"INDEXING": INDEXING, "QUERY": QUERY}


def in_time(step: Callable[[], T]) -> T:
    """The result of a step that ends; a hang is a failure and not the end of the test run."""
    result: list[T] = []
    trouble: list[BaseException] = []

    def run() -> None:
        try:
            result.append(step())
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive(), f"no end after {HANG_SECONDS:.0f} s"
    if trouble:
        raise trouble[0]
    return result[0]


def assert_a_person_understands(degraded: Degraded | None) -> None:
    assert degraded is not None
    said = f"{degraded.reason} {degraded.fix}"
    assert KEY not in said
    assert "planted" not in said
    assert not _JARGON.search(said), said
    assert 15 < len(degraded.reason) < 500, said
    assert degraded.reason.strip()[-1] in ".!?…)", said
    assert said.isprintable(), said


def assert_paid_once(server: EmbeddingServer) -> None:
    """No text of the memory came again after it had been answered; questions are asked anew."""
    assert [text for text in server.tally.repeated if text not in (QUESTION, NEW_QUESTION)] == []
    assert server.tally.keys_in_url == 0


def assert_completed(place: Place) -> None:
    """The next index of a healed provider leaves nothing due, and pays for nothing twice."""

    def index() -> Any:
        with place.open() as memory:
            return memory.sync(), memory.status(), memory.search(NEW_QUESTION)

    with pytest.MonkeyPatch.context() as patch:
        # An answer that comes too late for a short limit is asked for again, and paid twice.
        for name, policy in REAL_LIMITS.items():
            patch.setattr(remote, name, policy)
        report, status, found = in_time(index)
    assert report.degraded is None
    assert (report.due_vectors, status.due_vectors, status.due_files) == (0, 0, 0)
    assert (found.provider, found.degraded, found.hits[0].path) == ("openai", None, NEW_FILE)
    assert all(space.vectors == status.chunks for space in status.spaces)
    assert_paid_once(place.server)


@every_case
@pytest.mark.usefixtures("short_pauses")
def test_a_search_answers_for_every_failure_of_the_provider(place: Place, name: str) -> None:
    place.spoil(name)

    def search() -> Any:
        with place.open() as memory:
            return memory.search(QUESTION)

    found = in_time(search)
    expect = CASES[name]["expect"]
    assert place.was_met(name)
    assert found.hits[0].path == ANSWER
    if found.degraded is None:
        assert "ok" in expect or name in BETTER_FOR_SEARCH
        assert found.provider == "openai"
    else:
        assert "degrade" in expect
        assert found.provider != "openai"  # keywords, and the vectors this machine makes by itself
        assert_a_person_understands(found.degraded)


@every_case
@pytest.mark.usefixtures("short_pauses")
def test_an_index_loses_nothing_and_a_healed_provider_completes_it(place: Place, name: str) -> None:
    place.spoil(name)
    place.write_new_file()

    def index() -> Any:
        with place.open() as memory:
            return (
                memory.sync(),
                memory.status(),
                memory.search(NEW_QUESTION),
                memory.search(QUESTION),
            )

    report, status, new, old = in_time(index)
    expect = CASES[name]["expect"]
    assert place.was_met(name)
    assert (report.added, report.failures) == (1, ())
    assert new.hits[0].path == NEW_FILE
    assert old.hits[0].path == ANSWER
    if report.degraded is None:
        assert "ok" in expect or name in BETTER_FOR_INDEX
        assert status.due_vectors == 0
    else:
        assert "degrade" in expect
        assert_a_person_understands(report.degraded)
        assert 0 < report.due_vectors <= NEW_CHUNKS
        assert status.due_vectors > 0
    place.heal()
    assert_completed(place)


@pytest.mark.parametrize("name", SILENT if ALL else SILENT[1:3])
def test_a_search_that_finds_new_text_does_not_wait_for_its_vectors(
    place: Place, name: str
) -> None:
    """With the real limits: a search brings the index up to date first, and that may not take an
    index's patience.
    """
    place.spoil(name)
    place.write_new_file()

    def search() -> Any:
        with place.open() as memory:
            return memory.search(NEW_QUESTION), memory.search(QUESTION), memory.status()

    new, old, status = in_time(search)
    assert new.hits[0].path == NEW_FILE
    assert old.hits[0].path == ANSWER
    assert_a_person_understands(new.degraded)
    assert status.due_vectors > 0
    place.heal()
    assert_completed(place)


@pytest.mark.usefixtures("short_pauses_only")
def test_what_was_answered_before_the_provider_failed_is_kept(place: Place) -> None:
    place.server.script([200, *[500] * 200])
    place.write_new_file(600)  # more than goes into one request
    with place.open() as memory:
        report = memory.sync()
    assert report.degraded is not None
    requests = [record.answered for record in place.server.tally.log]
    assert (requests.count(True), requests.count(False) > 0) == (
        3,
        True,
    )  # the notes, the question, the first of these
    place.heal()
    place.server.script([])
    assert_completed(place)


def test_a_closed_keep_alive_connection_is_not_an_error(place: Place) -> None:
    with place.open() as memory:
        assert memory.search(QUESTION).degraded is None
        place.server.spoil("nothing-listens")
        place.server.heal()
        assert memory.search("who had tea at the harbour?").degraded is None


def test_there_are_114_cases() -> None:
    assert len(CASES) == 114
