"""The answers of tools and resources, without a transport."""

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
from clawmark.mcp.subscriptions import Subscriptions
from clawmark.mcp.tools import TOOLS, encodable
from clawmark.model.values import FileState

# File names as Python decodes them: any bytes except NUL.
names = (
    st.binary(min_size=1, max_size=40)
    .filter(lambda raw: b"\0" not in raw)
    .map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)


@given(names)
def test_every_file_name_round_trips_through_its_uri(name: str) -> None:
    uri = uri_of(name)
    assert uri.isascii()
    assert path_of(uri) == name.removeprefix("/")


@pytest.mark.parametrize(
    "uri", ["", "file:///etc/passwd", "memory:/MEMORY.md", "MEMORY.md", "http://x/"]
)
def test_a_uri_with_another_scheme_is_refused(uri: str) -> None:
    with pytest.raises(MCPError):
        path_of(uri)


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text()) | st.integers()))
def test_every_answer_can_be_encoded(payload: dict[str, object]) -> None:
    encoded = encodable(payload)
    assert json.loads(json.dumps(encoded, ensure_ascii=False).encode("utf-8")) == encoded


def test_a_lone_surrogate_is_escaped() -> None:
    assert encodable({"path": "a\udcff.md", "lines": [1, "\ud83d"]}) == {
        "path": "a\\udcff.md",
        "lines": [1, "\\ud83d"],
    }


def test_instructions_name_only_the_tools_of_the_session() -> None:
    tools = ["memory_search", "memory_get", "memory_append", "memory_status"]
    private = instructions_for(tools, access_of("main"))
    assert all(tool in private for tool in tools)
    shared = instructions_for(tools, access_of("agent:main:channel:x"))
    assert not any(tool in shared for tool in tools)


def test_three_tools_write_and_one_of_them_removes() -> None:
    writing = [name for name, tool in TOOLS.items() if tool.writes]
    assert writing == ["memory_append", "memory_store", "memory_forget"]
    assert [name for name, tool in TOOLS.items() if tool.removes] == ["memory_forget"]


@pytest.mark.parametrize("may_read", [True, False])
def test_a_session_that_may_not_read_is_not_notified(may_read: bool) -> None:
    received = list[object]()
    subscriptions = Subscriptions(may_read=may_read)
    subscriptions.bus.subscribe(received.append)
    asyncio.run(
        subscriptions.notify(
            {},
            {
                "MEMORY.md": FileState(
                    path="MEMORY.md", source="memory", size=1, mtime_ns=1, inode=1, device=1
                )
            },
        )
    )
    assert len(received) == (2 if may_read else 0)
