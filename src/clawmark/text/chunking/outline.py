"""The outline of a Markdown text: which part stands under which headings, and what must not be
taken apart.

Takes a text, gives sections (offsets and the headings above them) and the spans of fenced code. One
regular expression visits every line start once, so an outline of hostile input costs no more than
one of ordinary notes. Cutting sections into chunks is left to `markdown`.

Known limits: a heading inside a quote or a list item, and a heading that is indented code, are not
told apart from prose; a fence that is never closed fences nothing, so that one forgotten line does
not hide the rest of a note."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

PATH_LENGTH = 200
"""No heading path is longer than this: it is context for a passage, not a passage."""

_MARKS = re.compile(
    r"\n(?=[ \t#=\-`~])"  # most lines are ordinary, and done with here
    r"(?: {0,3}(?:(#{1,6})(?:[ "
    r"\t]+([^\n]{0,400})|(?=\n|\Z))|(={2,}|-{2,})[ \t]*(?=\n|\Z))"  # headings
    r"|[ \t]{0,16}(`{3,}|~{3,})([^\n]*))"  # fences
)
_FRONT_MATTER_END = re.compile(r"\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_MATTER_LENGTH = 20_000
# A line that starts like this is not a paragraph, so a row of dashes under it is a rule and not an
# underline.
_NOT_A_TITLE = ("#", ">", "|", "- ", "* ", "+ ", "```", "~~~")


class Section(NamedTuple):
    """A stretch of the text, `start` to `end`, that begins at a line start and stands under `path`."""

    start: int
    end: int
    path: tuple[str, ...]


class Outline(NamedTuple):
    """The sections, which follow each other without a gap, and the fenced code blocks, in order."""

    sections: list[Section]
    fences: list[tuple[int, int]]


def outline(text: str) -> Outline:
    """Find the headings, fences and front matter of a text."""
    front = _front_matter(text)
    body = (
        "\n" + text
    )  # so that the first line is found like any other; offsets in it are one ahead
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
    """The headings as one line, outermost first."""
    return " > ".join(path)[:PATH_LENGTH]


def _front_matter(text: str) -> int:
    """The offset after the front matter; 0 when there is none."""
    if not text.startswith(("---\n", "--- \n")):
        return 0
    end = _FRONT_MATTER_END.search(text, 3, _FRONT_MATTER_LENGTH)
    return end.end() if end else 0


def _heading(mark: re.Match[str], body: str) -> tuple[int, int, str] | None:
    """Offset in the text, level and title of a heading, when the mark makes one."""
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
        return None  # a rule drawn straight under a paragraph is more common than a heading of several lines
    return before, 1 if underline[0] == "=" else 2, _title(line)


def _title(raw: str) -> str:
    title = raw.strip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1].isspace()):
        title = bare.rstrip()  # `## Title ##`, but not `## C#`
    return title[:PATH_LENGTH]


def _fences(marks: list[re.Match[str]], length: int) -> list[tuple[int, int]]:
    """The spans of closed fences, as offsets in the text, fence lines included."""
    longest = _longest_closers(marks)
    spans: list[tuple[int, int]] = []
    opener: re.Match[str] | None = None
    for number, mark in enumerate(marks):
        if opener is None:
            # The info string after backticks has no backtick: ```` ```code``` ```` is a word, not a
            # fence.
            is_inline = mark[4][0] == "`" and "`" in mark[5]
            if not is_inline and longest[number + 1].get(mark[4][0], 0) >= len(mark[4]):
                opener = mark
        elif mark[4].startswith(opener[4]) and not mark[5].strip():
            spans.append((opener.start(), min(mark.end(), length)))
            opener = None
    return spans


def _longest_closers(marks: list[re.Match[str]]) -> list[dict[str, int]]:
    """For each mark and one past the end: the longest closing fence of each kind from there on."""
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
