"""Alias of `clawmark.model.values`; kept for existing code."""

from clawmark.model.values import *  # noqa: F403
