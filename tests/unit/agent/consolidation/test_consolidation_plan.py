"""The changes that are planned: each with its place, its reason and its evidence."""

from __future__ import annotations

from consolidation_samples import entries_of, log, page

from clawmark.agent.consolidation.entries import SourceText
from clawmark.agent.consolidation.plan import Change, plan
from clawmark.agent.review.hunks import Applied, apply_hunks

TODAY = "2026-03-02"
FACT = "Madame Verhaeghe is best reached by phone between 10 and 11."
PAGE = page(
    "# Memory",
    "",
    "## People",
    "",
    "- Grace Adeyemi: runs Northgate Music School.",
    "",
    "## Plover",
    "",
    "- The launch is in February.",
    "- Nothing is deployed after 16:00.",
    "",
    "## Lessons",
    "",
    "- Rule of the outage: nothing is deployed after 16:00.",
    "",
    "## Coming up",
    "",
    "- 2026-02-20: release of the feed.",
    "- 2026-03-20: Porto.",
    changed=TODAY,
)
LOGS = (
    log("2026-02-01", FACT),
    log("2026-02-10", FACT, "The launch moved to March."),
    log("2026-02-20", FACT),
)


def applied(changes: tuple[Change, ...], base: SourceText = PAGE) -> str:
    done = apply_hunks(base.text, [change.hunk for change in changes])
    assert isinstance(done, Applied)
    return done.text


def test_every_kind_of_change_is_planned_with_reason_and_evidence() -> None:
    changes = plan(PAGE, entries_of(PAGE, *LOGS), TODAY)
    assert [(change.kind, change.hunk.citations) for change in changes] == [
        (
            "promoted",
            ("memory/2026-02-20.md#L3", "memory/2026-02-10.md#L3", "memory/2026-02-01.md#L3"),
        ),
        ("superseded", ("memory/2026-02-10.md#L4", "MEMORY.md#L9")),
        ("duplicate", ("MEMORY.md#L14", "MEMORY.md#L10")),
        ("expired", ("MEMORY.md#L18",)),
    ]
    assert all(change.hunk.reason for change in changes)
    assert (
        applied(changes)
        == page(
            "# Memory",
            "",
            "## People",
            "",
            "- Grace Adeyemi: runs Northgate Music School.",
            f"- {FACT}",
            "",
            "## Plover",
            "",
            "- The launch is in March (until 2026-02-10: February).",
            "",
            "## Lessons",
            "",
            "- Rule of the outage: nothing is deployed after 16:00.",
            "",
            "## Coming up",
            "",
            "- 2026-03-20: Porto.",
        ).text
    )


def test_the_changed_page_needs_no_change() -> None:
    changed = SourceText("MEMORY.md", applied(plan(PAGE, entries_of(PAGE, *LOGS), TODAY)), TODAY)
    assert plan(changed, entries_of(changed, *LOGS), TODAY) == ()


def test_each_change_can_be_taken_alone() -> None:
    changes = plan(PAGE, entries_of(PAGE, *LOGS), TODAY)
    for change in changes:
        text = applied((change,))
        assert text != PAGE.text
        assert (change.hunk.new or change.hunk.old) in (text if change.hunk.new else PAGE.text)


def test_a_memory_without_a_page_gets_one() -> None:
    empty = SourceText("MEMORY.md", "")
    text = applied(plan(empty, entries_of(empty, *LOGS), TODAY), empty)
    assert text == f"# Memory\n\n## Notes\n\n- {FACT}\n"


def test_an_entry_that_is_over_is_removed_and_not_also_merged() -> None:
    twice = page(
        "## Coming up",
        "",
        "- 2026-02-20: release of the feed.",
        "- 2026-02-20: release of the feed.",
    )
    changes = plan(twice, entries_of(twice), TODAY)
    assert [change.kind for change in changes] == ["expired", "expired"]
    assert applied(changes, twice) == "## Coming up\n\n"


def test_a_statement_that_was_changed_since_is_not_promoted() -> None:
    said = "The backup of Plover runs at 02:00."
    logs = [log(f"2026-02-0{day}", said) for day in (1, 2, 3)]
    empty = page("# Memory")
    assert len(plan(empty, entries_of(empty, *logs), TODAY)) == 1
    logs.append(log("2026-02-04", "The backup of Plover moved to 04:30."))
    assert plan(empty, entries_of(empty, *logs), TODAY) == ()


def test_a_page_without_anything_to_do_is_left_alone() -> None:
    calm = page("# Memory", "", "- Ines lives in Bergen.", "- Biscuit is a dog.", changed=TODAY)
    logs = (log("2026-02-01", "Swam 900 metres."), log("2026-02-02", "Swam 900 metres again."))
    assert plan(calm, entries_of(calm, *logs), TODAY) == ()
