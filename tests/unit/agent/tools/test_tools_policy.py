"""Private sessions may do everything; others what their kind was allowed, and they never write."""

from __future__ import annotations

import pytest

from clawmark.agent.tools.policy import LOCAL, access_of, allowed_tools, unavailable
from clawmark.config.schema.tools import (
    BySession,
    Sandbox,
    ToolLists,
    ToolPolicy,
    ToolRule,
    ToolScope,
)
from clawmark.text.transcripts.session_keys import SessionKind

GROUP = "agent:main:telegram:group:1"


def test_a_private_session_reads_writes_and_cites() -> None:
    assert access_of(None) == access_of("agent:main:main") == LOCAL
    assert access_of("agent:main:telegram:direct:5").writes


@pytest.mark.parametrize(
    "key", [GROUP, "agent:main:cron:x", "agent:main:subagent:x", "agent:main:heartbeat", "??"]
)
def test_every_other_session_may_do_nothing(key: str) -> None:
    access = access_of(key)
    assert (access.reads, access.writes, access.cites) == (False, False, False)


def test_the_heartbeat_of_a_main_session_reads_and_writes_but_not_user_md() -> None:
    access = access_of("agent:main:main:heartbeat")
    assert (access.reads, access.writes, access.cites, access.curates) == (True,) * 4
    assert access.may_read("MEMORY.md") and not access.may_read("USER.md")
    assert not access_of("agent:main:main").curates


def test_a_kind_that_is_allowed_reads_and_neither_writes_nor_cites() -> None:
    access = access_of(GROUP, shared=("group",))
    assert (access.reads, access.writes, access.cites) == (True, False, False)
    assert not access_of("agent:main:cron:x", shared=("group",)).reads


def test_what_the_host_declares_can_only_take_away() -> None:
    assert not access_of("agent:main:main", chat_type="group").reads
    assert not access_of(GROUP, chat_type="direct").reads


@pytest.mark.parametrize("key", [None, GROUP])
def test_citations_on_and_off_apply_to_every_session(key: str | None) -> None:
    assert access_of(key, citations="on").cites
    assert not access_of(key, citations="off").cites


@pytest.mark.parametrize("mode", ["auto", "sometimes"])
def test_other_citation_modes_show_them_to_private_sessions_only(mode: str) -> None:
    assert access_of("agent:main:telegram:direct:5", citations=mode).cites
    assert not access_of(GROUP, citations=mode, shared=("group",)).cites


NAMES = (
    "memory_search",
    "memory_get",
    "memory_append",
    "memory_store",
    "memory_recall",
    "memory_forget",
)


def layer(**lists: tuple[str, ...]) -> ToolPolicy:
    return ToolPolicy(layers=(ToolRule(**lists),))


def test_without_lists_every_tool_is_allowed_in_the_given_order() -> None:
    assert allowed_tools(NAMES, "main", ToolPolicy()) == NAMES
    assert allowed_tools(reversed(NAMES), "main", ToolPolicy()) == NAMES[::-1]


@pytest.mark.parametrize("entry", ["group:memory", "group:openclaw", "group:plugins", "memory_*"])
def test_a_group_stands_for_all_memory_tools(entry: str) -> None:
    assert allowed_tools(NAMES, "main", layer(deny=(entry,))) == ()
    assert allowed_tools((*NAMES, "read"), "main", layer(allow=(entry,))) == NAMES


@pytest.mark.parametrize("entry", ["group:memory", "group:openclaw", "group:plugins", "Acme"])
def test_groups_and_the_name_of_a_plugin_match_its_tools_whatever_their_names(entry: str) -> None:
    for rule, left in ((layer(deny=(entry,)), ()), (layer(allow=(entry,)), ("likes_list",))):
        assert allowed_tools(("likes_list",), "main", rule, plugin="acme") == left
    denied = layer(deny=(entry,))
    assert allowed_tools(("likes_list",), "main", denied) == ("likes_list",)


def test_the_name_of_a_plugin_stands_for_its_own_tools() -> None:
    assert allowed_tools(NAMES, "main", layer(allow=("memory-lancedb",))) == NAMES[3:]
    assert allowed_tools(NAMES, "main", layer(deny=("Memory-Core",))) == NAMES[3:]


def test_a_tool_must_pass_every_layer_and_deny_wins() -> None:
    policy = ToolPolicy(
        layers=(
            ToolRule(allow=("memory_search", "memory_get", "memory_append")),
            ToolRule(allow=("memory_search", "memory_get"), deny=("memory_get",)),
        )
    )
    assert allowed_tools(NAMES, "main", policy) == ("memory_search",)


@pytest.mark.parametrize("profile", ["minimal", "messaging"])
def test_a_narrow_profile_has_only_the_memory_tools_that_are_added_to_it(profile: str) -> None:
    policy = ToolPolicy(profile=profile)
    assert allowed_tools(NAMES, "main", policy) == ()
    policy = policy._replace(also_allow=("memory_get",))
    assert allowed_tools(NAMES, "main", policy) == ("memory_get",)


@pytest.mark.parametrize("profile", ["coding", "full"])
def test_a_wide_profile_has_all_memory_tools(profile: str) -> None:
    assert allowed_tools(NAMES, "main", ToolPolicy(profile=profile)) == NAMES


@pytest.mark.parametrize("kind", BySession._fields)
def test_each_kind_of_session_has_lists_of_its_own(kind: SessionKind) -> None:
    own = BySession()._replace(**{kind: ToolRule(allow=("memory_search",))})
    for other in BySession._fields:
        expected = ("memory_search",) if other == kind else NAMES
        policy = ToolPolicy(by_session=own)
        assert allowed_tools(NAMES, other, policy) == expected  # type: ignore[arg-type]


def test_the_lists_of_sub_agents_apply_to_them_alone() -> None:
    lists = ToolLists(allow=("memory_search",), also_allow=("memory_get",), deny=("memory_get",))
    policy = ToolPolicy(subagents=ToolScope(lists))
    assert allowed_tools(NAMES, "subagent", policy) == ("memory_search",)
    assert allowed_tools(NAMES, "cron", policy) == NAMES


def test_the_lists_of_the_sandbox_apply_to_sandboxed_sessions_alone() -> None:
    policy = ToolPolicy(sandbox=ToolScope(ToolLists(deny=("memory_get",))))
    assert "memory_get" in allowed_tools(NAMES, "main", policy)
    assert "memory_get" not in allowed_tools(NAMES, "main", policy, "rw")


def test_a_read_only_sandbox_has_no_tools_that_write() -> None:
    left = allowed_tools((*NAMES, "file_read", "file_write"), "main", ToolPolicy(), "ro")
    assert left == ("memory_search", "memory_get", "memory_recall", "file_read")


def test_a_sandbox_without_the_workspace_has_no_tools() -> None:
    assert allowed_tools((*NAMES, "memory_status"), "main", ToolPolicy(), "none") == ()


@pytest.mark.parametrize(
    ("mode", "key", "is_sandboxed"),
    [
        ("off", GROUP, False),
        ("off", "agent:main:main", False),
        ("non-main", "agent:main:main", False),
        ("non-main", "main", False),
        ("non-main", "agent:main:telegram:direct:5", True),
        ("non-main", GROUP, True),
        ("non-main", "agent:main:cron:x", True),
        ("non-main", "", True),
        ("non-main", None, False),
        ("all", "agent:main:main", True),
        ("all", None, False),
    ],
)
def test_the_mode_says_which_sessions_are_sandboxed(
    mode: str, key: str | None, is_sandboxed: bool
) -> None:
    access = access_of(key, sandbox=Sandbox(mode=mode, workspace_access="ro"))
    assert access.sandbox == ("ro" if is_sandboxed else "")


def test_a_host_can_say_that_a_session_is_sandboxed() -> None:
    access = access_of("agent:main:main", sandbox=Sandbox(), sandboxed=True)
    assert (access.sandbox, access.reads, access.writes) == ("none", False, False)
    assert access_of(None, sandbox=Sandbox(), sandboxed=True).sandbox == "none"


def test_the_sandbox_takes_away_writing_and_then_reading() -> None:
    def access(allowed: str) -> tuple[bool, bool]:
        found = access_of("main", sandbox=Sandbox(mode="all", workspace_access=allowed))
        return found.reads, found.writes

    assert [access(one) for one in ("rw", "ro", "none")] == [
        (True, True),
        (True, False),
        (False, False),
    ]


def test_the_reason_names_the_key_of_the_sandbox() -> None:
    assert "sandbox.workspaceAccess" in str(unavailable("main", "none")["action"])
    assert "memory.sharedSessions, group" in str(unavailable("group")["action"])
