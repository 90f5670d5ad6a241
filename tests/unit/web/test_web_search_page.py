"""The models of the search and health pages: what leads where, and what is run when."""

from __future__ import annotations

from pathlib import Path

from web_memory import opened

from clawmark.model.values import Hit
from clawmark.web.graph.links import find_references
from clawmark.web.graph.network import connect
from clawmark.web.pages.graph import address_of_name
from clawmark.web.pages.health import health_page
from clawmark.web.pages.search import Asked, forget_address, hit_address, search_page

HIT = Hit(
    path="memory/a b.md",
    start_line=3,
    end_line=4,
    score=0.5,
    snippet="x",
    snippet_start=3,
    snippet_end=3,
    source="memory",
    vector_score=0.0,
    text_score=0.5,
    date="",
)


def test_hit_in_a_file_is_opened_and_forgotten_at_its_lines() -> None:
    assert hit_address(HIT) == "/file/memory/a%20b.md#L3"
    assert forget_address(HIT) == "/forget?lines=memory%2Fa+b.md%23L3-L4"


def test_hit_in_a_transcript_is_opened_at_its_message_and_cannot_be_forgotten_alone() -> None:
    hit = HIT._replace(path="sessions/x.jsonl", source="sessions")
    assert hit_address(hit) == "/session/sessions/x.jsonl?start=3#L3"
    assert forget_address(hit) == ""


def test_hit_of_an_added_folder_cannot_be_forgotten() -> None:
    assert forget_address(HIT._replace(path="notes:a.md")) == ""


def test_state_is_described_without_running_the_checks(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea.\n"}) as memory:
        assert health_page(memory).checks is None
        checks = health_page(memory, checks=True).checks
    assert checks is not None and checks.passed
    assert {one.level for one in checks.findings} <= {"problem", "note"}


def test_words_that_do_not_occur_are_answered_with_the_reason(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea at four.\n"}) as memory:
        found = search_page(memory, Asked(q="zeppelin"))
    assert found.nothing is not None and found.nothing.code == "no-such-words"
    assert found.next_step


def test_wikilink_without_a_note_leads_to_a_search() -> None:
    network = connect({"memory/ferry.md": find_references("memory/ferry.md", "# The Ferry\n")})
    assert address_of_name(network, "Ferry") == "/file/memory/ferry.md"
    assert address_of_name(network, "the ferry") == "/file/memory/ferry.md"
    assert address_of_name(network, "the train") == "/search?q=the+train"
