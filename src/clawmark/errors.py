"""Alias of `clawmark.model.errors`; kept for existing code."""

from clawmark.model.errors import *  # noqa: F403
