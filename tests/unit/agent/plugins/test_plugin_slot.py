"""The memory slot with real third-party distributions, working and broken ones."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from distributions import ACME, install, on_path, open_with_slot

from clawmark import ConfigError, Memory
from clawmark.agent.plugins import slot as slot_module

KEY = "sk-test-0123456789abcdef"
NO_PLUGIN = "from clawmark.agent.plugins.none import NoMemory\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with on_path(tmp_path / "site") as folder:
        yield folder


def opened(tmp_path: Path, slot: str = "acme", **entries: Mapping[str, object]) -> Memory:
    return open_with_slot(tmp_path, slot, entries)


def names(memory: Memory) -> list[str]:
    return [tool.name for tool in memory.tools(append=True)]


CORE_TOOLS = ["memory_search", "memory_get", "memory_append", "memory_forget"]


def test_a_plugin_replaces_the_tools_and_the_prompt_section(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    with opened(tmp_path, acme={"config": {"greeting": "hello"}}) as memory:
        assert names(memory) == ["acme_recall"]
        assert memory.tools()[0].call({}) == {"answer": "acme knows", "config": "hello"}
        prompt = memory.prompt(append=True)
        assert prompt.sections[0].name == "acme memory"
        assert "Call acme_recall first." in prompt.text
        assert "memory_search" not in prompt.text and "plugin acme" in prompt.text
        assert memory.search("green tea").hits  # people can search the files all the same


@pytest.mark.parametrize(
    ("lists", "left"),
    [
        ({"tools.deny": ["group:memory"]}, []),
        ({"tools.deny": ["group:plugins"]}, []),
        ({"tools.deny": ["Acme"]}, []),
        ({"tools.allow": ["group:memory"]}, ["acme_recall"]),
        ({"tools.allow": ["acme"]}, ["acme_recall"]),
        ({"tools.allow": ["memory-core"]}, []),
        ({"tools.profile": "minimal", "tools.alsoAllow": ["group:memory"]}, ["acme_recall"]),
    ],
)
def test_the_groups_of_the_tool_policy_contain_the_tools_of_a_plugin(
    site: Path, tmp_path: Path, lists: dict[str, object], left: list[str]
) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    with open_with_slot(tmp_path, "acme", overrides=lists) as memory:
        assert names(memory) == left
        assert ("acme_recall" in memory.prompt(append=True).text) == bool(left)


def test_the_default_is_memory_core(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    with opened(tmp_path, slot="memory-core") as memory:
        assert names(memory) == CORE_TOOLS
        assert memory.status().memory_plugin == "memory-core"
        assert [one.state for one in memory.plugins() if one.name == "acme"] == ["not used"]
    assert "acme_memory" not in sys.modules


def test_only_the_chosen_plugin_is_imported(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    install(site, "bad_memory", "raise SystemExit('imported')", bad="bad_memory:make")
    with opened(tmp_path) as memory:
        listed = {one.name: (one.state, one.owner, one.reason) for one in memory.plugins()}
    assert listed["acme"] == ("active", "acme_memory 1.2", "")
    assert listed["bad"] == ("not used", "bad_memory 1.2", 'plugins.slots.memory is "acme"')
    assert "bad_memory" not in sys.modules


BROKEN = {
    "import": ("import no_such_module", "ModuleNotFoundError"),
    "exit": ("raise SystemExit('bye')", "SystemExit: bye"),
    "missing": ("", "AttributeError"),
    "raises": ("def make(context):\n    raise ValueError('no table')", "ValueError: no table"),
    "rubbish": ("def make(context):\n    return 42", "a value of type int, not a memory plugin"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_plugin_that_cannot_be_made_is_replaced_by_memory_core(
    site: Path, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    code, said = BROKEN[kind]
    install(site, "acme_memory", code, acme="acme_memory:make")
    with opened(tmp_path) as memory:
        assert names(memory) == CORE_TOOLS
        status = memory.status()
        assert status.memory_plugin == "memory-core"
        (problem,) = status.plugin_problems
        assert said in problem and "acme_memory 1.2 (acme_memory:make)" in problem
        assert "memory-core is used instead." in problem and "\n" not in problem
        assert problem in [one.what for one in memory.doctor() if one.level == "problem"]
        assert memory.search("green tea").hits
    logged = [one for one in caplog.records if one.name == "clawmark.plugins"]
    assert [(one.levelno, one.getMessage()) for one in logged] == [(logging.WARNING, problem)]


def test_a_plugin_that_does_not_finish_loading_is_replaced(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_module, "MAKE_SECONDS", 0.05)
    code = "import threading\nrelease = threading.Event()\ndef make(context):\n    release.wait()"
    install(site, "acme_memory", code, acme="acme_memory:make")
    with opened(tmp_path) as memory:
        assert names(memory) == CORE_TOOLS
        assert "did not answer within 0.05 seconds" in memory.status().plugin_problems[0]
    sys.modules["acme_memory"].release.set()


def test_an_unknown_plugin_is_named_with_what_to_do(site: Path, tmp_path: Path) -> None:
    with opened(tmp_path, slot="acmee") as memory:
        assert memory.status().plugin_problems == (
            'No installed package offers a memory plugin called "acmee". memory-core is used '
            "instead. Install the package that has it, or correct plugins.slots.memory.",
        )
        listed = {one.name: one for one in memory.plugins()}
        assert (listed["acmee"].state, listed["acmee"].owner) == ("not used", "")
        assert listed["memory-core"].reason == 'used because "acmee" cannot be used'


def test_a_plugin_that_refuses_its_settings_is_quoted_with_its_next_step(
    site: Path, tmp_path: Path
) -> None:
    code = (
        "from clawmark import ConfigError\n"
        "def make(context):\n"
        "    raise ConfigError('greeting must be text.', hint='Write greeting: \"hello\".')"
    )
    install(site, "acme_memory", code, acme="acme_memory:make")
    with opened(tmp_path) as memory:
        assert memory.status().plugin_problems == (
            'The memory plugin "acme" cannot be used. greeting must be text. memory-core is used '
            'instead. Write greeting: "hello".',
        )


def test_a_name_that_two_distributions_offer_is_refused(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    install(site, "other_memory", ACME, acme="other_memory:make")
    with opened(tmp_path) as memory:
        assert names(memory) == CORE_TOOLS
        (problem,) = memory.status().plugin_problems
    assert "offered more than once: by acme_memory 1.2 and other_memory 1.2." in problem
    assert not {"acme_memory", "other_memory"} & set(sys.modules)


def test_a_disabled_plugin_is_not_used(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    with opened(tmp_path, acme={"enabled": False}) as memory:
        assert names(memory) == CORE_TOOLS
        assert "plugins.entries.acme.enabled is false" in memory.status().plugin_problems[0]
    assert "acme_memory" not in sys.modules


def test_a_disabled_memory_core_leaves_the_slot_empty(tmp_path: Path) -> None:
    with opened(tmp_path, "memory-core", **{"memory-core": {"enabled": False}}) as memory:
        assert names(memory) == []


def test_no_key_is_shown_when_a_plugin_fails(site: Path, tmp_path: Path) -> None:
    code = "def make(context):\n    raise ValueError(context.config['embedding']['apiKey'])"
    install(site, "acme_memory", code, acme="acme_memory:make")
    with opened(tmp_path, acme={"config": {"embedding": {"apiKey": KEY}}}) as memory:
        (problem,) = memory.status().plugin_problems
    assert "[redacted:key]" in problem and KEY not in problem


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (5, "plugins.entries.acme must be an object, not 5"),
        ({"enabled": "no"}, 'plugins.entries.acme.enabled must be true or false, not "no"'),
        ({"config": []}, "plugins.entries.acme.config must be an object, not a list"),
    ],
)
def test_a_malformed_entry_of_the_slot_is_a_configuration_error(
    site: Path, tmp_path: Path, entry: object, said: str
) -> None:
    with pytest.raises(ConfigError, match=r"clawmark\.json, line 1: ") as raised:
        opened(tmp_path, acme=entry)  # type: ignore[arg-type]
    assert said in raised.value.message


RUBBISH = (
    NO_PLUGIN
    + """
class Rubbish(NoMemory):
    companions = 7
    def tools(self, session, *, append): return ["memory_search"]
    def prompt_section(self, session, tools): return "x" * 1_000_000
    def flush_policy(self): return {"log": "/etc/passwd"}
    def hooks(self): return {"agent_end": 1}
    def close(self): raise RuntimeError("still open")
def make(context): return Rubbish()
"""
)


def test_rubbish_is_left_out_and_counted(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", RUBBISH, acme="acme_memory:make")
    with opened(tmp_path) as memory:
        assert names(memory) == []
        assert "xxx" not in memory.prompt().text
        assert memory.slot.flush_policy() is not None
        memory.lifecycle("agent:main:main").agent_end([("user", "hello")])
        said = "\n".join(memory.status().plugin_problems)
        assert memory.metrics.snapshot()["plugins.failures.acme"] >= 4
    for part in (
        "companions is a int, not Companions",
        "tools returned something that is not a tool",
        "prompt_section returned 1,000,000 characters; 20,000 are taken",
        "flush_policy returned a dict, not a FlushPolicy",
        "hooks returned a dict, not LifecycleHooks",
    ):
        assert part in said


RAISING_TOOL = (
    NO_PLUGIN
    + """
from clawmark.agent.tools import Tool
class Odd(NoMemory):
    def tools(self, session, *, append):
        def boom(given): raise ValueError("no table")
        return [Tool("a", "A.", {"type": "object"}, boom),
                Tool("b", "B.", {"type": "object"}, lambda given: "text")]
def make(context): return Odd()
"""
)


def test_a_tool_that_raises_answers_the_model_with_an_error(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", RAISING_TOOL, acme="acme_memory:make")
    with opened(tmp_path) as memory:
        first, second = (tool.call({}) for tool in memory.tools())
    assert first["error"] == "a stopped at an unexpected ValueError."
    assert second["error"] == "b returned an answer that cannot be read."


def test_a_plugin_can_name_memory_core_as_its_recall_source(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    with opened(tmp_path, acme={"config": {"companions": {"recall": "memory-core"}}}) as memory:
        assert names(memory) == ["acme_recall"]
        block = memory.recall("Which green tea does Ann prefer?", "agent:main:main")
        assert "Ann prefers green tea" in block and "Acme remembers" not in block
        states = {one.name: one.state for one in memory.plugins()}
        assert (states["acme"], states["memory-core"]) == ("active", "recall")


def test_memory_core_can_be_combined_with_another_plugin(site: Path, tmp_path: Path) -> None:
    install(site, "acme_memory", ACME, acme="acme_memory:make")
    config = {"recall": "acme", "consolidator": "acme"}
    with opened(tmp_path, "memory-core", **{"memory-core": {"config": config}}) as memory:
        assert names(memory) == CORE_TOOLS
        assert "Acme remembers" in memory.recall("Which tea?", "agent:main:main")
        policy = memory.slot.flush_policy()
        assert policy is not None and policy.log == "memory/acme/YYYY-MM-DD.md"
        states = {one.name: one.state for one in memory.plugins()}
        assert (states["memory-core"], states["acme"]) == ("active", "recall and consolidator")


def test_a_companion_that_is_missing_is_reported_and_left_out(tmp_path: Path) -> None:
    config = {"config": {"recall": "acmee"}}
    with opened(tmp_path, "memory-core", **{"memory-core": config}) as memory:
        assert names(memory) == CORE_TOOLS
        assert 'called "acmee". memory-core does its part.' in memory.status().plugin_problems[0]
        assert memory.slot.slot.recall.name == "memory-core"


def test_a_wrong_configuration_of_memory_core_is_reported(tmp_path: Path) -> None:
    with opened(tmp_path, "memory-core", **{"memory-core": {"config": {"recall": 5}}}) as memory:
        assert names(memory) == CORE_TOOLS
        assert "memory-core.config.recall must be the name" in memory.status().plugin_problems[0]
