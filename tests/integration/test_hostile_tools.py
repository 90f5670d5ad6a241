"""Hostile arguments, paths and questions against both tools over the hostile workspace of the
shared folder.

Every case gets an answer: what was asked for, or one clear line. None raises, none shows what lies
outside the memory."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clawmark import Memory
from clawmark.agent.tools import Tool, render
from clawmark.testing import HashingEmbedder

SHARED = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
MAKER = SHARED / "hostile" / "make_hostile_workspace.py"
NEVER_CANARIES = ("outside", "other", "thinking")

pytestmark = pytest.mark.skipif(
    not MAKER.is_file(), reason="the shared folder with the hostile workspace is not here"
)


class Hostile(NamedTuple):
    """The tools over one hostile workspace, and its cases."""

    folder: Path
    tools: dict[str, Tool]
    canaries: tuple[str, ...]

    def cases(self, corpus: str) -> list[dict[str, Any]]:
        lines = (self.folder / "cases" / f"{corpus}.jsonl").read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line]

    def answer(self, tool: str, arguments: object) -> dict[str, Any]:
        """What the tool says, after the checks that hold for every answer."""
        payload = self.tools[tool].call(arguments)
        text = render(payload).encode("utf-8").decode("utf-8")
        assert json.loads(text) == payload
        assert not payload.get("disabled"), payload
        assert "\n" not in str(payload.get("error", "")), payload
        assert "Traceback" not in text
        return payload


@pytest.fixture(scope="module", params=[1, 2], ids=["seed-1", "seed-2"])
def hostile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile-tools") / "made"
    subprocess.run(
        [sys.executable, MAKER, folder, "--seed", str(request.param)],
        check=True,
        capture_output=True,
    )
    canaries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["canaries"]
    with Memory.open(
        folder / "workspace", state_dir=folder / "state", embedder=HashingEmbedder()
    ) as memory:
        memory.sync()
        tools = {tool.name: tool for tool in memory.tools()}
        yield Hostile(folder, tools, tuple(canaries[name] for name in NEVER_CANARIES))
    subprocess.run([sys.executable, MAKER, folder, "--remove"], check=True, capture_output=True)


def given(case: dict[str, Any]) -> Any:
    """The input of a case, which may be text that is not Unicode."""
    if "input_wtf8_b64" in case:
        return base64.b64decode(case["input_wtf8_b64"]).decode("utf-8", "surrogatepass")
    if "input_b64" in case:
        return os.fsdecode(base64.b64decode(case["input_b64"]))
    return case["input"]


def outcome(payload: dict[str, Any]) -> str:
    """What kind of answer it is, in the words of the cases."""
    if "error" in payload:
        assert payload["error"]
        assert payload["action"]
        return "refused"
    if "results" in payload:
        return "ok" if payload["results"] else "empty"
    return "ok" if payload["text"] else "empty"


ALLOWED = {
    "ok": {"ok"},
    "empty": {"empty"},
    "refused": {"refused"},
    "refused-or-empty": {"refused", "empty"},
    "ok-or-refused": {"ok", "refused"},
    "ok-or-invalid-argument": {"ok", "empty", "refused"},
    "invalid-argument": {"refused"},
    "invalid-argument-or-clamped": {"ok", "empty", "refused"},
    "parse-error": {"refused"},
}


def wrong_answers(
    hostile: Hostile, answers: dict[str, tuple[str, dict[str, Any]]]
) -> dict[str, object]:
    """The cases whose answer is not of the expected kind, or shows what it must not."""
    wrong: dict[str, object] = {}
    for name, (expect, payload) in answers.items():
        leaked = [canary for canary in hostile.canaries if canary in render(payload)]
        if leaked or outcome(payload) not in ALLOWED[expect]:
            wrong[name] = (expect, leaked, render(payload)[:300])
    return wrong


def test_every_hostile_argument_is_refused_or_understood(hostile: Hostile) -> None:
    answers = {}
    for case in hostile.cases("tool_args"):
        raw = bool(case.get("raw_json"))
        tool, arguments = (
            (case["tool"], case["input"])
            if raw
            else (case["input"]["tool"], case["input"]["arguments"])
        )
        if tool in hostile.tools:
            answers[case["id"]] = (case["expect"], hostile.answer(tool, arguments))
    assert len(answers) == 82
    assert wrong_answers(hostile, answers) == {}
    assert all(len(payload.get("results", [])) <= 50 for _, payload in answers.values())


def test_every_hostile_path_is_refused_or_is_memory(hostile: Hostile) -> None:
    cases = hostile.cases("get_paths")
    assert len(cases) == 102
    answers = {
        case["id"]: (case["expect"], hostile.answer("memory_get", {"path": given(case)}))
        for case in cases
    }
    assert wrong_answers(hostile, answers) == {}


def test_an_absent_daily_log_is_an_empty_text_and_nothing_else(hostile: Hostile) -> None:
    payload = hostile.answer("memory_get", {"path": "memory/2031-01-01.md"})
    assert payload == {"status": "not_found", "text": "", "path": "memory/2031-01-01.md"}


def test_every_hostile_question_has_an_answer(hostile: Hostile) -> None:
    cases = {case["id"]: case for case in hostile.cases("queries")}
    assert len(cases) == 103
    wrong: dict[str, object] = {}
    for name, case in cases.items():
        query = given(case)
        payload = hostile.answer("memory_search", {"query": query, "minScore": 0})
        text = render({"results": payload["results"]} if query in hostile.canaries else payload)
        kind = outcome(payload)
        match case["expect"]:
            case "ok":
                right = kind == "ok" or "nothing" in payload
            case "empty-result":
                right = kind == "refused" or (
                    kind == "empty" and bool(payload["nothing"]["message"])
                )
            case _:  # rejected-or-cut, no-result
                right = True
        if not right or any(canary in text for canary in hostile.canaries):
            wrong[name] = (case["expect"], text[:300])
    assert wrong == {}


def test_a_question_over_the_limit_is_refused_with_the_limit(hostile: Hostile) -> None:
    (case,) = (case for case in hostile.cases("queries") if case["expect"] == "rejected-or-cut")
    assert "at most 500,000" in hostile.answer("memory_search", {"query": given(case)})["error"]


def test_a_forbidden_word_finds_nothing_that_holds_it(hostile: Hostile) -> None:
    for canary in hostile.canaries:
        payload = hostile.answer("memory_search", {"query": canary, "maxResults": 50})
        assert canary not in render({"results": payload["results"]})


def test_a_result_read_back_holds_its_lines(hostile: Hostile) -> None:
    """memory_get of a result's lines returns exactly those lines of the file."""
    payload = hostile.answer(
        "memory_search", {"query": "tea note memory text", "minScore": 0, "maxResults": 50}
    )
    compared = 0
    for result in payload["results"]:
        raw = (hostile.folder / "workspace" / result["path"]).read_bytes()
        count = result["endLine"] - result["startLine"] + 1
        got = hostile.answer(
            "memory_get", {"path": result["path"], "from": result["startLine"], "lines": count}
        )
        if got.get("truncated") or b"\0" in raw or not is_utf8(raw):
            continue
        lines = (
            raw.decode("utf-8")
            .lstrip("\ufeff")
            .split("\n")[result["startLine"] - 1 : result["endLine"]]
        )
        assert got["text"].split("\n") == [line.removesuffix("\r") for line in lines], result[
            "path"
        ]
        compared += 1
    assert compared


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
