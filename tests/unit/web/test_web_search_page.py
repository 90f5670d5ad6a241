"""The models of the search and health pages: what leads where, and what is run when."""

from __future__ import annotations

from pathlib import Path

from web_memory import opened, write

from clawmark.model.provenance import Origin
from clawmark.model.values import Hit, SourceName
from clawmark.web.graph.links import find_references
from clawmark.web.graph.network import connect
from clawmark.web.pages.evidence import lines_of
from clawmark.web.pages.graph import address_of_name
from clawmark.web.pages.health import health_page, work
from clawmark.web.pages.search import Asked, forget_address, hit_address, search_page
from clawmark.web.pages.why_not import why_not_page
from clawmark.web.render import commands

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


def test_hits_say_whose_words_they_are_as_the_timeline_does(tmp_path: Path) -> None:
    outside = Origin(actor="agent", kind="web", trust="external")
    with opened(tmp_path, {"MEMORY.md": "- Gold is dear.\n"}) as memory:
        memory.append("Gold is cheap, says a page.", origin=outside)
        memory.append("Gold is yellow.")
        hits = search_page(memory, Asked(q="gold")).hits
    assert {(hit.citation.partition("#")[0], hit.trust) for hit in hits} == {
        ("MEMORY.md", "owner"),
        ("memory/2026-11-15.md", "external"),
    }
    words = {hit.trust: hit.origin for hit in hits}
    assert words["owner"].startswith("yours")
    assert words["external"] == "partly from outside, from a web page"


def texts_of(snippet: str, source: SourceName = "memory") -> list[str]:
    lines = lines_of(HIT._replace(snippet=snippet, source=source), "")
    return ["".join(piece.text for piece in line.pieces) for line in lines]


def test_lines_that_were_wrapped_in_the_file_are_one_line_of_evidence() -> None:
    snippet = "# Drill\n- It takes half\n  an hour.\n- Next one\n\nA text that\ngoes on.\n"
    assert texts_of(snippet) == [
        "# Drill",
        "- It takes half an hour.",
        "- Next one",
        "A text that goes on.",
    ]


def test_lines_of_code_tables_and_transcripts_stay_apart() -> None:
    assert texts_of("```\na = 1\nb = 2\n```") == ["```", "a = 1", "b = 2", "```"]
    assert texts_of("| a |\n| b |") == ["| a |", "| b |"]
    assert texts_of("User: one\nAssistant: two", source="sessions") == [
        "User: one",
        "Assistant: two",
    ]


def test_command_that_brings_a_note_up_can_be_run_as_it_is(tmp_path: Path) -> None:
    files = {f"memory/n{number}.md": "- The harbour crane.\n" for number in range(9)}
    with opened(tmp_path, {**files, "memory/z.md": "- A long story of a crane.\n"}) as memory:
        memory.sync()
        page = why_not_page(memory, Asked(q="what's the crane"), "memory/z.md")
    assert page.helps[0].command.startswith("""clawmark search 'what'"'"'s the crane' --""")
    assert page.helps[0].address == ""


def test_search_without_the_filter_that_hides_a_note_can_be_tried(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea at four.\n"}) as memory:
        memory.sync()
        page = why_not_page(memory, Asked(q="tea", path="memory/**"), "MEMORY.md")
        assert [one.address for one in page.helps] == ["/search?q=tea"]


def test_note_that_is_not_indexed_has_a_command_and_no_search_to_try(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea at four.\n"}) as memory:
        memory.sync()
        write(tmp_path / "agent", "memory/b.md", "- Milk.\n")
        helps = why_not_page(memory, Asked(q="tea"), "memory/b.md").helps
    assert all(one.address != "/search?q=tea" for one in helps)


def test_options_of_a_command_are_not_broken_over_two_lines() -> None:
    shown = commands("Run `clawmark doctor --probe` <now>.")
    assert shown == (
        'Run <code>clawmark doctor <span class="nowrap">--probe</span></code> &lt;now&gt;.'
    )


def test_next_step_that_is_a_command_is_set_as_code() -> None:
    assert commands("clawmark index") == "<code>clawmark index</code>"
    assert commands("Clawmark is ready.") == "Clawmark is ready."


def test_work_of_another_process_is_named_before_it_is_counted(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea.\n"}) as memory:
        status = memory.status()._replace(running={"stage": "", "done": 0, "total": 0})
    assert work(status).sentence == "Indexing has begun."


def test_work_is_offered_only_if_something_is_due(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- Tea.\n"}) as memory:
        assert health_page(memory).work.is_due
        memory.sync()
        done = health_page(memory)
    assert not done.work.is_due
    assert dict(done.facts)["Spent"] == "nothing; no service is used"
