"""I-05: many processes on one memory at once: no error reaches a user, no line is lost, and
searches stay quick.

Agents that hold the memory open append, search, read lines and ask for the status; hosts do the
same through an MCP server of their own, and people with the command line; others index and rebuild
all the time, and one keeps watch. Everybody rests for a moment between two actions. Every
acknowledged line must be in its file where it was said to be, once, and be found after one last
`clawmark index`."""

from __future__ import annotations

import json
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frame import Outcome
from scene import Scene, finish, is_clean

from clawmark.text.entry_times import without_times

SECONDS, AGENTS, HOSTS, PEOPLE, FILES = 60.0, 5, 2, 4, 300
FEW_SECONDS, FEW_AGENTS, FEW_HOSTS, FEW_PEOPLE, FEW_FILES = 3.0, 1, 1, 1, 30
P99_SECONDS = 1.0
ASKED = 300
"""How many of the lines are asked for in the end."""

AGENT = """
import json, random, sys, time
from clawmark.memory import Memory
state, who, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
chance = random.Random(who)
lines, times, errors, counts = [], [], [], {}


def act(memory, what):
    if what == "append":
        text = f"line {who}x{len(lines)} " + " ".join(
            chance.choices("river stone market winter engine".split(), k=8)
        )
        written = memory.append(text)
        lines.append((written.path, written.start_line, text))
    elif what == "search":
        began = time.monotonic()
        memory.search(" ".join(chance.choices("note about river stone baceki difo".split(), k=3)))
        times.append(time.monotonic() - began)
    elif what == "find" and lines:
        path, _, text = chance.choice(lines)
        found = memory.search(text.split()[1])
        if not found.due_files and path not in [hit.path for hit in found.hits]:
            errors.append(f"{text[:20]} was acknowledged and is not found, and nothing is due")
    elif what == "read":
        memory.read("memory/note-00003.md", start=1, lines=5)
    elif what == "status":
        memory.status()


with Memory.open(state_dir=state, config=state + "/clawmark.json") as memory:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        what = chance.choices(("append", "search", "find", "read", "status"), (3, 6, 2, 2, 1))[0]
        counts[what] = counts.get(what, 0) + 1
        try:
            act(memory, what)
        except Exception as error:
            errors.append(f"{what}: {type(error).__name__}: {error}")
        time.sleep(chance.random() * 0.1)
print(json.dumps({"lines": lines, "times": times, "errors": errors, "counts": counts}))
"""

PERSON = """
import json, random, subprocess, sys, time
state, who, seconds, verbs = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4].split(",")
chance = random.Random(who)
lines, times, errors, counts = [], [], [], {}
deadline = time.monotonic() + seconds
while time.monotonic() < deadline:
    verb = chance.choice(verbs)
    counts[verb] = counts.get(verb, 0) + 1
    text = f"line {who}x{len(lines)} said by a person"
    words = {
        "remember": ["remember", text, "--json"],
        "search": ["search", "river stone note"],
        "get": ["get", "memory/note-00002.md"],
        "status": ["status", "--json"],
        "index": ["index"],
        "force": ["index", "--force"],
    }[verb]
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "clawmark", *words, "--state-dir", state],
        capture_output=True,
        text=True,
    )
    if verb == "search":
        times.append(time.monotonic() - began)
    if ended.returncode or "Traceback" in ended.stderr:
        errors.append(f"{verb}: {ended.returncode} {ended.stdout[-200:]} {ended.stderr[-300:]}")
    elif verb == "remember":
        said = json.loads(ended.stdout)
        lines.append((said["path"], said["startLine"], text))
    time.sleep(chance.random() * 0.2)
print(json.dumps({"lines": lines, "times": times, "errors": errors, "counts": counts}))
"""

HOST = """
import json, random, subprocess, sys, time
state, who, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
chance = random.Random(who)
lines, times, errors, counts = [], [], [], {}
command = [sys.executable, "-m", "clawmark", "mcp", "--state-dir", state]
pipe = subprocess.PIPE
server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def say(method, params, number=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params} | (
        {} if number is None else {"id": number}
    )
    server.stdin.write(json.dumps(message) + chr(10))
    server.stdin.flush()


def ask(method, params, number):
    say(method, params, number)
    while True:
        line = server.stdout.readline()
        if not line:
            raise EOFError("the MCP server has ended: " + server.stderr.read()[-300:])
        heard = json.loads(line)
        if heard.get("id") == number:
            return heard["result"]


about = {"name": "crowd", "version": "1"}
ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}, 0)
say("notifications/initialized", {})
deadline, number = time.monotonic() + seconds, 0
while time.monotonic() < deadline:
    number += 1
    what = chance.choices(("append", "search", "get", "status"), (2, 6, 2, 1))[0]
    counts["mcp " + what] = counts.get("mcp " + what, 0) + 1
    text = f"line {who}x{number} said over MCP about " + " ".join(
        chance.choices("river stone market winter".split(), k=3)
    )
    given = {
        "append": {"text": text},
        "search": {
            "query": " ".join(chance.choices("note about river stone baceki difo".split(), k=3))
        },
        "get": {"path": "memory/note-00004.md"},
        "status": {},
    }[what]
    began = time.monotonic()
    try:
        result = ask("tools/call", {"name": "memory_" + what, "arguments": given}, number)
    except Exception as error:
        errors.append(f"mcp {what}: {type(error).__name__}: {error}")
        break
    said = result.get("structuredContent") or {}
    if what == "search":
        times.append(time.monotonic() - began)
    if what == "append" and said.get("written"):
        lines.append((said["path"], said["startLine"], text))
    elif result.get("isError") and said.get("reason") != "session-full":
        errors.append(f"mcp {what}: {json.dumps(result)[:300]}")
    time.sleep(chance.random() * 0.1)
server.stdin.close()
if server.wait(60):
    errors.append(f"the MCP server ended with {server.returncode}: {server.stderr.read()[-300:]}")
print(json.dumps({"lines": lines, "times": times, "errors": errors, "counts": counts}))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    seconds, agents, hosts, people, files = (
        (SECONDS, AGENTS, HOSTS, PEOPLE, FILES)
        if full
        else (FEW_SECONDS, FEW_AGENTS, FEW_HOSTS, FEW_PEOPLE, FEW_FILES)
    )
    if find_spec("mcp") is None:
        agents, hosts = agents + 2 * hosts, 0
    scene = Scene(work, "static")
    scene.write_notes(files, seed)
    scene.run("index")
    watcher = scene.start("watch", "--json")
    crowd = [scene.start_script(AGENT, f"a{number}", str(seconds)) for number in range(agents)]
    crowd += [scene.start_script(HOST, f"h{number}", str(seconds)) for number in range(hosts)]
    crowd += [
        scene.start_script(PERSON, f"p{number}", str(seconds), "remember,search,get,status")
        for number in range(people)
    ]
    crowd += [
        scene.start_script(PERSON, "i", str(seconds), "index"),
        scene.start_script(PERSON, "f", str(seconds), "force"),
    ]
    heard, complaints = _hear(crowd)
    complaints += _stop(watcher)
    lines = [line for one in heard for line in one["lines"]]
    complaints += _lost(scene, lines)
    complaints += _unfound(scene, lines)
    quick = sorted(time for one in heard[: agents + hosts] for time in one["times"])
    slow = sorted(time for one in heard[agents + hosts :] for time in one["times"])
    if full and quick and _share(quick, 0.99) > P99_SECONDS:
        complaints.append(f"99 % of the searches took up to {_share(quick, 0.99):.2f} s")
    counts: dict[str, int] = {}
    for one in heard:
        for what, count in one["counts"].items():
            counts[what] = counts.get(what, 0) + count
    facts: dict[str, object] = {
        "processes": len(crowd) + hosts + 1,
        "of which MCP servers": hosts,
        "seconds": seconds,
        "actions": dict(sorted(counts.items())),
        "acknowledged_lines": len(lines),
        "errors": sum(len(one["errors"]) for one in heard),
        "search_seconds_in_an_open_process": {
            "median": _share(quick, 0.5),
            "p99": _share(quick, 0.99),
        },
        "search_seconds_of_a_new_process": {"median": _share(slow, 0.5), "p99": _share(slow, 0.99)},
    }
    return Outcome(
        sum(counts.values()) - len(complaints), len(complaints), facts, tuple(complaints)
    )


def _hear(crowd: list[subprocess.Popen[str]]) -> tuple[list[dict[str, Any]], list[str]]:
    heard: list[dict[str, Any]] = []
    complaints: list[str] = []
    for process in crowd:
        ended = finish(process)
        if not is_clean(ended):
            complaints.append(f"one of the crowd ended with {ended.code}: {ended.err[-300:]}")
            heard.append({"lines": [], "times": [], "errors": [], "counts": {}})
            continue
        heard.append(json.loads(ended.out))
        complaints += heard[-1]["errors"]
    return heard, complaints


def _stop(watcher: subprocess.Popen[str]) -> list[str]:
    """End the watcher as a person would; it must still have been there, and have had no trouble."""
    if watcher.poll() is not None:
        return [
            f"the watcher ended by itself with {watcher.returncode}: {finish(watcher).err[-300:]}"
        ]
    watcher.send_signal(signal.SIGTERM)
    ended = finish(watcher)
    failed = [line for line in ended.out.splitlines() if '"event": "failed"' in line]
    return failed + ([ended.err[-300:]] if "Traceback" in ended.err else [])


def _lines_of(path: Path) -> list[str]:
    """The lines of a log, without the times of its entries."""
    return without_times(path.read_text(encoding="utf-8")).split("\n")


def _lost(scene: Scene, lines: list[tuple[str, int, str]]) -> list[str]:
    """Lines that are not in their file where they were said to be, or not once."""
    texts = {
        path: [line.partition(" <!-- ")[0] for line in _lines_of(scene.workspace / path)]
        for path, _, _ in lines
    }
    complaints = []
    for path, number, text in lines:
        if texts[path][number - 1] != f"- {text}" or texts[path].count(f"- {text}") != 1:
            complaints.append(f"{text} is not line {number} of {path}, or not once")
    return complaints


def _unfound(scene: Scene, lines: list[tuple[str, int, str]]) -> list[str]:
    ended = scene.run("index")
    if not is_clean(ended):
        return [f"the last index run: {ended.code} {ended.err[-300:]}"]
    some = lines[:: max(1, len(lines) // ASKED)]
    answers = scene.answers([text.split()[1] for _, _, text in some])
    missing = [
        f"{text} is not found in {path}"
        for (path, _, text), answer in zip(some, answers, strict=True)
        if path not in [hit["path"] for hit in answer["results"]]
    ]
    checked = scene.run("verify")
    return missing + ([] if is_clean(checked) else [f"verify: {checked.out[-300:]}"])


def _share(times: list[float], share: float) -> float:
    """The time within which a share of the actions was done."""
    return round(times[min(len(times) - 1, int(len(times) * share))], 3) if times else 0.0
