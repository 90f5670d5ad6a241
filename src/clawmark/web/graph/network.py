"""Connect notes by their links, wikilinks and shared rare names, and choose what is near a note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations, repeat, zip_longest
from typing import NamedTuple

from clawmark.web.graph.links import References, wiki_names

RARE = 6
"""A name that more notes than this have in common does not connect them."""
NEAR, FAR = 24, 36
"""How many notes a neighbourhood shows next to its centre, and behind those."""


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

    named: Mapping[str, tuple[str, ...]]
    """The notes that a wikilink of this name means."""

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
                    _link(ties, path, target)
    for name, paths in _rare_names(references):
        for one, other in combinations(paths, 2):
            _share(ties, one, other, name)
            _share(ties, other, one, name)
    titles = {path: found.title for path, found in references.items()}
    return Network(
        titles=titles,
        ties=ties,
        missing={path: tuple(found) for path, found in missing.items()},
        named={name: tuple(paths) for name, paths in named.items()},
    )


def neighbourhood(network: Network, centre: str, near: int = NEAR, far: int = FAR) -> Neighbourhood:
    """Return the notes around one, the strongest ties first."""
    direct = network.strongest(centre)
    shown = direct[:near]
    seen, behind = {centre, *shown}, list[tuple[str, str]]()
    # In turns, so that a note with many neighbours does not take the place of others.
    turns = zip_longest(*(zip(network.strongest(one), repeat(one)) for one in shown))
    for path, one in (pair for turn in turns for pair in turn if pair is not None):
        if len(behind) == far:
            break
        if path not in seen:
            seen.add(path)
            behind.append((path, one))
    return Neighbourhood(
        centre=centre, near=tuple(shown), far=tuple(behind), left_out=len(direct) - len(shown)
    )


def _rare_names(references: Mapping[str, References]) -> Iterable[tuple[str, list[str]]]:
    having = defaultdict[str, list[str]](list)
    for path, found in references.items():
        for name in found.names:
            having[name].append(path)
    return ((name, paths) for name, paths in having.items() if 2 <= len(paths) <= RARE)


def _link(ties: dict[str, dict[str, Tie]], path: str, target: str) -> None:
    ties[path][target] = ties[path].get(target, NO_TIE)._replace(links_to=True)
    ties[target][path] = ties[target].get(path, NO_TIE)._replace(linked_from=True)


def _share(ties: dict[str, dict[str, Tie]], one: str, other: str, name: str) -> None:
    tie = ties[one].get(other, NO_TIE)
    ties[one][other] = tie._replace(names=(*tie.names, name))
