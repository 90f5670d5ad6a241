"""`clawmark config set`, `unset` and `edit` on real files, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLAWMARK, Place, new_place, says_one_clear_thing

KEY = "memorySearch.query.maxResults"

COMMENTED = """\
// My settings
{
  agents: {
    defaults: {
      memorySearch: {
        provider: 'none', // no vectors
        query: { maxResults: 4, /* few */ minScore: 0.2 },
      },
    },
  },
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def config(place: Place) -> Path:
    return place.state / "clawmark.json"


def written(place: Place, text: str) -> Path:
    place.state.mkdir(exist_ok=True)
    config(place).write_text(text, encoding="utf-8")
    return config(place)


def value(place: Place, key: str = KEY, *flags: str) -> object:
    return place.run("config", "get", key, "-j", *flags).json()["value"]


def test_a_value_is_set_in_a_new_private_file_and_takes_effect(place: Place) -> None:
    done = place.run("config", "set", "query.maxResults", "1")
    assert done.code == 0 and done.err == ""
    assert done.out == f"{KEY} = 1\nWritten to {config(place)}.\n"
    assert config(place).stat().st_mode & 0o777 == 0o600
    assert len(place.run("search", "PostgreSQL cable", "-j").json()["results"]) == 1


def test_comments_and_layout_stay_when_a_value_changes(place: Place) -> None:
    file = written(place, COMMENTED)
    assert place.run("config", "set", KEY, "8").code == 0
    assert file.read_text(encoding="utf-8") == COMMENTED.replace("maxResults: 4", "maxResults: 8")
    assert place.run("config", "unset", KEY).code == 0
    text = file.read_text(encoding="utf-8")
    assert text == COMMENTED.replace(" maxResults: 4,", "")
    assert value(place) == 6


def test_a_missing_key_is_added_next_to_the_others(place: Place) -> None:
    file = written(place, COMMENTED)
    done = place.run("config", "set", "memory.citations", "off", "-j").json()
    assert done == {
        "key": "memory.citations",
        "value": "off",
        "origin": f"file {file}",
        "file": str(file),
        "changed": True,
    }
    text = file.read_text(encoding="utf-8")
    assert text.replace('\n  "memory": {\n    "citations": "off"\n  },', "") == COMMENTED


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("memorySearch.enabled", "false", False),
        ("memorySearch.query.minScore", ".5", 0.5),
        ("memorySearch.sources", "memory,sessions", ["memory", "sessions"]),
        ("memorySearch.sources", "['sessions']", ["sessions"]),
        ("memorySearch.fallback", "openai", ["openai"]),
        ("agents.defaults.userTimezone", "Europe/Berlin", "Europe/Berlin"),
        ("tools.deny", "memory_append", ["memory_append"]),
    ],
)
def test_values_are_typed_by_their_key(place: Place, key: str, text: str, expected: object) -> None:
    assert place.run("config", "set", key, text).code == 0
    assert value(place, key) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((KEY, "many"), "must be a whole number"),
        (("memorySearch.enabled", "yes"), "must be true or false"),
        (("memory.citations", "sometimes"), 'must be "auto"'),
        (("memorySearch.query.maxReslts", "3"), f"Did you mean {KEY}?"),
        (("memorySearch.remote.baseUrl", "ftp://x"), "is refused"),
        (("memorySearch.provider", "opnai"), "which is not a provider"),
        (("session.resetByType.group", "x"), "has no effect"),
    ],
)
def test_a_wrong_key_or_value_changes_nothing(
    place: Place, words: tuple[str, str], message: str
) -> None:
    file = written(place, COMMENTED)
    done = place.run("config", "set", *words)
    assert done.code == 2 and says_one_clear_thing(done) and message in done.err
    assert file.read_text(encoding="utf-8") == COMMENTED


@pytest.mark.parametrize(
    ("key", "text"), [("userTimezone", "Mars/Base"), ("memorySearch.extraPaths", "/")]
)
def test_a_value_that_the_settings_as_a_whole_refuse_changes_nothing(
    place: Place, key: str, text: str
) -> None:
    file = written(place, COMMENTED)
    done = place.run("config", "set", key, text)
    assert done.code == 2 and says_one_clear_thing(done) and "Nothing was changed" in done.err
    assert file.read_text(encoding="utf-8") == COMMENTED


def test_a_provider_whose_key_is_still_missing_is_set(place: Place) -> None:
    keyless = {"OPENAI_API_KEY": None}
    assert place.run("config", "set", "provider", "openai", env=keyless).code == 0
    assert place.run("config", "set", "remote.apiKey", "${NOT_SET_HERE}", env=keyless).code == 0
    assert value(place, "memorySearch.provider") == "openai"


def test_a_warning_about_the_value_is_shown(place: Place) -> None:
    written(place, "{ memorySearch: { chunking: { tokens: 50 } } }")
    done = place.run("config", "set", "chunking.overlap", "900")
    assert done.code == 0 and "overlap = 49" in done.out and "is 900; 49 is used" in done.err


def test_a_secret_comes_from_standard_input_and_is_not_shown(place: Place) -> None:
    done = place.run("config", "set", "memorySearch.remote.apiKey", "-", stdin="sk-canary-1\n")
    assert done.code == 0 and "sk-canary-1" not in done.out + done.err and "(hidden)" in done.out
    assert '"sk-canary-1"' in config(place).read_text(encoding="utf-8")
    again = place.run("config", "set", "-j", "memorySearch.remote.apiKey", "sk-canary-2")
    assert "sk-canary" not in again.out + again.err
    wrong = place.run("config", "set", "memorySearch.remote.apiKey", "sk-canary-3\x07")
    assert wrong.code == 2 and "canary" not in wrong.out + wrong.err


def test_the_place_where_the_value_takes_effect_is_changed(place: Place) -> None:
    text = (
        "{ agents: { defaults: { memorySearch: { provider: 'auto' } },\n"
        "    list: [{ id: 'work' },\n"
        "      { id: 'main', default: true, memorySearch: { provider: 'static' } }] } }"
    )
    file = written(place, text)
    assert place.run("config", "set", "provider", "none").code == 0
    assert file.read_text(encoding="utf-8") == text.replace("'static'", '"none"')
    assert place.run("config", "set", "-a", "work", "provider", "static").code == 0
    assert value(place, "memorySearch.provider", "-a", "work") == "static"
    assert value(place, "memorySearch.provider") == "none"
    assert place.run("config", "unset", "provider").code == 0
    assert value(place, "memorySearch.provider") == "auto"


def test_a_value_overridden_by_the_workspace_is_reported(place: Place) -> None:
    place.write(".clawmark/settings.json", "{ memorySearch: { query: { maxResults: 2 } } }")
    done = place.run("config", "set", KEY, "9")
    assert done.code == 0 and f"{KEY} = 2" in done.out and "comes from: workspace" in done.err


def test_unset_of_a_key_that_is_not_set_says_so(place: Place) -> None:
    done = place.run("config", "unset", KEY)
    assert (done.code, done.out) == (0, f"{KEY} is not set in {config(place)}.\n")
    assert not config(place).exists()


def test_openclaws_own_file_is_not_written(place: Place) -> None:
    place.state.mkdir()
    theirs = place.state / "openclaw.json"
    theirs.write_text("{ memorySearch: { provider: 'none' } }", encoding="utf-8")
    done = place.run("config", "set", KEY, "9", "-j").json()
    assert done["file"] == str(place.state / "clawmark" / "clawmark.json")
    assert theirs.read_text(encoding="utf-8") == "{ memorySearch: { provider: 'none' } }"
    assert (value(place), value(place, "memorySearch.provider")) == (9, "none")


def test_a_link_and_the_permissions_of_its_file_stay(place: Place) -> None:
    dotfiles = place.folder / "dotfiles.json"
    dotfiles.write_text("{}", encoding="utf-8")
    dotfiles.chmod(0o640)
    place.state.mkdir()
    config(place).symlink_to(dotfiles)
    assert place.run("config", "set", KEY, "9").code == 0
    assert config(place).is_symlink() and "9" in dotfiles.read_text(encoding="utf-8")
    assert dotfiles.stat().st_mode & 0o777 == 0o640


def test_included_files_still_count_and_are_not_written(place: Place) -> None:
    file = written(place, "{ $include: 'base.json' }")
    base = place.state / "base.json"
    base.write_text("{ memory: { citations: 'off' } }", encoding="utf-8")
    assert place.run("config", "set", "memory.citations", "on").code == 0
    assert value(place, "memory.citations") == "on"
    assert base.read_text(encoding="utf-8") == "{ memory: { citations: 'off' } }"
    assert "$include: 'base.json'" in file.read_text(encoding="utf-8")


def test_changes_of_several_processes_at_once_are_all_kept(place: Place) -> None:
    keys = ["query.maxResults", "chunking.tokens", "cache.maxEntries", "sync.intervalMinutes"]
    running = [
        subprocess.Popen(
            [*CLAWMARK, "config", "set", key, "77", "-q"],
            env=place.environment(),
            stdout=subprocess.DEVNULL,
        )
        for key in keys
    ]
    assert [process.wait() for process in running] == [0] * len(keys)
    assert [value(place, f"memorySearch.{key}") for key in keys] == [77] * len(keys)
    assert [file.name for file in place.state.iterdir() if "new" in file.name] == []


def editor(place: Place, body: str) -> dict[str, str | None]:
    script = place.folder / "editor.py"
    head = "import pathlib, sys\nfile = pathlib.Path(sys.argv[-1])\n"
    script.write_text(head + body, encoding="utf-8")
    return {"EDITOR": f"'{sys.executable}' '{script}'", "VISUAL": None}


REPLACE = "file.write_text(file.read_text().replace({0!r}, {1!r}))\n"


def test_the_whole_file_is_edited_and_checked(place: Place) -> None:
    file = written(place, COMMENTED)
    done = place.run("config", "edit", env=editor(place, REPLACE.format("4", "5")))
    assert done.code == 0 and value(place) == 5
    wrong = place.run("config", "edit", env=editor(place, REPLACE.format("5", "'x'")))
    assert wrong.code == 2 and says_one_clear_thing(wrong) and "must be a whole number" in wrong.err
    assert "line 7" in wrong.err and str(file) in wrong.err
    (copy,) = (one for one in (place.state / "edits").rglob("*.json"))
    assert str(copy) in wrong.err and "maxResults: 'x'" in copy.read_text(encoding="utf-8")
    assert value(place) == 5


def test_a_broken_file_can_be_repaired_in_the_editor(place: Place) -> None:
    file = written(place, "{ memory: { citations: 'off' }")
    assert place.run("config", "set", KEY, "3").code == 2
    done = place.run("config", "edit", env=editor(place, "file.write_text(file.read_text()+'}')\n"))
    assert done.code == 0 and value(place, "memory.citations") == "off"
    assert file.read_text(encoding="utf-8") == "{ memory: { citations: 'off' }}"


def test_a_file_that_changed_while_it_was_edited_is_not_overwritten(place: Place) -> None:
    file = written(place, COMMENTED)
    body = REPLACE.format("4", "5") + f"pathlib.Path({str(file)!r}).write_text('{{}}')\n"
    done = place.run("config", "edit", env=editor(place, body))
    assert done.code == 4 and says_one_clear_thing(done) and "edits" in done.err
    assert file.read_text(encoding="utf-8") == "{}"


def test_an_unchanged_new_file_is_not_created(place: Place) -> None:
    done = place.run("config", "edit", env=editor(place, ""))
    assert done.code == 0 and "unchanged" in done.out and not config(place).exists()
