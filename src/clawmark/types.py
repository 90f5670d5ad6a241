"""Alias of `clawmark.model.values` and its neighbours; kept for existing code."""

from clawmark.model.values import *  # noqa: F403, I001
from clawmark.model.explanation import *  # noqa: F403
from clawmark.model.versions import *  # noqa: F403
