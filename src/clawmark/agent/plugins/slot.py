"""The memory slot: the plugin that provides an agent's tools, prompt, flush and hooks.

`memory-core` and `none` are made here; every other name is looked up among the entry points of the
group `clawmark.memory`, and only that one is imported. If it cannot be used, memory-core is used
instead, and `problems` says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.plugins import core, none
from clawmark.agent.plugins.base import GROUP, MemoryPlugin, PluginContext
from clawmark.agent.plugins.calls import Failed, call_plugin
from clawmark.agent.plugins.failures import PluginFailures
from clawmark.agent.plugins.guarded import METHODS, GuardedPlugin
from clawmark.agent.tools.base import one_line
from clawmark.config.schema.plugins import MEMORY_CORE, NO_MEMORY, PluginOptions
from clawmark.model.errors import ClawmarkError, ConfigError, PluginError
from clawmark.model.reports import PluginReport
from clawmark.net.headers import secrets_of
from clawmark.system.entry_points import installed, owner_of
from clawmark.text.secrets.redact import Redactor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MAKE_SECONDS = 30.0
"""The time for importing and making a plugin."""
OURS: dict[str, Callable[[PluginContext], MemoryPlugin]] = {
    MEMORY_CORE: core.make,
    NO_MEMORY: none.make,
}
INSTEAD = "memory-core is used instead."

ContextOf = Callable[[str], PluginContext]
"""(name of a plugin) → what it is made with."""


class NamedPlugin(NamedTuple):
    """A plugin and the name under which it was found."""

    name: str
    plugin: MemoryPlugin
    clean: Callable[[str], str] = str
    """Masks the keys that the plugin was given, in the text of its errors."""


class MemorySlot(NamedTuple):
    """The plugin in the slot, and the plugins that it is combined with."""

    active: NamedPlugin
    recall: NamedPlugin
    """The plugin whose `before_agent_start` is called; usually the active one."""
    consolidator: NamedPlugin
    """The plugin whose flush policy, `agent_end` and `before_compaction` are used."""
    problems: tuple[str, ...] = ()
    """Why a configured plugin is not used."""

    @property
    def name(self) -> str:
        return self.active.name

    @property
    def plugins(self) -> tuple[NamedPlugin, ...]:
        """Every plugin that is used, once."""
        found = {one.name: one for one in (self.active, self.recall, self.consolidator)}
        return tuple(found.values())

    @property
    def recalls_automatically(self) -> bool:
        """Whether messages get recalled text without the host asking for it.

        memory-core in its own slot recalls only if the host wants that."""
        return self.recall.name != MEMORY_CORE or self.name != MEMORY_CORE

    def close(self) -> None:
        for one in self.plugins:
            one.plugin.close()


def open_slot(
    options: PluginOptions, context_of: ContextOf, failures: PluginFailures
) -> MemorySlot:
    """Make the plugin in the slot and those it names; problems are values, not errors."""
    problems: list[str] = []

    def opened(name: str, instead: str) -> NamedPlugin | None:
        try:
            return _open(name, options, context_of, failures)
        except PluginError as error:
            problems.append(f"{error.message} {instead} {error.hint}".rstrip())
            return None

    active = opened(options.slots.memory, INSTEAD)
    if active is None:
        # The configuration of memory-core may be the problem, so it is left out.
        active = NamedPlugin(MEMORY_CORE, core.make(context_of(MEMORY_CORE)._replace(config={})))
    made = {active.name: active}
    for name in filter(None, active.plugin.companions):
        if name not in made:
            made[name] = opened(name, f"{active.name} does its part.") or active
    recall, consolidator = active.plugin.companions
    return MemorySlot(
        active=active,
        recall=made[recall or active.name],
        consolidator=made[consolidator or active.name],
        problems=tuple(problems),
    )


def _open(
    name: str, options: PluginOptions, context_of: ContextOf, failures: PluginFailures
) -> NamedPlugin:
    """Make a plugin; raises PluginError."""
    if not options.entry(name).enabled:
        raise PluginError(
            f'The memory plugin "{name}" is disabled: plugins.entries.{name}.enabled is false.',
            plugin=name,
            hint="Set it to true, or choose another plugin for plugins.slots.memory.",
        )
    context = context_of(name)
    if name in OURS:
        try:
            return NamedPlugin(name, OURS[name](context))
        except ConfigError as error:
            raise PluginError(error.message, plugin=name, hint=error.hint) from error
    points = installed(GROUP, name)
    owners = _owners(points)
    if not points:
        raise PluginError(
            f'No installed package offers a memory plugin called "{name}".',
            plugin=name,
            hint="Install the package that has it, or correct plugins.slots.memory.",
        )
    if len(points) > 1:
        raise PluginError(
            f'The memory plugin "{name}" is offered more than once: by {owners}.',
            plugin=name,
            owner=owners,
            hint="Uninstall all but one of them.",
        )

    def make() -> MemoryPlugin | ClawmarkError:
        function: Callable[[PluginContext], MemoryPlugin] = points[0].load()
        try:
            made = function(context)
        except ClawmarkError as error:  # the plugin says itself what is wrong
            return error
        if not all(callable(getattr(made, method, None)) for method in METHODS):
            kind = type(made).__name__
            raise TypeError(f"it returned a value of type {kind}, not a memory plugin")
        return made

    clean = _cleaner(context)
    plugin = call_plugin(make, MAKE_SECONDS, clean)
    if isinstance(plugin, ClawmarkError):
        raise PluginError(
            f'The memory plugin "{name}" cannot be used. {one_line(clean(plugin.message))}',
            plugin=name,
            owner=owners,
            hint=one_line(clean(plugin.hint)),
        )
    if isinstance(plugin, Failed):
        raise PluginError(
            f'The memory plugin "{name}" of {owners} ({points[0].value}) {plugin.reason}.',
            plugin=name,
            owner=owners,
        )
    return NamedPlugin(name, GuardedPlugin(name, plugin, failures, clean), clean)


def _cleaner(context: PluginContext) -> Callable[[str], str]:
    """Return what masks the keys in the plugin's configuration and in the environment."""
    named = {**context.environ, **dict(_texts(context.config))}
    own = Redactor(secrets_of((), named))
    return lambda text: context.redactor.clean(own.clean(text))


def _texts(config: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, Mapping):
            yield from _texts(value)


def list_plugins(slot: MemorySlot, options: PluginOptions) -> tuple[PluginReport, ...]:
    """Return the installed plugins and the configured one, with what each does or why not.

    Nothing is imported for it."""
    wanted = options.slots.memory
    points = {name: installed(GROUP, name) for name in _names(slot, wanted)}
    return tuple(
        PluginReport(
            name=name,
            owner=_owners(points[name]) or ("clawmark" if name in OURS else ""),
            state=_state(name, slot),
            reason=_reason(name, slot, options, offered=len(points[name])),
        )
        for name in points
    )


def _owners(points: list[EntryPoint]) -> str:
    return " and ".join(sorted({owner_of(point) for point in points}))


def _names(slot: MemorySlot, wanted: str) -> list[str]:
    found = {point.name for point in installed(GROUP)} | set(OURS) | {wanted}
    return sorted(found | {one.name for one in slot.plugins})


def _state(name: str, slot: MemorySlot) -> str:
    if name == slot.name:
        return "active"
    roles = [role for role in ("recall", "consolidator") if getattr(slot, role).name == name]
    return " and ".join(roles) or "not used"


def _reason(name: str, slot: MemorySlot, options: PluginOptions, *, offered: int) -> str:
    """Return why a plugin is in use, or why it is not."""
    quoted = f'"{name}"'
    trouble = [problem for problem in slot.problems if quoted in problem]
    if trouble:
        return trouble[0]
    wanted = options.slots.memory
    if name == slot.name:
        return "" if name == wanted else f'used because "{wanted}" cannot be used'
    if _state(name, slot) != "not used":
        return f"{slot.name} names it"
    if not options.entry(name).enabled:
        return f"plugins.entries.{name}.enabled is false"
    if offered > 1:
        return "several distributions offer this name"
    return f'plugins.slots.memory is "{wanted}"'
