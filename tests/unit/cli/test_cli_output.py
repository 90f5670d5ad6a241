"""Output is safe for a terminal and never a traceback."""

from __future__ import annotations

import io
import json

import pytest

from clawmark.cli import output
from clawmark.model.errors import ClawmarkError, ConfigError, PathDenied


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("c1\x9b31m", "c1\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\u200bb", "a\\u200bb"),
        ("bad \udcff byte", "bad \\udcff byte"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("line\u2028sep", "line\\u2028sep"),
        ("carriage\rreturn", "carriage\\x0dreturn"),
        ("família 👨\u200d👩 日本語 عربى", "família 👨\u200d👩 日本語 عربى"),
    ],
)
def test_control_and_direction_characters_are_escaped(text: str, shown: str) -> None:
    assert output.plain(text) == shown


def test_a_path_with_a_newline_is_printed_on_one_line() -> None:
    assert output.place("memory/a\nb\t.md#L1") == "memory/a\\nb\\t.md#L1"
    assert output.place("memory/a  b.md") == "memory/a  b.md"


def test_one_line_joins_lines() -> None:
    assert output.one_line("a\n\n  b\tc\x1b") == "a b c\\x1b"


def test_an_error_has_its_message_hint_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    error = PathDenied("x\x1b is denied.", path="x", rule="outside", hint="Do this.")
    assert output.report(error, as_json=False) == 4
    assert capsys.readouterr() == ("", "clawmark: x\\x1b is denied.\n  Do this.\n")


def test_an_error_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.report(ConfigError("No.", hint="Yes."), as_json=True) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "ok": False,
        "error": {"type": "ConfigError", "message": "No.", "hint": "Yes."},
    }
    assert err == ""


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (ZeroDivisionError("division"), "unexpected error occurred (ZeroDivisionError: division)"),
        (MemoryError(), "ran out of memory"),
        (OSError(28, "No space left on device", "/x"), "No space left on device (/x)"),
        (RecursionError("too deep"), "RecursionError"),
    ],
)
def test_an_unexpected_error_is_printed_without_a_traceback(
    error: Exception, part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAWMARK_DEBUG", raising=False)
    assert output.report_unexpected(error, as_json=False) == 3
    err = capsys.readouterr().err
    assert part in err and "Traceback" not in err


def test_clawmark_debug_prints_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAWMARK_DEBUG", "1")
    output.report_unexpected(ZeroDivisionError("x"), as_json=False)
    assert "ZeroDivisionError: x" in capsys.readouterr().err


def test_json_never_holds_nan() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        output.emit({"score": float("nan")})


def test_colour_is_used_only_on_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.paint("x", "bold") == "x"
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.paint("x", "bold") == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("x", "bold") == "x"


def test_the_width_comes_from_columns_or_is_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    assert output.columns() == 123
    monkeypatch.setenv("COLUMNS", "x")
    assert output.columns() == 80


def test_a_full_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        output.say("x")
        with pytest.raises(ClawmarkError, match="No space left"):
            output.flush()


def luminance(colour: tuple[int, int, int]) -> float:
    parts = [one / 255 for one in colour]
    red, green, blue = (
        one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("style", output.FIXED_COLOURS)
@pytest.mark.parametrize("background", [(0, 0, 0), (30, 30, 30), (255, 255, 255), (253, 246, 227)])
def test_a_colour_can_be_read_on_dark_and_on_light(
    style: str, background: tuple[int, int, int]
) -> None:
    number = int(output.FIXED_COLOURS[style].removeprefix("38;5;")) - 16
    levels = (0, 95, 135, 175, 215, 255)  # of the 6x6x6 cube of 256 colours
    colour = (levels[number // 36], levels[number // 6 % 6], levels[number % 6])
    dark, light = sorted((luminance(colour), luminance(background)))
    assert (light + 0.05) / (dark + 0.05) >= 3


@pytest.mark.parametrize(
    ("term", "colorterm", "code"),
    [
        ("xterm-256color", "", "38;5;31"),
        ("linux", "", "36"),
        ("xterm-kitty", "truecolor", "38;5;31"),
    ],
)
def test_terminals_with_few_colours_get_their_own(
    term: str, colorterm: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    assert output.paint("x", "cyan", Terminal()) == f"\x1b[{code}mx\x1b[0m"
