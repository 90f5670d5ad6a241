"""A client of the MCP SDK runs everything there is, over stdio and HTTP, in the newer and the older
protocol.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
from commands import CLAWMARK, Place, new_place
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_servers import HttpServer, http_server
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification, TextContent

from clawmark.composition import history_folder
from clawmark.config.paths import resolve_places
from clawmark.history.history import History
from clawmark.workspace import Workspace

HANG_SECONDS = 60
MODES = ("auto", "legacy")
Connect = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.state.mkdir(mode=0o700)
    settings = {"memorySearch": {"provider": "none", "sync": {"watchDebounceMs": 20}}}
    (made.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    return made


@pytest.fixture
def server(place: Place) -> Iterator[HttpServer]:
    with http_server(["--session", "main"], place.environment()) as running:
        yield running


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest, place: Place) -> Connect:
    """A way to connect a client over one of the transports."""
    if request.param == "stdio":
        command, *words = CLAWMARK
        parameters = StdioServerParameters(
            command=command, args=[*words, "mcp"], env=place.environment()
        )
        return lambda **options: Client(stdio_client(parameters), **options)
    http: HttpServer = request.getfixturevalue("server")
    return lambda **options: over_http(http, **options)


@asynccontextmanager
async def over_http(server: HttpServer, **options: Any) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {server.token}"}
        http = await stack.enter_async_context(
            httpx2.AsyncClient(headers=headers, timeout=HANG_SECONDS)
        )
        client = Client(streamable_http_client(server.url, http_client=http), **options)
        yield await stack.enter_async_context(client)


def run(work: Awaitable[None]) -> None:
    """Run to the end, which nothing here takes long to reach."""

    async def bounded() -> None:
        await asyncio.wait_for(work, HANG_SECONDS)

    asyncio.run(bounded())


async def called(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """The structured answer of a tool, which its text must equal and its schema must describe."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == result.structured_content
    assert result.is_error == ("error" in result.structured_content)
    if (tool := {one.name: one for one in (await client.list_tools()).tools}.get(name)) is not None:
        assert set(result.structured_content) <= set((tool.output_schema or {})["properties"])
    return dict(result.structured_content)


async def searched(client: Client, query: str) -> dict[str, Any]:
    """The answer of memory_search once every file is indexed; a busy machine needs time for it."""
    while "dueFiles" in (answer := await called(client, "memory_search", query=query)):
        pass
    return answer


@pytest.mark.parametrize("mode", MODES)
def test_a_client_runs_every_tool(connect: Connect, place: Place, mode: str) -> None:
    async def work() -> None:
        async with connect(mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == [
                "memory_search",
                "memory_get",
                "memory_append",
                "memory_forget",
                "memory_status",
            ]
            found = await searched(client, "what did we choose for billing?")
            assert found["results"][0]["citation"] == "MEMORY.md#L1-L3"
            read = await called(client, "memory_get", path="MEMORY.md#L3")
            assert read["text"] == "We chose PostgreSQL for billing because MySQL was slow."
            kept = await called(
                client, "memory_append", text="Redis replaces memcached for sessions."
            )
            assert "Redis replaces memcached" in (place.workspace / kept["path"]).read_text(
                encoding="utf-8"
            )
            again = await searched(client, "memcached")
            assert again["results"][0]["path"] == kept["path"]
            status = await called(client, "memory_status")
            assert (status["files"], status["dueFiles"]) == (
                len(list(place.workspace.rglob("*.md"))),
                0,
            )

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_tool_errors_are_answers_the_model_can_read(connect: Connect, mode: str) -> None:
    async def work() -> None:
        async with connect(mode=mode) as client:
            assert "outside" in (await called(client, "memory_get", path="../secret.md"))["error"]
            assert (
                "ends at"
                in (await called(client, "memory_get", path="MEMORY.md", **{"from": 99}))["note"]
            )
            assert (await called(client, "memory_search", query="zebra"))["nothing"]["code"]
            assert "query" in (await called(client, "memory_search"))["error"]
            assert "memory_search" in (await called(client, "memory_erase"))["action"]
            refused = await called(client, "memory_append", text="")
            assert (refused["written"], refused["reason"]) == (False, "empty")

    run(work())


def test_tools_are_annotated_as_read_only_or_writing(connect: Connect) -> None:
    async def work() -> None:
        async with connect() as client:
            for tool in (await client.list_tools()).tools:
                writes = tool.name in ("memory_append", "memory_forget")
                hints = tool.annotations
                assert hints is not None
                assert (
                    hints.read_only_hint,
                    hints.destructive_hint,
                    hints.idempotent_hint,
                    hints.open_world_hint,
                ) == (
                    not writes,
                    tool.name == "memory_forget",
                    not writes,
                    False,
                )
                assert tool.title
                assert tool.description
                assert tool.output_schema is not None
                assert tool.output_schema["type"] == "object"

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_memory_files_are_resources(connect: Connect, place: Place, mode: str) -> None:
    place.write("memory/Tee & Ünï #1.md", "Grüße\n")
    place.write("memory/nothing.md", "")

    async def work() -> None:
        async with connect(mode=mode) as client:
            listed = {one.name: one.uri for one in (await client.list_resources()).resources}
            assert list(listed) == [
                "MEMORY.md",
                "memory/2026-11-15.md",
                "memory/Tee & Ünï #1.md",
                "memory/nothing.md",
            ]
            assert listed["MEMORY.md"] == "memory://MEMORY.md"
            for name, uri in listed.items():
                (content,) = (await client.read_resource(uri)).contents
                assert content.text == (place.workspace / name).read_text(encoding="utf-8")
            (cited,) = (await client.read_resource("memory://memory/2026-11-15.md#L4")).contents
            assert cited.text == "- The router got a new cable."
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == [
                "memory://{+path}",
                "clawmark://proposals/{id}",
            ]
            for uri in (
                "memory://../secret.md",
                "memory://memory/none.md",
                "file:///etc/passwd",
                "memory://AGENTS.md",
                "x",
            ):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    run(work())


def test_proposals_that_wait_are_resources(connect: Connect, place: Place) -> None:
    async def work() -> None:
        async with connect() as client:
            with pytest.raises(MCPError, match="no proposal"):
                await client.read_resource("clawmark://proposals/p1")
            arguments = {"text": "Ann keeps bees on the roof.", "to": "MEMORY.md"}
            answer = await client.call_tool("memory_append", arguments)
            told = json.loads(answer.content[0].text)
            assert (told["written"], told["proposal"]) == (False, "p1")
            assert "`clawmark review`" in told["note"]
            assert "bees" not in (place.workspace / "MEMORY.md").read_text(encoding="utf-8")
            listed = [one.uri for one in (await client.list_resources()).resources]
            assert listed[-1] == "clawmark://proposals"
            (summary,) = (await client.read_resource("clawmark://proposals")).contents
            assert "bees" not in summary.text
            assert json.loads(summary.text)["proposals"][0]["uri"] == "clawmark://proposals/p1"
            (one,) = (await client.read_resource("clawmark://proposals/p1")).contents
            assert "bees" in json.loads(one.text)["hunks"][0]["new"]

    run(work())


def test_a_client_searches_an_earlier_day_and_forgets_what_the_agent_wrote(
    connect: Connect, place: Place
) -> None:
    async def work() -> None:
        async with connect() as client:
            written = await called(client, "memory_append", text="The ferry leaves at nine")
            assert written["written"]
            found = await searched(client, "when does the ferry leave?")
            assert "leaves at nine" in found["results"][0]["snippet"]
            forgotten = await called(client, "memory_forget", text="ferry leaves at nine")
            assert forgotten["forgotten"]
            found = await searched(client, "when does the ferry leave?")
            assert "leaves at nine" not in json.dumps(found)
            earlier = await called(client, "memory_search", query="launch", asOf="2d")
            assert "February" in earlier["results"][0]["snippet"]
            now = await searched(client, "launch")
            assert "March" in now["results"][0]["snippet"]
            path = earlier["results"][0]["path"]
            read = await called(client, "memory_get", path=path, asOf="2d")
            assert "February" in read["text"]
            wrong = await client.call_tool("memory_search", {"query": "launch", "asOf": "someday"})
            assert wrong.is_error and "asOf must be a day" in wrong.content[0].text
            others = await client.call_tool("memory_forget", {"text": "The launch is in March"})
            assert json.loads(others.content[0].text)["reason"] == "not-yours"

    for days, month in ((3, "February"), (1, "March")):
        page = place.workspace / "memory" / "launch.md"
        page.write_text(f"# Launch\n\n- The launch is in {month}.\n", encoding="utf-8")
        record(place, days)
    run(work())
    files = [one for one in place.state.rglob("*") if one.is_file()]
    assert not any(b"leaves at nine" in one.read_bytes() for one in files)


def record(place: Place, days_ago: int) -> None:
    """Record the files as they are now as a version of an earlier day."""
    places = resolve_places(str(place.workspace), state_dir=str(place.state), env={})
    clock = (datetime.now().astimezone() - timedelta(days=days_ago)).timestamp
    files = Workspace(str(place.workspace)).scan().files
    History(history_folder(places), clock=clock).record(
        files, lambda path: (place.workspace / path).read_bytes(), "sync", wait=True
    )


def test_a_long_list_of_files_comes_in_pages(connect: Connect, place: Place) -> None:
    for number in range(1001):
        place.write(f"memory/n{number:04}.md", "tea\n")

    async def work() -> None:
        async with connect() as client:
            names, cursor = list[str](), None
            while True:
                page = await client.list_resources(cursor=cursor)
                names += [one.name for one in page.resources]
                if (cursor := page.next_cursor) is None:
                    break
            assert len(names) == len(set(names)) == 1003
            for cursor in ("-1", "x", "1e9", "١"):
                with pytest.raises(MCPError):
                    await client.list_resources(cursor=cursor)

    run(work())


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
def test_an_older_client_is_notified_about_files_it_subscribed_to(
    connect: Connect, place: Place
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.put_nowait(str(message.params.uri))
        elif isinstance(message, ResourceListChangedNotification):
            heard.put_nowait("list")

    async def work() -> None:
        async with connect(mode="legacy", message_handler=listen) as client:
            await client.subscribe_resource("memory://MEMORY.md")
            place.write("MEMORY.md", "We moved to SQLite.\n")
            assert await heard.get() == "memory://MEMORY.md"
            place.write("memory/2026-11-16.md", "A new day.\n")
            assert await heard.get() == "list"
            with pytest.raises(MCPError):
                await client.subscribe_resource("memory://../secret.md")
            await client.unsubscribe_resource("memory://MEMORY.md")
            await client.subscribe_resource("memory://memory/2026-11-16.md")
            place.write("MEMORY.md", "We moved back.\n")
            place.write("memory/2026-11-16.md", "The day goes on.\n")
            assert await heard.get() == "memory://memory/2026-11-16.md"

    run(work())


def test_an_older_client_that_listed_files_is_notified_when_the_list_changes(
    connect: Connect, place: Place
) -> None:
    heard: asyncio.Queue[type] = asyncio.Queue()

    async def listen(message: object) -> None:
        heard.put_nowait(type(message))

    async def work() -> None:
        async with connect(mode="legacy", message_handler=listen) as client:
            assert client.server_capabilities.resources.list_changed
            await client.list_resources()
            place.write("memory/2026-11-16.md", "A new day.\n")
            assert await heard.get() is ResourceListChangedNotification

    run(work())


def test_a_newer_client_receives_a_stream_of_changes(connect: Connect, place: Place) -> None:
    async def work() -> None:
        async with (
            connect(mode="auto") as client,
            client.listen(
                resource_subscriptions=["memory://MEMORY.md"], resources_list_changed=True
            ) as changes,
        ):
            place.write("MEMORY.md", "We moved to SQLite.\n")
            assert (await anext(changes)).uri == "memory://MEMORY.md"
            (place.workspace / "memory" / "2026-11-15.md").unlink()
            assert type(await anext(changes)).__name__ == "ResourcesListChanged"

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_the_recall_policy_is_offered_as_instructions_and_as_a_prompt(
    connect: Connect, mode: str
) -> None:
    async def work() -> None:
        async with connect(mode=mode) as client:
            assert client.instructions is not None
            for word in ("memory_search", "memory_get", "memory_append", "not an instruction"):
                assert word.replace("not an", "is an") in client.instructions
            (prompt,) = (await client.list_prompts()).prompts
            result = await client.get_prompt(prompt.name, {"question": "Which database?"})
            text = result.messages[0].content
            assert isinstance(text, TextContent)
            assert text.text.startswith(client.instructions)
            assert text.text.endswith("Which database?")
            assert "The time is" not in text.text
            timed = (await client.get_prompt(prompt.name, {"time": "true"})).messages[0].content
            assert isinstance(timed, TextContent)
            assert re.search(
                r"\n\nToday is [-0-9]{10} \([A-Z][a-z]+day, .+\)\. The time is \d\d:\d\d\.\Z",
                timed.text,
            )
            with pytest.raises(MCPError):
                await client.get_prompt("no-such", {})

    run(work())


def test_http_serves_a_shared_session_by_default(place: Place) -> None:
    async def work(server: HttpServer) -> None:
        async with over_http(server) as client:
            assert "memory_append" not in [tool.name for tool in (await client.list_tools()).tools]
            found = await called(client, "memory_search", query="database")
            assert (found["results"], found["disabled"]) == ([], True)
            assert "PostgreSQL" not in json.dumps(
                await called(client, "memory_get", path="MEMORY.md")
            )
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="shared sessions"):
                await client.read_resource("memory://MEMORY.md")
            assert "memory_search" not in (client.instructions or "")

    with http_server([], place.environment()) as server:
        run(work(server))


def test_shared_sessions_can_be_allowed_to_read(place: Place) -> None:
    settings = {"memorySearch": {"provider": "none"}, "memory": {"sharedSessions": ["channel"]}}
    (place.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    place.run("index")

    async def work(server: HttpServer) -> None:
        async with over_http(server) as client:
            assert (await called(client, "memory_search", query="PostgreSQL"))["results"]
            assert len((await client.list_resources()).resources) == 2
            assert "memory_append" not in [tool.name for tool in (await client.list_tools()).tools]

    with http_server([], place.environment()) as server:
        run(work(server))
