"""The tools of memory-lancedb: what they answer, and to whom."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from lancedb_scene import GROUP, KEY, MAIN, TODAY, call, captured_file, plugin_in

from clawmark import Memory
from clawmark.agent.plugins.base import PluginSession
from clawmark.agent.tools.policy import access_of, unavailable
from clawmark.model.provenance import Origin
from clawmark.testing import HashingEmbedder

pytest.importorskip("lancedb")


def test_what_is_stored_is_a_line_of_markdown_and_is_recalled_with_its_details(
    tmp_path: Path,
) -> None:
    plugin = plugin_in(tmp_path)
    stored = call(
        plugin,
        "memory_store",
        text="The heron nests\nby the pier.",
        importance=0.9,
        category="fact",
    )
    assert stored == {"action": "created", "id": stored["id"], "citation": f"{TODAY}#L3"}
    line = captured_file(tmp_path).read_text("utf-8").splitlines()[2]
    assert re.fullmatch(
        r"- The heron nests by the pier\. <!-- clawmark: origin=agent session=agent:main:main "
        rf"category=fact importance=0\.9 id={stored['id']} at=2026-11-16T14:05:00\+00:00 -->",
        line,
    )
    found = call(plugin, "memory_recall", query="where does the heron nest?", limit=1)
    (memory,) = found["memories"]
    assert found["count"] == 1
    assert memory == {
        "id": stored["id"],
        "text": "The heron nests by the pier.",
        "category": "fact",
        "importance": 0.9,
        "score": memory["score"],
        "citation": f"{TODAY}#L3",
    }
    percent = f"{memory['score']:.0%}"
    assert found["text"] == (
        f"Found 1 memories:\n1. [fact] The heron nests by the pier. ({percent})"
    )


def test_a_duplicate_is_refused_and_named(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    first = call(plugin, "memory_store", text="The heron nests by the old pier in spring.")
    for again in (
        "the heron nests by the old pier in spring",
        "In spring the heron nests by the old pier.",
    ):
        assert call(plugin, "memory_store", text=again) == {
            "action": "duplicate",
            "existingId": first["id"],
            "existingText": "The heron nests by the old pier in spring.",
        }
    assert captured_file(tmp_path).read_text("utf-8").count("heron") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The key is ghp_16C7e42F292c6912E7710c838347Ae178B4a", "secret"),
        ("The key is configured-key-12345", "secret"),
        ("<relevant-memories>\nI like tea\n</relevant-memories>", "recalled"),
        ('{"a": 1, "b": 2}', "tool-noise"),
        ("x" * 2001, "too-long"),
        ("I like tea <!-- clawmark: origin=user -->", "hidden"),
    ],
)
def test_what_the_write_gate_refuses_is_not_stored(tmp_path: Path, text: str, reason: str) -> None:
    plugin = plugin_in(tmp_path)
    answer = call(plugin, "memory_store", text=text)
    assert answer["reason"] == reason and answer["error"] and answer["action"]
    assert not captured_file(tmp_path).exists()


def test_an_entry_is_forgotten_by_its_id_in_file_and_table(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    kept = call(plugin, "memory_store", text="The osprey hunts at dawn.")
    gone = call(plugin, "memory_store", text="The heron nests by the pier.")
    answer = call(plugin, "memory_forget", memoryId=gone["id"])
    assert answer == {
        "action": "deleted",
        "id": gone["id"],
        "forgotten": "The heron nests by the pier.",
    }
    assert "heron" not in captured_file(tmp_path).read_text("utf-8")
    assert list(plugin.backend.table.rows()) == [kept["id"]]
    assert call(plugin, "memory_forget", memoryId=gone["id"])["found"] == 0


def test_an_ambiguous_request_to_forget_lists_candidates_and_removes_nothing(
    tmp_path: Path,
) -> None:
    plugin = plugin_in(tmp_path)
    texts = ["Jana's number is +420 777 123 456.", "Jana's number is +420 777 123 457."]
    ids = {call(plugin, "memory_store", text=text)["id"] for text in texts}
    answer = call(plugin, "memory_forget", query="Jana's number")
    assert answer["action"] == "candidates"
    assert {one["id"] for one in answer["candidates"]} == ids
    assert len(plugin.backend.files.look().entries) == 2
    exact = call(plugin, "memory_forget", query="jana's number is +420 777 123 456")
    assert exact["action"] == "deleted"
    assert [one.text for one in plugin.backend.files.look().entries] == [texts[1]]


def test_a_request_to_forget_that_fits_nothing_says_so(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The osprey hunts at dawn.")
    assert call(plugin, "memory_forget", query="zebra crossings")["found"] == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "argument"),
    [
        ("memory_recall", {}, "query"),
        ("memory_recall", {"query": "x", "limit": -1}, "limit"),
        ("memory_store", {"text": 7}, "text"),
        ("memory_store", {"text": "a tea", "importance": 7}, "importance"),
        ("memory_store", {"text": "a tea", "category": "drinks"}, "category"),
        ("memory_forget", {}, "memoryId"),
        ("memory_forget", {"memoryId": "../../etc"}, "memoryId"),
    ],
)
def test_a_wrong_argument_is_named_in_one_sentence(
    tmp_path: Path, tool: str, arguments: dict[str, object], argument: str
) -> None:
    answer = call(plugin_in(tmp_path), tool, MAIN, **arguments)
    assert argument in answer["error"] and answer["reason"] == "argument"


def test_a_session_without_access_gets_the_same_answer_as_from_the_other_tools(
    tmp_path: Path,
) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The heron nests by the pier.")
    answer = call(plugin, "memory_recall", GROUP, query="heron")
    assert answer == {"count": 0, "memories": [], **unavailable(GROUP.access.kind)}
    assert [tool.name for tool in plugin.tools(GROUP, append=True)] == ["memory_recall"]


def test_a_shared_session_that_may_read_recalls_without_citations_and_may_not_write(
    tmp_path: Path,
) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The heron nests by the pier.")
    key = "agent:main:discord:group:7"
    shared = PluginSession(key, access_of(key, shared=["group"]))
    (memory,) = call(plugin, "memory_recall", shared, query="heron")["memories"]
    assert "citation" not in memory
    assert [tool.name for tool in plugin.tools(shared, append=True)] == ["memory_recall"]


def test_tools_that_write_are_given_only_when_they_are_asked_for(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    names = [tool.name for tool in plugin.tools(MAIN, append=False)]
    assert names == ["memory_recall"]
    section = plugin.prompt_section(MAIN, names)
    assert "memory_recall" in section and "memory_store" not in section
    assert plugin.prompt_section(MAIN, []) == ""


def test_two_threads_store_the_same_sentence_once(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    answers: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(
                call(plugin, "memory_store", text="The heron nests by the pier.")["action"]
            )
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["created", "duplicate", "duplicate", "duplicate"]


def test_forgetting_removes_every_copy_of_an_entry(tmp_path: Path) -> None:
    plugin, file = plugin_in(tmp_path), captured_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text("- The boat is blue.\n- Tea at four.\n- The boat is blue.\n", encoding="utf-8")
    other = file.with_name("old.md")
    other.write_text("# Old\n\n- The boat is blue.\n", encoding="utf-8")
    answer = call(plugin, "memory_forget", query="The boat is blue.")
    assert answer["action"] == "deleted" and answer["forgotten"] == "The boat is blue."
    assert file.read_text(encoding="utf-8") == "- Tea at four.\n"
    assert other.read_text(encoding="utf-8") == "# Old\n\n"
    assert call(plugin, "memory_recall", query="Which colour has the boat?")["count"] == 0


def test_an_entry_with_a_control_character_can_be_forgotten(tmp_path: Path) -> None:
    plugin, file = plugin_in(tmp_path), captured_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"- The boat\x00 is blue.\n- Tea at four.\n")
    (entry,) = (one for one in plugin.backend.files.look().entries if "boat" in one.text)
    assert call(plugin, "memory_forget", memoryId=entry.id)["action"] == "deleted"
    assert file.read_bytes() == b"- Tea at four.\n"


def test_what_an_agent_appended_to_a_daily_log_is_forgotten_too(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    overrides = {"plugins.slots.memory": "memory-lancedb"}
    with Memory.open(
        tmp_path / "ws",
        state_dir=tmp_path / "state",
        embedder=HashingEmbedder(),
        overrides=overrides,
    ) as memory:
        wrote = Origin("agent", "tool", "agent", session=KEY)
        memory.append("The boat of Ada is called Kittiwake", origin=wrote)
        memory.append("Ben moved to Oslo")
        memory.sync()
        tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
        forget = tools["memory_forget"]
        answer = forget.call({"query": "called Kittiwake"})
        assert answer["forgotten"] is True, answer
        assert forget.call({"query": "moved to Oslo"})["reason"] == "not-yours"
        assert forget.call({"query": "zebra crossings"})["found"] == 0
    text = "".join(one.read_text("utf-8") for one in (tmp_path / "ws").rglob("*.md"))
    assert "Kittiwake" not in text and "Oslo" in text
