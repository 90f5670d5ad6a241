"""Call the lifecycle hooks of the memory plugins in use, each within a time budget.

A hook that raises or returns something else is reported and its result dropped. One that takes too
long is abandoned and not called again in this process. The session always continues. Text that a
hook puts before a message is fenced as recalled memory, so that it is never captured or indexed
again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from clawmark.agent.plugins.base import PluginSession, Turn, TurnMessage
from clawmark.agent.plugins.calls import Failed, call_plugin
from clawmark.agent.plugins.failures import PluginFailures
from clawmark.agent.plugins.slot import MemorySlot, NamedPlugin
from clawmark.agent.prompt.recall import Recalled, parse_block, recall_block
from clawmark.agent.prompt.trust_gate import LABELS_ONLY, TrustGate
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.recalled_blocks import strip_recalled

SECONDS: Mapping[str, float] = {
    "session_start": 5.0,
    "before_agent_start": 5.0,
    "agent_end": 10.0,
    "before_compaction": 10.0,
    "session_end": 5.0,
}
"""The time budget of each hook."""
LONGEST = 20_000
"""Characters that a hook may put before a message."""

_abandoned: set[tuple[str, str]] = set()
"""Plugin and hook of the calls that took too long in this process."""


class Lifecycle(NamedTuple):
    """The hooks of one memory."""

    slot: MemorySlot
    failures: PluginFailures
    seconds: Mapping[str, float] = SECONDS
    gate: TrustGate = LABELS_ONLY
    """Leaves out what came from outside."""

    def fire(self, hook: str, plugin: NamedPlugin, *arguments: object) -> object:
        """Call one hook of one plugin; None if there is none or it failed."""
        function = getattr(plugin.plugin.hooks(), hook)
        if function is None or (plugin.name, hook) in _abandoned:
            return None
        answer = call_plugin(lambda: function(*arguments), self.seconds[hook], plugin.clean)
        if not isinstance(answer, Failed):
            return answer
        if answer.is_late:
            _abandoned.add((plugin.name, hook))
        self.report(hook, plugin.name, answer.reason)
        return None

    def report(self, hook: str, plugin: str, reason: str) -> None:
        self.failures.report(
            plugin, f'The hook {hook} of the memory plugin "{plugin}" was skipped: it {reason}.'
        )


class SessionHooks:
    """The hooks for one session; hosts call these. None of them raises."""

    def __init__(self, lifecycle: Lifecycle, session: PluginSession) -> None:
        self._lifecycle = lifecycle
        self.session = session

    def session_start(self) -> None:
        """The session starts, or continues in a new process."""
        for plugin in self._lifecycle.slot.plugins:
            self._lifecycle.fire("session_start", plugin, self.session)

    def before_agent_start(self, message: str) -> str:
        """Return what to send before a message of the user: a fenced block, or an empty text.

        Sessions that may not read the memory get nothing."""
        lifecycle, plugin = self._lifecycle, self._lifecycle.slot.recall
        question = strip_recalled(message).strip()
        if not self.session.access.reads or not question:
            return ""
        text = lifecycle.fire("before_agent_start", plugin, self.session, question)
        if text is None:
            return ""
        if not isinstance(text, str):
            lifecycle.report(
                "before_agent_start", plugin.name, f"returned a {type(text).__name__}, not a text"
            )
            return ""
        if len(text) > LONGEST:
            lifecycle.report(
                "before_agent_start",
                plugin.name,
                f"returned more than {LONGEST:,} characters",
            )
            return ""
        return fenced(text, plugin.name, lifecycle.gate)

    def agent_end(self, messages: Iterable[tuple[str, str]], *, succeeded: bool = True) -> None:
        """A turn is finished; `messages` are its roles and texts, in order.

        Recalled text is removed from them, so that no plugin captures it again."""
        cleaned = (TurnMessage(role, strip_recalled(text).strip()) for role, text in messages)
        turn = Turn(tuple(one for one in cleaned if one.text), succeeded)
        if turn.messages:
            lifecycle = self._lifecycle
            lifecycle.fire("agent_end", lifecycle.slot.consolidator, self.session, turn)

    def before_compaction(self) -> None:
        """The history is about to be shortened."""
        lifecycle = self._lifecycle
        lifecycle.fire("before_compaction", lifecycle.slot.consolidator, self.session)

    def session_end(self) -> None:
        """The session has ended."""
        for plugin in self._lifecycle.slot.plugins:
            self._lifecycle.fire("session_end", plugin, self.session)


def fenced(text: str, plugin: str, gate: TrustGate) -> str:
    """Return a text as a block of recalled memory; a text that is such a block is kept.

    Entries that the journal knows as external are left out."""
    text = well_formed(text).strip()
    if not text:
        return ""
    try:
        items = parse_block(text)
    except (ValueError, IndexError):
        text, left_out = gate.filter_text("MEMORY.md", text)
        item = Recalled(
            citation=f"plugin {plugin}", date="", origin="tool", text=text, flags=flags_of(text)
        )
        return recall_block([item] if text.strip() else [], left_out=left_out)
    kept = [item for item in items if not gate.is_external(item.text)]
    left_out = len(items) - len(kept)
    return recall_block(kept, left_out=left_out) if left_out else text
