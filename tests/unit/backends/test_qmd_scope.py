"""The rules of `memory.qmd.scope`, as OpenClaw reads them."""

from __future__ import annotations

import pytest

from clawmark.backends.qmd.scope import facts_of, is_allowed
from clawmark.config.schema.qmd import DIRECT_ONLY


@pytest.mark.parametrize(
    ("key", "channel", "chat_type"),
    [
        ("agent:main:main", "", "direct"),
        ("agent:main:telegram:direct:42", "telegram", "direct"),
        ("agent:main:telegram:group:7", "telegram", "group"),
        ("agent:main:discord:channel:9", "discord", "channel"),
        ("Agent:Main:Slack:Channel:C1", "slack", "channel"),
        ("agent:main:subagent:1f", "", ""),
        ("main", "", "direct"),
        ("", "", ""),
    ],
)
def test_a_session_key_has_a_channel_and_a_chat_type(
    key: str, channel: str, chat_type: str
) -> None:
    facts = facts_of(key)
    assert (facts.channel, facts.chat_type) == (channel, chat_type)


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        (None, True),
        ("agent:main:main", True),
        ("agent:main:telegram:direct:42", True),
        ("agent:main:telegram:group:7", False),
        ("agent:main:discord:channel:9", False),
        ("agent:main:subagent:1f", False),
        ("", False),
    ],
)
def test_by_default_only_direct_sessions_may_search(key: str | None, allowed: bool) -> None:
    assert is_allowed(DIRECT_ONLY, key) is allowed


def test_the_first_rule_that_matches_decides() -> None:
    scope = {
        "default": "deny",
        "rules": [
            {"action": "deny", "match": {"keyPrefix": "discord:channel:9"}},
            {"action": "allow", "match": {"channel": "discord"}},
        ],
    }
    assert not is_allowed(scope, "agent:main:discord:channel:9")
    assert is_allowed(scope, "agent:main:discord:channel:10")
    assert not is_allowed(scope, "agent:main:telegram:group:1")


def test_a_prefix_is_compared_without_the_agent_unless_it_names_one() -> None:
    def allowed(match: dict[str, str], key: str = "agent:work:telegram:group:7") -> bool:
        return is_allowed({"rules": [{"action": "allow", "match": match}]}, key)

    assert allowed({"keyPrefix": "telegram:"}) and not allowed({"keyPrefix": "work:"})
    assert allowed({"keyPrefix": "agent:work:"}) and not allowed({"keyPrefix": "agent:main:"})
    assert allowed({"rawKeyPrefix": "agent:work"}) and not allowed({"rawKeyPrefix": "telegram"})


def test_a_group_that_the_host_reports_is_one_whatever_its_key_says() -> None:
    assert not is_allowed(DIRECT_ONLY, "agent:main:main", "group")
    assert is_allowed(DIRECT_ONLY, "agent:main:main", "direct")


@pytest.mark.parametrize(
    ("key", "chat_type"),
    [
        ("agent:main:telegram:supergroup:4", ""),
        ("agent:main:discord:guild:1:direct:2", ""),
        ("agent:main:main", "supergroup"),
        ("agent:main:main", " Group"),
    ],
)
def test_what_is_a_room_for_other_rules_is_one_for_the_scope(key: str, chat_type: str) -> None:
    assert not is_allowed(DIRECT_ONLY, key, chat_type)


def test_without_a_match_the_default_decides() -> None:
    assert is_allowed({"default": "allow", "rules": []}, "agent:main:telegram:group:7")
    assert not is_allowed({"default": "deny"}, "agent:main:main")
