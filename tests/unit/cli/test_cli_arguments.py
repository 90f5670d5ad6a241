"""Which command lines are accepted, and how the others are refused."""

from __future__ import annotations

import json

import pytest

from clawmark.cli import VERBS, main, module_of
from clawmark.cli.arguments import (
    SHORT,
    UsageError,
    asks_for_json,
    count,
    leading_flags,
    make_parser,
    share,
)


def parse(verb: str, *words: str) -> dict[str, object]:
    parser = make_parser(verb, VERBS[verb][1], module_of(verb))
    return vars(parser.parse_args(list(words)))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_common_flags(verb: str) -> None:
    needed = {
        "add": ["x"],
        "remember": ["x"],
        "get": ["x"],
        "edit": ["x"],
        "restore": ["x@y"],
        "completion": ["bash"],
        "db": ["status"],
        "eval": ["x"],
        "import": ["markdown"],
        "hook": ["codex", "x"],
        "install": ["codex"],
        "memory": ["status"],
    }.get(verb, [])
    given = parse(
        verb,
        "--workspace",
        "w",
        "--agent",
        "a",
        "--config",
        "c",
        "--state-dir",
        "s",
        "--json",
        *needed,
    )
    assert [given[name] for name in ("workspace", "agent", "config", "state_dir", "json")] == [
        "w",
        "a",
        "c",
        "s",
        True,
    ]


def test_common_flags_work_before_and_after_the_verb() -> None:
    assert leading_flags(["--config", "x", "--json", "--agent=a", "status", "--json"]) == [
        "--config",
        "x",
        "--json",
        "--agent=a",
    ]
    assert leading_flags(["status", "--json"]) == []


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "abc", "1.5", "1e9", "NaN", "", "99999999999999999999", "١٢", " 3", "+3", "10001"],
)
def test_a_count_must_be_ascii_digits_in_range(text: str) -> None:
    with pytest.raises(UsageError, match="--max-results"):
        parse("search", "tea", "--max-results", text)


@pytest.mark.parametrize("text", ["-1", "2", "abc", "nan", "inf", "-inf", "", "1e-3", "1_0", "0x1"])
def test_a_share_must_be_a_number_from_0_to_1(text: str) -> None:
    with pytest.raises(UsageError, match="--min-score"):
        parse("search", "tea", "--min-score", text)


def test_numbers_in_range_are_accepted() -> None:
    assert [count(1, 10)("1"), count(1, 10)("10")] == [1, 10]
    assert [share("0"), share("1"), share(".5"), share("0.35"), share("1.")] == [0, 1, 0.5, 0.35, 1]


def test_a_query_may_look_like_a_flag() -> None:
    assert parse("search", "--", "--help")["query"] == ["--help"]
    assert parse("search", "a", "b")["query"] == ["a", "b"]


def test_a_flag_cannot_be_abbreviated() -> None:
    with pytest.raises(UsageError, match="nrecognized arguments: --max"):
        parse("search", "x", "--max", "3")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["nosuch"], "There is no command 'nosuch'"),
        (["serach", "x"], "There is no command 'serach'"),
        (["search"], "A query is missing"),
        (["search", "--nosuch", "x"], "nrecognized arguments: --nosuch"),
        (["search", "x", "--batch", "f"], "--batch reads its queries"),
        (["get"], "are required: PATH"),
        (["get", "x", "--from", "0"], "whole number"),
        (["config", "get"], "needs one key"),
        (["config", "list", "x"], "takes no key"),
        (["config", "get", "nosuch"], "There is no key nosuch"),
        (["remember", " "], "nothing to remember"),
        (["help", "nosuch"], "There is no command"),
        (["demo", "--workspace", "x"], "uses its own"),
    ],
)
def test_usage_errors_are_one_line_on_stderr_and_exit_2(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert part in err and err.startswith("clawmark: ")
    assert len(err.splitlines()) <= 2


def test_a_mistyped_verb_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    main(["serach"])
    assert "Did you mean `clawmark search`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb",
    ["delete", "remove", "export", "reinstall", "unindex", "recall", "find", "list"],
)
def test_an_unrelated_word_gets_no_suggestion(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([verb], ["help", verb]):
        assert main(words) == 2
        err = capsys.readouterr().err
        assert "Did you mean" not in err and "`clawmark --help` lists the commands." in err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serach", "search"),
        ("serch", "search"),
        ("stauts", "status"),
        ("idnex", "index"),
        ("rember", "remember"),
    ],
)
def test_the_suggestion_is_the_closest_verb(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([typed], ["help", typed]):
        main(words)
        assert f"Did you mean `clawmark {meant}`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["search", "x", "--max", "3"], "--max-results"),
        (["search", "x", "--min_score=0.2"], "--min-score"),
        (["search", "x", "--worksapce", "w"], "--workspace"),
        (["index", "--dryrun"], "--dry-run"),
    ],
)
def test_an_unknown_flag_gets_the_closest_one_as_suggestion(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"Did you mean {meant}?" in err and len(err.splitlines()) == 2


def test_an_unknown_flag_without_a_close_one_points_to_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["search", "x", "--nosuch"]) == 2
    assert "`clawmark search --help` shows the usage." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--json"],
        ["--json", "nosuch"],
        ["search", "--json"],
        ["search", "--max-results", "x", "--json"],
    ],
)
def test_with_json_an_error_is_one_document_on_stdout(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert set(document["error"]) == {"type", "message", "hint"}


def test_json_after_two_dashes_is_not_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--min-score", "9", "--", "--json"]) == 2
    assert capsys.readouterr().out == ""


def test_the_overview_names_every_verb_and_fits_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {verb} " in text for verb in VERBS)
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_fits_80_columns(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([verb, "--help"]) == 0
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]
    assert not wide


def test_n_is_a_number_in_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        text = capsys.readouterr().out
        assert "-n CITATION" not in text
    assert main(["get", "MEMORY.md", "-n", "x"]) == 2
    assert "must be a whole number" in capsys.readouterr().err
    assert main(["forget", "-n", "memory/2026-11-15.md#L3"]) == 2


def test_without_a_verb_the_overview_and_an_error_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "remember" in err and "A command is missing" in err


@pytest.mark.parametrize("words", [["search", "--help"], ["help", "search"], ["search", "-h"]])
def test_a_verbs_help_has_its_flags_and_examples(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "--min-score" in text and "clawmark search" in text


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import tomllib
    from pathlib import Path

    import clawmark

    project = tomllib.loads(
        (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert clawmark.__version__ == project["project"]["version"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"clawmark {clawmark.__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_a_short_flag_means_the_same_in_every_verb(verb: str) -> None:
    parser = make_parser(verb, VERBS[verb][1], module_of(verb))
    meanings = {"-h": {"--help"}}
    for long, short in SHORT.items():
        meanings.setdefault(short, set()).add(long)
    for action in parser._actions:
        for short in (flag for flag in action.option_strings if len(flag) == 2):
            is_number = short == "-n" and action.metavar == "N"
            assert is_number or meanings[short] & set(action.option_strings), (short, verb)


def test_short_flags_of_every_verb_stand_before_or_after_it() -> None:
    before = ["-w", "dir", "-jq", "-cfile", "-a", "work", "search", "x"]
    assert leading_flags(before) == before[:-2]
    given = parse("search", "-w", "dir", "-jq", "-n", "3", "-l", "x")
    assert (given["workspace"], given["json"], given["quiet"]) == ("dir", True, True)
    assert (given["max_results"], given["files"]) == (3, True)


@pytest.mark.parametrize("words", [["-j"], ["-qj"], ["--json"], ["x", "-vj"]])
def test_a_command_line_that_cannot_be_parsed_still_asks_for_json(words: list[str]) -> None:
    assert asks_for_json(words)


@pytest.mark.parametrize("words", [[], ["-wjo"], ["--", "-j"], ["j"], ["--jso"]])
def test_other_words_do_not_ask_for_json(words: list[str]) -> None:
    assert not asks_for_json(words)


def test_a_usage_error_is_json_after_the_short_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "-j", "--nope", "x"]) == 2
    assert json.loads(capsys.readouterr().out)["ok"] is False
