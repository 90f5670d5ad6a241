"""`python -m clawmark` is the command `clawmark`."""

from __future__ import annotations

import sys

from clawmark.cli import main

if __name__ == "__main__":
    sys.exit(main())
