"""Citations are shown to a session that is proven private, and to no other unless they are switched
on.
"""

from __future__ import annotations

import pytest

from clawmark.agent.tools.citations import shows_citations, with_source
from clawmark.text.transcripts.session_keys import SessionKind

PRIVATE: list[SessionKind] = ["main", "direct"]
SHARED: list[SessionKind] = ["group", "channel", "subagent", "cron", "heartbeat", "unknown"]


def test_auto_looks_at_the_session() -> None:
    assert all(shows_citations("auto", kind) for kind in PRIVATE)
    assert not any(shows_citations("auto", kind) for kind in SHARED)


@pytest.mark.parametrize("kind", [*PRIVATE, *SHARED])
def test_on_and_off_do_not_look_at_the_session(kind: SessionKind) -> None:
    assert shows_citations("on", kind)
    assert not shows_citations("off", kind)


def test_a_mode_nobody_knows_counts_as_auto() -> None:
    assert shows_citations("sometimes", "main")
    assert not shows_citations("sometimes", "cron")


def test_the_source_stands_below_the_trimmed_snippet() -> None:
    assert with_source("\n a passage \n", "MEMORY.md#L3") == "a passage\n\nSource: MEMORY.md#L3"
