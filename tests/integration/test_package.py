"""The package as people get it: it is built, PyPI accepts its page, and its wheel works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

pytest.importorskip("build")
pytest.importorskip("twine")

from clean_environment import make_environment
from commands import HANG_SECONDS

from clawmark import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    ran = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The programs of an environment with the wheel and the extras `local` and `mcp`."""
    return make_environment(tmp_path_factory.mktemp("full") / "venv", wheel, ("local", "mcp"))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return message_from_string(
            archive.read(f"clawmark-{__version__}.dist-info/METADATA").decode("utf-8")
        )


def run(programs: Path, home: Path, words: Sequence[str], stdin: str = "") -> str:
    """Run the installed command with a home of its own, outside of the repository."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    env = {**kept, "HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.defpath}"}
    ran = subprocess.run(
        ["clawmark", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=env,
        cwd=home,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_twine_accepts_the_source_archive_and_the_wheel(built: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(built.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("PASSED") == 2


def test_the_page_on_pypi_has_the_readme_the_addresses_and_the_systems(wheel: Path) -> None:
    page = metadata(wheel)
    assert page["Description-Content-Type"] == "text/markdown"
    assert page.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    urls = dict(line.split(", ") for line in page.get_all("Project-URL", []))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert all(url.startswith("https://github.com/clawmark/clawmark") for url in urls.values())
    systems = [line for line in page.get_all("Classifier", []) if line.startswith("Operating")]
    assert len(systems) == 3


def test_the_extra_all_has_every_extra_but_those_for_developers() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("clawmark[").removesuffix("]").split(",")
    assert sorted(named) == sorted(set(extras) - {"all", "test", "docs"})


def test_the_wheel_has_the_weights_and_the_source_archive_what_builds_it(built: Path) -> None:
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    data = {"clawmark/embed/local/data/static.bin", "clawmark/embed/local/data/encoder.bin"}
    assert data <= set(names)
    assert "clawmark/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]
    with tarfile.open(archive) as source:
        held = {name.partition("/")[2] for name in source.getnames()}
    assert {"training/README.md", "README.md", "LICENSE", "pyproject.toml"} <= held


def test_the_wheel_alone_shows_the_demo_and_finds_a_note(wheel: Path, tmp_path: Path) -> None:
    programs = make_environment(tmp_path / "venv", wheel)
    home = tmp_path / "home"
    home.mkdir()
    assert "Why were customers charged twice?" in run(programs, home, ["demo"])
    run(programs, home, ["init", "agent"])
    run(programs, home, ["remember", "We chose PostgreSQL for billing"])
    found = json.loads(run(programs, home, ["search", "billing database", "--json"]))
    assert "PostgreSQL" in found["results"][0]["snippet"]


def test_the_wheel_with_its_model_shows_the_demo_with_it(full: Path, tmp_path: Path) -> None:
    assert "hybrid (granite-embedding-30m-english)" in run(full, tmp_path, ["demo"])


def test_the_wheel_starts_an_mcp_server_that_answers(full: Path, tmp_path: Path) -> None:
    run(full, tmp_path, ["init", "agent"])
    run(full, tmp_path, ["remember", "We chose PostgreSQL for billing"])
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    asked = {"name": "memory_search", "arguments": {"query": "billing database"}}
    requests: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    said = run(full, tmp_path, ["mcp"], "".join(f"{json.dumps(one)}\n" for one in requests))
    answers = {one["id"]: one for one in map(json.loads, said.splitlines()) if "id" in one}
    assert answers[1]["result"]["serverInfo"]["name"] == "clawmark"
    assert "PostgreSQL" in json.dumps(answers[2]["result"])


def test_the_wheel_brings_the_man_page(full: Path) -> None:
    page = full.parent / "share" / "man" / "man1" / "clawmark.1"
    assert page.read_text(encoding="utf-8").startswith('.\\" Written by scripts/reference')
