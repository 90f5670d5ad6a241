"""`clawmark chat` as people run it: in a pipe, at a terminal, interrupted, killed, and with
everything going wrong.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chat import ChatServer, Seen, Turn, call, fault, rules, say
from commands import CLAWMARK, HANG_SECONDS, Place, Ran, new_place, says_one_clear_thing
from typists import Typist

from clawmark.cli.chat_screen import PROMPT

KEY = "sk-test-4f9aXb21Qz77Lm03"
CTRL_C, CTRL_D = b"\x03", b"\x04"


def script(table: dict[str, list[Turn]], otherwise: Turn | None = None) -> Callable[[Seen], Turn]:
    """Answer by rules; a request for the name of a conversation gets `talk`."""
    answer = rules(table, [otherwise or say("Understood.")])
    return lambda seen: say("talk") if "You name conversations" in seen.system else answer(seen)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key=KEY) as made:
        yield made


def words(server: ChatServer) -> list[str]:
    return ["chat", "--model", f"scripted@{server.openai_url}"]


def env() -> dict[str, str | None]:
    return {**dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY")), "CLAWMARK_MODEL_API_KEY": KEY}


def talk(place: Place, server: ChatServer, said: str, *more: str) -> Ran:
    ran = place.run(*words(server), *more, stdin=said, env=env())
    assert KEY not in ran.out + ran.err and "Traceback" not in ran.err
    return ran


def open_terminal(place: Place, server: ChatServer) -> Typist:
    typist = Typist([*CLAWMARK, *words(server)], place.environment(env()))
    typist.wait_for("/help lists the commands.")
    return typist


def notes(place: Place) -> list[str]:
    """Return the session notes: files with a name after the date."""
    return sorted(
        file.name for file in (place.workspace / "memory").iterdir() if len(file.stem) > 10
    )


# --- in a pipe -----------------------------------------------------------------------------------


def test_line_on_standard_input_is_answered_on_standard_output(
    place: Place, server: ChatServer
) -> None:
    server.script(rules({}, [say("Hello, you.")]))
    ran = talk(place, server, "Ann moved to Lisbon.\n")
    assert (ran.code, ran.out) == (0, "Hello, you.\n")
    assert ran.err.startswith("left a note: memory/") and len(notes(place)) == 1


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        ("hi\n", [say("Hello, you.")]),
        ("What is the capital of France?\n", [say("The capital of France is Paris.")]),
        ("Which database did we pick for billing?\n", [say("I could not find that in my memory.")]),
        ("Say OK\n", [say("OK")]),
        ("We chose PostgreSQL for billing.\n", [fault("key")]),
        ("hello\nare you there?\n", [fault("key"), fault("key")]),
    ],
    ids=[
        "greeting",
        "scripted question",
        "no answer",
        "scripted request",
        "failed statement",
        "failed twice",
    ],
)
def test_chat_without_a_statement_leaves_no_note(
    place: Place, server: ChatServer, lines: str, turns: list[Turn]
) -> None:
    before = {file.name for file in place.workspace.rglob("*.md")}
    server.script(turns)
    ran = talk(place, server, lines, "--json")
    assert ran.json()["note"] is None and notes(place) == []
    assert {file.name for file in place.workspace.rglob("memory/*.md")} <= before
    assert len(server.seen) == len(turns), "no model was asked to name a note"


def test_note_does_not_repeat_what_the_memory_gave(place: Place, server: ChatServer) -> None:
    place.write(
        "memory/2026-02-03.md", "# 2026-02-03\n\n- The quagga lives behind the old lighthouse.\n"
    )
    search = [
        call("memory_search", query="quagga"),
        say("The quagga lives behind the old lighthouse."),
    ]
    server.script(
        script({"where": search, "boat": [say("The boat needs a new mast before June.")]})
    )
    ran = talk(place, server, "where is the quagga?\nThe boat is leaking.\n", "--json")
    note = (place.workspace / ran.json()["note"]).read_text(encoding="utf-8")
    assert (
        "quagga" not in note
        and "> The boat is leaking." in note
        and "> The boat needs a new mast" in note
    )


def test_server_error_is_shown_with_its_status_and_message(
    place: Place, server: ChatServer
) -> None:
    server.script([fault("broken")] * 4)
    ran = talk(place, server, "hello\n")
    assert ran.code == 3
    assert "failed (HTTP 500: The server had an error while processing your request)." in ran.err


def test_citations_are_shown_with_the_answer(place: Place, server: ChatServer) -> None:
    server.script(
        rules({"database": [call("memory_search", query="database billing"), say("PostgreSQL.")]})
    )
    ran = talk(place, server, "which database?\n")
    assert (
        ran.out == "PostgreSQL.\n"
        and 'searched memory for "database billing": MEMORY.md#L' in ran.err
    )
    as_json = talk(place, server, "which database?\n", "--json").json()
    [turn] = as_json["turns"]
    assert (
        turn["answer"] == "PostgreSQL."
        and turn["citations"][0].startswith("MEMORY.md#L")
        and turn["problem"] is None
    )
    assert as_json["note"] is None and turn["tokens"] > 100


def test_failed_request_is_one_sentence_and_the_chat_continues(
    place: Place, server: ChatServer
) -> None:
    server.script([fault("no-model"), say("Back again."), say("name")])
    ran = talk(place, server, "first\nsecond\n")
    assert (ran.code, ran.out) == (0, "Back again.\n")
    assert (
        f"clawmark: {server.openai_url} was not found (HTTP 404: The model does not exist). Check "
        f"the name" in ran.err
    )
    server.script([fault("key"), say("name")])
    assert talk(place, server, "first\n").code == 3


def test_commands_in_a_pipe_answer_on_standard_output(place: Place, server: ChatServer) -> None:
    server.script(rules({}, [say("Hello.")]))
    ran = talk(place, server, "/help\n/memory\n/prompt\n/prompt full\n/nothing\n/flush\n\n")
    assert "/new" in ran.out and "total" in ran.out and "## This Conversation" in ran.out
    assert "We chose PostgreSQL for billing" in ran.out
    assert (
        "There is no command /nothing." in ran.err
        and "nothing was said since the last flush" in ran.err
    )
    assert server.seen == [] and notes(place) == []


def test_path_is_a_message_not_a_command(place: Place, server: ChatServer) -> None:
    server.script(rules({}, [say("A file.")]))
    assert talk(place, server, "/etc/hosts is what?\n").out == "A file.\n"


def test_invalid_bytes_are_accepted(place: Place, server: ChatServer) -> None:
    server.script(rules({}, [say("\x1b[2J\u202eevil\x07 café")]))
    ran = place.run(*words(server), stdin=b"caf\xc3\xa9 \xff\xfe\x00\n", env=env())
    assert (ran.code, ran.out) == (0, "\\x1b[2J\\u202eevil\\x07 café\n")
    assert "café" in server.seen[0].last_user


def test_closed_output_ends_the_chat_without_an_error(place: Place, server: ChatServer) -> None:
    server.script(script({}, say("An answer that nobody reads. " * 400)))
    command = [*CLAWMARK, *words(server)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment(env()),
    ) as running:
        assert (
            running.stdin is not None and running.stdout is not None and running.stderr is not None
        )
        running.stdout.close()
        running.stdin.write(b"Ann moved to Lisbon.\n")
        running.stdin.close()
        errors = running.stderr.read()
        assert running.wait(HANG_SECONDS) == 141
    assert b"Traceback" not in errors and notes(place) == []
    [transcript] = place.state.rglob("sessions/*.jsonl")
    assert "Ann moved to Lisbon." in transcript.read_text(encoding="utf-8")


def test_session_is_listed_and_can_be_searched(place: Place, server: ChatServer) -> None:
    server.script(script({}, say("Lisbon in May, by train.")))
    talk(place, server, "Where do we travel?\n")
    assert ".jsonl" in place.run("sessions").out
    config = {"memorySearch": {"sources": ["memory", "sessions"], "provider": "none"}}
    (place.state / "clawmark.json").write_text(json.dumps(config), encoding="utf-8")
    hits = place.run("search", "--json", "Lisbon train").json()["results"]
    [spoken] = [hit for hit in hits if ".jsonl" in hit["path"]]
    assert "Lisbon in May" in place.run("get", spoken["citation"]).out


# --- at a terminal -------------------------------------------------------------------------------


def test_answers_are_wrapped_and_followed_by_the_context_meter(
    place: Place, server: ChatServer
) -> None:
    server.script(rules({}, [say("counting " * 30, input_tokens=1234, output_tokens=66)]))
    with open_terminal(place, server) as typist:
        typist.type("We count to thirty in the kitchen.")
        shown = typist.wait_for("1,300 of 32,768 tokens")
        lines = [line for line in shown.split("\n") if line.startswith("counting")]
        assert len(lines) == 3 and all(
            line.strip().split(" ") == ["counting"] * len(line.split()) for line in lines
        )
        typist.wait_for(
            PROMPT
        )  # before it a terminal takes the key for the end of a line that nobody has begun
        typist.press(CTRL_D)
        typist.wait_for("left a note")
        assert typist.end() == 0


def test_ctrl_c_stops_an_answer_and_twice_leaves_with_a_note(
    place: Place, server: ChatServer
) -> None:
    server.script(script({"wait": [fault("hang")]}, say("Still here.")))
    with open_terminal(place, server) as typist:
        typist.type("wait for it")
        server.wait_for(1)
        typist.press(CTRL_C)
        typist.wait_for("stopped; press Ctrl-C again")
        typist.type("Ann moved to Lisbon.")
        typist.wait_for("Still here.")
        typist.wait_for("tokens")
        typist.press(CTRL_C)
        typist.wait_for("Ctrl-C again")
        typist.press(CTRL_C)
        typist.wait_for("left a note")
        assert typist.end() == 130
    assert (
        "wait for it" in server.seen[1].messages[0].text
    )  # the stopped message stays in the history


def test_interrupted_flush_can_be_repeated(place: Place, server: ChatServer) -> None:
    flushes = iter([fault("hang"), call("memory_append", text="- Ann likes tea."), say("NO_REPLY")])
    others = script({}, say("Noted."))
    server.script(lambda seen: next(flushes) if "memory flush" in seen.last_user else others(seen))
    with open_terminal(place, server) as typist:
        typist.type("Ann likes tea.")
        typist.wait_for("tokens")
        typist.type("/flush")
        server.wait_for(2)
        typist.press(CTRL_C)
        typist.wait_for("Ctrl-C again")
        typist.type("/flush")
        typist.wait_for("saved to memory/")
        typist.type("/memory")
        typist.wait_for(" Ann likes tea.")
        typist.type("/quit")
        assert typist.end() == 0


# --- signals and kills --------------------------------------------------------------------


@pytest.mark.parametrize("said", ["wait for it", ""])
def test_terminated_process_writes_its_note(place: Place, server: ChatServer, said: str) -> None:
    """The signal arrives while it answers, or while it waits for a line."""
    server.script(rules({"wait": [fault("hang")]}, [say("Hello.")]))
    with open_terminal(place, server) as typist:
        typist.type("Ann moved to Lisbon.")
        typist.wait_for("tokens")
        if said:
            typist.type(said)
            server.wait_for(2)
        typist.running.send_signal(signal.SIGTERM)
        assert typist.end() == 128 + signal.SIGTERM
    [note] = notes(place)
    assert "Ann moved to Lisbon." in (place.workspace / "memory" / note).read_text(encoding="utf-8")
    assert len(server.seen) == (2 if said else 1)  # the model is not asked for a name


def test_killed_conversation_continues_in_the_next_process(
    place: Place, server: ChatServer
) -> None:
    server.script(
        script(
            {"tea": [call("memory_search", query="tea"), say("With Ann.")], "wait": [fault("hang")]}
        )
    )
    with open_terminal(place, server) as typist:
        typist.type("who had tea?")
        typist.wait_for("With Ann.")
        typist.type("wait for it")
        server.wait_for(3)
        typist.running.kill()
        typist.end()
    assert notes(place) == []
    with open_terminal(place, server) as typist:
        assert "interrupted conversation: 2 exchanges" in typist.screen
        typist.type("Ann moved to Lisbon.")
        typist.wait_for("Understood.")
        typist.type("/quit")
        assert typist.end() == 0
    heard = next(seen for seen in server.seen if seen.last_user == "Ann moved to Lisbon.").messages
    assert [one.text for one in heard if one.role == "user"] == [
        "who had tea?",
        "wait for it",
        "Ann moved to Lisbon.",
    ]
    assert heard[1].calls[0].name == "memory_search" and heard[2].role == "tool"
    assert len(notes(place)) == 1


def test_second_chat_in_one_session_is_refused(place: Place, server: ChatServer) -> None:
    server.script(rules({}))
    with open_terminal(place, server) as typist:
        second = talk(place, server, "hi\n")
        assert second.code == 3 and says_one_clear_thing(second) and "--session" in second.err
        assert talk(place, server, "hi\n", "--session", "agent:main:direct:second").code == 0
        typist.type("/quit")
        assert typist.end() == 0


def test_session_that_is_not_private_cannot_read_or_write_private_files(
    place: Place, server: ChatServer
) -> None:
    server.script(
        rules(
            {
                "read": [
                    call("file_read", path="MEMORY.md"),
                    call("memory_search", query="billing"),
                    say("No."),
                ]
            }
        )
    )
    place.write("USER.md", "marker-of-the-user\n")
    ran = talk(
        place, server, "read it\n/prompt full\n", "--session", "agent:main:telegram:group:42"
    )
    assert ran.code == 0
    [tools] = {seen.tools for seen in server.seen if "## This Conversation" in seen.system}
    assert tools == ("memory_search", "memory_get")
    told = ran.out + "".join(
        seen.system + "".join(one.text for one in seen.messages) for seen in server.seen
    )
    assert "PostgreSQL" not in told and "marker-of-the-user" not in told


# --- settings ----------------------------------------------------------------------------


def test_missing_model_is_reported_and_nothing_is_created(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.home.mkdir()
    ran = place.run("chat", stdin="hi\n", env=env())
    assert ran.code == 2 and says_one_clear_thing(ran) and "--model" in ran.err
    assert not place.workspace.exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--model", "nonsense"], "is not the name of a chat model"),
        (["--model", "openai:gpt-4o-mini"], "OPENAI_API_KEY is not set"),
        (
            ["--model", "openai:x@http://127.0.0.1:9", "--base-url", "http://127.0.0.1:9"],
            "leave --base-url out",
        ),
        (["--model", "openai:x", "--base-url", "ftp://example.org"], "begins with http://"),
    ],
)
def test_unusable_model_is_reported_at_the_start(
    place: Place, given: list[str], words: str
) -> None:
    ran = place.run("chat", *given, stdin="hi\n", env=env())
    assert ran.code == 2 and says_one_clear_thing(ran) and words in ran.err


def test_model_is_read_from_the_environment_or_the_configuration(
    place: Place, server: ChatServer
) -> None:
    server.script(rules({}, [say("Hello.")]))
    name = f"scripted@{server.openai_url}"
    assert place.run("chat", stdin="hi\n", env={**env(), "CLAWMARK_MODEL": name}).out == "Hello.\n"
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text(
        json.dumps({"agents": {"defaults": {"model": name}}}), encoding="utf-8"
    )
    assert place.run("chat", stdin="hi\n", env=env()).out == "Hello.\n"


def test_missing_extra_is_one_sentence_with_the_command_to_install_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['openai'] = None; from clawmark.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "chat", "--model", "openai:x"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env=Place(tmp_path).environment({"PYTHONPATH": None}),
    )
    assert done.returncode == 3 and done.stdout == ""
    assert (
        done.stderr == "clawmark: Chat models need the extra `chat`.\n  Install "
        "it with: pip install 'clawmark[chat]'\n"
    )
