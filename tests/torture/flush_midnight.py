"""Flush and session note while the day ends, in several zones: what is written lands in one of the
two days, acknowledged.

The clock of the process stands still (faketime reads it from a file) until the scripted model has
made it write once; then the model moves it past midnight, or back, or over a change of summer time,
and makes it write again. Nothing is refused because of the time, nothing is lost, and each text is
where the answer says it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chat import ChatServer, Seen, Turn, call, say
from frame import Outcome
from straced import ended, python

from clawmark.text.entry_times import without_times

ZONES = ("Pacific/Auckland", "UTC", "America/St_Johns")
UTC = ZoneInfo("UTC")


class Case(NamedTuple):
    """A zone, whether it is the machine's or configured, and the time on its walls before and after
    the first write.
    """

    zone: str
    configured: bool
    before: str
    after: str


def cases() -> list[Case]:
    made = []
    for zone in ZONES:
        for configured in (True, False):
            made.append(
                Case(
                    zone=zone,
                    configured=configured,
                    before="2026-11-15 23:59:59",
                    after="2026-11-16 00:00:01",
                )
            )
            made.append(
                Case(
                    zone=zone,
                    configured=configured,
                    before="2026-11-16 00:00:01",
                    after="2026-11-15 23:59:58",
                )
            )
            made.append(
                Case(
                    zone=zone,
                    configured=configured,
                    before="2026-12-31 23:59:59",
                    after="2027-01-01 00:00:00",
                )
            )
    made += [
        Case(
            zone="America/New_York",
            configured=True,
            before="2026-11-01 00:59:59",
            after="2026-11-01 03:00:00",
        ),
        Case(
            zone="Asia/Beirut",
            configured=False,
            before="2026-03-28 23:59:59",
            after="2026-03-29 01:00:01",
        ),
        Case(
            zone="Europe/Berlin",
            configured=True,
            before="2028-02-29 23:59:59",
            after="2028-03-01 00:00:01",
        ),
        Case(
            zone="Europe/Berlin",
            configured=False,
            before="2028-02-28 23:59:59",
            after="2028-02-29 00:00:01",
        ),
    ]
    return made


FLUSHER = """
import json, sys
from clawmark import Memory
from clawmark.agent.models.catalog import choose_completer
place, url, zone = sys.argv[1:]
overrides = {
    "memorySearch.sync.onSessionStart": False,
    **({"agents.defaults.userTimezone": zone} if zone else {}),
}
with Memory.open(
    place + "/ws", state_dir=place + "/state", provider="none", overrides=overrides
) as memory:
    conversation = memory.conversation(completer=choose_completer(f"scripted@{url}", {}))
    conversation.start()
    conversation.on_user("Let us take PostgreSQL for billing.")
    flushed = conversation.flush()
    note = conversation.end()
    written = [[one.path, one.citation] for one in flushed.written]
    print(json.dumps({"written": written, "note": note[0]}))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    library = preload()
    if not library:
        return Outcome(0, 0, {}, skipped="faketime is not installed: apt install faketime")
    (work / "flusher.py").write_text(FLUSHER, encoding="utf-8")
    chosen = cases() if full else cases()[seed % 7 :: 7]
    complaints: list[str] = []
    for number, case in enumerate(chosen):
        complaints += [
            f"{case}: {what}" for what in live_through(work, work / str(number), case, library)
        ]
    facts: dict[str, object] = {
        "cases": len(chosen),
        "zones": sorted({case.zone for case in chosen}),
    }
    return Outcome(len(chosen) - len(complaints), len(complaints), facts, tuple(complaints))


def preload() -> str:
    """The library that lies about the time; empty where there is none."""
    if shutil.which("faketime") is None:
        return ""
    told = subprocess.run(
        ["faketime", "-f", "+0", "env"], capture_output=True, check=False, encoding="utf-8"
    )
    lines = [
        line.removeprefix("LD_PRELOAD=")
        for line in told.stdout.splitlines()
        if line.startswith("LD_PRELOAD=")
    ]
    return lines[0] if lines else ""


def live_through(work: Path, place: Path, case: Case, library: str) -> list[str]:
    (place / "ws").mkdir(parents=True)
    clock = place / "clock"
    clock.write_text(_machine_time(case, case.before), encoding="utf-8")

    def answer(seen: Seen) -> Turn:
        if seen.tools and seen.step == 0:
            return call("memory_append", text="- Written first.")
        if seen.tools and seen.step == 1:
            beside = place / "clock.new"
            beside.write_text(_machine_time(case, case.after), encoding="utf-8")
            os.replace(beside, clock)
            return call("memory_append", text="- Written second.")
        return say("NO_REPLY" if seen.tools else "billing")

    env = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
        "TZ": "UTC" if case.configured else case.zone,
    }
    with ChatServer(answer) as server:
        done = ended(
            python(
                str(work / "flusher.py"),
                str(place),
                server.openai_url,
                case.zone if case.configured else "",
            ),
            env,
        )
    if done.code != 0:
        return [f"exit {done.code}: {done.err[-300:]}"]
    return wrong_with(place / "ws", case, json.loads(done.out))


def _machine_time(case: Case, local: str) -> str:
    """A time in the words of faketime, which speaks the machine's zone."""
    moment = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(case.zone))
    return f"{moment.astimezone(UTC) if case.configured else moment:%Y-%m-%d %H:%M:%S}"


def wrong_with(workspace: Path, case: Case, said: dict[str, list[list[str]]]) -> list[str]:
    days = [case.before[:10], case.after[:10]]
    wrong = []
    for day, text, (path, citation) in zip(
        days, ("- Written first.", "- Written second."), said["written"], strict=True
    ):
        if path != f"memory/{day}.md":
            wrong.append(f"{text} is acknowledged in {path} and not on {day}")
        lines = without_times((workspace / path).read_text(encoding="utf-8")).split("\n")
        number = int(citation.rpartition("#L")[2])
        if (
            not lines[number - 1].startswith(text)
            or sum(line.startswith(text) for line in lines) != 1
        ):
            wrong.append(f"{citation} is {lines[number - 1]!r}")
    logs = sorted(
        file.name
        for file in (workspace / "memory").iterdir()
        if file.name != Path(str(said["note"])).name
    )
    if logs != sorted({f"{day}.md" for day in days}):
        wrong.append(f"there are {logs}")
    if str(said["note"])[7:17] not in days or not (workspace / str(said["note"])).is_file():
        wrong.append(f"the note is {said['note']}")
    return wrong
