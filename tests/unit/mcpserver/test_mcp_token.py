"""The token file is created once, completely, and readable by the owner only."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawmark.mcp.http.token import STRONG_BYTES, read_token, token_path
from clawmark.model.errors import ConfigError


def test_the_first_start_creates_a_private_token_and_the_next_one_keeps_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    token = read_token(str(state))
    assert len(token) >= STRONG_BYTES
    assert read_token(str(state)) == token
    assert [file.name for file in state.iterdir()] == ["mcp-token"]
    assert os.stat(token_path(str(state))).st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700


def test_servers_starting_at_once_get_the_same_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        tokens = set(pool.map(read_token, [str(tmp_path / "state")] * 64))
    assert len(tokens) == 1


@pytest.mark.parametrize("text", ["", "\n", "two words\n", "nul\0\n", "ümlaut\n"])
def test_an_invalid_token_is_not_used(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp-token"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="does not hold a token"):
        read_token(str(tmp_path))


def test_a_link_a_folder_or_a_pipe_is_not_used_as_token(tmp_path: Path) -> None:
    file = tmp_path / "mcp-token"
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        read_token(str(tmp_path))
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError):
        read_token(str(tmp_path))
    file.rmdir()
    os.mkfifo(file, 0o600)
    with pytest.raises(ConfigError):
        read_token(str(tmp_path))


def test_a_token_that_other_users_can_read_is_not_used(tmp_path: Path) -> None:
    read_token(str(tmp_path))
    (tmp_path / "mcp-token").chmod(0o640)
    with pytest.raises(ConfigError, match="other users may have read it"):
        read_token(str(tmp_path))


def test_the_error_names_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place", encoding="utf-8")
    with pytest.raises(ConfigError, match="state"):
        read_token(str(tmp_path / "state"))
