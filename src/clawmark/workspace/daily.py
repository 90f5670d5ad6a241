"""The path and the format of the daily log."""

from __future__ import annotations

from clawmark.model.errors import WorkspaceError

RECENT_MINUTES = 5
"""A time at the start of a text that is no older than this is the time of the entry."""


def daily_path(day: str) -> str:
    """Return `memory/2026-02-24.md` for `2026-02-24`."""
    year, _, rest = day.partition("-")
    month, _, date = rest.partition("-")
    digits = year + month + date
    if (len(year), len(month), len(date)) != (4, 2, 2) or not (
        digits.isascii() and digits.isdigit()
    ):
        raise WorkspaceError(f"{day!r} is not a day.", hint="Write it as YYYY-MM-DD.")
    return f"memory/{day}.md"


def daily_header(day: str) -> str:
    """Return the heading of a new daily log."""
    return f"# {day}\n\n"


def format_entry(text: str, time: str = "") -> str:
    """Format a text as one list item that starts with the time, its further lines indented."""
    lines = text.replace("\r\n", "\n").strip().split("\n")
    first = lines[0]
    if first[:2].rstrip() in ("-", "*"):
        first = first[2:].lstrip()
    if not first:
        raise WorkspaceError(
            "There is nothing to write: the text is empty.", hint="Say what should be remembered."
        )
    rest = (f"  {line.rstrip()}" if line.strip() else "" for line in lines[1:])
    return "\n".join([add_time(f"- {first.rstrip()}", time), *rest]) + "\n"


def add_time(item: str, time: str) -> str:
    """Return a list item with the time after its dash, unless it starts with a recent one.

    The time of a task comes after its box: `- [ ] 14:05 call Anna`."""
    bullet, text = item[:2], item[2:].lstrip()
    box = text[:4] if text[:4].lower() in ("[ ] ", "[x] ") else ""
    bullet, text = bullet + box, text[len(box) :].lstrip()
    is_timed = not time or any(text.startswith(f"{one} ") for one in recent_times(time))
    return item if is_timed else f"{bullet}{time} {text}"


def recent_times(time: str) -> list[str]:
    """Return the given time and the minutes before it on the same day.

    Models imitate the entries they are shown and write the time themselves, a little earlier."""
    now = int(time[:2]) * 60 + int(time[3:])
    minutes = range(now, max(-1, now - RECENT_MINUTES), -1)
    return [f"{minute // 60:02}:{minute % 60:02}" for minute in minutes]


def without_recent_time(text: str, time: str) -> str:
    """Return the text of an entry without the recent time that it starts with, if it does."""
    plain = text[2:].lstrip() if text[:2] in ("- ", "* ") else text
    recent = next((one for one in recent_times(time) if plain.startswith(f"{one} ")), "")
    return plain.removeprefix(recent).lstrip() if recent else text
