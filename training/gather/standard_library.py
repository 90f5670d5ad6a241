"""Texts from the Python that runs this: the docstrings of its standard library."""

import sysconfig
from pathlib import Path

from training.gather.collect import sample, texts_of
from training.gather.sources import Source
from training.gather.values import Text

_MODULES = (
    "argparse asyncio/tasks calendar collections/__init__ configparser csv datetime difflib"
    " email/message functools gettext glob heapq imaplib inspect json/__init__ logging/__init__"
    " mailbox pathlib pickle queue random sched shutil smtplib sqlite3/__init__ statistics string"
    " subprocess tarfile tempfile textwrap threading turtle typing unittest/case urllib/parse"
    " urllib/request uuid webbrowser zipfile"
)


def standard_library(limit: int, seed: int) -> list[Text]:
    """Return texts of modules that every Python has. They are under the PSF licence."""
    folder = Path(sysconfig.get_path("stdlib"))
    paths = [folder / f"{name}.py" for name in _MODULES.split()]
    files = [(path.name, path.read_bytes()) for path in paths if path.is_file()]
    return sample(texts_of(_source(limit), files, seed), limit, seed)


def _source(limit: int) -> Source:
    return Source(
        name="python-standard-library",
        registry="python",
        package="python",
        version="any",
        licence="PSF-2.0",
        evidence="LICENSE.txt",
        attribution="Python Software Foundation",
        reader="python",
        files=("*.py",),
        limit=limit,
    )
