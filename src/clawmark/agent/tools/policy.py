"""Decide what a session may do with the memory, and which tools it has.

Sessions that are proven private may do everything. The heartbeat of a main session may do the same,
except read USER.md. Other sessions may search and read if their kind is listed in
`memory.sharedSessions`, and may never write; the shared spaces of a team only if
`team.sharedSessions` lists them too. The sandbox of the host and the lists of tools can only take
away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from clawmark.agent.tools.base import Payload
from clawmark.config.schema.tools import Sandbox, ToolPolicy, ToolRule
from clawmark.model.provenance import Origin, Trust
from clawmark.model.values import SPACES
from clawmark.text.transcripts.session_keys import (
    SessionKind,
    is_main_heartbeat,
    is_private,
    kind_of,
)

PRIVATE_FILES = ("USER.md",)

_CORE = ("memory_search", "memory_get", "memory_append", "memory_status")
_LANCEDB = ("memory_recall", "memory_store", "memory_forget")
MEMORY_GROUPS = ("group:memory", "group:openclaw", "group:plugins")
"""Names for all memory tools in tool lists, also for those of an installed memory plugin."""
TOOL_GROUPS = {
    **dict.fromkeys(MEMORY_GROUPS, (*_CORE, *_LANCEDB)),
    "memory-core": _CORE,
    "memory-lancedb": _LANCEDB,
}
"""The memory tools that a group or one of OpenClaw's plugins stands for."""
PROFILES = {"minimal": ("session_status",), "messaging": ("message",)}
"""OpenClaw's profiles without memory tools, each with a tool that stands for what it has."""
WRITING_TOOLS = frozenset(
    ("memory_append", "memory_store", "memory_forget", "file_write", "file_edit", "file_delete")
)
"""The tools that change files of the workspace; the last three are those of `clawmark chat`."""


class Access(NamedTuple):
    """What a session may do with the memory."""

    kind: SessionKind
    reads: bool
    writes: bool
    cites: bool
    """Whether answers contain citations."""
    curates: bool = False
    """Whether it is a heartbeat that is shown MEMORY.md and the logs, to look after them."""
    sandbox: str = ""
    """`rw`, `ro` or `none`: what the session's sandbox may do with the workspace; empty if it has
    no sandbox.
    """
    spaces: tuple[str, ...] | None = None
    """The shared spaces that it may search and read; None if there is no team."""

    @property
    def is_private(self) -> bool:
        """Whether the session is one person with their own agent."""
        return is_private(self.kind)

    @property
    def trust(self) -> Trust:
        """How far text is trusted that an agent writes in this session: in one that is not private,
        other people may have said it."""
        return "agent" if self.is_private or self.curates else "external"

    def permitted(
        self, names: Iterable[str], policy: ToolPolicy, plugin: str = ""
    ) -> tuple[str, ...]:
        """Return the names of the tools that the tool policy and the sandbox leave the session.

        `plugin` is the memory plugin that has them."""
        return allowed_tools(names, self.kind, policy, self.sandbox, plugin)

    def may_read(self, path: str) -> bool:
        """Check whether the session may read this file; USER.md is for private sessions only."""
        if self.spaces is not None and path.removeprefix("./").startswith(SPACES):
            return self.reads and path.removeprefix("./").split("/")[1] in self.spaces
        return self.reads and (path not in PRIVATE_FILES or is_private(self.kind))


LOCAL = Access("main", reads=True, writes=True, cites=True)
"""The access of a caller without a session: the library and the command line."""


def access_of(
    session_key: str | None,
    *,
    chat_type: str = "",
    citations: str = "auto",
    shared: Collection[str] = (),
    sandbox: Sandbox | None = None,
    sandboxed: bool = False,
    spaces: tuple[str, ...] | None = None,
    team_shared: Collection[str] = (),
) -> Access:
    """Return the access of a session (None for no session).

    `spaces` are the shared spaces of the team, None without a team; `team_shared` are the kinds
    that may use them although they are not private.

    `shared` are the kinds that may search although they are not private. `citations` other than
    `on` and `off` counts as `auto`: only private sessions see file names. `sandboxed` says that the
    host runs the session in a sandbox, whatever `sandbox.mode` says."""
    kind = kind_of(session_key, chat_type)
    curates = is_main_heartbeat(session_key, chat_type)
    trusted = is_private(kind) or curates
    box = workspace_access(session_key, kind, sandbox or Sandbox(), sandboxed=sandboxed)
    reads = (trusted or kind in shared) and box != "none"
    sees_spaces = reads and (trusted or kind in team_shared)
    return Access(
        kind=kind,
        reads=reads,
        writes=trusted and may_write(box),
        cites=citations == "on" or (citations != "off" and trusted),
        curates=curates and box != "none",
        sandbox=box,
        spaces=spaces if sees_spaces or spaces is None else (),
    )


def tool_origin(access: Access, session_key: str | None, tool: str) -> Origin:
    """Return the origin of what an agent writes with a tool."""
    return Origin(
        actor="agent", kind="tool", trust=access.trust, session=session_key or "", source=tool
    )


def workspace_access(
    session_key: str | None, kind: SessionKind, sandbox: Sandbox, *, sandboxed: bool = False
) -> str:
    """Return what a sandboxed session may do with the workspace; empty for other sessions.

    A caller without a session is the host itself, outside the sandbox."""
    by_mode = session_key is not None and (
        sandbox.mode == "all" or (sandbox.mode == "non-main" and kind != "main")
    )
    return sandbox.workspace_access if sandboxed or by_mode else ""


def may_write(sandbox: str) -> bool:
    """Check whether a session with this sandbox may write to the workspace."""
    return sandbox in ("", "rw")


def allowed_tools(
    names: Iterable[str],
    kind: SessionKind,
    policy: ToolPolicy,
    sandbox: str = "",
    plugin: str = "",
) -> tuple[str, ...]:
    """Return the names of the tools that a session of this kind has, in the given order.

    The groups of memory tools, and the name of the `plugin`, stand for all of them."""
    groups = (*MEMORY_GROUPS, plugin.lower()) if plugin else ()
    rules = tuple(_rules(kind, policy, is_sandboxed=bool(sandbox)))
    return tuple(
        name
        for name in outside_sandbox(names, sandbox)
        if all(_passes(name, rule, groups) for rule in rules)
    )


def outside_sandbox(names: Iterable[str], sandbox: str) -> tuple[str, ...]:
    """Return the names of the tools that the sandbox of a session leaves it."""
    if sandbox == "none":
        return ()
    return tuple(name for name in names if may_write(sandbox) or name not in WRITING_TOOLS)


def _rules(kind: SessionKind, policy: ToolPolicy, *, is_sandboxed: bool) -> Iterator[ToolRule]:
    """Yield the rules that apply to a session; a tool must pass each of them."""
    yield from policy.layers
    if policy.profile in PROFILES:
        yield ToolRule(allow=(*PROFILES[policy.profile], *policy.also_allow))
    own: ToolRule = getattr(policy.by_session, kind)
    yield own
    for applies, lists in (
        (kind == "subagent", policy.subagents.tools),
        (is_sandboxed, policy.sandbox.tools),
    ):
        if applies:
            allow = (*lists.allow, *lists.also_allow) if lists.allow else ()
            yield ToolRule(allow=allow, deny=lists.deny)


def _passes(name: str, rule: ToolRule, groups: Collection[str]) -> bool:
    is_allowed = not rule.allow or _is_listed(name, rule.allow, groups)
    return is_allowed and not _is_listed(name, rule.deny, groups)


def _is_listed(name: str, entries: Iterable[str], groups: Collection[str]) -> bool:
    """Check whether a list names a tool; `groups` are names that stand for it in any case."""
    return any(
        entry in groups or name in TOOL_GROUPS.get(entry, ()) or fnmatchcase(name, entry)
        for entry in (one.lower() for one in entries)
    )


def unavailable(kind: SessionKind, sandbox: str = "") -> Payload:
    """Return the `error` and `action` for a session without access, whatever the memory holds."""
    if sandbox == "none":
        return {
            "error": "Memory is unavailable in this sandbox.",
            "reason": "sandboxed",
            "action": "Answer from this conversation alone. The owner can "
            "allow it: agents.defaults.sandbox.workspaceAccess.",
        }
    return {
        "error": "Memory is unavailable in shared sessions.",
        "reason": "shared-session",
        "action": f"Answer from this conversation alone. The owner can "
        f"allow it: memory.sharedSessions, {kind}.",
    }
