"""The examples run as they are, against a scripted model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from chat import ChatServer, Seen, Turn, call, say
from commands import HANG_SECONDS, Place, new_place

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def indexed_place(place: Place) -> Place:
    """On a busy machine the first search of a new memory may end before all files are indexed."""
    assert place.run("index").code == 0
    return place


def answer(seen: Seen) -> Turn:
    """A model of 32,768 tokens that fills up while it talks: flushed at 22,938, compacted at
    24,576.
    """
    said = seen.last_user
    if "Pre-compaction memory flush" in said:
        return (
            call("memory_append", text="- Redis replaces memcached.")
            if seen.step == 0
            else say("NO_REPLY")
        )
    if said.startswith("Summarise"):
        return say("We spoke about databases.")
    if seen.system.startswith("You name conversations"):
        return say("databases")
    if "which database" in said:
        return (
            call("memory_search", query="which database for billing")
            if seen.step == 0
            else say(f"Found: {'PostgreSQL' in seen.results[0]}.")
        )
    if "remember" in said:
        return (
            call("memory_append", text="Carla is the dentist.")
            if seen.step == 0
            else say("Noted.", input_tokens=23_000)
        )
    return (
        say("Redis it is.", input_tokens=25_000)
        if "Redis" in said
        else say(f"History of {len(seen.messages)}.")
    )


def test_a_plain_loop_searches_remembers_flushes_compacts_and_leaves_a_note(
    indexed_place: Place,
) -> None:
    lines = [
        "which database did we pick?",
        "remember: Carla is the dentist",
        "Redis, not memcached",
        "and now?",
        "/new",
        "We moved the office to Porto",
    ]
    with ChatServer(answer) as server:
        ran = subprocess.run(
            [
                sys.executable,
                str(EXAMPLES / "plain_loop.py"),
                str(indexed_place.workspace),
                f"m@{server.openai_url}",
            ],
            input="\n".join(lines) + "\n",
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            env=indexed_place.environment(),
            check=False,
        )
        systems = [seen.system for seen in server.seen if "memory_search" in seen.tools]
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "Found: True.",
        "Noted.",
        "Redis it is.",
        "History of 3.",
        "History of 1.",
    ]
    kept = {
        file.name: file.read_text(encoding="utf-8")
        for file in (indexed_place.workspace / "memory").iterdir()
    }
    for said in ("Carla is the dentist.", "Redis replaces memcached."):
        assert re.search(rf"^- \d\d:\d\d {re.escape(said)} <!--", "".join(kept.values()), re.M)
    assert sum("databases" in name for name in kept) == 2, "one note at /new, one at the end"
    assert "Carla is the dentist." in systems[-1], "the next session's prompt has today's log"


def loop(place: Place, model: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the plain loop with one message."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "plain_loop.py"), str(place.workspace), model],
        input="which database did we pick?\n",
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        env=place.environment(env),
        check=False,
    )


def test_the_plain_loop_asks_the_server_that_openai_base_url_names(indexed_place: Place) -> None:
    with ChatServer(answer) as server:
        ran = loop(
            indexed_place,
            "openai:m",
            {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "sk-test"},
        )
    assert (ran.returncode, ran.stdout) == (0, "Found: True.\n"), ran.stderr


@pytest.mark.parametrize("model", ["openai:m@http://127.0.0.1:9/v1", "nonsense", "openai:m"])
def test_the_plain_loop_ends_with_one_sentence_when_the_model_cannot_be_used(
    place: Place, model: str
) -> None:
    ran = loop(place, model, {"OPENAI_API_KEY": ""})
    assert ran.returncode == 1 and ran.stdout == ""
    assert "Traceback" not in ran.stderr and len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_without_arguments_prints_how_to_run_it(place: Place, example: Path) -> None:
    command = [sys.executable, str(example)]
    ran = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        env=place.environment(),
        check=False,
    )
    assert ran.returncode == 1 and f"python examples/{example.name} ~/agent" in ran.stderr
    assert "Traceback" not in ran.stderr
