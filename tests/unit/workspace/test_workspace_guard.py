"""Opening below a folder: what passes, what is refused, and with which words."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.workspace import guard


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "memory" / "deep").mkdir(parents=True)
    (root / "memory" / "a.md").write_text("inside\n")
    (root / "memory" / "deep" / "b.md").write_text("deep\n")
    (tmp_path / "keys.md").write_text("canary\n")
    return root


@pytest.fixture(params=["descriptor", "best-effort"])
def root(request: pytest.FixtureRequest, folder: Path) -> Iterator[guard.Folder]:
    """Every rule holds in both ways of keeping paths inside; only races tell them apart."""
    with guard.open_root(str(folder), descriptors=request.param == "descriptor") as opened:
        yield opened


def read(root: guard.Folder, relative: str) -> str:
    with os.fdopen(guard.open_beneath(root, relative)) as file:
        return file.read()


def denied(root: guard.Folder, relative: str) -> PathDenied:
    with pytest.raises(PathDenied) as caught:
        guard.open_beneath(root, relative)
    return caught.value


def test_a_file_below_the_root_is_opened(root: guard.Folder) -> None:
    assert read(root, "memory/a.md") == "inside\n"
    assert read(root, "memory/deep/b.md") == "deep\n"


def test_an_absent_file_is_not_a_refusal(root: guard.Folder) -> None:
    for absent in ("memory/none.md", "none/none.md"):
        with pytest.raises(FileNotFoundError):
            guard.open_beneath(root, absent)


@pytest.mark.parametrize(
    ("relative", "rule"),
    [
        ("", "bad-name"),
        ("  ", "bad-name"),
        ("memory/../../keys.md", "outside"),
        ("../keys.md", "outside"),
        ("..", "outside"),
        ("/etc/passwd", "outside"),
        ("//etc/passwd", "outside"),
        ("memory/../memory/a.md", "bad-name"),
        ("memory/./a.md", "bad-name"),
        ("memory//a.md", "bad-name"),
        ("memory/a.md/", "bad-name"),
        ("memory/a.md\0.txt", "bad-name"),
        ("memory/\ud83d.md", "bad-name"),
        ("a/" * 64 + "x.md", "bad-name"),
        ("memory/" + "n" * 300 + ".md", "bad-name"),
        ("memory/a.md/x.md", "not-a-file"),
        ("memory/deep", "not-a-file"),
    ],
)
def test_an_absolute_dotted_or_empty_path_is_refused(
    root: guard.Folder, relative: str, rule: str
) -> None:
    refusal = denied(root, relative)
    assert (refusal.rule, refusal.path) == (rule, relative)
    assert refusal.message.endswith(".")
    assert "\n" not in refusal.message


def test_the_refusal_of_an_outside_path_says_how_to_allow_it(root: guard.Folder) -> None:
    refusal = denied(root, "memory/../../keys.txt")
    assert refusal.message == "memory/../../keys.txt is outside the workspace."
    assert refusal.hint == "To allow its folder, add it to memorySearch.extraPaths."


@pytest.mark.parametrize("name", ["out.md", "loop.md", "dangling.md", "abs.md"])
def test_a_link_is_never_followed(
    root: guard.Folder, folder: Path, tmp_path: Path, name: str
) -> None:
    targets = {
        "out.md": "../../keys.md",
        "loop.md": "loop.md",
        "dangling.md": "none.md",
        "abs.md": f"{tmp_path}/keys.md",
    }
    (folder / "memory" / name).symlink_to(targets[name])
    refusal = denied(root, f"memory/{name}")
    assert (refusal.rule, refusal.message) == (
        "link",
        f"memory/{name} is a link, and links are never followed.",
    )


def test_a_link_on_the_way_is_never_followed(
    root: guard.Folder, folder: Path, tmp_path: Path
) -> None:
    (folder / "memory" / "away").symlink_to(tmp_path)
    refusal = denied(root, "memory/away/keys.md")
    assert refusal.rule == "link"
    assert (
        refusal.message
        == "memory/away/keys.md goes through away, a link, and links are never followed."
    )


def test_a_pipe_does_not_block(root: guard.Folder, folder: Path) -> None:
    os.mkfifo(folder / "memory" / "pipe.md")
    refusal = denied(root, "memory/pipe.md")
    assert (refusal.rule, refusal.message) == (
        "not-a-file",
        "memory/pipe.md is a pipe, not a file.",
    )


def test_a_socket_is_not_a_file(
    root: guard.Folder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "memory")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("sock.md")
        refusal = denied(root, "memory/sock.md")
    assert (refusal.rule, refusal.message) == (
        "not-a-file",
        "memory/sock.md is a socket, not a file.",
    )


def test_a_file_over_the_limit_is_refused(root: guard.Folder, folder: Path) -> None:
    with (folder / "memory" / "big.md").open("wb") as file:
        file.truncate(guard.MAX_FILE_BYTES + 1)
    assert denied(root, "memory/big.md").rule == "too-large"


def test_a_file_at_the_limit_is_opened(root: guard.Folder, folder: Path) -> None:
    with (folder / "memory" / "big.md").open("wb") as file:
        file.truncate(guard.MAX_FILE_BYTES)
    os.close(guard.open_beneath(root, "memory/big.md"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_error_and_not_a_refusal(root: guard.Folder, folder: Path) -> None:
    (folder / "memory" / "a.md").chmod(0)
    with pytest.raises(
        WorkspaceError, match=r"memory/a\.md cannot be read: permission denied\."
    ) as caught:
        guard.open_beneath(root, "memory/a.md")
    assert not isinstance(caught.value, PathDenied)


def open_descriptors() -> int:
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.is_dir() else 0


def test_no_descriptor_is_left_open(root: guard.Folder, folder: Path) -> None:
    (folder / "memory" / "away").symlink_to("..")
    before = open_descriptors()
    for relative in (
        "memory/deep/none.md",
        "memory/deep",
        "memory/away/x.md",
        "memory/deep/b.md/x.md",
    ):
        with pytest.raises((FileNotFoundError, PathDenied)):
            guard.open_beneath(root, relative)
    os.close(guard.open_beneath(root, "memory/deep/b.md"))
    assert open_descriptors() == before


def test_a_root_that_is_a_link_is_not_opened(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    for descriptors in (True, False):
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            guard.open_root(str(tmp_path / "alias"), descriptors=descriptors)


def test_containment_is_reported() -> None:
    assert guard.containment() == "descriptor"


def test_a_shown_path_fits_on_one_line() -> None:
    assert guard.shown("memory/a b é 项.md") == "memory/a b é 项.md"
    assert guard.shown("a\nb\x1b[31m\u202e") == "a\\nb\\x1b[31m\\u202e"
    assert guard.shown(os.fsdecode(b"caf\xe9.md")) == "caf\\xe9.md"
    assert guard.shown("\ud83d") == "\\ud83d"
    assert len(guard.shown("a" * 100_000)) < 200
