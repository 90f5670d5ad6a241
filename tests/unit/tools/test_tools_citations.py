"""Citations are shown to a session that is proven direct, and to no other unless they are switched on."""

from __future__ import annotations

import pytest

from clawmark.tools.citations import chat_type, shows_citations, with_source

DIRECT = [
    "",
    "   ",
    "main",
    "agent:main:main",
    "AGENT:Main:MAIN",
    "agent:work:direct:ada",
    "agent:work:dm:ada",
    "agent:work:telegram:direct:12345",
    "agent:work:telegram:dm:12345",
    "agent:work:slack:acme:direct:U1",
    "agent:work:matrix:direct:@ada:example.org",
]

NOT_PROVEN = [
    ("agent:main:telegram:group:-100", "group"),
    ("agent:main:telegram:supergroup:-100", "group"),
    ("agent:main:discord:channel:77", "channel"),
    ("agent:main:discord:guild:1:channel:77", "channel"),
    ("agent:main:slack:channel:c1:thread:5", "channel"),
    ("agent:main:cron:daily", "cron"),
    ("agent:main:cron:daily:run:8", "cron"),
    ("cron:daily", "cron"),
    ("agent:main:subagent:0b1c", "subagent"),
    ("subagent:0b1c", "subagent"),
    ("agent:main:telegram:direct:5:subagent:0b1c", "subagent"),
    ("agent:main:hook:gmail", "unknown"),
    ("agent:main:main:thread:5", "unknown"),
    ("agent:main:group:direct:5", "group"),
    ("agent:main:room:5", "group"),
    ("agent:main:telegram:5", "unknown"),
    ("agent:main:direct", "unknown"),
    ("agent:main:direct:", "unknown"),
    ("agent:main:a:b:c:direct:5", "unknown"),
    ("agent::main", "unknown"),
    ("agent:main", "unknown"),
    ("agent", "unknown"),
    (":", "unknown"),
    ("direct:ada", "unknown"),
    ("telegram:12345", "unknown"),
    ("whatever", "unknown"),
]


@pytest.mark.parametrize("key", DIRECT)
def test_a_proven_direct_session_sees_citations_in_auto(key: str) -> None:
    assert chat_type(key) == "direct"
    assert shows_citations("auto", key)


@pytest.mark.parametrize(("key", "kind"), NOT_PROVEN)
def test_a_session_that_is_not_proven_direct_sees_none_in_auto(key: str, kind: str) -> None:
    assert chat_type(key) == kind
    assert not shows_citations("auto", key)


@pytest.mark.parametrize("key", [*DIRECT, *(key for key, _ in NOT_PROVEN)])
def test_on_and_off_do_not_look_at_the_session(key: str) -> None:
    assert shows_citations("on", key)
    assert not shows_citations("off", key)


def test_a_mode_nobody_knows_counts_as_auto() -> None:
    assert shows_citations("sometimes", "")
    assert not shows_citations("sometimes", "agent:main:cron:daily")


def test_the_source_stands_below_the_trimmed_snippet() -> None:
    assert with_source("\n a passage \n", "MEMORY.md#L3") == "a passage\n\nSource: MEMORY.md#L3"
