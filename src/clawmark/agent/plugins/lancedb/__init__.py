"""The memory plugin `memory-lancedb`: statements kept from conversations, in a LanceDB table."""

from clawmark.agent.plugins.base import PluginContext
from clawmark.agent.plugins.lancedb.plugin import LancePlugin


def make(context: PluginContext) -> LancePlugin:
    """Return the plugin; raises ConfigError for wrong settings, PluginError without `lancedb`."""
    return LancePlugin(context)
