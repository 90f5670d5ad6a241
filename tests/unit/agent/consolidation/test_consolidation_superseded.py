"""Which statement replaces which, and which contradict each other."""

from __future__ import annotations

import pytest
from consolidation_samples import entries_of, log, page

from clawmark.agent.consolidation.claim_index import ClaimIndex
from clawmark.agent.consolidation.entries import SourceText
from clawmark.agent.consolidation.superseded import find_contradictions, find_superseded


def replaced(old: str, new: str, *, changed: str = "", day: str = "2026-03-02") -> list[str]:
    found = find_superseded(
        ClaimIndex(entries_of(page(f"- {old}", changed=changed), log(day, new)))
    )
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "The launch is in February.",
            "The launch moved to March.",
            "- The launch is in March (until 2026-03-02: February).",
        ),
        (
            "Launch of the dance version: February",
            "The launch of the dance version was postponed to March.",
            "- Launch of the dance version: March (until 2026-03-02: February)",
        ),
        (
            "The backup runs at 02:00, from the standby.",
            "Tomasz moved the backup to 04:30 and tested it.",
            "- The backup runs at 04:30 (until 2026-03-02: 02:00), from the standby.",
        ),
        (
            "The launch is in May.",  # not the verb
            "The launch moved to June.",
            "- The launch is in June (until 2026-03-02: May).",
        ),
        (
            "Stand-up: Tuesday",
            "The stand-up moved from Tuesday to Thursday.",
            "- Stand-up: Thursday (until 2026-03-02: Tuesday)",
        ),
        (
            "Billing uses MySQL.",
            "Billing moved from MySQL to PostgreSQL.",
            "- Billing uses PostgreSQL (until 2026-03-02: MySQL).",
        ),
        (
            "The team talks in Slack, with threads.",
            "We switched from Slack to Zulip.",
            "- The team talks in Zulip (until 2026-03-02: Slack), with threads.",
        ),
        (
            "Kari Nilsen, a friend. Lives in Bergen.",
            "Kari moved to Tromsø.",
            "- Kari Nilsen, a friend. Lives in Tromsø (until 2026-03-02: Bergen).",
        ),
        (
            "Priya Raman: design, on Plover one day a week.",
            "Priya works two days a week from now on.",
            "- Priya Raman: design, on Plover two days a week (until 2026-03-02: one day).",
        ),
        (
            "Price: 29 euros a month per school.",
            "The price is now 35 euros a month.",
            "- Price: 35 euros a month per school (until 2026-03-02: 29 euros).",
        ),
        (
            "Der Start ist im Februar.",
            "Der Start wurde auf März verschoben.",
            "- Der Start ist im März (bis 2026-03-02: Februar).",
        ),
        (
            "Anna wohnt in Köln.",
            "Anna ist nach Hamburg gezogen.",
            "- Anna wohnt in Hamburg (until 2026-03-02: Köln).",
        ),
    ],
)
def test_a_change_in_a_log_replaces_the_value(old: str, new: str, expected: str) -> None:
    assert replaced(old, new) == [expected]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The launch is in February.", "The launch is in February."),
        ("The launch is in February.", "The launch might be moved to March."),
        ("The launch is in February.", "The launch has not moved to March."),
        ("The launch is in February.", "Should the launch be moved to March?"),
        ("The launch is in February.", "If it snows, the launch moved to March."),
        ("The launch is in February.", "The lunch moved to March."),
        ("The launch is in February.", "The launch of the dance version moved to March."),
        ("The launch is in February.", "The launch moved from January to March."),
        ("The launch is in February.", "It moved to March."),
        ("The launch is on 2026-02-12.", "The launch moved to 12 February 2026."),
        ("The launch is in February.", "Grace moved to March Street."),
        ("Billing uses MySQL.", "Reports moved from SQLite to PostgreSQL."),
        (
            "Priya Raman: design. Priya Sen: sales, one day a week.",
            "Priya works two days a week now.",
        ),
        ("Restore takes 21 minutes.", "Restore took 15 minutes."),
        ("Tomasz works on Mondays.", "Tomasz works on Tuesdays."),
        ("The market is on Tuesday and Friday.", "The market is now on Friday and Tuesday."),
        ("Server load: 20 percent.", "Anna wohnt in Köln."),
        ("The meeting is on Tuesday.", "The meeting moved to Thursday this week."),
        ("Das Treffen ist am Dienstag.", "Das Treffen wird ausnahmsweise auf Freitag verlegt."),
        ("Grace Adeyemi: runs a school in Leeds.", "Grace moved from Leeds to York."),
        ("A migration without a rehearsal is a bet.", "We moved from A to B."),
        ("Rent: 800 euros a month.", "Rent: 850 euros paid."),
        ("Grace lives in Leeds.", "Grace's mother moved to York."),
        ("The talk is in Oslo.", "I moved to Oslo Street."),
        # What a speaker says in a conversation, after the name.
        ("Mila: 3 years by now.", "Mila: Six years now, and I still enjoy my pottery."),
        ("Mila: 3 kilos lost.", "user: Mila has 6 kilos now."),
        # A line of a list that does not say what it is about.
        ("Price: 700 euros.", "Price: 800 euros"),
        ("Weight: 3 kilos", "Weight: 4 kilos"),
        ("Course: 3 hours", "Course: 4 hours"),
    ],
)
def test_what_is_not_a_change_replaces_nothing(old: str, new: str) -> None:
    assert replaced(old, new) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Concerts are in July.", "Concerts are in August."),
        ("Workshops happen in May.", "Workshops happen in June."),
        ("Price: about 700 euros", "Price: about 800 euros"),
    ],
)
def test_a_newer_statement_about_several_things_replaces_nothing(old: str, new: str) -> None:
    assert replaced(old, new, changed="2026-02-01") == []


def test_a_plural_is_replaced_if_the_log_says_that_it_has_changed() -> None:
    found = replaced("Lessons start at 15:00.", "Lessons start at 16:00 from now on.")
    assert found == ["- Lessons start at 16:00 (until 2026-03-02: 15:00)."]


def test_of_two_values_on_the_page_only_the_one_that_the_log_names_is_replaced() -> None:
    own = page("- The launch is in February.", "## Tour", "", "- The launch is in May.")
    unclear = log("2026-03-02", "The launch moved to June.")
    assert find_superseded(ClaimIndex(entries_of(own, unclear))) == []
    named = log("2026-03-02", "The launch moved from February to March.")
    (found,) = find_superseded(ClaimIndex(entries_of(own, named)))
    assert found.entry.start_line == 1


def test_a_number_is_not_cut_at_its_comma() -> None:
    (found,) = replaced("Licence number: 8,080", "The licence number is now 8,443.")
    assert found == "- Licence number: 8,443 (until 2026-03-02: 8,080)"


def test_a_plain_statement_replaces_only_what_is_known_to_be_older() -> None:
    old, new = "The venue is Lysverket.", "The venue is Cornelius."
    assert replaced(old, new, changed="2026-02-01") != []
    assert replaced(old, new, changed="2026-03-02") == []
    assert replaced(old, new) == []


def test_the_newest_statement_counts() -> None:
    files = (
        page("- The launch is in February."),
        log("2026-02-10", "The launch moved to March."),
        log("2026-02-20", "The launch moved to April."),
    )
    (found,) = find_superseded(ClaimIndex(entries_of(*files)))
    assert found.text == "- The launch is in April (until 2026-02-20: February)."


def test_an_accepted_change_is_not_found_again() -> None:
    text = replaced("The launch is in February.", "The launch moved to March.")[0]
    assert replaced(text[2:], "The launch moved to March.") == []


def test_a_value_that_the_page_calls_old_is_not_brought_back() -> None:
    old = "The launch is in April (until 2026-03-05: March)."
    assert replaced(old, "The launch moved to March.") == []


def contradicting(*files: SourceText) -> list[tuple[str, str]]:
    found = find_contradictions(ClaimIndex(entries_of(*files)))
    return [(one.older.entry.citation, one.newer.entry.citation) for one in found]


def test_two_values_for_the_same_thing_contradict_each_other() -> None:
    files = (
        page("- The venue is Lysverket.", "- Price: 29 euros a month."),
        log("2026-03-01", "The venue is Cornelius."),
        log("2026-03-02", "The price is 35 euros a month."),
    )
    assert contradicting(*files) == [
        ("MEMORY.md#L2", "memory/2026-03-02.md#L3"),
        ("MEMORY.md#L1", "memory/2026-03-01.md#L3"),
    ]


def test_two_lines_of_the_page_contradict_each_other() -> None:
    assert contradicting(page("- Anna lives in Köln.", "- Anna lives in Bonn.")) == [
        ("MEMORY.md#L1", "MEMORY.md#L2")
    ]


COMPATIBLE = {
    "marked": (
        page("- The launch is in March (until 2026-03-02: February)."),
        log("2026-02-01", "The launch is in February."),
    ),
    "moved": (
        log("2026-02-01", "The choir concert is on 2026-03-09."),
        log("2026-02-20", "The choir concert moved to 2026-03-16."),
    ),
    "over": (
        log("2026-02-01", "The choir concert is on 2026-02-09."),
        log("2026-02-20", "The choir concert is on 2026-03-16."),
    ),
    "counted": (
        log("2026-02-01", "Plover has 31 schools."),
        log("2026-02-20", "Plover has 33 schools."),
    ),
    "every week": (
        log("2026-02-01", "Team dinner is on Friday."),
        log("2026-02-20", "Team dinner is on Thursday."),
    ),
    "judged": (
        log("2026-02-01", "The colours of the poster are so vivid."),
        log("2026-02-20", "The colours of the poster are so pale."),
    ),
    "of different things": (
        log("2026-02-01", "The capital is Nashville."),
        log("2026-02-20", "The capital is Abuja."),
    ),
    "a list": (page("- Events happen in July and August.", "- Events happen in August."),),
    "two people": (page("- Anna lives in Köln.", "- Ben lives in Bonn."),),
    "two jobs": (page("- Tomasz Wrona: three days a week.", "- Priya Raman: one day a week."),),
    "two things": (page("- The backup runs at 02:00.", "- The report runs at 03:00."),),
    "several events": (page("- Concerts are in July.", "- Concerts are in August."),),
    "fields below two headings": (
        page("## Tent", "", "- Weight: 3 kilos", "", "## Stove", "", "- Weight: 1 kilos"),
    ),
    "fields of the parts of a list": (
        page("- Tent:", "- Weight: 3 kilos", "- Stove:", "- Weight: 1 kilos"),
    ),
    "fields of a list in a log": (
        log("2026-02-01", "Shop rating: Good", "Shop room: Blue"),
        log("2026-02-02", "Shop rating: Fair", "Shop room: Green"),
    ),
    "a speaker": (page("- Mila: 3 years by now."), log("2026-02-01", "Mila: 6 years, I think.")),
    "many values": (page(*(f"- The venue of the fair is Hall{n}." for n in range(9))),),
    "said twice": (page("- The venue is Lysverket.", "- The venue is Lysverket!"),),
}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_what_can_be_true_together_is_not_a_contradiction(name: str) -> None:
    assert contradicting(*COMPATIBLE[name]) == []


def test_fields_of_one_list_contradict_each_other() -> None:
    assert contradicting(page("- Rent: 800 euros a month", "- Rent: 850 euros a month")) == [
        ("MEMORY.md#L1", "MEMORY.md#L2")
    ]


def test_two_plans_for_the_same_day_to_come_contradict_each_other() -> None:
    files = (
        log("2026-02-01", "The choir concert is on 2026-03-09."),
        log("2026-02-20", "The choir concert is on 2026-03-16."),
    )
    assert contradicting(*files) == [("memory/2026-02-01.md#L3", "memory/2026-02-20.md#L3")]
