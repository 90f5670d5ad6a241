"""Compare two texts line by line; the time grows with their length, not with its square."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MOST_COMPARED = 1000
"""`difflib` compares texts up to this many lines. Longer ones are first cut at lines that occur
once in each; a longer part without such a line counts as replaced."""


class LineChange(NamedTuple):
    """A range of old lines and the range of new ones in its place, counted from 0."""

    kind: str
    """`equal`, `replace`, `delete` or `insert`."""
    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[str | bytes], new: Sequence[str | bytes]) -> list[LineChange]:
    """Return how one text becomes the other; the ranges follow each other without gaps."""
    changes = list[LineChange]()
    old_at = new_at = 0
    for old_start, new_start, size in [*_same(old, new, 0, 0), (len(old), len(new), 0)]:
        if old_at < old_start or new_at < new_start:
            kinds = {(True, True): "replace", (True, False): "delete", (False, True): "insert"}
            kind = kinds[old_at < old_start, new_at < new_start]
            changes.append(
                LineChange(
                    kind=kind,
                    old_start=old_at,
                    old_end=old_start,
                    new_start=new_at,
                    new_end=new_start,
                )
            )
        old_at, new_at = old_start + size, new_start + size
        if size:
            changes.append(
                LineChange(
                    kind="equal",
                    old_start=old_start,
                    old_end=old_at,
                    new_start=new_start,
                    new_end=new_at,
                )
            )
    return _joined(changes)


def grouped_changes(
    old: Sequence[str], new: Sequence[str], context: int
) -> Iterator[list[LineChange]]:
    """Yield the changes that are near each other, with some equal lines around them."""
    group = list[LineChange]()
    for one in line_changes(old, new):
        if one.kind != "equal":
            group.append(one)
            continue
        size = one.old_end - one.old_start
        has_change = any(other.kind != "equal" for other in group)
        if has_change and size > 2 * context:
            yield [*group, _part(one, 0, context)]
            group = []
            has_change = False
        group.append(one if has_change else _part(one, max(0, size - context), size))
    if any(one.kind != "equal" for one in group):
        last = group[-1]
        yield [*group[:-1], _part(last, 0, context)] if last.kind == "equal" else group


def _part(change: LineChange, start: int, end: int) -> LineChange:
    """Return some of the lines of an equal range."""
    end = min(end, change.old_end - change.old_start)
    return LineChange(
        kind=change.kind,
        old_start=change.old_start + start,
        old_end=change.old_start + end,
        new_start=change.new_start + start,
        new_end=change.new_start + end,
    )


def unified_lines(
    old: Sequence[str], new: Sequence[str], *, old_name: str, new_name: str
) -> Iterator[str]:
    """Yield the lines of a unified diff, as `difflib.unified_diff` does."""
    for number, group in enumerate(grouped_changes(old, new, 3)):
        if not number:
            yield f"--- {old_name}\n"
            yield f"+++ {new_name}\n"
        old_range = _range(group[0].old_start, group[-1].old_end)
        yield f"@@ -{old_range} +{_range(group[0].new_start, group[-1].new_end)} @@\n"
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[old_start:old_end])
                continue
            yield from (f"-{line}" for line in old[old_start:old_end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _range(start: int, end: int) -> str:
    """Return the lines of a hunk as a unified diff writes them."""
    size = end - start
    if size == 1:
        return str(start + 1)
    return f"{start + 1 if size else start},{size}"


def _same(
    old: Sequence[str | bytes], new: Sequence[str | bytes], old_first: int, new_first: int
) -> Iterator[tuple[int, int, int]]:
    """Yield where lines are the same: their places in both texts, and how many there are."""
    if len(old) <= MOST_COMPARED and len(new) <= MOST_COMPARED:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for block in matcher.get_matching_blocks():
            if block.size:
                yield old_first + block.a, new_first + block.b, block.size
        return
    limit = min(len(old), len(new))
    head = next((at for at in range(limit) if old[at] != new[at]), limit)
    if head:
        yield old_first, new_first, head
    tail = next((at for at in range(limit - head) if old[-1 - at] != new[-1 - at]), limit - head)
    middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    old_at = new_at = 0
    for old_place, new_place in [*_anchors(middle, new_middle), (len(middle), len(new_middle))]:
        part, new_part = middle[old_at:old_place], new_middle[new_at:new_place]
        if len(part) < len(middle) or max(len(part), len(new_part)) <= MOST_COMPARED:
            yield from _same(part, new_part, old_first + head + old_at, new_first + head + new_at)
        if old_place < len(middle):
            yield old_first + head + old_place, new_first + head + new_place, 1
        old_at, new_at = old_place + 1, new_place + 1
    if tail:
        yield old_first + len(old) - tail, new_first + len(new) - tail, tail


def _anchors(old: Sequence[str | bytes], new: Sequence[str | bytes]) -> list[tuple[int, int]]:
    """Return the places of lines that occur once in each text, as many as are in the same order."""
    old_count, new_places = Counter(old), {line: at for at, line in enumerate(new)}
    new_count = Counter(new)
    pairs = [
        (at, new_places[line])
        for at, line in enumerate(old)
        if old_count[line] == 1 and new_count[line] == 1
    ]
    ends, last, before = list[int](), list[int](), list[int]()  # the longest increasing sequence
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    chosen = list[tuple[int, int]]()
    number = last[-1] if last else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _joined(changes: list[LineChange]) -> list[LineChange]:
    """Join equal ranges that follow each other."""
    joined = list[LineChange]()
    for one in changes:
        if joined and joined[-1].kind == one.kind == "equal":
            joined[-1] = joined[-1]._replace(old_end=one.old_end, new_end=one.new_end)
        else:
            joined.append(one)
    return joined
