"""The settings of memory plugins: which one is in the memory slot, and the entry of each."""

from collections.abc import Mapping
from typing import NamedTuple

MEMORY_CORE = "memory-core"
NO_MEMORY = "none"


class PluginEntry(NamedTuple):
    """`plugins.entries.<name>`."""

    enabled: bool = True
    config: Mapping[str, object] = {}
    """As written; the plugin checks it."""


class PluginSlots(NamedTuple):
    """`plugins.slots`."""

    memory: str = MEMORY_CORE


class PluginOptions(NamedTuple):
    """`plugins`."""

    slots: PluginSlots = PluginSlots()
    entries: Mapping[str, PluginEntry] = {}

    @property
    def has_memory(self) -> bool:
        """Whether there is a memory plugin; without one nothing is indexed or recalled."""
        return self.slots.memory != NO_MEMORY

    @property
    def has_hooks(self) -> bool:
        """Whether a plugin other than memory-core may be in use, which may have hooks."""
        is_core = self.slots.memory == MEMORY_CORE and not self.entry(MEMORY_CORE).config
        return self.has_memory and not is_core

    def entry(self, name: str) -> PluginEntry:
        """Return the entry of a plugin, which may be missing."""
        return self.entries.get(name, PluginEntry())
