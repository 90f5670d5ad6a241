"""Curation of MEMORY.md: proposals are diffs, written once the user has accepted them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chat import ChatServer, Turn, call, say

from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.notes.curate import (
    MOST_CHANGES,
    Curation,
    keep_curation,
    pending_curations,
    propose,
)
from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.proposals import Proposal
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

TODAY = "2026-11-15"
PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n\n## People\n\n- Bob: plumber.\n"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(str(tmp_path), lock_dir=str(tmp_path / ".locks"))
    (tmp_path / "MEMORY.md").write_text(PAGE, encoding="utf-8")
    made.remember("We moved billing to PostgreSQL.", "2026-11-14")
    made.remember("Tea again.", TODAY)
    made.remember("Too old.", "2026-11-01")
    return made


def change(**arguments: Any) -> Turn:
    return call("propose_change", **arguments)


def proposed(workspace: Workspace, server: ChatServer, *turns: Turn) -> Curation:
    server.script([*turns, say("done")])
    return propose(
        choose_completer(f"scripted@{server.openai_url}", {}),
        workspace,
        Redactor(),
        TODAY,
        3,
        seconds=20,
    )


def test_proposed_changes_are_a_diff_and_nothing_is_written(
    workspace: Workspace, server: ChatServer
) -> None:
    made = proposed(
        workspace,
        server,
        change(
            old="- Billing runs on MySQL.",
            new="- Billing runs on PostgreSQL.",
            because="memory/2026-11-14.md",
        ),
        change(old="", new="- Carla: dentist.", section="people"),
        change(old="", new="- Pays in cash.", section="Habits"),
        change(old="- Ann prefers tea.", new=""),
    )
    facts = "# Facts\n\n- Billing runs on PostgreSQL.\n"
    people = "\n## People\n\n- Bob: plumber.\n- Carla: dentist.\n"
    assert made.new == f"{facts}{people}\n## Habits\n\n- Pays in cash.\n"
    assert "--- MEMORY.md\n" in made.diff
    assert {
        "-- Billing runs on MySQL.",
        "+- Billing runs on PostgreSQL.",
        "+- Carla: dentist.",
    } <= set(made.diff.split("\n"))
    assert made.reasons[0] == "memory/2026-11-14.md"
    assert (Path(workspace.root) / "MEMORY.md").read_text(encoding="utf-8") == PAGE


def test_the_model_sees_the_page_and_the_logs_of_these_days_quoted(
    workspace: Workspace, server: ChatServer
) -> None:
    notes = Path(workspace.root) / "memory"
    (notes / "2026-11-14-planning.md").write_text("The launch moves to May.\n", encoding="utf-8")
    (notes / "imports" / "chatgpt").mkdir(parents=True)
    (notes / "imports" / "chatgpt" / "2026-11-14-old.md").write_text(
        "Not a log.\n", encoding="utf-8"
    )
    assert proposed(workspace, server).diff == ""
    seen = server.seen[0]
    assert (
        "2026-11-14-planning.md:\n\n| The launch moves to May." in seen.last_user
        and "Not a log" not in seen.last_user
    )
    assert "\n| - Ann prefers tea.\n" in seen.last_user
    assert seen.last_user.index("2026-11-14.md:") < seen.last_user.index("2026-11-15.md:")
    assert (
        "| - We moved billing to PostgreSQL." in seen.last_user and "Too old" not in seen.last_user
    )
    assert seen.tools == ("propose_change",)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("does not stand on the page", {"old": "Billing runs", "new": "x"}),
    ("neither old nor new", {"old": "", "new": " "}),
    ("redaction mask", {"old": "", "new": "- key [redacted:openai]"}),
    ("recalled", {"old": "", "new": "<relevant-memories>x</relevant-memories>"}),
    ("looks like JSON", {"old": "", "new": '{"a": 1, "b": 2}'}),
    ("already there", {"old": "", "new": "Ann prefers tea"}),
    ("taken", {"old": "", "new": "x " * 2500}),
    ("more than half", {"old": PAGE.strip(), "new": "- x"}),
]


@pytest.mark.parametrize(("why", "arguments"), REFUSED, ids=[why for why, _ in REFUSED])
def test_a_change_that_may_not_be_is_refused_with_the_reason(
    workspace: Workspace, server: ChatServer, why: str, arguments: dict[str, Any]
) -> None:
    assert proposed(workspace, server, change(**arguments)).diff == ""
    assert why in server.seen[1].results[0]


def test_what_is_not_changed_stays_to_the_byte(workspace: Workspace, server: ChatServer) -> None:
    page = "# Facts\n\n\n- One\n\n```\na\n\n\nb\n```\n\n- Two\n\n- Three"
    (Path(workspace.root) / "MEMORY.md").write_text(page, encoding="utf-8")
    made = proposed(
        workspace, server, change(old="- Two", new=""), change(old="- One", new="- Only")
    )
    assert made.new == page.replace("\n\n- Two", "").replace("- One", "- Only") + "\n"


def test_secrets_are_left_out_and_the_bar_of_a_quotation_is_forgiven(
    workspace: Workspace, server: ChatServer
) -> None:
    key = "sk-" + "a1B2" * 10
    made = proposed(
        workspace, server, change(old="| - Bob: plumber.", new=f"- Bob: plumber, key {key}")
    )
    assert "- Bob: plumber, key (a secret was left out)\n" in made.new


def test_there_is_an_end_to_the_changes(workspace: Workspace, server: ChatServer) -> None:
    turn = Turn(
        "", tuple(change(new=f"- Fact {number}.").calls[0] for number in range(MOST_CHANGES + 3))
    )
    made = proposed(workspace, server, turn)
    assert made.new.count("- Fact") == MOST_CHANGES


def box_of(workspace: Workspace) -> ProposalBox:
    return ProposalBox(
        f"{workspace.root}/.proposals", lambda: datetime(2026, 11, 15, tzinfo=UTC), workspace
    )


def test_each_change_is_a_hunk_with_its_reason_and_the_logs_it_names(
    workspace: Workspace, server: ChatServer
) -> None:
    made = proposed(
        workspace,
        server,
        change(
            old="- Billing runs on MySQL.",
            new="- Billing runs on PostgreSQL.",
            because="moved, see memory/2026-11-14.md",
        ),
        change(old="", new="- Carla: dentist.", section="people", because="she said so"),
        change(old="", new="- Dan: baker.", section="people", because="he said so"),
    )
    kept = keep_curation(box_of(workspace), made, "agent:main:main")
    assert kept is not None
    assert [hunk.new for hunk in kept.hunks] == [
        "- Billing runs on PostgreSQL.",
        "- Carla: dentist.",
        "- Dan: baker.",
    ]
    assert [hunk.reason for hunk in kept.hunks] == [
        "moved, see memory/2026-11-14.md",
        "she said so",
        "he said so",
    ]
    assert kept.hunks[0].citations == ("memory/2026-11-14.md",)
    assert pending_curations(box_of(workspace)) == (kept,)
    accepted = box_of(workspace).accept(kept.id)
    assert isinstance(accepted, Proposal)
    assert (Path(workspace.root) / "MEMORY.md").read_text(encoding="utf-8") == made.new


def test_a_page_that_is_not_there_yet_is_made(tmp_path: Path, server: ChatServer) -> None:
    workspace = Workspace(str(tmp_path))
    made = proposed(workspace, server, change(new="- First.", section="Facts"))
    kept = keep_curation(box_of(workspace), made)
    assert kept is not None
    box_of(workspace).accept(kept.id)
    assert (tmp_path / "MEMORY.md").read_text(encoding="utf-8").strip() == "## Facts\n\n- First."
    assert (
        "(it is not there yet)" in server.seen[0].last_user
        and "no logs" in server.seen[0].last_user
    )


def test_a_curation_without_changes_is_not_stored(workspace: Workspace, server: ChatServer) -> None:
    assert keep_curation(box_of(workspace), proposed(workspace, server)) is None
    assert box_of(workspace).list() == ()
