"""Private sessions may do everything; others what their kind was allowed, and they never write."""

from __future__ import annotations

import pytest

from clawmark.agent.tools.policy import LOCAL, access_of

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
