"""The programs of the how-to on agent SDKs run as written, with the real packages, against a
scripted model.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from chat import ChatServer, Seen, Turn, call, say
from docblocks import ROOT, Block, blocks

HANG_SECONDS = 300
PAGE = ROOT / "docs" / "how-to" / "sdks.md"
PROGRAMS = [block for block in blocks(PAGE) if block.language == "python"]
NEEDS = {
    "clawmark.adapters.anthropic": "anthropic",
    "clawmark.adapters.openai_agents": "agents",
    "clawmark.adapters.pydantic_ai": "pydantic_ai",
    "clawmark.adapters.langgraph": "langgraph",
    "clawmark.adapters.llama_index": "llama_index",
    "clawmark.adapters.plain": "openai",
}


def adapter_of(block: Block) -> str:
    return next(adapter for adapter in NEEDS if adapter in block.text)


def answer(seen: Seen) -> Turn:
    """Uses a tool once where there is one, then answers with what it knows."""
    if seen.tools and not seen.results:
        if "memory" in seen.tools:
            return call("memory", command="view", path="/memories/people.md")
        return call("memory_search", query=seen.last_user)
    known = seen.system + "".join(one.text for one in seen.messages) + "".join(seen.results)
    return say(
        ", ".join(word for word in ("PostgreSQL", "jasmine tea", "dentist") if word in known)
        or "nothing"
    )


@pytest.mark.parametrize("block", PROGRAMS, ids=adapter_of)
def test_a_program_of_the_page_runs_and_its_model_knows_what_the_memory_knows(
    block: Block, tmp_path: Path
) -> None:
    if find_spec(NEEDS[adapter_of(block)]) is None:
        pytest.skip(f"{NEEDS[adapter_of(block)]} is not installed")
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\nWe chose the database PostgreSQL.\n", encoding="utf-8"
    )
    (tmp_path / "agent" / "memory" / "people.md").write_text(
        "Carla is the dentist.\n", encoding="utf-8"
    )
    # The model's key is in the environment, and `auto` would take it for embeddings too.
    (tmp_path / ".clawmark").mkdir()
    (tmp_path / ".clawmark" / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "static"}}', encoding="utf-8"
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
    }
    with ChatServer(answer) as server:
        ran = subprocess.run(
            [sys.executable, "-c", block.text],
            env={
                **kept,
                "HOME": str(tmp_path),
                "ANTHROPIC_API_KEY": "key",
                "ANTHROPIC_BASE_URL": server.anthropic_url,
                "OPENAI_API_KEY": "key",
                "OPENAI_BASE_URL": server.openai_url,
            },
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    expected = {"anthropic": "dentist", "langgraph": "jasmine tea"}.get(
        adapter_of(block).rpartition(".")[2], "PostgreSQL"
    )
    assert expected in ran.stdout, ran.stdout


def test_the_page_has_a_program_for_every_adapter() -> None:
    assert sorted(map(adapter_of, PROGRAMS)) == sorted(NEEDS)
