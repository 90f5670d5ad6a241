"""Find the sections of a Markdown text with the headings above them, and its fenced code.

One regular expression visits every line start once, so hostile input costs no more than ordinary
notes. Known limits: headings inside quotes, list items and indented code are not distinguished from
prose; a fence that is never closed is ignored, so that it does not hide the rest of a note."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

PATH_LENGTH = 200
"""The most characters of a heading path."""

_MARKS = re.compile(
    r"\n(?=[ \t#=\-`~])"  # most lines already fail here
    r"(?: {0,3}(?:(#{1,6})(?:[ \t]+([^\n]{0,400})|(?=\n|\Z))|(={2,}|-{2,})[ \t]*(?=\n|\Z))"
    r"|[ \t]{0,16}(`{3,}|~{3,})([^\n]*))"  # fences
)
_FRONT_MATTER_END = re.compile(r"\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_MATTER_LENGTH = 20_000
# A line that starts like this is not a paragraph, so dashes under it are a rule, not a heading.
_NOT_A_TITLE = ("#", ">", "|", "- ", "* ", "+ ", "```", "~~~")


class Section(NamedTuple):
    """The text from `start`, at a line start, to `end`, under the headings `path`."""

    start: int
    end: int
    path: tuple[str, ...]


class Outline(NamedTuple):
    """The sections, without gaps, and the spans of fenced code, in order."""

    sections: list[Section]
    fences: list[tuple[int, int]]


def outline(text: str) -> Outline:
    """Find the headings, fences and front matter of a text."""
    front = _front_matter(text)
    body = "\n" + text  # so that the first line is found like any other; offsets are one ahead
    marks = list(_MARKS.finditer(body, front))
    fences = _fences([mark for mark in marks if mark[4]], len(text))
    starts = [start for start, _ in fences]
    sections: list[Section] = []
    stack: list[tuple[int, str]] = []
    begin = 0
    path: tuple[str, ...] = ()
    for mark in marks:
        at = mark.start()
        if starts and _is_inside(at, fences, starts):
            continue
        heading = _heading(mark, body)
        if heading is None:
            continue
        at, level, title = heading
        if at > begin:
            sections.append(Section(begin, at, path))
        while stack and stack[-1][0] >= level:
            stack.pop()
        stack.append((level, title))
        begin, path = at, tuple([name for _, name in stack if name])
    sections.append(Section(begin, len(text), path))
    if 0 < front < sections[0].end:
        sections[0:1] = [Section(0, front, ()), sections[0]._replace(start=front)]
    return Outline(sections, fences)


def join_path(path: tuple[str, ...]) -> str:
    """Join the headings into one line, outermost first."""
    return " > ".join(path)[:PATH_LENGTH]


def _front_matter(text: str) -> int:
    """Return the offset after the front matter, or 0."""
    if not text.startswith(("---\n", "--- \n")):
        return 0
    end = _FRONT_MATTER_END.search(text, 3, _FRONT_MATTER_LENGTH)
    return end.end() if end else 0


def _heading(mark: re.Match[str], body: str) -> tuple[int, int, str] | None:
    """Return offset, level and title if the mark is a heading."""
    hashes, title, underline, _, _ = mark.groups()
    if hashes:
        return mark.start(), len(hashes), _title(title or "")
    if not underline:
        return None
    before = body.rfind("\n", 0, mark.start())
    line = body[before + 1 : mark.start()]
    if before < 0 or not line.strip() or line.lstrip().startswith(_NOT_A_TITLE):
        return None
    if underline[0] == "-" and (
        len(line) > PATH_LENGTH or body[before - 1 : before] not in ("", "\n")
    ):
        return None  # a rule under a paragraph is more common than a heading of several lines
    return before, 1 if underline[0] == "=" else 2, _title(line)


def _title(raw: str) -> str:
    title = raw.strip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1].isspace()):
        title = bare.rstrip()  # `## Title ##`, but not `## C#`
    return title[:PATH_LENGTH]


def _fences(marks: list[re.Match[str]], length: int) -> list[tuple[int, int]]:
    """Return the spans of closed fences, including the fence lines."""
    longest = _longest_closers(marks)
    spans: list[tuple[int, int]] = []
    opener: re.Match[str] | None = None
    for number, mark in enumerate(marks):
        if opener is None:
            # An info string after backticks has no backtick: ```` ```code``` ```` is inline code.
            is_inline = mark[4][0] == "`" and "`" in mark[5]
            if not is_inline and longest[number + 1].get(mark[4][0], 0) >= len(mark[4]):
                opener = mark
        elif mark[4].startswith(opener[4]) and not mark[5].strip():
            spans.append((opener.start(), min(mark.end(), length)))
            opener = None
    return spans


def _longest_closers(marks: list[re.Match[str]]) -> list[dict[str, int]]:
    """Return, for each mark and for the end, the longest closing fence of each kind after it."""
    longest: list[dict[str, int]] = [{}]
    for mark in reversed(marks):
        after = longest[-1]
        kind, size = mark[4][0], len(mark[4])
        better = not mark[5].strip() and size > after.get(kind, 0)
        longest.append({**after, kind: size} if better else after)
    longest.reverse()
    return longest


def _is_inside(at: int, spans: list[tuple[int, int]], starts: list[int]) -> bool:
    number = bisect_right(starts, at) - 1
    return number >= 0 and at < spans[number][1]
