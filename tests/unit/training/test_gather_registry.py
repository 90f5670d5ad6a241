"""Packages: reading their files, and the checks before a source is used."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from training.gather.collect import collect
from training.gather.licences import is_allowed
from training.gather.registry import fetch, members
from training.gather.sources import Source, SourceError, read_sources
from training.gather.table import LICENCES, table

FILES = {"pkg/LICENSE": b"MIT", "pkg/guide.md": b"# Use\n\nOpen the file and read the first line."}


def source(registry: str = "pypi", evidence: str = "pkg/LICENSE") -> Source:
    return Source(
        name="guide",
        registry=registry,
        package="guide",
        version="1.0",
        licence="MIT",
        evidence=evidence,
        attribution="the authors",
        reader="markdown",
        files=("*.md",),
        limit=10,
    )


def tarball(mode: Literal["w:gz", "w:xz"]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in reversed(FILES.items()):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def ar_entry(name: str, content: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def write_package(cache: Path, registry: str) -> Path:
    folder = cache / registry / "guide-1.0"
    folder.mkdir(parents=True)
    if registry == "pypi":
        path = folder / "guide-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for name, content in FILES.items():
                wheel.writestr(name, content)
    elif registry == "npm":
        path = folder / "guide-1.0.tgz"
        path.write_bytes(tarball("w:gz"))
    else:
        path = folder / "guide_1.0_all.deb"
        control = ar_entry("control.tar.xz", b"odd")
        data = ar_entry("data.tar.xz", tarball("w:xz"))
        path.write_bytes(b"!<arch>\n" + ar_entry("debian-binary", b"2.0\n") + control + data)
    return path


@pytest.mark.parametrize("registry", ["pypi", "npm", "debian"])
def test_files_of_every_kind_of_package_are_read(tmp_path: Path, registry: str) -> None:
    assert members(write_package(tmp_path, registry)) == FILES


@pytest.mark.parametrize("registry", ["pypi", "npm", "debian"])
def test_a_package_in_the_cache_is_not_downloaded(tmp_path: Path, registry: str) -> None:
    path = write_package(tmp_path, registry)
    assert fetch(source(registry), tmp_path) == path


def test_an_unknown_registry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'ftp' is not pypi, npm or debian"):
        fetch(source("ftp"), tmp_path)


def test_a_missing_download_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    with pytest.raises(SourceError, match=r"guide 1.0 .*\(npm is not installed\)"):
        fetch(source("npm"), tmp_path)


def test_a_failed_download_gives_the_error_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "programs" / "npm"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho 'no such version' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    with pytest.raises(SourceError, match=r"from npm \(no such version\)"):
        fetch(source("npm"), tmp_path)


def test_texts_come_from_the_chosen_files(tmp_path: Path) -> None:
    write_package(tmp_path, "pypi")
    texts = collect(source(), tmp_path, 1)
    assert any("Open the file" in text.text for text in texts)
    assert {text.source for text in texts} == {"guide"}


def test_a_package_without_its_licence_file_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path, "pypi")
    with pytest.raises(SourceError, match="no file pkg/COPYING"):
        collect(source(evidence="pkg/COPYING"), tmp_path, 1)


def test_every_listed_source_has_an_allowed_licence_and_evidence() -> None:
    sources = read_sources()
    assert len({each.name for each in sources}) == len(sources) > 20
    for each in sources:
        assert is_allowed(each.licence), each.name
        assert each.evidence and each.attribution and each.version, each.name


def test_a_source_with_another_licence_is_refused(tmp_path: Path) -> None:
    row = {**source()._asdict(), "licence": "GPL-3.0-only"}
    path = tmp_path / "sources.json"
    path.write_text(json.dumps({"sources": [row]}))
    with pytest.raises(SourceError, match=r"guide has the licence 'GPL-3\.0-only'"):
        read_sources(path)


def test_licences_that_restrict_use_are_not_allowed() -> None:
    for licence in ("GPL-2.0-or-later", "AGPL-3.0-only", "CC-BY-NC-4.0", "CC-BY-ND-4.0", ""):
        assert not is_allowed(licence)


def test_the_table_of_licences_names_every_source() -> None:
    page = LICENCES.read_text("utf-8")
    for each in read_sources():
        assert f"| {each.name} |" in page
        assert f"`{each.package}` {each.version}" in page


def test_the_table_has_counts_and_what_was_dropped() -> None:
    manifest = {
        "texts": 1200,
        "words": 9,
        "sha256": "ab",
        "dropped": {"duplicate": 2, "overlap": 3},
        "sources": {"guide": {"texts": 1200, "bytes": 5}},
    }
    page = table([source()], manifest)
    assert "| guide | PyPI: `guide` 1.0 | MIT | `pkg/LICENSE` | the authors | 1,200 |" in page
    assert "3 texts that share twelve words" in page
