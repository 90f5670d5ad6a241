"""If a backend fails, the built-in one answers within the same call, and says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawmark import Memory
from clawmark.backends.answer_check import AnswerCheck
from clawmark.backends.base import MemoryBackend
from clawmark.backends.builtin import BuiltinBackend
from clawmark.backends.fallback import FallbackBackend, TimeLimits
from clawmark.model.errors import ConfigError
from clawmark.model.values import Query
from clawmark.system.backoff import Backoff
from clawmark.testing import (
    MISBEHAVIOURS,
    HashingEmbedder,
    MisbehavingBackend,
    backend_contract,
)

SHORT = TimeLimits(answer=0.05, sync=0.05)
NO_PAUSE = Backoff(first=0.0, longest=0.0)
QUERY = Query(text="where does the heron nest?", min_score=0.0)


def builtin(workspace: Path) -> BuiltinBackend:
    memory = Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        background=False,
    )
    return memory._builtin


def with_fallback(workspace: Path, open_backend: Callable[[], Any], **more: Any) -> FallbackBackend:
    own = builtin(workspace)
    options = {"limits": SHORT, "pause": NO_PAUSE} | more
    check = AnswerCheck("other", own.parts.workspace)
    return FallbackBackend("other", open_backend, own, check, **options)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    note = "# 2026-02-24\n\nThe heron nests by the old pier.\n"
    (folder / "memory" / "2026-02-24.md").write_text(note, encoding="utf-8")
    return folder


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_the_fallback_around_a_misbehaving_backend_keeps_the_contract(how: str) -> None:
    backend_contract(lambda folder: with_fallback(folder, lambda: MisbehavingBackend(how)))


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_the_builtin_backend_answers_in_the_same_call_and_says_so(
    workspace: Path, how: str
) -> None:
    backend = with_fallback(workspace, lambda: MisbehavingBackend(how))
    found = backend.search(QUERY)
    assert [hit.path for hit in found.hits] == ["memory/2026-02-24.md"]
    assert found.fallback_from == "other"
    assert found.degraded is not None and found.degraded.reason.endswith(".")
    status = backend.status()
    assert status.backend == "builtin"
    assert status.fallback is not None and status.fallback.from_ == "other"
    assert status.fallback.reason
    backend.close()


def test_a_backend_that_cannot_be_opened_is_replaced(workspace: Path) -> None:
    def fails() -> MemoryBackend:
        raise ImportError("no such module")

    found = with_fallback(workspace, fails).search(QUERY)
    assert found.hits and found.degraded is not None
    assert found.degraded.reason == "The backend other failed: ImportError: no such module."


def test_a_backend_that_works_answers_itself(workspace: Path) -> None:
    backend = with_fallback(workspace, lambda: builtin(workspace), limits=TimeLimits())
    found = backend.search(QUERY)
    assert found.hits and found.fallback_from == ""
    assert backend.status().backend == "other" and backend.status().fallback is None
    assert backend.builtin.status().metrics["searches"] == 0


def test_a_failed_backend_is_left_alone_for_a_pause_and_then_opened_again(workspace: Path) -> None:
    made: list[MisbehavingBackend] = []
    now = [0.0]

    def opens() -> MisbehavingBackend:
        made.append(MisbehavingBackend("returns None"))
        return made[-1]

    backend = with_fallback(
        workspace, opens, pause=Backoff(first=10.0, longest=60.0), clock=lambda: now[0]
    )
    backend.search(QUERY)
    backend.search(QUERY)
    assert len(made) == 1 and made[0].calls == 1 and made[0].is_closed
    now[0] = 11.0
    backend.search(QUERY)
    assert len(made) == 2 and made[1].calls == 1
    now[0] = 30.0  # the second pause is twice as long
    backend.search(QUERY)
    assert len(made) == 2
    backend.close()


def test_each_answer_of_the_builtin_backend_is_counted_and_nothing_else(workspace: Path) -> None:
    counted: list[int] = []
    backend = with_fallback(
        workspace,
        lambda: MisbehavingBackend("raises"),
        pause=Backoff(first=3600.0, longest=3600.0),
        on_fallback=lambda: counted.append(1),
    )
    for call in (backend.status, backend.sync, backend.probe, lambda: backend.refresh("search")):
        call()
    assert not counted
    backend.search(QUERY)
    backend.search(QUERY)  # within the pause
    assert len(counted) == 2
    backend.close()


def test_a_backend_that_recovers_is_used_again(workspace: Path) -> None:
    ways: list[Callable[[], Any]] = [
        lambda: MisbehavingBackend("raises an exception"),
        lambda: builtin(workspace),
    ]
    backend = with_fallback(workspace, lambda: ways.pop(0)(), limits=TimeLimits())
    assert backend.search(QUERY).fallback_from == "other"
    assert backend.search(QUERY).fallback_from == ""
    assert backend.status().fallback is None


def test_a_mistake_of_the_caller_is_not_a_failure_of_the_backend(workspace: Path) -> None:
    class Refuses(MisbehavingBackend):
        def search(self, query: Any, *, freshen: bool = True) -> Any:
            raise ConfigError("No.")

    backend = with_fallback(workspace, lambda: Refuses("returns None"))
    with pytest.raises(ConfigError):
        backend.search(QUERY)


def test_secrets_in_the_error_of_a_backend_are_masked(workspace: Path) -> None:
    def fails() -> MemoryBackend:
        raise RuntimeError("the key hunter2 was refused")

    backend = with_fallback(workspace, fails, clean=lambda text: text.replace("hunter2", "***"))
    degraded = backend.search(QUERY).degraded
    assert degraded is not None and "hunter2" not in degraded.reason


def test_outdated_hits_are_left_out_of_an_answer_that_has_others(workspace: Path) -> None:
    own = builtin(workspace)
    found = own.search(QUERY)
    gone = found.hits[0]._replace(path="memory/gone.md", score=1.0)
    checked = AnswerCheck("other", own.parts.workspace).found(
        found._replace(hits=(gone, *found.hits)), 6
    )
    assert [hit.path for hit in checked.hits] == ["memory/2026-02-24.md"]
