"""The protocol of a memory plugin: what fills the memory slot of an agent.

A package offers a plugin under the entry point group `clawmark.memory`; the entry point names a
function `make(context: PluginContext) -> MemoryPlugin`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from clawmark.agent.prompt.trust_gate import LABELS_ONLY, TrustGate
from clawmark.model.errors import PluginError

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.tools.base import Tool
    from clawmark.agent.tools.memory_forget import Forgetter
    from clawmark.agent.tools.policy import Access
    from clawmark.agent.tools.shared_notes import SharedNotebook
    from clawmark.embed.base import Embedder
    from clawmark.model.documents import Excerpt, Written
    from clawmark.model.values import Found
    from clawmark.text.secrets.redact import Redactor
    from clawmark.workspace import Workspace

GROUP = "clawmark.memory"


class PluginSession(NamedTuple):
    """The session that a plugin is called for."""

    key: str | None
    """None for a caller without a session: the library and the command line."""
    access: Access
    """What the session may do with the memory; a plugin must keep to it."""
    may_search: bool = True
    """Whether the rules of the backend (`memory.qmd.scope`) let the session search."""


class TurnMessage(NamedTuple):
    """A message of a finished turn."""

    role: str
    """`user`, `assistant`, `system` or `tool`."""
    text: str


class Turn(NamedTuple):
    """A finished turn of an agent."""

    messages: tuple[TurnMessage, ...]
    succeeded: bool = True


class SearchOptions(NamedTuple):
    """The configured defaults of a search by an agent."""

    enabled: bool = True
    """`memorySearch.enabled`; if it is false, `search` raises ConfigError."""
    citations: str = "auto"
    max_results: int = 6
    min_score: float = 0.35
    sources: tuple[str, ...] = ("memory",)


def _cannot_append(*_: object, **__: object) -> Written:
    raise PluginError("The plugin was made without a memory to write to.", plugin="")


class PluginContext(NamedTuple):
    """What a plugin is made with."""

    name: str
    config: Mapping[str, object]
    """`plugins.entries.<name>.config`, as written; the plugin checks it and raises ConfigError."""
    agent_id: str
    state_dir: str
    workspace: Workspace
    """The files: guarded reading and durable writing."""
    redactor: Redactor
    environ: Mapping[str, str]
    now: Callable[[], datetime]
    """The current time in the user's time zone."""
    search: Callable[..., Found]
    """`Memory.search`."""
    read: Callable[..., Excerpt]
    """`Memory.read`."""
    embedder: Callable[[], Embedder | None]
    """Returns the best embedder of the memory that is available; None for keywords only."""
    append: Callable[..., Written] = _cannot_append
    """`Memory.append`."""
    search_options: SearchOptions = SearchOptions()
    forgetter: Forgetter | None = None
    """Forgets what an agent wrote."""
    gate: TrustGate = LABELS_ONLY
    """Decides what may be recalled unasked. A plugin must not recall what it leaves out."""
    shared: SharedNotebook | None = None
    """Writes to the shared spaces of the team; None without one. `search` includes the spaces if it
    is given `space=""`."""


class FlushPolicy(NamedTuple):
    """How conversations are flushed before a compaction while a plugin is active."""

    prompt: str = ""
    """Empty for the default prompt."""
    system_prompt: str = ""
    log: str = "memory/YYYY-MM-DD.md"
    """The only file that the flush may append to."""


class LifecycleHooks(NamedTuple):
    """Functions that are called at points of a session; None for no call.

    Each has a time budget. One that raises, takes too long or returns something else is reported
    and skipped; the session continues."""

    session_start: Callable[[PluginSession], object] | None = None
    before_agent_start: Callable[[PluginSession, str], str | None] | None = None
    """(session, message of the user) → text to put before the message, or None."""
    agent_end: Callable[[PluginSession, Turn], object] | None = None
    before_compaction: Callable[[PluginSession], object] | None = None
    session_end: Callable[[PluginSession], object] | None = None


class Companions(NamedTuple):
    """Other plugins that take over parts of the plugin in the slot."""

    recall: str = ""
    """The plugin whose `before_agent_start` recalls memory; empty for the plugin itself."""
    consolidator: str = ""
    """The plugin whose flush policy, `agent_end` and `before_compaction` are used; empty for the
    plugin itself."""


class MemoryPlugin(Protocol):
    """A memory for an agent.

    Methods and hooks may be called from several threads at once, each call in another thread.
    Heavy libraries are imported when they are first needed, not when the plugin is made.
    `clawmark.testing.plugin_contract` checks an implementation."""

    @property
    def companions(self) -> Companions:
        """The plugins that this one is combined with."""

    def tools(self, session: PluginSession, *, append: bool) -> Sequence[Tool]:
        """Return the tools of a session; `append` asks for those that write, too."""

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        """Return what the system prompt says about using the tools with these names."""

    def flush_policy(self) -> FlushPolicy | None:
        """Return how conversations are flushed; None if they are not."""

    def hooks(self) -> LifecycleHooks:
        """Return the functions that are called at points of a session."""

    def close(self) -> None:
        """Release every resource; closing twice is allowed."""
