"""Copies of shared documents: what a pull writes, deletes and leaves alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clawmark.backends.team.base import Changes, SharedDocument
from clawmark.backends.team.files.copies import CopyFiles
from clawmark.backends.team.files.puller import Puller
from clawmark.backends.team.files.pulling import plan_pull, text_hash
from clawmark.model.errors import SpaceDenied, SpacesUnavailable

PLAN = "spaces/team/eve/memory/team/plan.md"
LOG = "spaces/team/2026-11-18.md"


def document(path: str, text: str | None, version: int) -> SharedDocument:
    return SharedDocument(
        path=path,
        author="eve",
        hash="0" * 64,
        text=text,
        changed="2026-11-18T10:00:00Z",
        version=version,
    )


class Changing:
    """The documents of a space, as `changes` returns them."""

    def __init__(self) -> None:
        self.documents: dict[str, SharedDocument] = {}
        self.version = 0
        self.asked: list[int] = []
        self.fails_after = 10**9

    def put(self, path: str, text: str | None) -> None:
        self.version += 1
        self.documents[path] = document(path, text, self.version)

    def changes(self, space: str, since: int = 0, limit: int = 100) -> Changes:
        if space != "team":
            raise SpaceDenied("There is no such space.", space=space)
        if len(self.asked) >= self.fails_after:
            raise SpacesUnavailable("The server is away.", hint="Start it.")
        self.asked.append(since)
        later = sorted(
            (one for one in self.documents.values() if one.version > since),
            key=lambda one: one.version,
        )
        page: Sequence[SharedDocument] = later[:2]
        reached = page[-1].version if len(later) > 2 else self.version
        return Changes(tuple(page), reached, len(later) <= 2)


@pytest.fixture
def team() -> Changing:
    return Changing()


@pytest.fixture
def puller(tmp_path: Path, team: Changing) -> Puller:
    (tmp_path / "agent").mkdir()
    copies = CopyFiles(str(tmp_path / "agent"), str(tmp_path / "locks"))
    return Puller(team, copies, str(tmp_path / "state"))  # type: ignore[arg-type]


def file(tmp_path: Path, path: str) -> Path:
    return tmp_path / "agent" / path


def test_documents_become_files(tmp_path: Path, team: Changing, puller: Puller) -> None:
    team.put(PLAN, "The plan.\n")
    team.put(LOG, "# 2026-11-18\n\n- 10:00 eve: Hello\n")
    team.put("spaces/team/bo/memory/x.md", "x\n")
    pulled = puller.pull("team")
    assert sorted(pulled.written) == sorted(team.documents)
    assert file(tmp_path, PLAN).read_text() == "The plan.\n"
    assert (pulled.version, pulled.problem) == (3, "")


def test_a_second_pull_asks_only_for_what_follows(team: Changing, puller: Puller) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    team.put(PLAN, "The new plan.\n")
    assert puller.pull("team").written == (PLAN,)
    assert team.asked == [0, 1]
    assert puller.pull("team").written == ()


def test_an_interrupted_pull_continues_where_it_stopped(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    for number in range(6):
        team.put(f"spaces/team/eve/memory/{number}.md", f"{number}\n")
    team.fails_after = 2
    pulled = puller.pull("team")
    assert (len(pulled.written), pulled.version) == (4, 4)
    assert (pulled.problem, pulled.next_step) == ("The server is away.", "Start it.")
    team.fails_after = 10**9
    assert len(puller.pull("team").written) == 2
    assert len(list((tmp_path / "agent/spaces/team/eve/memory").iterdir())) == 6


def test_a_withdrawn_document_deletes_its_unchanged_copy(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    team.put(PLAN, None)
    assert puller.pull("team").deleted == (PLAN,)
    assert not file(tmp_path, "spaces/team/eve").exists()
    assert file(tmp_path, "spaces").exists()


def test_a_copy_that_was_edited_is_not_overwritten(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    file(tmp_path, PLAN).write_text("My own words.\n")
    team.put(PLAN, "The new plan.\n")
    assert puller.pull("team").conflicts == (PLAN,)
    assert puller.pull("team").conflicts == (PLAN,)
    assert file(tmp_path, PLAN).read_text() == "My own words.\n"
    file(tmp_path, PLAN).unlink()
    assert puller.pull("team").written == (PLAN,)
    assert file(tmp_path, PLAN).read_text() == "The new plan.\n"


def test_an_edited_copy_of_a_withdrawn_document_is_kept(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    file(tmp_path, PLAN).write_text("My own words.\n")
    team.put(PLAN, None)
    assert puller.pull("team").kept == (PLAN,)
    assert file(tmp_path, PLAN).read_text() == "My own words.\n"
    assert puller.pull("team").kept == ()


def test_a_deleted_copy_comes_back(tmp_path: Path, team: Changing, puller: Puller) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    file(tmp_path, PLAN).unlink()
    assert puller.pull("team").written == (PLAN,)


def test_a_file_that_was_there_before_is_a_conflict(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    file(tmp_path, PLAN).parent.mkdir(parents=True)
    file(tmp_path, PLAN).write_text("Mine.\n")
    team.put(PLAN, "The plan.\n")
    assert puller.pull("team").conflicts == (PLAN,)


def test_a_link_in_place_of_a_copy_is_never_followed(
    tmp_path: Path, team: Changing, puller: Puller
) -> None:
    target = tmp_path / "outside.md"
    target.write_text("Outside.\n")
    file(tmp_path, PLAN).parent.mkdir(parents=True)
    file(tmp_path, PLAN).symlink_to(target)
    team.put(PLAN, "The plan.\n")
    team.put(LOG, "x\n")
    pulled = puller.pull("team")
    assert (pulled.conflicts, pulled.written) == ((PLAN,), (LOG,))
    assert target.read_text() == "Outside.\n"


@pytest.mark.parametrize(
    "path",
    ["spaces/team/../../x.md", "MEMORY.md", "/etc/x.md", "spaces/other/2026-11-18.md", "spaces/x"],
)
def test_a_path_outside_the_space_is_refused(
    tmp_path: Path, team: Changing, puller: Puller, path: str
) -> None:
    team.put(path, "hostile\n")
    team.put(PLAN, "The plan.\n")
    pulled = puller.pull("team")
    assert (pulled.written, len(pulled.refused)) == ((PLAN,), 1)
    assert {one.name for one in (tmp_path / "agent").rglob("*.md")} == {"plan.md"}


def test_a_withdrawn_document_that_cannot_be_a_file_is_not_reported(
    team: Changing, puller: Puller
) -> None:
    team.put("spaces/team/eve/.hidden/x.md", "x")
    assert len(puller.pull("team").refused) == 1
    team.put("spaces/team/eve/.hidden/x.md", None)
    assert puller.pull("team").refused == ()


@pytest.mark.parametrize("name", ["CON.md", "aux.md", "nul.txt.md", "com1.md", "LPT9.md"])
def test_names_of_windows_devices_are_refused(team: Changing, puller: Puller, name: str) -> None:
    team.put(f"spaces/team/eve/memory/{name}", "x")
    team.put(f"spaces/team/eve/{name.removesuffix('.md')}/x.md", "x")
    pulled = puller.pull("team")
    assert (pulled.written, len(pulled.refused)) == ((), 2)


def test_a_text_with_nul_is_refused(team: Changing, puller: Puller) -> None:
    team.put(PLAN, "a\0b")
    assert len(puller.pull("team").refused) == 1


def test_a_denied_space_raises(puller: Puller) -> None:
    with pytest.raises(SpaceDenied):
        puller.pull("other")


@pytest.mark.parametrize("state", ["", "[]", "{", '{"version": "x", "files": {}}'])
def test_a_damaged_state_file_is_replaced(
    tmp_path: Path, team: Changing, puller: Puller, state: str
) -> None:
    team.put(PLAN, "The plan.\n")
    puller.pull("team")
    (tmp_path / "state" / "team.json").write_text(state)
    pulled = puller.pull("team")
    assert (pulled.written, pulled.conflicts, pulled.version) == ((), (), 1)
    saved = json.loads((tmp_path / "state" / "team.json").read_text())
    assert saved == {"version": 1, "files": {PLAN: text_hash("The plan.\n")}}


def test_the_plan_writes_nothing_that_is_up_to_date() -> None:
    documents = [document(PLAN, "a\n", 1), document(PLAN, "b\n", 2)]
    plan = plan_pull(documents, {}, lambda _: text_hash("b\n"))
    assert plan.current == (PLAN,)
    assert plan.steps == ()
