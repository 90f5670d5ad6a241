"""The path and the format of the daily log."""

from __future__ import annotations

from clawmark.model.errors import WorkspaceError


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
    """Return a list item with the time after its dash, unless it has this time already."""
    bullet, text = item[:2], item[2:].lstrip()
    return f"{bullet}{time} {text}" if time and not text.startswith(f"{time} ") else item
