"""The model of the review page, and decisions about what was shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from web_memory import opened, write

from clawmark import Memory
from clawmark.agent.review.hunks import Because, appended_hunk, make_hunks
from clawmark.model.errors import ReviewError
from clawmark.model.provenance import Origin
from clawmark.web.pages.review import decide, next_address, review_list, review_page

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n"
BY_AGENT = Origin(actor="agent", kind="curation", trust="agent", session="agent:main:main")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path, {"MEMORY.md": PAGE, "memory/log.md": "- moved in March\n"}) as memory:
        hunks = make_hunks(
            "MEMORY.md",
            PAGE,
            PAGE.replace("MySQL", "PostgreSQL"),
            lambda _: Because("It moved.", ("memory/log.md#L1", "../../etc/passwd#L1")),
        )
        memory.review.add(
            (*hunks, appended_hunk("MEMORY.md", "- Bob is the plumber.", "Said twice.")),
            title="Curate MEMORY.md",
            origin=BY_AGENT,
        )
        memory.review.add(
            (appended_hunk("MEMORY.md", "- Rita was born in May.", ""),),
            title="A note",
            origin=BY_AGENT,
        )
        yield memory


def fields(memory: Memory, number: int, **more: str) -> dict[str, str]:
    hunk = review_page(memory, "p1").hunks[number - 1]
    return {"hunk": str(number), "digest": hunk.digest, **more}


def page(tmp_path: Path) -> str:
    return (tmp_path / "agent" / "MEMORY.md").read_text()


def test_a_change_has_its_diff_its_reason_and_what_stands_at_its_citations(memory: Memory) -> None:
    model = review_page(memory, "p1")
    first = model.hunks[0]
    assert [(one.sign, one.text) for one in first.diff if one.sign in "+-"] == [
        ("-", "- Billing runs on MySQL."),
        ("+", "- Billing runs on PostgreSQL."),
    ]
    assert (first.reason, first.citations[0].text) == ("It moved.", "- moved in March")
    assert first.citations[1].text == ""  # a citation never reads outside the memory
    assert (model.proposal.who, model.waiting, model.following) == ("curation of the logs", 2, "p2")


def test_deciding_leads_to_what_is_left(memory: Memory, tmp_path: Path) -> None:
    assert decide(memory, "p1", "accept", fields(memory, 1)) is None
    assert "PostgreSQL" in page(tmp_path)
    assert next_address(memory, "p1") == "/review/p1"
    assert decide(memory, "p1", "reject", fields(memory, 2, reason="not true")) is None
    assert review_page(memory, "p1").hunks[1].note == "not true"
    assert next_address(memory, "p1") == "/review/p2"
    digest = review_page(memory, "p2").digest
    assert decide(memory, "p2", "accept", {"digest": digest}) is None
    assert next_address(memory, "p2") == "/review"
    assert [one.state for one in review_list(memory, decided=True).decided] == [
        "accepted",
        "partly accepted",
    ]


def test_all_changes_are_accepted_at_once(memory: Memory, tmp_path: Path) -> None:
    digest = review_page(memory, "p1").digest
    assert decide(memory, "p1", "accept", {"digest": digest}) is None
    assert "PostgreSQL" in page(tmp_path)
    assert "plumber" in page(tmp_path)


def test_a_change_that_was_edited_since_is_not_accepted(memory: Memory, tmp_path: Path) -> None:
    seen = fields(memory, 1)
    edited = fields(memory, 1, text="- Billing runs on Oracle.\r\n")
    assert decide(memory, "p1", "edit", edited) is None
    failed = decide(memory, "p1", "accept", seen)
    assert failed is not None
    assert "changed since" in failed.problem
    assert page(tmp_path) == PAGE
    assert decide(memory, "p1", "accept", fields(memory, 1)) is None
    assert "Oracle" in page(tmp_path)


def test_a_change_that_no_longer_applies_says_why_and_still_waits(
    memory: Memory, tmp_path: Path
) -> None:
    write(tmp_path / "agent", "MEMORY.md", "# Other\n")
    failed = decide(memory, "p1", "accept", fields(memory, 1))
    assert failed is not None
    assert "no longer applies" in failed.problem
    assert review_page(memory, "p1", *failed).hunks[0].problem == failed.problem
    assert review_page(memory, "p1").proposal.pending == 2


def test_a_change_is_decided_once(memory: Memory) -> None:
    seen = fields(memory, 1)
    assert decide(memory, "p1", "reject", seen) is None
    failed = decide(memory, "p1", "accept", seen)
    assert failed is not None
    assert "already" in failed.problem


def test_an_edit_that_would_add_nothing_is_refused(memory: Memory) -> None:
    failed = decide(memory, "p1", "edit", fields(memory, 2, text="  "))
    assert failed is not None
    assert failed.hunk == 2


def test_an_unknown_proposal_is_refused(memory: Memory) -> None:
    for name in ("p99", "x", "../p1"):
        with pytest.raises(ReviewError):
            review_page(memory, name)
