"""Graph: one note with those that its links, wikilinks and rare names lead to, for wandering."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.memory import Memory
from clawmark.model.errors import FileMissing, WorkspaceError
from clawmark.model.values import FileState, is_media
from clawmark.web.graph.layout import WIDTH, height_of, place
from clawmark.web.graph.links import References, find_references, wiki_name
from clawmark.web.graph.network import Neighbourhood, Network, connect, neighbourhood
from clawmark.web.markdown import file_address
from clawmark.web.render import page

MOST_CONNECTED = 15
LONGEST_LABELS = (40, 28, 18)
"""Characters of a label, for the centre, for notes near it and for others."""
GAP, CHARACTER = 12.0, 7.0
"""Pixels between a dot and its label, and the width of a character."""


class Dot(NamedTuple):
    """A note in the drawing."""

    path: str
    label: str
    address: str
    x: float
    y: float
    radius: float
    ring: int
    """0 for the centre, 1 for its neighbours, 2 for those behind them."""
    is_left: bool


class Line(NamedTuple):
    """A tie in the drawing."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str
    """`link` or `name`."""


class Neighbour(NamedTuple):
    """A note in the list of neighbours."""

    path: str
    title: str
    address: str
    file: str
    """The address of the file itself."""
    relation: str


class Start(NamedTuple):
    """A note to start from."""

    path: str
    title: str
    address: str
    ties: int


class GraphPage(NamedTuple):
    """The model of the graph page."""

    notes: int
    width: int
    height: int
    centre: str
    title: str
    file: str
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    neighbours: tuple[Neighbour, ...]
    left_out: int
    missing: tuple[str, ...]
    starts: tuple[Start, ...]


class NoteGraph:
    """The network of the notes of one memory; only notes that changed are read again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[FileState, References]] = {}
        self._network: Network | None = None

    def network(self, memory: Memory) -> Network:
        """Return the network as the files are now."""
        with self._lock:
            before = self._known
            states = [one for one in memory.workspace.scan().files if _is_note(one)]
            self._known = {
                state.path: known
                if (known := before.get(state.path)) is not None and known[0] == state
                else (state, _references(memory, state))
                for state in states
            }
            if self._network is None or self._known != before:
                self._network = connect({path: one[1] for path, one in self._known.items()})
            return self._network


def graph_page(network: Network, centre: str = "") -> GraphPage:
    """Return the neighbourhood of a note, or of the note with the most ties.

    Raises FileMissing if there is no such note."""
    best = network.most_connected(MOST_CONNECTED)
    if centre and centre not in network.titles:
        raise FileMissing(
            f"{centre} is not a note of this memory.", hint="The graph lists notes to start from."
        )
    centre = centre or (best[0] if best else "")
    shown = neighbourhood(network, centre)
    dots = tuple(_dots(network, shown)) if centre else ()
    return GraphPage(
        notes=len(network.titles),
        width=WIDTH,
        height=height_of(shown),
        centre=centre,
        title=network.titles.get(centre, ""),
        file=file_address(centre) if centre else "",
        dots=dots,
        lines=tuple(_lines(network, shown, dots)),
        neighbours=tuple(_neighbour(network, centre, one) for one in shown.near),
        left_out=shown.left_out,
        missing=network.missing.get(centre, ()),
        starts=tuple(
            Start(path=one, title=network.titles[one], address=address_of(one), ties=ties)
            for one in best
            if (ties := network.degree(one))
        ),
    )


def address_of(path: str) -> str:
    """Return the address of the neighbourhood of a note."""
    return f"/graph?{urlencode({'at': path.encode('utf-8', 'surrogateescape')})}"


def _dots(network: Network, shown: Neighbourhood) -> list[Dot]:
    near = set(shown.near)
    dots = list[Dot]()
    for path, point in place(shown).items():
        ring = 0 if path == shown.centre else 1 if path in near else 2
        dots.append(
            Dot(
                path=path,
                label=_label(path, network.titles[path], LONGEST_LABELS[ring]),
                address=address_of(path),
                x=point.x,
                y=point.y,
                radius=round(min(9.0, 3.5 + 0.35 * network.degree(path)), 1),
                ring=ring,
                is_left=point.is_left,
            )
        )
    return dots


def _lines(network: Network, shown: Neighbourhood, dots: Sequence[Dot]) -> list[Line]:
    by_path = {dot.path: dot for dot in dots}
    pairs = [(shown.centre, one) for one in shown.near] + [(near, far) for far, near in shown.far]
    return [
        Line(
            x1=by_path[one].x if one == shown.centre else _end_of_label(by_path[one]),
            y1=by_path[one].y,
            x2=by_path[other].x,
            y2=by_path[other].y,
            kind="link" if _is_linked(network, one, other) else "name",
        )
        for one, other in pairs
    ]


def _end_of_label(dot: Dot) -> float:
    length = 2 * GAP + CHARACTER * len(dot.label)
    return round(dot.x - length if dot.is_left else dot.x + length, 1)


def _is_linked(network: Network, one: str, other: str) -> bool:
    tie = network.ties[one][other]
    return tie.links_to or tie.linked_from


def _neighbour(network: Network, centre: str, path: str) -> Neighbour:
    tie = network.ties[centre][path]
    linked = (("linked from here", tie.links_to), ("links here", tie.linked_from))
    names = ", ".join(tie.names[:5]) + (" …" if len(tie.names) > 5 else "")
    relations = [text for text, applies in linked if applies]
    relations += [f"shares {names}"] if names else []
    return Neighbour(
        path=path,
        title=network.titles[path],
        address=address_of(path),
        file=file_address(path),
        relation="; ".join(relations),
    )


def _label(path: str, title: str, longest: int) -> str:
    label = title or path.rpartition("/")[2].removesuffix(".md")
    return label if len(label) <= longest else label[: longest - 1].rstrip() + "…"


def _is_note(state: FileState) -> bool:
    return state.source != "sessions" and not is_media(state.path)


def _references(memory: Memory, state: FileState) -> References:
    try:
        text = memory.workspace.read_document(state).text
    except (WorkspaceError, OSError):  # it is gone, or not text: a note without ties
        text = ""
    return find_references(state.path, text)


def address_of_name(network: Network, name: str) -> str:
    """Return the address of the note that a wikilink names; without one, of a search for it."""
    found = network.named.get(wiki_name(name), ())
    return file_address(found[0]) if found else f"/search?{urlencode({'q': name})}"


def _network(request: Request) -> Network:
    state = request.app.state
    if not hasattr(state, "graph"):
        state.graph = NoteGraph()
    network: Network = state.graph.network(state.site.memory)
    return network


def _graph(request: Request) -> Response:
    at = request.query_params.get("at", "")
    return page(request, "graph.html", graph_page(_network(request), at))


def _note(request: Request) -> Response:
    return RedirectResponse(address_of_name(_network(request), request.path_params["name"]), 303)


routes = [Route("/graph", _graph), Route("/note/{name:path}", _note)]
