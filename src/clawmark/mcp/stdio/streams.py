"""Take standard input and output for the protocol before anything can print into them.

Imports nothing heavy, because it runs first."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Streams(NamedTuple):
    """The two descriptors that carry the protocol."""

    input: int
    output: int


def claim_standard_streams() -> Streams:
    """Duplicate standard input and output, then redirect the originals.

    Code that reads standard input finds it empty; code that prints writes to standard error."""
    sys.stdout.flush()
    streams = Streams(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if hasattr(os, "set_blocking"):  # Windows has it since Python 3.12
        for descriptor in streams:
            os.set_blocking(descriptor, True)  # some hosts pass non-blocking pipes
    return streams


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes; a pipe may accept only a part at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
