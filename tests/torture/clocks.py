"""I-19: no clock loses or misfiles a note.

`clawmark remember` and `clawmark search` run with a clock that is told what time it is: just before
midnight, at the start and the end of summer time, on days that do not exist, in other centuries,
going backwards, and with the time zone changed in between. Where the clock is quick, the day ends
while the command runs: the note belongs to one of the two days. What is acknowledged has to be
there, with these lines, in the log of a day that it was during the command's life, and to be found.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from frame import Outcome
from straced import ended, python

from clawmark.text.entry_times import without_times

QUICK = 20
"""How much faster than ours a quick clock goes: a command of 100 ms lasts two seconds."""
LIFE = timedelta(minutes=30)
"""How long a command lives at the most, by its own clock."""


class Moment(NamedTuple):
    """When and where a note is taken."""

    name: str
    zone: str
    local: str
    """The time on the user's wall, in that zone."""
    setting: bool = True
    """Whether `userTimezone` names the zone, on a machine that lives by UTC; else the machine's own
    zone does.
    """
    speed: int = 1

    def at(self) -> datetime:
        return datetime.fromisoformat(self.local).replace(tzinfo=ZoneInfo(self.zone))


ZONES = ("America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")
MOMENTS = (
    *(Moment(f"a second before midnight in {zone}", zone, "2026-02-24 23:59:59") for zone in ZONES),
    *(
        Moment(f"over midnight in {zone}", zone, "2026-02-24 23:59:59", speed=QUICK)
        for zone in ZONES
    ),
    *(
        Moment(
            name=f"over midnight on a machine in {zone}",
            zone=zone,
            local="2026-02-24 23:59:59",
            setting=False,
            speed=QUICK,
        )
        for zone in ZONES
    ),
    Moment(
        "summer time begins in New York", "America/New_York", "2026-03-08 01:59:59", speed=QUICK
    ),
    Moment(
        name="summer time ends in New York",
        zone="America/New_York",
        local="2026-11-01 01:59:59",
        setting=False,
        speed=QUICK,
    ),
    Moment(
        "a day that begins at one o'clock in Beirut",
        "Asia/Beirut",
        "2026-03-28 23:59:59",
        speed=QUICK,
    ),
    Moment(
        name="midnight comes twice in Havana",
        zone="America/Havana",
        local="2026-11-01 00:59:59",
        setting=False,
        speed=QUICK,
    ),
    Moment("the day that Samoa left out", "Pacific/Apia", "2011-12-29 23:59:59", speed=QUICK),
    Moment("a leap day ends", "Asia/Kolkata", "2028-02-29 23:59:59", speed=QUICK),
    Moment(
        name="32 bits end",
        zone="America/New_York",
        local="2038-01-18 22:14:07",
        setting=False,
        speed=QUICK,
    ),
    Moment("1970", "Asia/Kolkata", "1970-01-01 05:30:02"),
    Moment("the year 9999", "Asia/Kolkata", "9999-12-31 12:00:00"),
)


def run(work: Path, full: bool, seed: int) -> Outcome:
    if shutil.which("faketime") is None:
        return Outcome(0, 0, {}, skipped="faketime is not installed: apt install faketime")
    complaints: list[str] = []
    days: dict[str, str] = {}
    for number, moment in enumerate(MOMENTS if full else MOMENTS[::-3]):
        place = _place(work, str(number), moment.zone if moment.setting else "")
        day, wrong = _remember(place, moment, moment.name)
        days[moment.name] = day
        complaints.extend(f"{moment.name}: {what}" for what in wrong)
    for name, moments in STORIES.items():
        complaints.extend(f"{name}: {what}" for what in _tell(work, name, moments, days))
    failed = len(complaints)
    return Outcome(
        len(days) - failed, failed, {"cases": len(days), "days": days}, tuple(complaints)
    )


STORIES = {
    "the clock goes back": (
        Moment("late", "Asia/Kolkata", "2026-05-05 00:00:30"),
        Moment("early", "Asia/Kolkata", "2026-05-04 23:00:00"),
    ),
    "the time zone changes": (
        Moment("east", "Pacific/Kiritimati", "2026-05-05 00:00:30"),
        Moment("west", "Pacific/Honolulu", "2026-05-04 00:00:35"),
    ),
}
"""Two notes in one workspace, one after the other."""


def _tell(work: Path, name: str, moments: tuple[Moment, ...], days: dict[str, str]) -> list[str]:
    place = _place(work, name.replace(" ", "-"), "")
    wrong = []
    for moment in moments:
        _configure(place, moment.zone)
        day, more = _remember(place, moment, f"{name}, {moment.name}")
        wrong += more
        days[name] = f"{days.get(name, '')} {day}".strip()
    lost = [moment.name for moment in moments if not _is_found(place, f"{name}, {moment.name}", [])]
    return wrong + [f"{which} is not found" for which in lost]


def _remember(place: Path, moment: Moment, text: str) -> tuple[str, list[str]]:
    """Take a note at that moment; the day it was put down under, and what is wrong about it."""
    clock = _clock(moment)
    done = ended([*clock, *_command(place, "remember", text)], _environment(place, moment))
    if done.code != 0:
        return "", [f"exit {done.code}: {done.out} {done.err}"]
    written = json.loads(done.out)
    path, day = written["path"], written["path"].removeprefix("memory/").removesuffix(".md")
    lines = without_times((place / "ws" / path).read_text(encoding="utf-8")).split("\n")
    began = moment.at().astimezone(UTC)
    zone = ZoneInfo(moment.zone)
    allowed = {
        (began + LIFE * step / 100).astimezone(zone).date().isoformat() for step in range(101)
    }
    wrong = [] if day in allowed else [f"it was {sorted(allowed)}, and the note is in {path}"]
    if lines[0] != f"# {day}" or lines[written["startLine"] - 1 : written["endLine"]] != [
        f"- {text}"
    ]:
        wrong.append(f"{written['citation']} is {lines}")
    # Python's own clock ends in the year 2262; what was written later is looked for with the true
    # one.
    looking = clock if began.year < 2262 else []
    return day, wrong + ([] if _is_found(place, text, looking, moment) else ["it is not found"])


def _is_found(place: Path, text: str, clock: list[str], moment: Moment | None = None) -> bool:
    done = ended([*clock, *_command(place, "search", text)], _environment(place, moment))
    return done.code == 0 and any(text in hit["snippet"] for hit in json.loads(done.out)["results"])


def _clock(moment: Moment) -> list[str]:
    here = ZoneInfo("UTC" if moment.setting else moment.zone)
    return ["faketime", "-f", f"@{moment.at().astimezone(here):%Y-%m-%d %H:%M:%S} x{moment.speed}"]


def _environment(place: Path, moment: Moment | None) -> dict[str, str]:
    zone = moment.zone if moment is not None and not moment.setting else "UTC"
    # A deadline is measured by another clock, which no one sets.
    return {"HOME": str(place), "TZ": zone, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def _command(place: Path, verb: str, text: str) -> list[str]:
    folders = ("--workspace", str(place / "ws"), "--state-dir", str(place / "state"))
    return python("-m", "clawmark", verb, "--json", *folders, text)


def _place(work: Path, name: str, zone: str) -> Path:
    place = work / name
    (place / "ws" / "memory").mkdir(parents=True)
    (place / "state").mkdir()
    _configure(place, zone)
    return place


def _configure(place: Path, zone: str) -> None:
    defaults = {"memorySearch": {"provider": "none"}, **({"userTimezone": zone} if zone else {})}
    settings = {"agents": {"defaults": defaults}}
    (place / "state" / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
