"""Hostile lines on the standard input of the real MCP server, over the hostile workspace of the
shared folder.

Every line gets the answer it deserves, none stops the server, none shows what lies outside the
memory, and the output holds messages of the protocol and nothing else."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("mcp")

import hostile
from commands import new_place
from mcp_servers import HANG_SECONDS, INITIALIZED, SURROGATES, StdioServer, call, stdio_server

pytestmark = hostile.needs_maker

FRESH = (
    "m-before-init",
    "m-init-twice",
    "m-init-empty",
    *(f"m-init-version-{number}" for number in range(6)),
)
"""Cases that say something about the very first message, and so need a server of their own."""
BEHAVIOURS = ("m-stdin-closed", "m-stdout-closed", "m-stdout-full", "m-boot-noise", "m-line-64mb")


class Bench(NamedTuple):
    """The hostile workspace with its cases, and the surroundings a server starts in."""

    folder: Path
    env: Mapping[str, str]
    cases: dict[str, dict[str, Any]]
    canaries: tuple[str, ...]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("mcp-hostile")
    place = new_place(folder)
    place.state.mkdir(mode=0o700)
    # Words are enough here, and a model in the background would take the processor from what is
    # tested.
    (place.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    made = hostile.make(folder / "made")
    canaries = json.loads((made / "manifest.json").read_text(encoding="utf-8"))["canaries"]
    env = place.environment({"CLAWMARK_WORKSPACE": str(made / "workspace")})
    never = tuple(canaries[name] for name in ("outside", "other", "thinking"))
    yield Bench(folder=folder, env=env, cases=hostile.cases(made, "mcp_stdio"), canaries=never)
    hostile.remove(made)


@pytest.fixture(scope="module")
def server(bench: Bench) -> Iterator[StdioServer]:
    with stdio_server(["--json"], bench.env) as running:
        running.initialize()
        yield running


def lines_of(case: Mapping[str, Any]) -> list[bytes]:
    return hostile.input_bytes(dict(case)).split(b"\n")


def codes(answers: list[dict[str, Any]]) -> list[str]:
    """What each answer amounts to: an error's code, `refused` for a tool that said no, `ok` for the
    rest.
    """
    return [_code(answer) for answer in answers]


def _code(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        assert answer["error"]["message"]
        return str(answer["error"]["code"])
    return "refused" if answer["result"].get("isError") else "ok"


def is_right(expect: str, said: list[str]) -> bool:
    """Whether the answers are what a case expects; silence only where that is expected."""
    if expect in ("ignored", "no-answer"):
        return said == []
    errors = {"-32700", "-32600", "-32601", "-32602"}
    allowed = set[str]()
    for word in expect.replace("-or-32", "-or--32").split("-or-"):
        allowed |= {"ok": {"ok"}, "ok-with-own-version": {"ok"}, "error": {*errors, "refused"}}.get(
            word, {word}
        )
    if expect == "refused":
        allowed |= errors
    return bool(said) and set(said) <= allowed


def expected_answers(case: Mapping[str, Any]) -> int:
    """How many lines of a case are owed an answer."""
    return 0 if case["expect"] in ("ignored", "no-answer") else len(lines_of(case))


def test_every_hostile_line_gets_the_expected_answer(bench: Bench, server: StdioServer) -> None:
    wrong: dict[str, object] = {}
    tried = [case for name, case in bench.cases.items() if name not in (*FRESH, *BEHAVIOURS)]
    for case in tried:
        for line in lines_of(case):
            server.send(line + b"\n")
        answers = server.until_quiet(expected_answers(case))
        said = codes(answers)
        leaked = [canary for canary in bench.canaries if canary in json.dumps(answers)]
        if leaked or not is_right(case["expect"], said) or len(said) != expected_answers(case):
            wrong[case["id"]] = (case["expect"], said[:3], leaked, str(answers)[:300])
    assert wrong == {}
    assert len(tried) + len(FRESH) + len(BEHAVIOURS) == len(bench.cases) == 68


def test_an_odd_id_is_returned_unchanged_or_refused(bench: Bench, server: StdioServer) -> None:
    for name, case in bench.cases.items():
        if not name.startswith("m-id-") or name == "m-id-same":
            continue
        server.send(lines_of(case)[0] + b"\n")
        (answer,) = server.until_quiet(1)
        if "result" in answer:
            assert answer["id"] == json.loads(lines_of(case)[0])["id"]
        else:
            assert answer["id"] is None


def owes_an_answer(line: bytes) -> bool:
    """Whether a line of SURROGATES is a request, or cannot be read at all."""
    try:
        message = json.loads(line)
    except UnicodeDecodeError:
        return True
    return "method" in message and "id" in message


@pytest.mark.parametrize("where", SURROGATES)
def test_a_lone_surrogate_is_answered_and_does_not_stop_the_server(
    server: StdioServer, where: str
) -> None:
    line = SURROGATES[where]
    server.send(line + b"\n")
    answers = server.until_quiet(1 if owes_an_answer(line) else 0)
    for answer in answers:
        assert "\\ud" not in json.dumps(answer, ensure_ascii=True).replace("\\\\ud", "")
    if where.startswith("id") or where in ("result", "as bytes"):
        assert [answer["id"] for answer in answers if "error" in answer] == [None] * len(answers)
    assert "result" in server.ask(call("memory_search", {"query": "tea"}, f"after {where}"))


@pytest.mark.parametrize("where", ["id", "method", "initialize", "cancelled"])
def test_a_lone_surrogate_in_the_first_message_does_not_stop_the_server(
    bench: Bench, where: str
) -> None:
    with stdio_server([], bench.env) as fresh:
        fresh.send(SURROGATES[where] + b"\n")
        assert "result" in fresh.initialize()
        assert "result" in fresh.ask(call("memory_status", {}, "after"))
        assert fresh.close() == 0, fresh.errors()


@pytest.mark.parametrize("name", FRESH)
def test_a_first_message_other_than_initialize_opens_no_session(bench: Bench, name: str) -> None:
    case = bench.cases[name]
    with stdio_server([], bench.env) as fresh:
        for line in lines_of(case):
            fresh.send(line + b"\n")
        answers = [fresh.answer() for _ in lines_of(case)]
        assert is_right(case["expect"], codes(answers)), answers
        for answer in answers:
            if "result" in answer:
                assert answer["result"]["protocolVersion"] in ("2025-11-25", "2025-06-18")
        assert fresh.close() == 0, fresh.errors()


def test_a_line_of_64_mb_is_refused_and_not_buffered(bench: Bench, server: StdioServer) -> None:
    """m-line-64mb"""
    server.ask(call("memory_search", {"query": "tea"}, "loads the rest"))
    before = server.memory()
    letter, count = bench.cases["m-line-64mb"]["input"]["repeat"]
    block = letter.encode() * 2**20
    for _ in range(count // len(block)):
        server.send(block)
    server.send(b"\n")
    (answer,) = server.until_quiet(1)
    assert answer["error"]["code"] == -32600
    assert server.memory() - before < 50 * 2**20


def test_a_line_just_under_the_limit_is_read(server: StdioServer) -> None:
    """Eight MiB less a little; the tool refuses the text for its length, so it has seen it."""
    answer = server.ask(call("memory_search", {"query": "x" * (8 * 2**20 - 200)}))
    assert "at most 500,000" in answer["result"]["structuredContent"]["error"]


def test_the_server_ends_when_its_input_ends_inside_a_line(bench: Bench) -> None:
    """m-stdin-closed"""
    with stdio_server([], bench.env) as fresh:
        fresh.initialize()
        fresh.send(call("memory_search", {"query": "tea"}))
        fresh.send(b'{"jsonrpc":"2.0","id":2,"method":"pi')
        children = (
            Path(f"/proc/{fresh.process.pid}/task/{fresh.process.pid}/children").read_text().split()
        )
        assert fresh.close() == 0, fresh.errors()
        assert not any(Path(f"/proc/{child}").exists() for child in children)
    with stdio_server([], bench.env) as following:  # no lock is left behind
        following.initialize()
        assert "result" in following.ask(call("memory_append", {"text": "The lock was free."}))


def test_the_server_ends_when_its_output_is_closed(bench: Bench) -> None:
    """m-stdout-closed"""
    with stdio_server([], bench.env, reads=False) as fresh:
        assert fresh.process.stdout is not None
        fresh.process.stdout.close()
        try:
            while fresh.process.poll() is None:
                fresh.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        except BrokenPipeError:
            pass
        assert fresh.process.wait(HANG_SECONDS) == 0
        assert "Traceback" not in fresh.errors()


def test_input_is_not_read_while_the_client_does_not_read_answers(bench: Bench) -> None:
    """m-stdout-full: at most a few requests are taken, nothing grows, and everything is answered
    once somebody reads.
    """
    with stdio_server([], bench.env, reads=False) as fresh:
        process = fresh.process
        assert process.stdin is not None
        assert process.stdout is not None
        fresh.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _hello()})
        fresh.send(INITIALIZED)
        first = process.stdout.readline()
        assert json.loads(first)["id"] == 0
        fresh.send(call("memory_search", {"query": "tea"}, "loads the rest"))
        assert json.loads(process.stdout.readline())["id"] == "loads the rest"
        before, sent = fresh.memory(), 0
        os.set_blocking(process.stdin.fileno(), False)
        while select.select([], [process.stdin], [], 2.0)[1]:
            line = (
                json.dumps({"jsonrpc": "2.0", "id": sent + 1, "method": "tools/list"}).encode()
                + b"\n"
            )
            if os.write(process.stdin.fileno(), line) == len(line):
                sent += 1
            assert sent < 20_000, "it takes requests without end"
        assert fresh.memory() - before < 50 * 2**20
        seen = [json.loads(process.stdout.readline())["id"] for _ in range(sent)]
        assert sorted(seen) == list(range(1, sent + 1))


def _hello() -> dict[str, object]:
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }


NOISE = """\
import os, sys
from importlib.abc import MetaPathFinder

class Noisy(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("mcp.server", "pydantic", "anyio"):
            print(f"loading {name}", flush=True)
            os.write(1, b"straight to the descriptor\\n")
            os.system("echo from a child")

sys.meta_path.insert(0, Noisy())
"""


def test_printed_text_does_not_reach_the_protocol(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    with stdio_server([], {**bench.env, "PYTHONPATH": str(tmp_path)}) as fresh:
        fresh.initialize()
        fresh.ask(call("memory_search", {"query": "tea"}))
        assert fresh.close() == 0
        said = fresh.errors()
    for word in ("loading mcp.server", "straight to the descriptor", "from a child"):
        assert word in said


@pytest.mark.parametrize(
    "surroundings",
    [
        {},
        {"LC_ALL": "C"},
        {"CLAWMARK_DEBUG": "1"},
        {"CLAWMARK_CONFIG": "dead-provider.json"},
        {"HOME": "/proc", "CLAWMARK_STATE_DIR": "/proc/nowhere"},
    ],
    ids=["plain", "c-locale", "debug", "dead-provider", "read-only-home"],
)
def test_every_output_line_is_a_message_in_any_environment(
    bench: Bench, surroundings: dict[str, str], tmp_path: Path
) -> None:
    """m-boot-noise, I-24"""
    env = {**bench.env, **surroundings}
    if "CLAWMARK_CONFIG" in surroundings:
        remote = {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "sk-test-0000000000000000"}
        env["CLAWMARK_CONFIG"] = str(tmp_path / "config.json")
        settings = {"memorySearch": {"provider": "openai", "remote": remote}}
        (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with stdio_server([], env) as fresh:
        fresh.initialize()
        for number, arguments in enumerate(({"query": "tea"}, {"query": ""}, {})):
            fresh.ask(call("memory_search", arguments, number))
        fresh.ask(call("memory_get", {"path": "memory/none.md"}, 7))
        fresh.ask(call("memory_status", {}, 8))
        assert fresh.close() == 0, fresh.errors()
        assert "Traceback" not in fresh.errors()
