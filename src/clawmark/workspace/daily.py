"""The daily log: where a day's notes go and what an entry looks like.

In: a day and a text. Out: a path and Markdown. Writing is left to `write.py`, knowing the day to
the caller's clock."""

from __future__ import annotations

from clawmark.model.errors import WorkspaceError


def daily_path(day: str) -> str:
    """`memory/2026-02-24.md` for `2026-02-24`."""
    year, _, rest = day.partition("-")
    month, _, date = rest.partition("-")
    digits = year + month + date
    if (len(year), len(month), len(date)) != (4, 2, 2) or not (
        digits.isascii() and digits.isdigit()
    ):
        raise WorkspaceError(f"{day!r} is not a day.", hint="Write it as YYYY-MM-DD.")
    return f"memory/{day}.md"


def daily_header(day: str) -> str:
    """What a new daily log starts with."""
    return f"# {day}\n\n"


def format_entry(text: str) -> str:
    """A text as one list item: the first line after a dash, the others indented below it."""
    lines = text.replace("\r\n", "\n").strip().split("\n")
    first = lines[0]
    if first[:2].rstrip() in ("-", "*"):
        first = first[2:].lstrip()
    if not first:
        raise WorkspaceError(
            "There is nothing to write: the text is empty.", hint="Say what should be remembered."
        )
    rest = (f"  {line.rstrip()}" if line.strip() else "" for line in lines[1:])
    return "\n".join([f"- {first.rstrip()}", *rest]) + "\n"
