"""Every hostile configuration file of the shared corpus, loaded by the real command line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Place, Ran, says_one_clear_thing
from hostile import cases, input_bytes, make, needs_maker, remove

from clawmark.cli import main

pytestmark = needs_maker


class Tried(NamedTuple):
    """A case and how `status` ended with it."""

    case: dict[str, Any]
    ran: Ran


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make(tmp_path_factory.mktemp("hostile") / "tree")
    yield folder
    remove(folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A small workspace with what the paths of the cases lead to."""
    made = Place(tmp_path / "tree")
    made.home.mkdir(parents=True)
    made.write("MEMORY.md", "# Facts\n\nTea is at four.\n")
    made.write("notes/a.md", "A note beside the memory.\n")
    (tmp_path / "tree" / "outside").mkdir()
    (tmp_path / "tree" / "outside" / "secret.md").write_text("canaryoutside\n", encoding="utf-8")
    return made


def status_with(
    place: Place,
    case: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Ran:
    """`clawmark status` with the case as its configuration, in this process: a hundred starts would
    be slow.
    """
    path = place.folder / "c.json"
    path.write_bytes(input_bytes(case))
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    code = main(
        ["status", "--config", str(path), "--state-dir", str(place.folder / "a" / "b" / "state")]
    )
    out, err = capsys.readouterr()
    return Ran(code, out, err)


def problems(tried: Tried) -> list[str]:
    """What a case did that it must not do."""
    expect, ran = str(tried.case["expect"]), tried.ran
    if ran.code == 0:
        said = ran.out + ran.err
        allowed = {"ok", "clamped", "degraded", "refused", "stated", "warned"} & set(
            expect.split("-or-")
        )
        found = [] if allowed else [f"{tried.case['id']} was accepted: {said}"]
        if allowed in ({"warned"}, {"clamped"}) and "Warnings" not in ran.out:
            found.append(f"{tried.case['id']} was not warned of")
        return found
    if "error" not in expect:
        return [f"{tried.case['id']} was refused: {ran.err}"]
    located = "c.json" in ran.err or "memorySearch." in ran.err  # the file, or at least the key
    clear = ran.code == 2 and ran.out == "" and says_one_clear_thing(ran) and located
    return [] if clear else [f"{tried.case['id']} was not clear: {ran}"]


def test_every_hostile_configuration_is_refused_clamped_or_said(
    tree: Path, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = cases(tree, "configs")
    tried = [Tried(case, status_with(place, case, capsys, monkeypatch)) for case in corpus.values()]
    assert len(tried) > 100
    assert [problem for one in tried for problem in problems(one)] == []
    assert all("FAKE" not in one.ran.out + one.ran.err for one in tried)


def test_what_an_extra_path_opens_is_stated(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {"input": '{"memorySearch": {"extraPaths": ["../outside", "nosuch"]}}'}
    ran = status_with(place, case, capsys, monkeypatch)
    assert ran.code == 0
    assert ["Extra", "paths", "../outside,", "nosuch"] in [
        line.split() for line in ran.out.splitlines()
    ]


def test_a_wrong_configuration_leaves_no_trace(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status_with(place, {"input": "{"}, capsys, monkeypatch)
    assert not (place.folder / "a").exists()
    shutil.rmtree(place.workspace)
    assert "is not a folder" not in status_with(place, {"input": "{}"}, capsys, monkeypatch).err
