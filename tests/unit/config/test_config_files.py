"""Configuration files as they are found on disk."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from clawmark.config.files import line_of, read_config
from clawmark.model.errors import ConfigError


def refused(path: Path | str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(str(path))
    assert caught.value.file == str(path)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_json_and_json5_are_read(tmp_path: Path) -> None:
    path = tmp_path / "clawmark.json"
    path.write_bytes(b'{"a": {"b": [1, 2]}}')
    assert read_config(str(path)).tree == {"a": {"b": [1, 2]}}
    path.write_bytes(b"\xef\xbb\xbf{ // why\r\n a: 1,\r\n}\r\n")
    assert read_config(str(path)).tree == {"a": 1}


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "clawmark.json")
    assert "is a FIFO" in refused(tmp_path / "clawmark.json")


def test_a_folder_a_device_and_a_socket_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is a folder" in refused(tmp_path)
    assert "is a device" in refused("/dev/null")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        assert "could not be opened" in refused(tmp_path / "s")


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_config(str(tmp_path / "nosuch.json"))


def test_a_huge_file_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "clawmark.json"
    with path.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert "larger than" in refused(path)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"[]", "not a list"),
        (b"null", "not null"),
        (b"{}".decode().encode("utf-16"), "UTF-16"),
        (b'{\n"a": "\xff"}', "line 2: the byte 0xff is not UTF-8"),
        (
            b'{"a": {"a": 1, "a": 2}}',
            "line 1, column 16: duplicate key a in one object (in a)",
        ),
        (b"{\n  a: {\n    b: nope } }", "line 3, column 8: expected a value"),
        (b"[" * 100_000, "levels deep"),
        (b'{"a":' * 5_000, "levels deep"),
    ],
)
def test_an_invalid_file_is_reported_in_one_sentence(
    tmp_path: Path, data: bytes, part: str
) -> None:
    path = tmp_path / "clawmark.json"
    path.write_bytes(data)
    message = refused(path)
    assert part in message
    assert str(path) in message


def test_a_number_with_thousands_of_digits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "clawmark.json"
    path.write_text('{"a": ' + "9" * 10_000 + "}", encoding="utf-8")
    assert read_config(str(path)).tree == {"a": float("inf")}


def test_lines_are_found_for_keys_and_for_items_of_lists() -> None:
    text = '{\n"a": {\n"b": [1,\n2]}}'
    assert line_of(text, ("a", "b")) == 3
    assert line_of(text, ("a", "b", 1)) == 3
    assert line_of(text, ("nosuch",)) == 0
