"""Settle the settings of memory plugins: the slot, the entries, and warnings about unused ones."""

from collections.abc import Iterator, Mapping

from clawmark.config.check import Written, refuse, show
from clawmark.config.json5 import show_path
from clawmark.config.schema.plugins import (
    MEMORY_CORE,
    NO_MEMORY,
    PluginEntry,
    PluginOptions,
    PluginSlots,
)

OUR_PLUGINS = (MEMORY_CORE, "memory-lancedb")
"""The memory plugins of Clawmark; the entries of other plugins belong to the host."""
OPENCLAW_PLUGIN = "clawmark"
"""The slot of an OpenClaw that is connected to Clawmark: memory-core is what answers it."""
COMPANIONS = ("recall", "consolidator")
"""The keys of memory-core's configuration: other plugins that it is combined with."""


def settled_plugins(
    slot: str, written: Mapping[str, Written], warnings: list[str]
) -> PluginOptions:
    """Return the settings of plugins; raises ConfigError for a malformed entry of a memory plugin.

    A disabled memory-core leaves the slot empty, except in the file of an OpenClaw that is
    connected to Clawmark."""
    entries = {
        name: _checked(one)
        for name, one in written.items()
        if not _is_of_the_host(name, slot, one.value)
    }
    if slot == OPENCLAW_PLUGIN:
        # OpenClaw has switched off its own memory-core then, which is not ours.
        slot = MEMORY_CORE
        entries.pop(MEMORY_CORE, None)
    if slot == MEMORY_CORE and not entries.get(slot, PluginEntry()).enabled:
        slot = NO_MEMORY
    warnings += _unused(slot, entries, written)
    return PluginOptions(PluginSlots(slot), entries)


def _is_of_the_host(name: str, slot: str, value: object) -> bool:
    """Whether an entry is malformed and not about memory: the host checks it."""
    if name in (slot, *OUR_PLUGINS):
        return False
    return not (
        isinstance(value, dict)
        and isinstance(value.get("enabled", True), bool)
        and isinstance(value.get("config", {}), dict)
    )


def _checked(written: Written) -> PluginEntry:
    value = written.value
    if not isinstance(value, dict):
        raise refuse(written, f"must be an object, not {show(value)}")
    enabled, config = value.get("enabled", True), value.get("config", {})
    if not isinstance(enabled, bool):
        inner = written._replace(path=(*written.path, "enabled"))
        raise refuse(inner, f"must be true or false, not {show(enabled)}")
    if not isinstance(config, dict):
        inner = written._replace(path=(*written.path, "config"))
        raise refuse(inner, f"must be an object, not {show(config)}")
    return PluginEntry(enabled, config)


def _unused(
    slot: str, entries: Mapping[str, PluginEntry], written: Mapping[str, Written]
) -> Iterator[str]:
    """Warn of configured memory plugins that are not in the slot and not combined with it."""
    core = entries.get(MEMORY_CORE, PluginEntry())
    if slot == MEMORY_CORE:
        for key in core.config:
            if key not in COMPANIONS:
                where = show_path((*written[MEMORY_CORE].path, "config", key))
                yield f"{where} has no effect: memory-core takes its settings from memorySearch."
    elif slot not in (NO_MEMORY, *OUR_PLUGINS):
        return  # another plugin may combine itself with any of ours
    combined = [core.config.get(key) for key in COMPANIONS] if slot == MEMORY_CORE else []
    used = (slot, *combined)
    for name in OUR_PLUGINS:
        entry = entries.get(name)
        if name in used or entry is None or not entry.enabled:
            continue
        if name == MEMORY_CORE and not entry.config:
            continue  # `enabled: true` is what OpenClaw writes for it
        where = show_path(written[name].path)
        yield f"{where} has no effect: plugins.slots.memory is {show(slot)}."
