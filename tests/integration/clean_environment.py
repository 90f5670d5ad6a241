"""A new virtual environment with a wheel and its declared requirements, and nothing else.

The requirements are linked from the environment of the tests, so nothing is downloaded. A package
that Clawmark imports and does not declare is missing in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_bytes
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def make_environment(folder: Path, wheel: Path, extras: tuple[str, ...] = ()) -> Path:
    """Install a wheel with the requirements of its extras; return the folder of its programs."""
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    asked = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    for found in requirements(wheel, extras):
        _link(found, Path(asked))
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python")]
    flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "install", *flags, str(wheel)], check=True, capture_output=True)
    return programs


def requirements(wheel: Path, extras: tuple[str, ...]) -> list[Distribution]:
    """The installed distributions that a wheel needs, directly and indirectly."""
    found, seen = dict[str, Distribution](), set[tuple[str, frozenset[str]]]()
    waiting = list(_wanted(_requires(wheel), frozenset(extras)))
    while waiting:
        name, asked = waiting.pop()
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise AssertionError(f"{name} is required and not installed") from error
        waiting.extend(_wanted(found[name].requires or [], asked))
    return list(found.values())


def _requires(wheel: Path) -> list[str]:
    """The requirements that the metadata of a wheel names."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])


def _wanted(
    requires: Iterable[str], extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """The names and extras of the requirements that hold here."""
    for wanted in map(Requirement, requires):
        if wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield canonicalize_name(wanted.name), frozenset(wanted.extras)


def _link(found: Distribution, folder: Path) -> None:
    """Link the packages and modules of a distribution into a folder."""
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "/")}
    for top in sorted(tops - {"__pycache__"}):
        target = Path(str(found.locate_file(top)))
        if target.exists() and not (folder / top).exists():
            (folder / top).symlink_to(target)
