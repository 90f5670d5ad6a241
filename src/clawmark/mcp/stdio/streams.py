"""Standard input and output, taken for the protocol before anything could print into it.

In: the process as a host started it. Out: two descriptors that nothing else knows. Imports nothing
heavy, because it must come first."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Wire(NamedTuple):
    """The two descriptors that carry the protocol."""

    input: int
    output: int


def claim_wire() -> Wire:
    """Take the wire: whatever reads standard input finds its end, whatever prints lands on standard
    error.
    """
    sys.stdout.flush()
    wire = Wire(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    for descriptor in wire:
        os.set_blocking(descriptor, True)  # some hosts hand over pipes that are not
    return wire


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; a pipe may take it in parts."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
