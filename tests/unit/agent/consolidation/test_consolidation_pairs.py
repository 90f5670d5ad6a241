"""A held-out check: what the rules find in pairs of statements that they were not made from."""

from __future__ import annotations

import pytest
from consolidation_pairs import NEAR_MISSES, RELATED, Pair
from consolidation_samples import entries_of, log, page

from clawmark.agent.consolidation.claim_index import ClaimIndex
from clawmark.agent.consolidation.plan import plan
from clawmark.agent.consolidation.superseded import find_contradictions

TODAY = "2026-03-02"
FOUND = 9
"""Of the related pairs, how many are found. docs/how-to/consolidate.md has the number."""


def found_in(pair: Pair) -> list[str]:
    """Return the kinds of the changes and contradictions that a pair gives."""
    lines = ["# Memory", "", "## Coming up" if pair.kind == "expired" else "## Facts", ""]
    lines += [f"- {text}" for text in (pair.old, pair.kind == "duplicate" and pair.new) if text]
    own = page(*lines, changed="2026-02-01")
    files = [own] if pair.kind != "superseded" else [own, log("2026-02-18", pair.new)]
    entries = entries_of(*files)
    kinds = [str(change.kind) for change in plan(own, entries, TODAY)]
    return kinds + ["contradiction" for _ in find_contradictions(ClaimIndex(entries))]


@pytest.mark.parametrize("pair", NEAR_MISSES, ids=lambda pair: pair.old)
def test_a_near_miss_gives_no_change_and_no_contradiction(pair: Pair) -> None:
    assert found_in(pair) == []


@pytest.mark.parametrize("pair", RELATED, ids=lambda pair: pair.old)
def test_a_related_pair_gives_nothing_but_what_it_is(pair: Pair) -> None:
    allowed = {pair.kind, "contradiction"} if pair.kind == "superseded" else {pair.kind}
    assert set(found_in(pair)) <= allowed


def test_the_recall_is_the_one_of_the_docs() -> None:
    assert sum(pair.kind in found_in(pair) for pair in RELATED) == FOUND
