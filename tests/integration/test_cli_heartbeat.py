"""`clawmark heartbeat` in its own process: what it prints, its exit codes, and being killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat import ChatServer, call, fault, say
from commands import CLAWMARK, HANG_SECONDS, Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.agent.models.catalog import choose_completer

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n"
NEW = "- Billing runs on PostgreSQL."
CHANGE = call("propose_change", old="- Billing runs on MySQL.", new=NEW, because="memory/x.md")
CHANGED = PAGE.replace("- Billing runs on MySQL.", NEW)
OK = say("HEARTBEAT_OK")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.write("MEMORY.md", PAGE)
    return made


def environment(server: ChatServer | None) -> dict[str, str]:
    return {"CLAWMARK_MODEL": f"scripted@{server.openai_url}"} if server else {}


def test_the_command_says_ok_shows_a_diff_and_applies_it(place: Place, server: ChatServer) -> None:
    env = environment(server)
    server.script([CHANGE, OK])
    shown = place.run("heartbeat", env=env)
    assert shown.code == 0 and f"\n+{NEW}\n" in shown.out
    assert shown.out.endswith("Nothing is written. To decide about the changes: clawmark review\n")
    quiet = place.run("heartbeat", "--quiet", env=env)
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    nothing = place.run("heartbeat", env=env)
    assert (nothing.code, nothing.out) == (0, "HEARTBEAT_OK\n")
    assert "Nothing has changed" in nothing.err and "is waiting" in nothing.err
    waits = place.run("heartbeat", "--apply", "--json", env=env)
    assert waits.code == 0 and waits.json()["applied"] is False
    assert waits.json()["proposals"] == ["p1"]
    assert (place.workspace / "MEMORY.md").read_text() == PAGE
    assert place.run("review", "accept", "p1").code == 0
    assert (place.workspace / "MEMORY.md").read_text() == CHANGED
    server.script([OK])
    assert place.run("heartbeat", env=env).out == "HEARTBEAT_OK\n"
    done = place.run("heartbeat", "--json", env=env)
    assert done.json() == {
        "status": "HEARTBEAT_OK",
        "because": "nothing-changed",
        "message": "",
        "diff": "",
        "reasons": [],
        "applied": False,
        "waiting": False,
        "proposals": [],
        "note": "",
        "tokens": {"input": 0, "output": 0},
    }
    assert len(server.seen) == 3


def test_without_a_model_the_command_says_so(place: Place) -> None:
    ran = place.run("heartbeat", env=environment(None))
    assert (ran.code, ran.out) == (2, "") and says_one_clear_thing(ran)
    assert "No model is configured" in ran.err and "--model" in ran.err


def test_a_failing_model_is_exit_code_3_and_is_tried_again(
    place: Place, server: ChatServer
) -> None:
    server.script([fault("key")] * 9)
    ran = place.run("heartbeat", env=environment(server))
    assert (ran.code, ran.out) == (3, "") and says_one_clear_thing(ran)
    asked = len(server.seen)
    waits = place.run("heartbeat", "--json", env=environment(server))
    assert waits.code == 3 and "the next attempt is at" in waits.json()["error"]["message"]
    assert len(server.seen) == asked
    server.script([OK])
    assert place.run("heartbeat", "--force", env=environment(server)).out == "HEARTBEAT_OK\n"


def start(place: Place, server: ChatServer) -> subprocess.Popen[str]:
    """Start a heartbeat that writes what it proposes."""
    return subprocess.Popen(
        [*CLAWMARK, "heartbeat", "--apply"],
        env={**place.environment(), **environment(server)},
        cwd=place.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_heartbeat_says_that_one_is_running(place: Place, server: ChatServer) -> None:
    server.script([fault("hang")])
    first = start(place, server)
    try:
        server.wait_for(1)
        second = place.run("heartbeat", env=environment(server))
        assert (second.code, second.out) == (0, "")
        assert second.err == "Another heartbeat is running; this one ends.\n"
        told = place.run("heartbeat", "--json", env=environment(server)).json()
        assert told["because"] == "running"
        assert len(server.seen) == 1
    finally:
        first.kill()
        first.communicate(timeout=HANG_SECONDS)
    server.script([CHANGE, OK])
    place.run("config", "set", "memory.review", "off")
    assert place.run("heartbeat", "--apply", env=environment(server)).code == 0
    assert (place.workspace / "MEMORY.md").read_text() == CHANGED


KILLED = """
import json, os, signal, sys
at, workspace, state, url = int(sys.argv[1]), *sys.argv[2:5]
from clawmark import Memory
from clawmark.agent.models.catalog import choose_completer
import clawmark.composition.heartbeat
model = choose_completer("scripted@" + url, {})
count = 0
def hook(event, arguments):
    global count
    if event in ("os.rename", "os.remove", "os.link"):
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
memory = Memory.open(
    workspace, state_dir=state, provider="none", background=False,
    overrides={"memory.review": "off"},
)
sys.addaudithook(hook)
memory.heartbeat(completer=model, apply=True)
"""


def test_a_heartbeat_killed_at_any_step_is_repeated_and_loses_nothing(
    tmp_path: Path, server: ChatServer
) -> None:
    for at in range(1, 40):
        folder = tmp_path / str(at)
        (folder / "ws").mkdir(parents=True)
        page = folder / "ws" / "MEMORY.md"
        page.write_text(PAGE)
        server.script([CHANGE, OK])
        arguments = [str(at), str(folder / "ws"), str(folder / "state"), server.openai_url]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=HANG_SECONDS)
        assert page.read_text() in (PAGE, CHANGED), at
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        server.script([CHANGE, OK] if page.read_text() == PAGE else [OK])
        with Memory.open(
            folder / "ws",
            state_dir=folder / "state",
            provider="none",
            background=False,
            overrides={"memory.review": "off"},
        ) as memory:
            model = choose_completer(f"scripted@{server.openai_url}", {})
            memory.heartbeat(completer=model, apply=True)
            assert page.read_text() == CHANGED, at
            assert memory.heartbeat(completer=model, apply=True).is_ok
    assert 2 < at < 39, "every step of a whole heartbeat was a place to be killed at"


def test_openclaws_keys_act_or_warn(place: Place, server: ChatServer) -> None:
    heartbeat = {
        "every": "1h",
        "model": f"scripted@{server.openai_url}",
        "target": "last",
        "activeHours": {"start": "09:00", "end": "22:00"},
        "lightContext": True,
    }
    tree = {"agents": {"defaults": {"heartbeat": heartbeat}}}
    place.state.mkdir()
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    server.script([OK])
    ran = place.run("heartbeat", "--json")
    assert ran.json()["because"] == "reviewed"
    (warning,) = ran.json()["warnings"]
    assert "heartbeat.activeHours" in warning
    place.write("MEMORY.md", PAGE + "- More.\n")
    assert place.run("heartbeat", "--json").json()["because"] == "not-due"
