"""Proposals are stored, accepted, rejected and edited; real files throughout."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Because, Hunk, NoLongerApplies, appended_hunk, make_hunks
from clawmark.agent.review.proposals import Proposal
from clawmark.history.journal import Journal
from clawmark.model.errors import ReviewError, WorkspaceError, WriteConflict
from clawmark.model.provenance import Origin
from clawmark.workspace import Workspace

PAGE = "# Memory\n\n- Tom likes tea\n- The ferry starts in February\n"
BY_AGENT = Origin(actor="agent", kind="curation", trust="agent", session="agent:main:main")


def now() -> datetime:
    return datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "MEMORY.md").write_text(PAGE)
    return tmp_path / "ws"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal.jsonl"), now)


@pytest.fixture
def box(root: Path, journal: Journal, tmp_path: Path) -> ProposalBox:
    workspace = Workspace(str(root), lock_dir=str(tmp_path / "locks"), journal=lambda: journal)
    return ProposalBox(str(tmp_path / "proposals"), now, workspace)


def hunks(new: str) -> tuple[Hunk, ...]:
    return make_hunks("MEMORY.md", PAGE, new, lambda _: Because("why", ("memory/x.md#L1",)))


CHANGED = PAGE.replace("February", "March").replace("# Memory", "# Our memory")


def add(box: ProposalBox, *given: Hunk) -> Proposal:
    added = box.add(given or hunks(CHANGED), title="Two changes", origin=BY_AGENT)
    assert added is not None
    return added


def test_a_proposal_is_stored_in_a_private_file(box: ProposalBox) -> None:
    proposal = add(box)
    assert (proposal.id, proposal.state, proposal.pending) == ("p1", "pending", (1, 2))
    assert box.list() == (proposal,)
    assert box.get("p1") == proposal
    path = os.path.join(box.folder, "p1.json")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(box.folder).st_mode & 0o777 == 0o700


def test_accepting_writes_all_hunks(box: ProposalBox, root: Path) -> None:
    add(box)
    accepted = box.accept("p1")
    assert isinstance(accepted, Proposal)
    assert accepted.state == "accepted"
    assert (root / "MEMORY.md").read_text() == CHANGED
    assert box.list() == ()
    assert box.list(decided=True) == (accepted,)


def test_an_accepted_hunk_is_the_owners_and_names_its_proposal(
    box: ProposalBox, journal: Journal
) -> None:
    add(box)
    box.accept("p1")
    origin = journal.look_up("- The ferry starts in March").origins[0].origin
    assert (origin.actor, origin.kind, origin.trust) == ("user", "accepted", "owner")
    assert origin.session == "agent:main:main"
    assert origin.source == "proposal p1 memory/x.md#L1"


def test_one_hunk_is_accepted_and_the_other_rejected(box: ProposalBox, root: Path) -> None:
    add(box)
    box.accept("p1", [2])
    assert (root / "MEMORY.md").read_text() == PAGE.replace("February", "March")
    assert box.get("p1").pending == (1,)
    rejected = box.reject("p1", [1], reason="keep the title")
    assert rejected.state == "partly accepted"
    assert rejected.hunks[0].note == "keep the title"
    assert (root / "MEMORY.md").read_text() == PAGE.replace("February", "March")


@pytest.mark.parametrize("how", ["accept", "reject"])
def test_a_decided_hunk_cannot_be_decided_again(box: ProposalBox, root: Path, how: str) -> None:
    add(box, appended_hunk("MEMORY.md", "- new", "why"))
    box.accept("p1")
    with pytest.raises(ReviewError, match="accepted already"):
        getattr(box, how)("p1")
    assert (root / "MEMORY.md").read_text() == PAGE + "- new\n"


@pytest.mark.parametrize("name", ["p2", "p0", "x", "../p1", "p1.json", ""])
def test_an_unknown_proposal_is_named(box: ProposalBox, name: str) -> None:
    add(box)
    with pytest.raises(ReviewError, match="There is no proposal"):
        box.get(name)


def test_an_unknown_hunk_is_named(box: ProposalBox) -> None:
    add(box)
    with pytest.raises(ReviewError, match="no hunk 3"):
        box.accept("p1", [3])


def test_a_proposal_that_no_longer_applies_says_which_hunk_and_writes_nothing(
    box: ProposalBox, root: Path
) -> None:
    add(box)
    changed = PAGE.replace("February", "April")
    (root / "MEMORY.md").write_text(changed)
    assert box.accept("p1") == NoLongerApplies(
        2, "MEMORY.md", "the lines it changes are no longer in the file"
    )
    assert (root / "MEMORY.md").read_text() == changed
    assert box.get("p1").pending == (1, 2)


def test_a_hunk_still_applies_after_another_part_of_the_file_has_changed(
    box: ProposalBox, root: Path
) -> None:
    add(box)
    (root / "MEMORY.md").write_text(PAGE + "- Written by hand\n")
    box.accept("p1")
    assert (root / "MEMORY.md").read_text() == CHANGED + "- Written by hand\n"


def test_identical_pending_proposals_are_not_doubled(box: ProposalBox) -> None:
    assert add(box) == add(box)
    assert len(box.list()) == 1


def test_only_the_new_hunks_of_a_second_proposal_are_stored(box: ProposalBox) -> None:
    first, second = hunks(CHANGED)
    add(box, first)
    assert add(box, first, second).hunks == (second,)


def test_a_rejected_hunk_is_not_proposed_again(box: ProposalBox) -> None:
    first, second = hunks(CHANGED)
    add(box, first, second)
    box.reject("p1", [1])
    box.accept("p1", [2])
    assert box.add([first], title="Again", origin=BY_AGENT) is None
    assert box.list() == ()


def test_an_edited_hunk_writes_the_edited_text(box: ProposalBox, root: Path) -> None:
    add(box)
    box.edit("p1", 2, "- The ferry starts in May\n")
    box.accept("p1", [2])
    assert (root / "MEMORY.md").read_text() == PAGE.replace("February", "May")


def test_an_edit_that_adds_nothing_is_refused(box: ProposalBox) -> None:
    add(box, appended_hunk("MEMORY.md", "- new", "why"))
    with pytest.raises(ReviewError, match="would add nothing"):
        box.edit("p1", 1, "\n")


def test_a_text_with_a_redaction_mask_is_not_proposed(box: ProposalBox) -> None:
    with pytest.raises(WorkspaceError, match="redaction mask"):
        add(box, appended_hunk("MEMORY.md", "- the key is [redacted:openai]", "why"))


def test_a_proposal_may_change_several_files(box: ProposalBox, root: Path) -> None:
    new = appended_hunk("memory/2026-11-16.md", "- moved here", "why", header="# 2026-11-16\n\n")
    add(box, *hunks(PAGE.replace("- Tom likes tea\n", "")), new)
    box.accept("p1")
    assert "Tom" not in (root / "MEMORY.md").read_text()
    assert (root / "memory/2026-11-16.md").read_text() == "# 2026-11-16\n\n- moved here\n"


def test_a_damaged_file_is_reported_and_does_not_hide_the_others(box: ProposalBox) -> None:
    add(box)
    for number, text in enumerate(["{", "[]", "{}", json.dumps({"id": "p1"})], 7):
        Path(box.folder, f"p{number}.json").write_text(text)
    assert [proposal.id for proposal in box.list()] == ["p1"]
    assert len(box.damaged()) == 4
    with pytest.raises(ReviewError, match="damaged"):
        box.accept("p7")
    assert add(box, appended_hunk("MEMORY.md", "- x", "why")).id == "p11"


def test_a_read_only_file_leaves_the_proposal_pending(box: ProposalBox, root: Path) -> None:
    add(box)
    (root / "MEMORY.md").chmod(0o444)
    with pytest.raises(WorkspaceError, match="read-only"):
        box.accept("p1")
    assert box.get("p1").pending == (1, 2)
    (root / "MEMORY.md").chmod(0o644)
    box.accept("p1")
    assert (root / "MEMORY.md").read_text() == CHANGED


class ChangedByOthers(Workspace):
    """A workspace whose file is changed by another program right before it is replaced."""

    changes_left = 1

    def replace(
        self,
        path: str,
        text: str,
        base_hash: str,
        *,
        origin: Origin | None = None,
        outside: str = "",
    ) -> str:
        if self.changes_left:
            self.changes_left -= 1
            with open(os.path.join(self.root, path), "a") as file:
                file.write("- by hand\n")
        return super().replace(path, text, base_hash, origin=origin, outside=outside)


def test_a_change_at_the_same_moment_is_kept(root: Path, tmp_path: Path) -> None:
    box = ProposalBox(str(tmp_path / "proposals"), now, ChangedByOthers(str(root)))
    add(box)
    box.accept("p1")
    assert (root / "MEMORY.md").read_text() == CHANGED + "- by hand\n"


def test_a_file_that_keeps_changing_is_not_overwritten(root: Path, tmp_path: Path) -> None:
    workspace = ChangedByOthers(str(root))
    workspace.changes_left = 100
    box = ProposalBox(str(tmp_path / "proposals"), now, workspace)
    add(box)
    with pytest.raises(WriteConflict):
        box.accept("p1")
    assert box.get("p1").pending == (1, 2)


def test_forgotten_text_is_removed_from_proposals(box: ProposalBox) -> None:
    first, second = hunks(CHANGED)
    add(box, first, second)
    add(box, appended_hunk("MEMORY.md", "- March again", "why"))
    assert box.rewrite(lambda text: "March" not in text) == 2
    assert [proposal.id for proposal in box.list()] == ["p1"]
    stored = "".join(path.read_text() for path in Path(box.folder).glob("*.json"))
    assert "March" not in stored
    assert "Our memory" in stored


def test_old_decided_proposals_are_deleted_and_pending_ones_never(
    box: ProposalBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.agent.review.box.MOST_DECIDED", 2)
    add(box, appended_hunk("MEMORY.md", "- stays", "why"))
    for number in range(4):
        box.reject(add(box, appended_hunk("MEMORY.md", f"- number {number}", "why")).id)
    add(box, appended_hunk("MEMORY.md", "- last", "why"))
    assert [one.id for one in box.list(decided=True)] == ["p1", "p4", "p5", "p6"]
    assert (
        box.add([appended_hunk("MEMORY.md", "- number 0", "why")], title="", origin=BY_AGENT)
        is None
    )
