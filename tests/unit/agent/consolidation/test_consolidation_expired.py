"""What is over: dates that have passed and tasks that are done."""

from __future__ import annotations

import pytest
from consolidation_samples import entries_of, log, page

from clawmark.agent.consolidation.expired import find_expired

TODAY = "2026-03-02"


def expired(heading: str, item: str, *logs: str, changed: str = "2026-02-10") -> list[str]:
    files = [page(f"## {heading}", "", f"- {item}", changed=changed)]
    files += [log("2026-03-01", one) for one in logs]
    return [one.entry.plain for one in find_expired(entries_of(*files), TODAY)]


@pytest.mark.parametrize(
    ("heading", "item"),
    [
        ("Coming up", "2026-02-20: release of the change feed."),
        ("Coming up", "2026-02-20, 8:05: train to Oslo."),
        ("Upcoming", "2026-02-20 to 2026-02-27: Porto."),
        ("Termine", "12. Februar: Zahnarzt"),
        ("People", "Tomasz is off until 2026-02-27."),
        ("People", "Tomasz is on leave until Friday."),
        ("Ines", "The parking permit is valid until 1 March 2026."),
        ("Money", "The tax receipts are due by 2026-02-25."),
        ("Haus", "Die Kita ist bis zum 28.2.2026 geschlossen."),
        ("Tasks", "[x] Renew the domain"),
    ],
)
def test_what_is_over_is_found(heading: str, item: str) -> None:
    assert len(expired(heading, item)) == 1


@pytest.mark.parametrize(
    ("heading", "item"),
    [
        ("Coming up", "2026-03-02: today is not over."),
        ("Coming up", "2026-03-12: night guard."),
        ("Coming up", "2026-02-20 to 2026-03-27: Porto."),
        ("Coming up", "Porto in the summer."),
        ("History", "2026-02-20: release of the change feed."),
        ("Decisions", "2026-01-04: PostgreSQL for billing."),
        ("People", "Tomasz lived in Gdansk until 2020-01-01."),
        ("People", "Priya was with us until 2026-02-01."),
        ("Ines", "The shop is open Monday through Friday."),
        ("Ines", "Timesheets are due by Friday."),
        ("Ines", "The office is open every day until 2026-02-27."),
        ("Plover", "The launch is in March (until 2026-02-20: February)."),
        ("Plover", "The contract is valid until 2027-01-01."),
        ("Plover", "The restore drill took 21 minutes on 2026-02-20."),
        ("Plover", "Tomasz is off until 2026-02-27. He likes written questions."),
        ("Plover", "Works by 2026-02-01 rules."),
        ("Tasks", "[ ] Renew the domain"),
        ("Calendar", "1988-05-04: Ines's birthday."),
        ("Important dates", "2026-02-04: the wedding."),
        ("Open source", "2026-02-04: first release of the library."),
    ],
)
def test_what_still_holds_is_kept(heading: str, item: str) -> None:
    assert expired(heading, item) == []


def test_a_weekday_is_read_from_the_day_the_page_was_last_changed() -> None:
    # 2026-03-02 is a Monday; the Friday after the change has not come yet.
    assert expired("People", "Tomasz is off until Friday.", changed="2026-02-28") == []
    assert expired("People", "Tomasz is off until Friday.", changed="") == []


def test_a_task_that_a_log_ticks_is_done() -> None:
    assert expired("Tasks", "[ ] Renew the domain plover.app", "[x] Renew the domain plover.app")
    assert expired("Tasks", "[ ] Renew the domain plover.app", "Done: renew the domain plover.app")
    assert not expired("Tasks", "[ ] Renew the domain plover.app", "[x] Renew the domain heron.app")
    assert not expired("Tasks", "[ ] Renew the domain plover.app", "Renew the domain plover.app")
