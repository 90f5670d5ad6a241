"""Alias of `clawmark.model.reports`; kept for existing code."""

from clawmark.model.reports import *  # noqa: F403
