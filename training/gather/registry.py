"""Download pinned packages with pip, npm and apt-get, and list the files in them."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from training.gather.sources import Source, SourceError


def fetch(source: Source, cache: Path) -> Path:
    """Return the package file of a source, downloading it once into the cache folder."""
    folder = cache / source.registry / f"{source.package.replace('/', '-')}-{source.version}"
    found = _package_in(folder)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    problem = _run(_download_command(source, folder), folder)
    found = _package_in(folder)
    if problem or found is None:
        raise SourceError(
            f"{source.package} {source.version} could not be downloaded from {source.registry}"
            f" ({problem or 'no package file arrived'}). Check the connection to the registry,"
            " or choose a version that it has in training/sources.json."
        )
    return found


def members(package: Path) -> dict[str, bytes]:
    """Return every regular file in a wheel, npm tarball or Debian package, by name."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            names = sorted(name for name in wheel.namelist() if not name.endswith("/"))
            return {name: wheel.read(name) for name in names}
    data = _debian_data(package.read_bytes()) if package.suffix == ".deb" else package.read_bytes()
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                found[member.name.removeprefix("./")] = content.read()
    return dict(sorted(found.items()))


def _run(command: list[str], folder: Path) -> str:
    """Run a download command; return the last line of its error, or an empty string."""
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    if not result.returncode:
        return ""
    lines = result.stderr.strip().splitlines()
    return lines[-1] if lines else f"{command[0]} ended with exit code {result.returncode}"


def _package_in(folder: Path) -> Path | None:
    files = sorted(folder.glob("*")) if folder.is_dir() else []
    return next((file for file in files if file.suffix in {".whl", ".tgz", ".deb"}), None)


def _download_command(source: Source, folder: Path) -> list[str]:
    name, version = source.package, source.version
    match source.registry:
        case "pypi":
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            return [*pip, "--only-binary", ":all:", "--dest", str(folder), f"{name}=={version}"]
        case "npm":
            return ["npm", "pack", "--silent", f"{name}@{version}"]
        case "debian":
            return ["apt-get", "download", f"{name}={version}"]
    raise SourceError(
        f"{source.name}: the registry {source.registry!r} is not pypi, npm or debian."
    )


def _debian_data(package: bytes) -> bytes:
    """Return the compressed data archive of a Debian package, which is an `ar` file."""
    position = 8
    while position + 60 <= len(package):
        header = package[position : position + 60]
        name, size = header[:16].decode("ascii").strip(), int(header[48:58])
        start = position + 60
        if name.startswith("data.tar"):
            return package[start : start + size]
        position = start + size + size % 2
    raise SourceError("The Debian package has no data archive. Delete it and download it again.")
