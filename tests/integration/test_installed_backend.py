"""A backend of an installed package is selected by its name, and only then imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.backends.fallback import FallbackBackend

MODULE = '''
"""Finds lines that contain the question."""
from clawmark.model.values import Found, Hit, NothingFound
from clawmark.backends.base import BackendContext


class Grep:
    def __init__(self, context: BackendContext) -> None:
        self.context = context

    def search(self, query, *, freshen=True):
        hits = []
        for state in self.context.workspace.scan().files:
            text = self.context.workspace.read_document(state).text
            for number, line in enumerate(text.splitlines(), 1):
                if query.text in line:
                    hits.append(Hit(state.path, number, number, 0.5, line, number, number,
                                    state.source, 0.0, 0.5, ""))
        nothing = None if hits else NothingFound("no-such-words", "Nothing.", None)
        return Found(tuple(hits), nothing, "fts-only", "grep", "", None, 0, 0.0)

    def status(self):
        return self.context.describe()

    def close(self):
        open(self.context.workspace.root + "/closed", "w").close()


def make(context: BackendContext) -> Grep:
    return Grep(context)


def breaks(context: BackendContext) -> Grep:
    raise RuntimeError("no licence")
'''


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "site"
    info = site / "grep_memory-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: grep-memory\nVersion: 1.0\n")
    points = "[clawmark.backends]\ngrep = grep_memory:make\nbroken = grep_memory:breaks\n"
    (info / "entry_points.txt").write_text(points)
    (site / "grep_memory.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "grep_memory", raising=False)
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Birds\n\nThe heron nests.\n", encoding="utf-8")
    return folder


def opened(workspace: Path, backend: str) -> Memory:
    overrides = {"memory.backend": backend, "memorySearch.provider": "none"}
    state = workspace.parent / "state"
    return Memory.open(workspace, state_dir=state, overrides=overrides, background=False)


def test_an_installed_backend_answers_under_its_name(workspace: Path) -> None:
    with opened(workspace, "grep") as memory:
        found = memory.search("heron")
        assert [hit.citation for hit in found.hits] == ["MEMORY.md#L3"]
        assert (found.provider, found.fallback_from) == ("grep", "")
        assert memory.status().backend == "grep"
    assert (workspace / "closed").exists()


def test_a_backend_that_is_not_selected_is_not_imported(workspace: Path) -> None:
    with opened(workspace, "builtin") as memory:
        assert memory.search("heron").hits
        assert not isinstance(memory._backend, FallbackBackend)
    assert "grep_memory" not in sys.modules


def test_an_installed_backend_that_breaks_is_replaced(workspace: Path) -> None:
    with opened(workspace, "broken") as memory:
        found = memory.search("heron")
        assert found.hits and found.fallback_from == "broken" and found.degraded is not None
        assert found.degraded.reason == "The backend broken failed: RuntimeError: no licence."


def test_methods_that_an_installed_backend_lacks_are_those_of_the_builtin_one(
    workspace: Path,
) -> None:
    with opened(workspace, "grep") as memory:
        assert memory.sync().added == 1
        assert memory.read("MEMORY.md").total_lines == 3


def test_an_unknown_backend_is_named_with_those_that_exist(workspace: Path) -> None:
    with opened(workspace, "nosuch") as memory:
        found = memory.search("heron")
        assert found.hits and found.degraded is not None
        assert 'No installed package offers a memory backend called "nosuch".' in (
            found.degraded.reason
        )
        assert found.degraded.fix.endswith("one of: broken, builtin, grep, qmd.")
