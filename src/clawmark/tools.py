"""Alias of `clawmark.agent.tools`; kept for existing code."""

from clawmark.agent.tools import *  # noqa: F403
