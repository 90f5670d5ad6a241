"""What every test stands on: hypothesis without a stopwatch, and none of the caller's own settings."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# A loaded machine is no reason for a property to be false, so examples have no deadline.
settings.register_profile("clawmark", deadline=None)
settings.load_profile("clawmark")


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's CLAWMARK_* and OPENCLAW_* variables must not reach a test; CLAWMARK_SHARED only names a folder."""
    for name in list(os.environ):
        if name.startswith(("CLAWMARK_", "OPENCLAW_")) and name != "CLAWMARK_SHARED":
            monkeypatch.delenv(name)
