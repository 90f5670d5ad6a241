"""Format text for a terminal: wrapping by display width, aligned columns, numbers and durations."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from clawmark.cli.output import columns, fold, is_terminal, paint, place, plain


def cells(text: str) -> int:
    """Return the display width of a text: wide letters count two, combining ones zero."""
    return len(text) if text.isascii() else sum(map(_letter_cells, text))


def _letter_cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def wrap(text: str, width: int) -> list[str]:
    """Return lines of at most `width` columns; only words longer than a line are broken."""
    lines, line, used = list[str](), "", 0
    for word in text.split():
        size = cells(word)
        if used and used + 1 + size <= width:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            lines.append(line)
        *full, line = _broken(word, width) if size > width else [word]
        lines += full
        used = cells(line)
    return [*lines, line] if line else lines


def snippet_lines(snippet: str, width: int) -> list[str]:
    """Return a snippet as wrapped lines, without blank ones."""
    return [
        piece for line in _flowing(plain(snippet).split("\n"), width) for piece in wrap(line, width)
    ]


def emphasise(line: str, query: str) -> str:
    """Print the longer words of the query in bold, on a terminal with colours."""
    if paint("x", "bold") == "x":
        return line
    wanted = sorted(
        {word for word in re.findall(r"\w+", query) if len(word) > 3}, key=len, reverse=True
    )
    if not wanted:
        return line
    return re.sub(
        rf"(?i)\b(?:{'|'.join(wanted[:64])})\w{{0,3}}\b",
        lambda found: paint(found[0], "bold"),
        line,
    )


def table(
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    most: Mapping[int, int] | None = None,
) -> list[str]:
    """Return aligned columns; those in `right` are right-aligned, the last one is not padded.

    `most` limits the width of columns: a wider cell shifts only its own row."""
    widths = [max(cells(row[number]) for row in rows) for number in range(len(rows[0]))]
    for number, limit in (most or {}).items():
        widths[number] = min(widths[number], limit)
    lines = list[str]()
    for row in rows:
        parts = list[str]()
        for number, cell in enumerate(row):
            space = " " * (widths[number] - cells(cell))
            parts.append(space + cell if number in right else cell + space)
        lines.append("  ".join(parts).rstrip())
    return lines


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return `Name  value` lines; further lines of a value are indented. Names may be coloured."""
    rows = [(name, value) for name, value in pairs if value]
    most = columns() if is_terminal(sys.stdout) else 0
    width = max((_shown_cells(name) for name, _ in rows), default=0) + 2
    lines = list[str]()
    for name, value in rows:
        split = value.split("\n")
        if most:
            split = [piece for line in split for piece in fold(line, most - width)]
        first, *others = split
        label = name if "\x1b" in name else paint(name, "dim")
        lines.append(f"{label}{' ' * (width - _shown_cells(name))}{first}")
        lines += [" " * width + other for other in others]
    return lines


def short_path(path: str) -> str:
    """Return a printable path with the home folder as `~`."""
    home = os.path.expanduser("~")
    inside = path == home or path.startswith(home.rstrip("/") + "/")
    return plain("~" + path[len(home.rstrip("/")) :] if inside and home not in ("", "/") else path)


def short_paths(sentence: str) -> str:
    """Return a sentence with the home folder of its paths as `~`."""
    home = os.path.expanduser("~").rstrip("/")
    return sentence.replace(f"{home}/", "~/") if home else sentence


def fitted(text: str, width: int) -> str:
    """Cut a line with an ellipsis if it is too wide; colour codes have no width."""
    pieces = re.split(r"(\x1b\[[0-9;]*m)", text)  # every second piece is a colour code
    if sum(map(cells, pieces[::2])) <= width:
        return text
    shown, left = "", width - 1
    for number, piece in enumerate(pieces):
        if number % 2:
            shown += piece
            continue
        for letter in piece:
            left -= cells(letter)
            if left < 0:
                return f"{shown}…" + ("\x1b[0m" if len(pieces) > 1 else "")
            shown += letter
    return shown


def middle(text: str, most: int = 70) -> str:
    """Shorten a long name by its middle."""
    text = place(text)
    return text if len(text) <= most else f"{text[: most // 2]}…{text[1 - most + most // 2 :]}"


def plural(number: int, noun: str) -> str:
    """Format as `1 file` or `1,234 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    """Format as `0 B`, `12.3 KB` or `4.5 MB`."""
    value, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Format as `41 ms`, `2.3 s` or `3 min 20 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _shown_cells(text: str) -> int:
    """Return the display width of a text without its colour codes."""
    return cells(re.sub(r"\x1b\[[0-9;]*m", "", text))


def _flowing(lines: Sequence[str], width: int) -> list[str]:
    """Join lines that continue a wrapped line, so that no short lines remain between."""
    joined, is_code = list[str](), False
    for line in lines:
        is_code ^= line.lstrip().startswith(("```", "~~~"))
        if (
            joined
            and not is_code
            and _continues(line)
            and joined[-1][:1] not in "#|"
            and cells(joined[-1]) > width
        ):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def _continues(line: str) -> bool:
    """Whether a line continues the paragraph or list item before it."""
    first = line.split(maxsplit=1)[:1]
    if not first or not (first[0][0].isalnum() or first[0][0] in "\"'(["):
        return False
    return first[0].rstrip(":") not in ("User", "Assistant") and not (
        first[0][-1] in ".)" and first[0][:-1].isdigit()
    )


def _broken(word: str, width: int) -> list[str]:
    pieces, piece, used = list[str](), "", 0
    for letter in word:
        size = cells(letter)
        if piece and used + size > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + letter, used + size
    return [*pieces, piece]
