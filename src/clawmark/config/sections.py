"""Find the sections of a configuration file that apply to an agent, weakest first.

These are OpenClaw's sections, old and new, and the entries of agents. In sections that belong to
the host only the keys about memory are read. `check` checks the values. `FilePlaces` has what
`paths` needs of a file."""

from collections.abc import Iterator
from typing import NamedTuple

from clawmark.config.check import Source, Written, check, refuse, show
from clawmark.config.files import read_config
from clawmark.config.paths import default_agent, is_agent_id
from clawmark.config.search_keys import SEARCH_KEYS, find_key, is_group
from clawmark.config.unsupported import UNSUPPORTED_BY_NAME, UNSUPPORTED_GROUPS

_OTHERS = """
$schema acp agent approvals audio auth bindings bridge broadcast browser canvasHost channels cli
commands cron diagnostics discord discovery env gateway hooks identity imessage logging mcp media
memoryPolicy messages meta models nodeHost plugins routing secrets session signal skills slack talk
telegram tools ui update web whatsapp wizard
"""
OTHER_SECTIONS = frozenset(_OTHERS.split())
"""Top-level names of an OpenClaw file that are not about memory."""
OUR_SECTIONS = ("agents", "memory", "memorySearch", "team", "serve")
SHARED_SECTIONS = ("hooks", "session", "plugins", "tools", "memoryPolicy")
"""Top-level sections of the host in which some keys are about memory."""
_WHOLE_GROUPS = (
    "agents.defaults.startupContext",
    "agents.defaults.compaction.memoryFlush",
    "hooks.internal.entries.session-memory",
    "tools.bySession",
)
"""Groups in the host's sections that are only about memory: an unknown key in them is a mistake."""
_AGENTS_OWN = (
    "model",
    "sandbox",
    "heartbeat",
    "bootstrapMaxChars",
    "bootstrapTotalMaxChars",
    "contextLimits",
)
"""Keys of `agents.defaults` that the entry of an agent may have too."""
_INPUT_TYPES = ("inputType", "queryInputType", "documentInputType")


class Section(NamedTuple):
    """A part of the file that holds our keys, with the prefix they have in the table."""

    name: str
    path: tuple[str | int, ...]
    values: dict[str, object]


class AgentEntry(NamedTuple):
    """One agent of `agents.list` or `agents.entries`."""

    id: str
    path: tuple[str | int, ...]
    values: dict[str, object]
    is_default: bool


class FilePlaces:
    """A configuration file, and what it says about agents, workspaces and indexes."""

    def __init__(self, path: str) -> None:
        """Read the file; ConfigError, or FileNotFoundError if it does not exist."""
        self.file = read_config(path)
        self._source = Source(f"file {self.file.path}", self.file.path, self.file.text)

    def agents(self) -> list[AgentEntry]:
        return agent_entries(self.file.tree, self._source)

    def workspace(self, agent: str) -> str:
        """The workspace that is set for an agent, as written; empty without one."""
        key, known = SEARCH_KEYS["agents.defaults.workspace"], self.agents()
        places = [
            Written(self._source, (*entry.path, "workspace"), entry.values["workspace"])
            for entry in known
            if entry.id == agent and "workspace" in entry.values
        ]
        if agent == default_agent(known):
            places += [
                Written(self._source, (*one.path, "workspace"), one.values.get("workspace", ""))
                for one in sections_for(self.file.tree, agent, self._source)
                if one.name == "agents.defaults"
            ]
        for written in places:
            value = check(key, written)
            if isinstance(value, str) and value:
                return value
        return ""

    def index_path(self, agent: str) -> str:
        """`store.path` for an agent, as written; empty without one."""
        path = ""
        for section in sections_for(self.file.tree, agent, self._source):
            store = section.values.get("store") if section.name == "memorySearch" else None
            if isinstance(store, dict) and "path" in store:
                written = Written(self._source, (*section.path, "store", "path"), store["path"])
                path = str(check(SEARCH_KEYS["memorySearch.store.path"], written))
        return path


def agent_entries(tree: dict[str, object], source: Source) -> list[AgentEntry]:
    """The agents of `agents.list` and of the newer `agents.entries`; raises ConfigError for an
    invalid entry.
    """
    listed = _inner(tree, ("agents",), source).get("list", [])
    if not isinstance(listed, list):
        raise refuse(
            Written(source, ("agents", "list"), listed), f"must be a list, not {show(listed)}"
        )
    named = _inner(tree, ("agents", "entries"), source)
    places: list[tuple[tuple[str | int, ...], object]] = [
        *((("agents", "list", number), entry) for number, entry in enumerate(listed)),
        *((("agents", "entries", name), entry) for name, entry in named.items()),
    ]
    found = list[AgentEntry]()
    for path, entry in places:
        if not isinstance(entry, dict):
            raise refuse(Written(source, path, entry), f"must be an object, not {show(entry)}")
        is_named = path[1] == "entries"
        found.append(
            AgentEntry(
                id=_id(path[2], path, source)
                if is_named
                else _id(entry.get("id"), (*path, "id"), source),
                path=path,
                values=entry,
                is_default=entry.get("default") is True,
            )
        )
    return found


def sections_for(tree: dict[str, object], agent: str, source: Source) -> Iterator[Section]:
    """The sections that apply to an agent; later ones win."""
    yield from _search_sections(tree, ("memorySearch",), source)
    memory = _inner(tree, ("memory",), source)
    yield from _search_sections(tree, ("memory", "search"), source)
    others = {key: value for key, value in memory.items() if key != "search"}
    yield Section("memory", ("memory",), others)
    yield Section("team", ("team",), _inner(tree, ("team",), source))
    yield Section("serve", ("serve",), _inner(tree, ("serve",), source))
    yield from _search_sections(tree, ("agents", "defaults", "memorySearch"), source)
    defaults = _inner(tree, ("agents", "defaults"), source)
    yield Section(
        "agents.defaults", ("agents", "defaults"), _about_memory("agents.defaults", defaults)
    )
    known = {name: tree[name] for name in SHARED_SECTIONS if name in tree}
    yield Section("", (), _about_memory("", known))
    for entry in agent_entries(tree, source):
        if entry.id == agent:
            yield from _search_sections(tree, (*entry.path, "memorySearch"), source)
            yield from _search_sections(tree, (*entry.path, "memory", "search"), source)
            own = {name: value for name, value in entry.values.items() if name in _AGENTS_OWN}
            yield Section("agents.defaults", entry.path, _about_memory("agents.defaults", own))
            yield Section("", entry.path, _about_memory("", {"tools": entry.values.get("tools")}))


def _about_memory(name: str, values: dict[str, object]) -> dict[str, object]:
    """The keys of a host's section that are known here, at every level; the rest is ignored."""
    kept = dict[str, object]()
    for part, value in values.items():
        key = f"{name}.{part}" if name else part
        if find_key(key) or key in UNSUPPORTED_BY_NAME or key in _WHOLE_GROUPS:
            kept[part] = value
        elif isinstance(value, dict) and (is_group(key) or key in UNSUPPORTED_GROUPS):
            kept[part] = _about_memory(key, value)
        elif is_group(key) and key not in ("tools", "plugins"):
            kept[part] = value  # not an object: `load` refuses it
    return kept


def _search_sections(
    tree: dict[str, object], path: tuple[str | int, ...], source: Source
) -> Iterator[Section]:
    """A section of memory search. OpenClaw has the two input types, and one for both, next to
    `remote` and not in it.
    """
    found = _inner(tree, path, source)
    yield Section(
        "memorySearch",
        path,
        {key: value for key, value in found.items() if key not in _INPUT_TYPES},
    )
    for_both = {key: found["inputType"] for key in _INPUT_TYPES[1:] if "inputType" in found}
    yield Section(
        "memorySearch.remote",
        path,
        for_both | {key: found[key] for key in _INPUT_TYPES[1:] if key in found},
    )


def _inner(
    tree: dict[str, object], path: tuple[str | int, ...], source: Source
) -> dict[str, object]:
    """The object at a path, empty where there is none; raises ConfigError for any other value."""
    value: object = tree
    for depth, part in enumerate(path):
        if isinstance(value, list) and isinstance(part, int):
            value = value[part]
        elif isinstance(value, dict):
            if part not in value:
                return {}
            value = value[part]
        if not isinstance(value, dict | list) or (
            isinstance(value, list) and path[depth:] == (part,)
        ):
            raise refuse(
                Written(source, path[: depth + 1], value), f"must be an object, not {show(value)}"
            )
    assert isinstance(value, dict)
    return value


def _id(value: object, path: tuple[str | int, ...], source: Source) -> str:
    """An agent's id in lower case, as OpenClaw reads it; raises ConfigError for an invalid one."""
    name = value.strip().lower() if isinstance(value, str) else ""
    if not is_agent_id(name):
        rule = "must be 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit"
        raise refuse(Written(source, path, value), f"{rule}, not {show(value)}")
    return name
