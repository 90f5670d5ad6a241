"""Real releases of OpenClaw, installed from npm, index a workspace; Clawmark takes over without
sending a passage again.

Takes minutes and the network, so it runs only when asked for: `CLAWMARK_INTEROP=<folder for the
installations>`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
WORK = os.environ.get("CLAWMARK_INTEROP", "")


@pytest.mark.slow
@pytest.mark.skipif(
    not WORK, reason="CLAWMARK_INTEROP does not name a folder for the installations"
)
def test_every_vector_of_a_real_openclaw_is_used_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    interop = import_module("interop_openclaw")
    if reason := interop.why_not():
        pytest.skip(reason)
    installed = interop.install(Path(WORK))
    for case in interop.CASES:
        found = interop.run_case(case, installed, tmp_path, sys.executable)
        assert interop.is_right(found), found
