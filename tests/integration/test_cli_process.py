"""The process around a command: streams, locale, signals, limits, terminals, crowds."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, new_place, says_one_clear_thing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.run("index", "--instant")
    return made


def shell(place: Place, command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which `clawmark` is the command."""
    words = f'clawmark() {{ "{sys.executable}" -m clawmark "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", words],
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
        env=place.environment(env),
        cwd=place.folder,
    )


@pytest.mark.parametrize(
    "command",
    [
        "clawmark search tea | head -c0",
        "clawmark search tea >&-",
        "clawmark config schema | head -1",
    ],
)
def test_a_closed_output_ends_quietly(place: Place, command: str) -> None:
    assert shell(place, command).stderr == ""


@pytest.mark.parametrize("command", ["search tea", "search tea --json", "config schema", "status"])
def test_a_full_output_is_a_clear_error(place: Place, command: str) -> None:
    ran = shell(place, f"clawmark {command} > /dev/full")
    assert ran.returncode == 3
    assert ran.stderr.startswith("clawmark: The output could not be written: No space left")
    assert "Traceback" not in ran.stderr and "Exception" not in ran.stderr


def test_closed_standard_streams_are_tolerated(place: Place) -> None:
    assert shell(place, "clawmark status <&-").returncode == 0
    assert shell(place, "clawmark nosuch 2>&-").returncode == 2
    assert shell(place, "clawmark index <&- >&- 2>&-").returncode == 0
    assert shell(place, "clawmark verify").returncode == 0


def test_an_ascii_locale_finds_and_names_the_same_files(place: Place) -> None:
    place.write("memory/café.md", "Le café est fermé.\n")
    before = place.run("index", "--json").json()
    assert before["added"] == 1
    ascii_locale: dict[str, str | None] = {
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": None,
    }
    again = place.run("index", "--json", env=ascii_locale).json()
    assert (again["added"], again["deleted"]) == (0, 0)
    ran = place.run("search", "café", env=ascii_locale)
    assert ran.code == 0 and "memory/café.md" in ran.out


def test_a_note_cannot_move_the_cursor(place: Place) -> None:
    place.write("memory/evil.md", "zebra \x1b]0;owned\x07 \u202egnp stripes\n")
    for words in (["search", "zebra"], ["get", "memory/evil.md"]):
        out = place.run(*words).out
        assert "\\x1b]0;owned" in out and "\x1b" not in out and "\u202e" not in out


def test_colour_and_progress_appear_only_on_terminals(place: Place) -> None:
    assert "\x1b[" in on_a_terminal(place, "search", "tea")
    assert "\x1b[" not in on_a_terminal(place, "search", "tea", NO_COLOR="1")
    drawn = on_a_terminal(place, "index", "--force")
    assert "memory  " in drawn and "\x1b[2K" in drawn
    assert "\x1b" not in on_a_terminal(place, "index", "--force", "--json")


def on_a_terminal(place: Place, *words: str, **env: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*CLAWMARK, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=place.environment({"TERM": "xterm", "NO_COLOR": None, **env}),
    )
    os.close(theirs)
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            piece = b""
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert child.wait(HANG_SECONDS) == 0
    return b"".join(pieces).decode("utf-8")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_a_command_cleanly(place: Place, number: int, code: int) -> None:
    """The batch has answered its first line, so the command is in the middle of its work."""
    child = subprocess.Popen(
        [*CLAWMARK, "search", "--batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment(),
    )
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    with child:
        child.stdin.write(b"tea\n")
        child.stdin.flush()
        assert child.stdout.readline().startswith(b'{"id": 1')
        child.send_signal(number)
        assert child.wait(HANG_SECONDS) == code
        assert b"Traceback" not in child.stderr.read()
    assert place.run("search", "tea").code == 0


def test_a_batch_answers_each_line_before_the_next_arrives(place: Place) -> None:
    child = subprocess.Popen(
        [*CLAWMARK, "search", "--batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=place.environment(),
    )
    assert child.stdin is not None and child.stdout is not None
    with child:
        for number in (1, 2, 3):
            child.stdin.write(b"tea\n")
            child.stdin.flush()
            assert child.stdout.readline().startswith(b'{"id": %d' % number)
        child.stdin.close()
        assert child.wait(HANG_SECONDS) == 0


def test_commands_with_absolute_paths_work_in_a_removed_folder(place: Place) -> None:
    ran = shell(place, "mkdir gone && cd gone && rmdir ../gone && clawmark status")
    assert ran.returncode == 0
    lost = shell(
        place, "mkdir gone && cd gone && rmdir ../gone && clawmark status --workspace here"
    )
    assert lost.returncode == 2 and "no longer exists" in lost.stderr


def test_an_unexpected_error_has_a_traceback_only_on_request(place: Place) -> None:
    """A broken installation: the module that opens indexes cannot be imported."""
    broken = place.folder / "broken" / "apsw"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "raise RuntimeError('broken on purpose')\n", encoding="utf-8"
    )
    env = {"PYTHONPATH": str(broken.parent)}
    ran = place.run("search", "tea", env=env)
    assert ran.code == 3 and says_one_clear_thing(ran)
    assert "broken on purpose" in ran.err
    assert place.run("search", "tea", "--json", env=env).json()["ok"] is False
    assert "Traceback" in place.run("search", "tea", env={**env, "CLAWMARK_DEBUG": "1"}).err


HEAVY = (
    "heavy = ('dulwich', 'logging', 'clawmark.agent.review', 'clawmark.agent.consolidation', "
    "'clawmark.agent.forget', 'clawmark.backends.as_of', 'clawmark.engine.versions', "
    "'clawmark.history.journal', 'clawmark.history.history', 'clawmark.model.provenance', "
    "'clawmark.config.schema.agent')"
)
"""What only writes, changed files and agents need."""
LATER = (
    "import time; now, now_ns = time.time, time.time_ns; time.time = lambda: now() + 60; "
    "time.time_ns = lambda: now_ns() + 60_000_000_000"
)
"""For a first sync: files that changed a moment before it are read again by the next one."""
SHOWN = "[name for name in sys.modules if name.startswith(heavy)]"


def run_search_after(place: Place, before: str, shown: str) -> str:
    """Run a search in a new interpreter after some statements; return an expression's value."""
    return run_after(place, ["search", "tea", "--provider", "none"], before, shown)


def run_after(place: Place, words: list[str], before: str, shown: str) -> str:
    """Do the same with any command."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; {before}; from clawmark.cli import main; "
        f"code = main({words!r}); "
        f"print(code, {shown}, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=HANG_SECONDS,
        env=place.environment(),
    )
    return ran.stderr.splitlines()[-1]


def test_only_what_a_search_needs_is_imported(place: Place) -> None:
    """Import time is the cold search: what is slow to import must stay out of it."""
    slow = (
        "slow = {'numpy', 'json5', 'asyncio', 'http', 'logging', 'dataclasses', 'inspect', "
        "'importlib.metadata',"
        " 'pathlib', 'shutil', 'tempfile', 'difflib', 'subprocess', 'email', 'urllib.request'}"
    )
    assert run_search_after(place, slow, "sorted(slow & set(sys.modules))") == "0 []"


def test_a_search_compiles_no_quoted_annotations(place: Place) -> None:
    """Named tuples compile theirs at import, and the first call of `compile` costs 1 ms."""
    record = (
        "import builtins; plain, compiled = compile, []; "
        "builtins.compile = lambda *args, **named: "
        "compiled.append(args) or plain(*args, **named)"
    )
    not_modules = "[args[0] for args in compiled if args[1] == '<string>']"
    assert run_after(place, ["index"], LATER, "[]") == "0 []"
    assert run_search_after(place, record, not_modules) == "0 []"


def test_a_plain_search_does_without_what_only_other_searches_need(place: Place) -> None:
    needless = (
        "needless = {f'clawmark.{name}' for name in ('engine.search.explain', 'model.explanation', "
        "'config.schema.field_keys', 'store.sqlite.filtering', 'store.contents', 'cli.as_json', "
        "'embed.embedder_options', 'backends.none')}"
    )
    shown = "sorted(needless & set(sys.modules))"
    assert run_after(place, ["index"], LATER, "[]") == "0 []"
    assert run_search_after(place, needless, shown) == "0 []"


def test_a_search_imports_neither_journal_nor_history(place: Place) -> None:
    assert run_search_after(place, HEAVY, SHOWN) == "0 []"
    assert run_search_after(place, "heavy = ('clawmark.history',)", SHOWN) == "0 []"


def test_a_sync_without_changes_opens_neither_journal_nor_history(place: Place) -> None:
    assert run_after(place, ["index"], LATER, "[]") == "0 []"
    assert run_after(place, ["index"], HEAVY, SHOWN) == "0 []"


def test_remember_does_not_open_the_history(place: Place) -> None:
    heavy = "heavy = ('dulwich', 'clawmark.history.history')"
    assert run_after(place, ["remember", "The heron is back."], heavy, SHOWN) == "0 []"
