"""Connect notes by their links, wikilinks and shared rare names, and choose what is near a note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

from clawmark.web.graph.links import References, wiki_names

RARE = 6
"""A name that more notes than this have in common does not connect them."""
NEAR, FAR = 24, 36
"""How many notes a neighbourhood shows next to its centre, and behind those."""

Relation: TypeAlias = Literal["links to", "linked from", "shares"]


class Tie(NamedTuple):
    """How one note is connected with another."""

    links_to: bool = False
    linked_from: bool = False
    names: tuple[str, ...] = ()
    """The rare names that both have."""

    @property
    def strength(self) -> float:
        """Links count more than any number of shared names."""
        return 10.0 * (self.links_to + self.linked_from) + min(len(self.names), 9)


NO_TIE = Tie()


class Network(NamedTuple):
    """All notes with their ties."""

    titles: Mapping[str, str]
    ties: Mapping[str, Mapping[str, Tie]]
    """By path, then by the path of the other note."""
    missing: Mapping[str, tuple[str, ...]]
    """Links and wikilinks of a note that lead to no note."""

    def degree(self, path: str) -> int:
        return len(self.ties.get(path, {}))

    def strongest(self, path: str) -> list[str]:
        """Return the notes that a note is connected with, the strongest tie first."""
        ties = self.ties.get(path, {})
        return sorted(ties, key=lambda other: (-ties[other].strength, other))

    def most_connected(self, count: int) -> list[str]:
        """Return the notes with the most ties, MEMORY.md first among equals."""
        return sorted(
            self.titles, key=lambda path: (-self.degree(path), path != "MEMORY.md", path)
        )[:count]


class Neighbourhood(NamedTuple):
    """A bounded part of the network around one note."""

    centre: str
    near: tuple[str, ...]
    far: tuple[tuple[str, str], ...]
    """Notes behind the near ones, each with the near note it is shown at."""
    left_out: int
    """How many direct neighbours are not shown."""


def connect(references: Mapping[str, References]) -> Network:
    """Return the network of notes that refer to these things, by path."""
    named = defaultdict[str, list[str]](list)
    for path, found in references.items():
        for name in wiki_names(path, found.title):
            named[name].append(path)
    ties = defaultdict[str, dict[str, Tie]](dict)
    missing = defaultdict[str, list[str]](list)
    for path, found in references.items():
        linked = [(one, [one] if one in references else []) for one in found.links]
        linked += [(f"[[{one}]]", named.get(one, [])) for one in found.wikilinks]
        for shown, targets in linked:
            if not targets and (shown.startswith("[[") or shown.endswith(".md")):  # not a picture
                missing[path].append(shown)
            for target in targets:
                if target != path:
                    _tie(ties, path, target, links_to=True)
                    _tie(ties, target, path, linked_from=True)
    for name, paths in _rare_names(references):
        for one, other in combinations(paths, 2):
            _share(ties, one, other, name)
            _share(ties, other, one, name)
    titles = {path: found.title for path, found in references.items()}
    return Network(titles, ties, {path: tuple(found) for path, found in missing.items()})


def neighbourhood(network: Network, centre: str, near: int = NEAR, far: int = FAR) -> Neighbourhood:
    """Return the notes around one, the strongest ties first."""
    direct = network.strongest(centre)
    shown = direct[:near]
    seen, behind = {centre, *shown}, list[tuple[str, str]]()
    # One after the other, so that a note with many neighbours does not take the place of others.
    queues = [(one, iter(network.strongest(one))) for one in shown]
    while queues and len(behind) < far:
        rest = list[tuple[str, Iterable[str]]]()
        for one, queue in queues:
            other = next((path for path in queue if path not in seen), None)
            if other is None or len(behind) >= far:
                continue
            seen.add(other)
            behind.append((other, one))
            rest.append((one, queue))
        queues = rest  # type: ignore[assignment]
    return Neighbourhood(
        centre=centre, near=tuple(shown), far=tuple(behind), left_out=len(direct) - len(shown)
    )


def _rare_names(references: Mapping[str, References]) -> Iterable[tuple[str, list[str]]]:
    having = defaultdict[str, list[str]](list)
    for path, found in references.items():
        for name in found.names:
            having[name].append(path)
    return ((name, paths) for name, paths in having.items() if 2 <= len(paths) <= RARE)


def _tie(
    ties: dict[str, dict[str, Tie]], one: str, other: str, **change: bool
) -> None:
    ties[one][other] = ties[one].get(other, NO_TIE)._replace(**change)  # type: ignore[arg-type]


def _share(ties: dict[str, dict[str, Tie]], one: str, other: str, name: str) -> None:
    tie = ties[one].get(other, NO_TIE)
    ties[one][other] = tie._replace(names=(*tie.names, name))
