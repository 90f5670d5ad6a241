"""What tools and resources say, apart from the wire that carries it."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("mcp")

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from clawmark.agent.tools.policy import access_of
from clawmark.mcp.instructions import instructions_for
from clawmark.mcp.resources import path_of, uri_of
from clawmark.mcp.subscriptions import Followers
from clawmark.mcp.tools import OFFERS, encodable
from clawmark.model.values import FileState

# What a listing can give: any bytes but NUL, as Python decodes file names.
names = (
    st.binary(min_size=1, max_size=40)
    .filter(lambda raw: b"\0" not in raw)
    .map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)


@given(names)
def test_every_file_name_has_an_address_that_leads_back(name: str) -> None:
    uri = uri_of(name)
    assert uri.isascii()
    assert path_of(uri) == name.removeprefix("/")


@pytest.mark.parametrize(
    "uri", ["", "file:///etc/passwd", "memory:/MEMORY.md", "MEMORY.md", "http://x/"]
)
def test_an_address_of_another_kind_is_refused(uri: str) -> None:
    with pytest.raises(MCPError):
        path_of(uri)


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text()) | st.integers()))
def test_every_answer_can_be_encoded(payload: dict[str, object]) -> None:
    told = encodable(payload)
    assert json.loads(json.dumps(told, ensure_ascii=False).encode("utf-8")) == told


def test_half_a_character_is_written_as_an_escape() -> None:
    assert encodable({"path": "a\udcff.md", "lines": [1, "\ud83d"]}) == {
        "path": "a\\udcff.md",
        "lines": [1, "\\ud83d"],
    }


def test_instructions_speak_of_the_tools_a_session_has() -> None:
    tools = ["memory_search", "memory_get", "memory_append", "memory_status"]
    private = instructions_for(tools, access_of("main"))
    assert all(tool in private for tool in tools)
    shared = instructions_for(tools, access_of("agent:main:channel:x"))
    assert not any(tool in shared for tool in tools)


def test_only_memory_append_writes() -> None:
    assert [name for name, offer in OFFERS.items() if offer.writes] == ["memory_append"]


@pytest.mark.parametrize("may_hear", [True, False])
def test_a_session_that_may_not_see_the_files_does_not_hear_of_them(may_hear: bool) -> None:
    heard = list[object]()
    followers = Followers(may_hear)
    followers.bus.subscribe(heard.append)
    asyncio.run(
        followers.tell(
            {},
            {
                "MEMORY.md": FileState(
                    path="MEMORY.md", source="memory", size=1, mtime_ns=1, inode=1, device=1
                )
            },
        )
    )
    assert len(heard) == (2 if may_hear else 0)
