"""`clawmark config`: values, origins, places; never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.cli import main
from clawmark.cli.settings.values import find_key
from clawmark.config.check import allowed_values
from clawmark.config.keys import BY_NAME, KEYS


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Flags that lead to a state folder with a configuration."""
    state = tmp_path / "state"
    state.mkdir()
    body = {
        "agents": {
            "defaults": {
                "memorySearch": {
                    "provider": "ollama",
                    "query": {"maxResults": 9},
                    "remote": {"apiKey": "sk-FAKE-1234", "headers": {"X-Key": "FAKE-5678"}},
                }
            }
        }
    }
    (state / "clawmark.json").write_text(json.dumps(body), encoding="utf-8")
    return ["--state-dir", str(state), "--workspace", str(tmp_path)]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_every_used_key_is_listed_with_value_and_origin(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(answer(capsys, "config", "list", "--json", *flags))["settings"]
    by_key = {row["key"]: row for row in rows}
    assert {key.name for key in KEYS} == set(by_key)
    assert by_key["memorySearch.query.maxResults"]["value"] == 9
    assert by_key["memorySearch.query.maxResults"]["origin"].startswith("file ")
    assert by_key["memorySearch.query.minScore"] == {
        "key": "memorySearch.query.minScore",
        "value": 0.35,
        "origin": "default",
    }


def test_a_proxy_is_shown_without_its_password(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(flags[1]) / "clawmark.json"
    file.write_text(
        '{memorySearch: {remote: {proxy: "http://me:FAKE-p@ss@proxy.test:8080"}}}', encoding="utf-8"
    )
    shown = answer(capsys, "config", "get", "remote.proxy", *flags)
    assert shown == "http://(hidden)@proxy.test:8080\n"
    assert "FAKE" not in answer(capsys, "config", "list", "--json", *flags)


def test_secrets_are_never_shown(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["config", "list"],
        ["config", "list", "--json"],
        ["config", "get", "remote.apiKey"],
        ["config", "get", "remote.headers", "--json"],
        ["config", "schema"],
    ):
        text = answer(capsys, *words, *flags)
        assert "FAKE" not in text
    assert "(hidden)" in answer(capsys, "config", "get", "memorySearch.remote.apiKey", *flags)


def test_a_key_is_found_by_its_path_or_its_end(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "memorySearch.query.maxResults",
        "agents.defaults.memorySearch.query.maxResults",
        "memory.search.query.maxResults",
        "query.maxResults",
        "maxResults",
    ):
        assert answer(capsys, "config", "get", name, *flags) == "9\n"
    assert answer(capsys, "config", "get", "provider", *flags) == "ollama\n"
    assert find_key("lambda") is BY_NAME["memorySearch.query.hybrid.mmr.lambda"]


def test_an_ambiguous_or_unknown_key_is_refused(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "get", "mode", *flags]) == 2
    assert "may be" in capsys.readouterr().err
    assert main(["config", "get", "memorySearch.provder", *flags]) == 2
    assert "Did you mean memorySearch.provider?" in capsys.readouterr().err


def test_places_are_shown_before_anything_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.loads(
        answer(capsys, "config", "path", "--json", "--state-dir", str(tmp_path / "new"))
    )
    assert body["stateDir"] == str(tmp_path / "new")
    assert body["configExists"] is False
    assert not (tmp_path / "new").exists()
    assert "not there" in answer(capsys, "config", "path", "--state-dir", str(tmp_path / "new"))


def test_the_schema_describes_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(answer(capsys, "config", "schema", "--json"))["keys"]
    assert [row["key"] for row in rows] == [key.name for key in KEYS]
    assert all(row["allowed"] == allowed_values(BY_NAME[row["key"]]) for row in rows)
    assert "memorySearch.query.minScore" in answer(capsys, "config", "schema")


def test_a_wrong_value_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"memorySearch": {"query": {"minScore": 2}}}', encoding="utf-8")
    assert main(["config", "list", "--config", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == (
        f"clawmark: {path}, line 1: memorySearch.query.minScore must be a number from 0 to 1, "
        f"not 2."
    )


def test_a_mistyped_key_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text("{memorySearch: {provder: 'x'}}", encoding="utf-8")
    assert main(["config", "list", "--config", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "Did you mean memorySearch.provider?" in json.loads(out)["warnings"][0]
    assert "provder" in err
