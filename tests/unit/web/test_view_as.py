"""What a session sees, as a page shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from web_scene import GROUP, MAIN, SECRET, have_sessions, open_scene

from clawmark import Memory
from clawmark.composition.usage import usage_file
from clawmark.web.pages.view_as import address_of, as_page, choose_page
from clawmark.web.render import to_json


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_scene(tmp_path / "agent", tmp_path / "state") as made:
        yield made


def everything(memory: Memory, key: str) -> str:
    """The whole page as text, after questions that lead to what is private."""
    question = "What opens the safe, the birthday of Aunt Ottilie?"
    return to_json(as_page(memory, key, question, "MEMORY.md")).decode()


def test_a_private_session_sees_the_memory_in_prompt_recall_and_tools(memory: Memory) -> None:
    page = as_page(memory, MAIN, "What opens the safe, the birthday of Ottilie?", "MEMORY.md")
    assert page.is_private and page.change == ""
    assert any(SECRET in part.text for part in page.prompt)
    assert SECRET in page.recalled
    answers = {tool.name: tool.answer for tool in page.tools}
    assert SECRET in answers["memory_search"] and SECRET in answers["memory_get"]
    assert answers["memory_append"] == "", "a tool that writes is never called"


@pytest.mark.parametrize(
    "key", [GROUP, "agent:main:subagent:1", "agent:main:cron:1", "agent:main:discord:channel:1", ""]
)
def test_what_a_session_may_not_see_is_not_in_its_page(memory: Memory, key: str) -> None:
    page = everything(memory, key)
    for private in ("safe opens", "Ann prefers", "Wilhelmina"):
        assert private not in page
    assert "memory.sharedSessions" in page


def test_a_group_that_is_allowed_sees_the_memory_without_citations(tmp_path: Path) -> None:
    shared = {"sharedSessions": ["group"]}
    with open_scene(tmp_path / "agent", tmp_path / "state", memory=shared) as memory:
        page = as_page(memory, GROUP, "What opens the safe, the birthday of Ottilie?")
        assert "memory.sharedSessions lets it search" in " ".join(page.facts)
        assert "remove “group”" in page.change
        assert SECRET in page.tools[0].answer and "Source:" not in page.tools[0].answer
        assert page.recalled == "" and "outside private sessions" in page.recall_problem
        assert "Wilhelmina" not in everything(memory, GROUP)


def test_what_the_host_declared_about_a_session_counts(memory: Memory) -> None:
    from clawmark.agent.session.conversation import HostOptions

    conversation = memory.conversation(MAIN, host_options=HostOptions(chat_type="group"))
    conversation.start()
    page = as_page(memory, MAIN)
    assert (page.kind, page.is_private) == ("group", False)
    assert "declared it as “group”" in page.facts[0]


def test_looking_does_not_count_as_use(memory: Memory, tmp_path: Path) -> None:
    memory.append("Ann rows on Mondays with the club.")
    as_page(memory, MAIN, "When does Ann row with the club?")
    assert not Path(usage_file(memory.places)).exists()
    memory.tools(MAIN)[0].call({"query": "When does Ann row with the club?"})
    assert Path(usage_file(memory.places)).exists()


def test_known_sessions_come_first_and_other_kinds_by_example(memory: Memory) -> None:
    have_sessions(memory)
    choices = choose_page(memory).choices
    assert {one.key for one in choices if one.is_known} == {MAIN, GROUP}
    assert {one.kind for one in choices if not one.is_known} >= {"direct", "subagent", "cron"}
    assert address_of(GROUP) == f"/as/{GROUP}"
    assert address_of("a/b?c#d") == "/as/a%2Fb%3Fc%23d"
