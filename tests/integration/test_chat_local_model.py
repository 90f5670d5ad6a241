"""`clawmark chat` with a real language model in its own process.

The model is SmolLM2-135M-Instruct (tests/servers/local_chat.py), which is too small to use a memory
well. The test covers a real server, chat template, stream and token counts, not good answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import local_chat
import pytest
from commands import HANG_SECONDS, Place

from clawmark.workspace.bootstrap import SEEDED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        local_chat.weights() is None, reason=f"the model is not installed: {local_chat.INSTALL}"
    ),
]


@pytest.fixture
def address() -> Iterator[str]:
    command = [sys.executable, local_chat.__file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as serving:
        assert serving.stdin is not None and serving.stdout is not None
        yield serving.stdout.readline().decode().strip()
        serving.stdin.close()
        serving.wait(HANG_SECONDS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A small workspace, because the model reads slowly."""
    made = Place(tmp_path)
    made.home.mkdir()
    for name in SEEDED:
        made.write(name, f"# {name}\n")
    made.write("MEMORY.md", "# Facts\n\n- Ann is the user. The capital of France is Paris.\n")
    made.state.mkdir()
    defaults = {"contextTokens": local_chat.WINDOW}
    (made.state / "clawmark.json").write_text(
        json.dumps({"agents": {"defaults": defaults}}), encoding="utf-8"
    )
    return made


def test_conversation_with_a_real_model(place: Place, address: str) -> None:
    words = ("chat", "--json", "--model", "openai:smollm2", "--base-url", address)
    said = "Hello! Who are you?\nWhat is the capital of France?\n/flush\n"
    # The model computes for more than a minute on two idle cores, so it needs longer than other
    # commands on busy ones.
    ran = place.run(*words, stdin=said, env={"OPENAI_API_KEY": None}, timeout=4 * HANG_SECONDS)
    assert ran.code == 0, ran.err
    first, second = ran.json()["turns"]
    assert first["problem"] is None and second["problem"] is None
    assert first["answer"].strip() and second["answer"].strip()
    assert 0 < first["tokens"] < second["tokens"] < local_chat.WINDOW
    [transcript] = place.state.glob("agents/*/sessions/*.jsonl")
    kept = transcript.read_text(encoding="utf-8")
    assert "Who are you?" in kept and "capital of France" in kept
    note = (place.workspace / ran.json()["note"]).read_text(encoding="utf-8")
    assert "Who are you?" in note and "chat, exit" in note
