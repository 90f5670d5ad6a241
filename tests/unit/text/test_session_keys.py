"""A session is private when its key proves it; everything else is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.transcripts.session_keys import SessionKind, is_private, kind_of

PRIVATE: list[tuple[str | None, SessionKind]] = [
    (None, "main"),
    ("main", "main"),
    ("agent:main:main", "main"),
    ("AGENT:Main:MAIN", "main"),
    ("agent:work-2:main", "main"),
    ("agent:work:direct:ada", "direct"),
    ("agent:work:dm:ada", "direct"),
    ("agent:work:telegram:direct:12345", "direct"),
    ("agent:work:telegram:dm:12345", "direct"),
    ("agent:work:slack:acme:direct:U1", "direct"),
    ("agent:work:matrix:direct:@ada:example.org", "direct"),
    ("agent:work:whatsapp:direct:+4930123", "direct"),
    ("agent:work:imessage:direct:ädä", "direct"),
]

NOT_PROVEN: list[tuple[str, SessionKind]] = [
    ("agent:main:telegram:group:-100", "group"),
    ("agent:main:telegram:supergroup:-100", "group"),
    ("agent:main:discord:channel:77", "channel"),
    ("agent:main:discord:guild:1:channel:77", "channel"),
    ("agent:main:slack:channel:c1:thread:5", "channel"),
    ("agent:main:cron:daily", "cron"),
    ("agent:main:cron:daily:run:8", "cron"),
    ("cron:daily", "cron"),
    ("agent:main:subagent:0b1c", "subagent"),
    ("AGENT:MAIN:SUBAGENT:0B1C", "subagent"),
    ("subagent:0b1c", "subagent"),
    ("agent:main:telegram:direct:5:subagent:0b1c", "subagent"),
    ("agent:main:main:heartbeat", "heartbeat"),
    ("heartbeat", "heartbeat"),
    ("agent:main:hook:gmail", "unknown"),
    ("agent:main:main:thread:5", "unknown"),
    ("agent:main:group:direct:5", "group"),
    ("agent:main:room:5", "group"),
    ("agent:main:telegram:5", "unknown"),
    ("agent:main:direct", "unknown"),
    ("agent:main:direct:", "unknown"),
    ("agent:main:direct:dm", "unknown"),
    ("agent:main:a:b:c:direct:5", "unknown"),
    ("agent::main", "unknown"),
    ("agent:main", "unknown"),
    ("agent:main:", "unknown"),
    ("agent:../x:main", "unknown"),
    ("agent:main:main:main", "unknown"),
    ("agent", "unknown"),
    (":", "unknown"),
    ("direct:ada", "unknown"),
    ("telegram:12345", "unknown"),
    ("whatever", "unknown"),
    ("", "unknown"),
    (" ", "unknown"),
    ("null", "unknown"),
    ("undefined", "unknown"),
    ("\n", "unknown"),
    (" agent:main:main", "unknown"),
    ("agent:main:main\n", "unknown"),
    ("agent:main:main\0", "unknown"),
    ("agent:main:ma\u200bin", "unknown"),
    ("agent:main:\uff4d\uff41\uff49\uff4e", "unknown"),
    ("agent:main:telegram:gr\u200boup:direct:5", "unknown"),
    ("agent:main:telegram:\uff47\uff52\uff4f\uff55\uff50:direct:5", "unknown"),
    ("agent:main:telegram:\u202egroup:direct:5", "unknown"),
]


@pytest.mark.parametrize(("key", "kind"), PRIVATE)
def test_what_is_proven_private(key: str | None, kind: SessionKind) -> None:
    assert kind_of(key) == kind
    assert is_private(kind_of(key))


@pytest.mark.parametrize(("key", "kind"), NOT_PROVEN)
def test_what_is_not_proven_is_not_private(key: str, kind: SessionKind) -> None:
    assert kind_of(key) == kind
    assert not is_private(kind_of(key))


@pytest.mark.parametrize(
    "declared", ["group", "GROUP ", "channel", "supergroup", "cron", "heartbeat", "p2p", "?", " "]
)
def test_a_declaration_can_take_the_proof_away(declared: str) -> None:
    assert not is_private(kind_of("agent:main:main", declared))
    assert not is_private(kind_of(None, declared))


@pytest.mark.parametrize("declared", ["main", "direct", "dm", " Direct"])
def test_a_declaration_never_gives_the_proof(declared: str) -> None:
    for key, kind in NOT_PROVEN:
        assert kind_of(key, declared) == kind
    assert kind_of("agent:main:main", declared) == "main"


def test_declaration_decides_for_an_unknown_key() -> None:
    assert kind_of("my-own-key", "subagent") == "subagent"
    assert kind_of("agent:main:telegram:group:5", "subagent") == "group"


@given(st.text(max_size=60), st.text(max_size=10))
def test_no_random_key_is_private_unless_it_has_the_shape(key: str, declared: str) -> None:
    if is_private(kind_of(key, declared)):
        assert key.lower() == "main" or key.lower().startswith("agent:")
