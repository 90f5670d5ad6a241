"""Every hostile command line of the shared corpus, run for real against the hostile workspace."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, Ran, says_one_clear_thing
from hostile import MAKER, cases, make, needs_maker, remove

pytestmark = needs_maker

SPECIAL = {
    "c-stdout-closed",
    "c-stdout-full",
    "c-stdin-closed",
    "c-sigint",
    "c-sigterm",
    "c-sighup",
    "c-sigkill",
    "c-two-index",
    "c-eight-mixed",
}


def ids() -> list[str]:
    """The ids of all cases, read from a throw-away tree; nothing when the maker is not here."""
    if not MAKER.is_file():
        return ["c-none"]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder) / "h")
        found = list(cases(made, "cli"))
        remove(made)
    return found


IDS = ids()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The hostile tree as a place: workspace indexed by keywords, commands run from its root."""
    folder = tmp_path_factory.mktemp("hostile") / "tree"
    place = Place(make(folder))
    place.home.mkdir()
    (place.folder / "keywords.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    assert place.run("index", env=keywords(place)).code == 0
    yield place
    remove(folder)


def keywords(place: Place) -> dict[str, str | None]:
    return {"CLAWMARK_CONFIG": str(place.folder / "keywords.json")}


def meets(expect: str, ran: Ran, as_json: bool) -> bool:
    """Whether a command did what its case allows; `-or-` joins alternatives."""
    clear = says_one_clear_thing(ran) and ran.out == ""
    outcomes: dict[str, Callable[[], bool]] = {
        "ok": lambda: ran.code == 0 and "Traceback" not in ran.err,
        "usage-error": lambda: ran.code == 2 and clear,
        "clear-error": lambda: 1 <= ran.code <= 5 and clear,
        "refused": lambda: ran.code == 4 and clear,
        "empty-result": lambda: ran.code == 0 and "0 hits" in ran.out,
        "json-only": lambda: ran.code == 0 and bool(json.loads(ran.out)) and as_json,
    }
    if expect in outcomes:
        return outcomes[expect]()
    return any(outcomes[one]() for one in expect.split("-or-"))


@pytest.mark.parametrize("case_id", [one for one in IDS if one not in SPECIAL])
def test_a_hostile_command_line_gets_what_it_deserves(
    hostile: Place, case_id: str, tmp_path: Path
) -> None:
    case = cases(hostile.folder, "cli")[case_id]
    if (
        case_id == "c-none"
    ):  # its one clear thing is the overview, and then that a command is missing
        ran = hostile.run()
        assert (ran.code, ran.out) == (2, "") and ran.err.endswith(
            "clawmark: A command is missing.\n"
        )
        return
    ran = run_case(hostile, case, tmp_path)
    assert meets(case["expect"], ran, "--json" in case["input"]), ran


def run_case(hostile: Place, case: dict[str, Any], tmp_path: Path) -> Ran:
    env: dict[str, str | None] = dict(keywords(hostile))
    (tmp_path / "read-only").mkdir(mode=0o555)
    for name, value in case.get("env", {}).items():
        places = {
            "{READONLY_DIR}": str(tmp_path / "read-only"),
            "{NO_SUCH_DIR}": str(tmp_path / "nosuch"),
        }
        env[name] = places.get(value, value)
    if case["id"] == "c-home-readonly":
        env["CLAWMARK_STATE_DIR"] = None
    if case["id"] in (
        "c-fsize",
        "c-mem",
        "c-nofile-32",
    ):  # from nothing, so that there is something to write
        env["CLAWMARK_STATE_DIR"] = str(tmp_path / "state")
    if "--config" in case["input"]:
        env["CLAWMARK_CONFIG"] = None
    words = [*CLAWMARK, *case["input"]]
    if case.get("cwd") == "removed":
        gone = tmp_path / "gone"
        gone.mkdir()
        words = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), *words]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
        env=hostile.environment(env),
        cwd=hostile.folder,
        preexec_fn=limiter(case.get("rlimit", {})),
    )
    return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def limiter(limits: dict[str, int]) -> Callable[[], None]:
    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    return limit


def test_a_write_that_fails_in_the_middle_leaves_the_old_answers(
    hostile: Place, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    shutil.copytree(hostile.state, state)
    env = {**keywords(hostile), "CLAWMARK_STATE_DIR": str(state)}
    failed = subprocess.run(
        [*CLAWMARK, "index", "--force"],
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
        env=hostile.environment(env),
        preexec_fn=limiter({"FSIZE": 65536}),
    )
    assert failed.returncode in (3, 5) and "Traceback" not in failed.stderr
    assert hostile.run("search", "project", env=env).code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_in_the_middle_of_an_index_loses_nothing(
    hostile: Place, tmp_path: Path, number: int
) -> None:
    env = {**keywords(hostile), "CLAWMARK_STATE_DIR": str(tmp_path / "state")}
    child = subprocess.Popen(
        [*CLAWMARK, "index"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=hostile.environment(env),
    )
    while child.poll() is None and not list((tmp_path / "state").rglob("*.sqlite")):
        os.sched_yield()
    child.send_signal(number)
    _, said = child.communicate(timeout=HANG_SECONDS)
    assert child.returncode in (0, 130, 143, -signal.SIGKILL)
    assert b"Traceback" not in said
    assert hostile.run("search", "project", env=env).code == 0
    assert hostile.run("index", env=env).code == 0
    undisturbed = hostile.run("verify", "--json", env=keywords(hostile)).json()
    assert hostile.run("verify", "--json", env=env).json() == undisturbed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("words", "ready"), [(("watch",), b"watching"), (("mcp", "--http", "--port", "0"), b"http://")]
)
def test_what_runs_on_ends_cleanly(
    hostile: Place, tmp_path: Path, words: tuple[str, ...], ready: bytes, number: signal.Signals
) -> None:
    """The cases c-sigterm and c-sighup."""
    env = hostile.environment({**keywords(hostile), "CLAWMARK_STATE_DIR": str(tmp_path / "state")})
    child = subprocess.Popen(
        [*CLAWMARK, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env
    )
    assert child.stdout is not None
    said = b""
    while ready not in said:
        line = child.stdout.readline()
        assert line, said
        said += line
    child.send_signal(number)
    rest, _ = child.communicate(timeout=HANG_SECONDS)
    assert child.returncode in (0, 128 + number) and b"Traceback" not in said + rest


@pytest.mark.parametrize("words", [("index",), ("search", "tea")])
def test_many_at_once_all_succeed(hostile: Place, tmp_path: Path, words: tuple[str, ...]) -> None:
    env = hostile.environment({**keywords(hostile), "CLAWMARK_STATE_DIR": str(tmp_path / "state")})
    crowd = [list(words)] * (8 if words[0] == "search" else 2) + [["index"]]
    children = [
        subprocess.Popen([*CLAWMARK, *one], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        for one in crowd
    ]
    for child in children:
        _, said = child.communicate(timeout=HANG_SECONDS)
        assert (child.returncode, b"Traceback" in said) == (0, False), said


def test_no_output_stream_is_needed(hostile: Place) -> None:
    """The cases c-stdout-closed, c-stdout-full and c-stdin-closed."""
    env = hostile.environment(keywords(hostile))
    search = [*CLAWMARK, "search", "tea"]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            search, stdout=full, stderr=subprocess.PIPE, env=env, timeout=HANG_SECONDS, check=False
        )
    assert ran.returncode == 3 and ran.stderr.startswith(
        b"clawmark: The output could not be written"
    )
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        search, stdout=writer, stderr=subprocess.PIPE, env=env, timeout=HANG_SECONDS, check=False
    )
    os.close(writer)
    assert ran.stderr == b""
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *CLAWMARK, "status"],
        env=env,
        capture_output=True,
        check=False,
    )
    assert closed.returncode == 0
