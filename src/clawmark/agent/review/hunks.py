"""Hunks: proposed changes of single passages of a memory file. Pure functions make and apply them.

A hunk is applied where its old lines and the lines around it stand, not at a line number, so that
it survives other changes of the file. If its place cannot be found, it no longer applies."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from clawmark.text.entry_content import normalize_entry
from clawmark.text.line_diff import line_changes
from clawmark.text.untrusted.origin_labels import without_comments

HunkState: TypeAlias = Literal["pending", "accepted", "rejected"]
CONTEXT_LINES = 2
"""Lines on each side of a hunk that are stored to find its place; blank ones are not counted."""


class Hunk(NamedTuple):
    """One passage of a memory file that is to be added, replaced or removed."""

    path: str
    old: str
    """Whole lines that are replaced, without the last line end; empty if lines are added."""
    new: str
    """Whole lines that replace them; empty if lines are removed."""
    reason: str
    citations: tuple[str, ...] = ()
    """Where the evidence is, such as `memory/2026-11-02.md#L4`."""
    before: str = ""
    """Lines in front of it; without lines on either side, a hunk is added to the end of the file.
    """
    after: str = ""
    start_line: int = 0
    """Where it stood when it was proposed; only decides between places that fit equally well."""
    state: HunkState = "pending"
    note: str = ""
    """Why it was rejected, in the user's words."""


class Because(NamedTuple):
    """Why a line is changed, and where the evidence is."""

    reason: str
    citations: tuple[str, ...] = ()


class Applied(NamedTuple):
    """The text of a file with hunks applied."""

    text: str


class NoLongerApplies(NamedTuple):
    """A hunk whose place cannot be found."""

    number: int
    """Which hunk, counted from 1."""
    path: str
    reason: str


def hunk_hash(hunk: Hunk) -> str:
    """Return a hash of what a hunk changes; bullets, labels, case and its place do not matter."""
    parts = (hunk.path, _normalized(hunk.old), _normalized(hunk.new))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def appended_hunk(
    path: str, text: str, reason: str, citations: tuple[str, ...] = (), *, header: str = ""
) -> Hunk:
    """Return a hunk that adds lines to the end of a file; `header` starts a new file."""
    new = f"{header}{text}".rstrip("\n")
    return Hunk(path=path, old="", new=new, reason=reason, citations=citations)


def make_hunks(
    path: str, base: str, new: str, explain: Callable[[str], Because | None]
) -> tuple[Hunk, ...]:
    """Return the changes from one text to another.

    `explain` returns why a line was added or removed, or None if it does not know. Added lines with
    different explanations become different hunks, so that each can be decided on its own."""
    old_lines, new_lines = split_lines(base), split_lines(new)
    hunks = list[Hunk]()
    for kind, start, end, new_start, new_end in line_changes(old_lines, new_lines):
        if kind == "equal":
            continue
        removed, added = old_lines[start:end], new_lines[new_start:new_end]
        groups = _groups(added, explain) if not removed else [added]
        for group in groups:
            because = _joined_reasons([*removed, *group], explain)
            if not any(line.strip() for line in (*removed, *group)):
                continue  # blank lines are not worth a decision
            hunks.append(
                Hunk(
                    path=path,
                    old="\n".join(removed),
                    new="\n".join(group),
                    reason=because.reason,
                    citations=because.citations,
                    before="\n".join(_context(old_lines, range(start - 1, -1, -1))[::-1]),
                    after="\n".join(_context(old_lines, range(end, len(old_lines)))),
                    start_line=start + 1,
                )
            )
    return tuple(hunks)


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> Applied | NoLongerApplies:
    """Apply hunks to the text of their file; all of them or none."""
    lines = split_lines(text)
    line_end = "\r" if lines and lines[0].endswith("\r") else ""
    places = list[_Place]()
    for number, hunk in enumerate(hunks, 1):
        at = _find(lines, hunk)
        if isinstance(at, str):
            return NoLongerApplies(number, hunk.path, at)
        places.append(_Place(at, at + len(_passage(hunk.old)), number))
    problem = _overlap(places) or _duplicate(lines, hunks, places)
    if problem is not None:
        return NoLongerApplies(problem[0], hunks[problem[0] - 1].path, problem[1])
    for start, end, number in sorted(places, reverse=True):
        lines[start:end] = [f"{line}{line_end}" for line in _passage(hunks[number - 1].new)]
    return Applied("\n".join([*lines, ""]) if lines else "")


def is_applied(text: str, hunks: Sequence[Hunk]) -> bool:
    """Whether a text shows that hunks were applied: what they add is there, what they remove is
    not.
    """
    lines = split_lines(text)
    return all(
        (not hunk.new or bool(_places(lines, _passage(hunk.new))))
        and (not hunk.old or hunk.old in hunk.new or not _places(lines, _passage(hunk.old)))
        for hunk in hunks
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a file; the line end after the last one does not start another."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _context(lines: list[str], places: Iterable[int]) -> list[str]:
    """Return the first lines at these places, as many as are stored; none if all are blank."""
    found, filled = list[str](), 0
    for at in places:
        found.append(lines[at])
        filled += bool(lines[at].strip())
        if filled == CONTEXT_LINES:
            break
    return found if filled else []


def hunk_diff(hunk: Hunk) -> list[str]:
    """Return a hunk as lines of a diff, with a line of context on each side."""
    where = f"line {hunk.start_line}" if hunk.start_line else "end of file"
    above, below = _passage(hunk.before)[-1:], _passage(hunk.after)[:1]
    return [
        f"@@ {hunk.path}, {where} @@",
        *(f" {line}" for line in above),
        *(f"-{line}" for line in _passage(hunk.old)),
        *(f"+{line}" for line in _passage(hunk.new)),
        *(f" {line}" for line in below),
    ]


# --- Finding the place ---


class _Place(NamedTuple):
    """The lines of a file that a hunk replaces; none if start and end are the same."""

    start: int
    end: int
    number: int


def _find(lines: list[str], hunk: Hunk) -> int | str:
    """Return the index of the line where a hunk belongs, or why there is none."""
    old = _passage(hunk.old)
    if not old and not hunk.before and not hunk.after:
        return len(lines)
    places = _places(lines, old) if old else list(range(len(lines) + 1))
    if not places:
        return "the lines it changes are no longer in the file"
    scores = {at: _score(lines, hunk, at, len(old)) for at in places}
    best = max(scores.values())
    if best == 0 and not old:
        return "the lines around it are no longer in the file"
    if best == 0 and len(places) > 1:
        return f"the lines it changes are in the file {len(places)} times, all in other places"
    expected = hunk.start_line - 1
    return min((at for at in places if scores[at] == best), key=lambda at: abs(at - expected))


def _overlap(places: Sequence[_Place]) -> tuple[int, str] | None:
    """Return a hunk that changes lines which another one changes too, and why it is refused."""
    ordered = sorted(places)
    for one, other in pairwise(ordered):
        if other.start < one.end:
            return other.number, f"it changes the same lines as hunk {one.number}"
    return None


def _duplicate(
    lines: list[str], hunks: Sequence[Hunk], places: Sequence[_Place]
) -> tuple[int, str] | None:
    """Return a hunk whose added text stays in the file anyway, and why it is refused."""
    removed = {at for place in places for at in range(place.start, place.end)}
    staying = [line for at, line in enumerate(lines) if at not in removed]
    for number, hunk in enumerate(hunks, 1):
        if not hunk.old and _places(staying, _passage(hunk.new.strip("\n"))):
            return number, "its text is in the file already"
    return None


def _score(lines: list[str], hunk: Hunk, at: int, length: int) -> int:
    """Count the lines around a place that are those of the hunk; 0 without one that says something.

    The start and the end of the file count as lines."""
    before, after = _passage(hunk.before)[::-1], _passage(hunk.after)
    above, below = lines[:at][::-1], lines[at + length :]
    matching = [*_matching(before, above), *_matching(after, below)]
    edges = int(not before and at == 0) + int(not after and at + length == len(lines))
    has_content = any(line.strip() for line in matching)
    return len(matching) + edges if has_content else 0


def _matching(wanted: list[str], found: list[str]) -> list[str]:
    """Return the lines that two passages have in common from their start on."""
    count = 0
    for one, other in zip(wanted, found, strict=False):
        if one.rstrip() != other.rstrip():
            break
        count += 1
    return wanted[:count]


def _places(lines: list[str], passage: list[str]) -> list[int]:
    """Return the indexes at which some lines stand; labels and trailing blanks are ignored."""
    wanted = [_bare(line) for line in passage]
    bare = [_bare(line) for line in lines]
    return [
        at
        for at, line in enumerate(bare)
        if wanted and line == wanted[0] and bare[at : at + len(wanted)] == wanted
    ]


def _bare(line: str) -> str:
    return without_comments(line).rstrip()


def _passage(text: str) -> list[str]:
    """Return the lines of a passage; an empty one has none."""
    return text.split("\n") if text else []


def _normalized(text: str) -> str:
    lines = (normalize_entry(without_comments(line)) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


# --- Reasons ---


def _groups(lines: list[str], explain: Callable[[str], Because | None]) -> list[list[str]]:
    """Split added lines where their explanation changes; lines without one, such as blank lines and
    headings, belong to the lines after them."""
    groups = list[list[str]]()
    waiting = list[str]()
    last: Because | None = None
    for line in lines:
        because = explain(line) if line.strip() else None
        if because is None:
            waiting.append(line)
            continue
        if not groups or because != last:
            groups.append([])
        groups[-1] += [*waiting, line]
        waiting, last = [], because
    if waiting and groups:
        groups[-1] += waiting
    return groups or [lines]


def _joined_reasons(lines: list[str], explain: Callable[[str], Because | None]) -> Because:
    found = [because for line in lines if line.strip() and (because := explain(line)) is not None]
    reasons = dict.fromkeys(because.reason for because in found if because.reason)
    citations = dict.fromkeys(one for because in found for one in because.citations)
    return Because("; ".join(reasons), tuple(citations))
