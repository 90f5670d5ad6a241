"""A key that is unlike anything else, and everything Clawmark writes while it uses it: the key is
nowhere in it.

Every command runs in a process of its own with CLAWMARK_DEBUG=1 and logging at its most talkative,
against servers that repeat the key in every way they can. Searched are both streams, every byte of
the state folder, and the process list."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from behaviours import JSON, Behaviour
from commands import Place, new_place
from embeddings import EmbeddingServer

KEY = "sk-FAKE/planted+5e1f0c9b7a3d2846=Zq8Xw1Rt6Yv3"
"""With letters that look different in an address."""
FRAGMENT = 12
"""So many letters of it in a row are a leak too: a message that is cut before it is cleaned shows
half a key.
"""

# As the program, with every logger at DEBUG and everything its records hold on standard error.
TALKATIVE = """
import logging, sys

class Everything(logging.Formatter):
    def format(self, record):
        return super().format(record) + " " + repr(record.__dict__)

handler = logging.StreamHandler()
handler.setFormatter(Everything())
logging.basicConfig(level=logging.DEBUG, handlers=[handler])
from clawmark.cli import main
sys.exit(main(sys.argv[1:]))
"""


def forms_of(key: str) -> set[bytes]:
    """The key and its disguises, and every piece of it that is long enough to matter."""
    pieces = {key[at : at + FRAGMENT] for at in range(len(key) - FRAGMENT + 1)}
    encoded = {
        quote(key, safe=""),
        quote(key),
        quote_plus(key),
        json.dumps(key)[1:-1].replace("/", "\\/"),
    }
    in_base64 = {
        base64.b64encode(key.encode()),
        base64.urlsafe_b64encode(key.encode()),
        base64.b64encode(f"Bearer {key}".encode()),
    }
    return {piece.encode() for piece in pieces | encoded} | {
        form.rstrip(b"=") for form in in_base64
    }


FORMS = forms_of(KEY)


def leaks(data: bytes) -> list[bytes]:
    return sorted(form for form in FORMS if form in data)


def echo(status: int, text: str, **headers: str) -> Behaviour:
    """An answer that repeats the key as it stands in `text`."""
    return Behaviour(status, {**JSON, **headers}, text.encode())


def error(message: str) -> str:
    return json.dumps(
        {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}}
    )


B64 = base64.b64encode(KEY.encode()).decode()
FAULTS: dict[str, Behaviour | str | int] = {
    "healthy": 200,
    "refused": echo(
        401, error(f"Incorrect API key provided: {KEY}. Find yours at example.invalid.")
    ),
    "forbidden": echo(403, error(f"Key {KEY} may not use this model")),
    "rejected": echo(400, error(f"Authorization: Bearer {KEY} is no good")),
    "busy": echo(
        500, f"<html><pre>Traceback: headers={{'authorization': 'Bearer {KEY}'}}</pre></html>"
    ),
    "quota": echo(
        429,
        json.dumps(
            {"error": {"code": "insufficient_quota", "message": f"{KEY} exceeded its quota"}}
        ),
    ),
    "in-an-address": echo(
        400, error(f"GET /v1/embeddings?key={quote(KEY, safe='')} is not allowed")
    ),
    "in-base64": echo(403, error(f"Basic {B64} is not allowed")),
    "at-the-edge": echo(400, error("x" * 180 + KEY)),
    "over-the-edge": echo(400, error("y" * 290 + KEY + " and more")),
    "twice": echo(422, error(f"{KEY}{KEY}")),
    "no-json": echo(200, f"{KEY} {KEY}"),
    "half-json": echo(200, '{"data":[{"embedding":["' + KEY),
    "wrong-model": echo(
        200, json.dumps({"data": [{"index": 0, "embedding": [KEY]}], "model": KEY})
    ),
    "redirect": echo(302, "", Location=f"http://127.0.0.1:9/?key={quote(KEY, safe='')}"),
    "retry-after": echo(429, "{}", **{"Retry-After": KEY}),
    "challenge": echo(401, "", **{"WWW-Authenticate": f'Bearer realm="{KEY}"'}),
    "encoding": echo(200, "{}", **{"Content-Encoding": KEY}),
    "cut": "close-before-content-length",
    "not-http": "http-0.9",
    "nobody": "nothing-listens",
}
COMMANDS = (
    ("index",),
    ("index", "--json"),
    ("search", "why PostgreSQL for billing?"),
    ("search", "why PostgreSQL for billing?", "--json", "--explain"),
    ("status",),
    ("status", "--json"),
    ("doctor",),
    ("config", "list"),
    ("config", "list", "--json"),
    ("config", "get", "memorySearch.remote.apiKey"),
)
SOME_COMMANDS = (("search", "why PostgreSQL for billing?"), ("index", "--json"), ("status",))


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def configured(place: Place, server: EmbeddingServer, key: str = "", **remote: Any) -> Path:
    """A configuration file outside the state folder; without a key the environment has it."""
    remote = {"baseUrl": server.url, **({"apiKey": key} if key else {}), **remote}
    path = place.folder / "clawmark.json"
    path.write_text(
        json.dumps({"memorySearch": {"provider": "openai", "remote": remote}}), encoding="utf-8"
    )
    return path


def run(place: Place, config: Path, *words: str, **env: str) -> bytes:
    """Everything one command says."""
    done = subprocess.run(
        [sys.executable, "-c", TALKATIVE, *words, "--config", str(config)],
        capture_output=True,
        timeout=120,
        check=False,
        env=place.environment({"CLAWMARK_DEBUG": "1", **env}),
        cwd=place.folder,
    )
    return done.stdout + b"\n" + done.stderr


def kept(place: Place) -> dict[str, bytes]:
    """Every file below the state folder and the home."""
    folders = [place.state, place.home]
    return {
        str(file): file.read_bytes()
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file()
    }


def assert_nothing_leaked(place: Place, said: dict[str, bytes]) -> None:
    everything = {**said, **kept(place)}
    assert {where: leaks(data) for where, data in everything.items() if leaks(data)} == {}
    assert len(everything) > len(said), "the state folder is empty: nothing was searched"


def test_a_leak_would_be_found() -> None:
    disguised = [
        KEY,
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        f"cut short: {KEY[:14]}",
    ]
    assert all(leaks(f"some words {form} and more".encode()) for form in disguised)
    assert leaks(b"sk-FAKE and [redacted:key]") == []


@pytest.mark.parametrize("fault", list(FAULTS))
def test_the_key_is_in_nothing_that_is_said_or_kept(
    place: Place, server: EmbeddingServer, fault: str
) -> None:
    config = configured(place, server)
    said: dict[str, bytes] = {}
    if fault != "healthy":
        said["index before"] = run(place, config, "index", OPENAI_API_KEY=KEY)
        assert server.requests, said
        place.write(
            "memory/2026-11-16.md", "# 2026-11-16\n\nA new note, which is due for its vector.\n"
        )
    server.spoil(FAULTS[fault])
    for words in COMMANDS if fault in ("healthy", "refused") else SOME_COMMANDS:
        said[" ".join(words)] = run(place, config, *words, OPENAI_API_KEY=KEY)
        assert_nothing_leaked(place, said)
        for file in place.state.rglob(
            "*breaker*"
        ):  # so that the next command meets the fault itself
            file.unlink()
    assert b"PostgreSQL" in said["search why PostgreSQL for billing?"], "the search did not answer"


@pytest.mark.parametrize("way", ["literal", "reference", "header"])
def test_a_configured_key_is_in_nothing_that_is_said_or_kept(
    place: Place, server: EmbeddingServer, way: str
) -> None:
    if way == "header":
        config = configured(place, server, "sk-other", headers={"Authorization": f"Bearer {KEY}"})
    else:
        config = configured(place, server, KEY if way == "literal" else "${PLANTED}")
    said = {" ".join(words): run(place, config, *words, PLANTED=KEY) for words in COMMANDS}
    assert_nothing_leaked(place, said)
    assert server.requests
    assert server.tally.unauthorised == server.tally.keys_in_url == 0
    server.spoil(FAULTS["refused"])
    assert_nothing_leaked(
        place, {"search": run(place, config, "search", "tea with whom?", PLANTED=KEY)}
    )


def test_the_key_is_in_no_process_list_while_it_is_used(
    place: Place, server: EmbeddingServer
) -> None:
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        pytest.skip("this system has no /proc")
    config = configured(place, server)
    server.delay = 0.5
    words = [sys.executable, "-c", TALKATIVE, "index", "--config", str(config)]
    env = place.environment({"OPENAI_API_KEY": KEY})
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
    ) as child:
        seen = []
        while child.poll() is None:
            if server.requests:  # the key is being used now
                seen += [data for pid in family(child.pid) if (data := command_line(pid))]
    assert child.returncode == 0
    assert any(b"clawmark" in line for line in seen)
    assert [line for line in seen if leaks(line)] == []


def family(pid: int) -> list[int]:
    """A process and its children, theirs included."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(found for child in children for found in family(int(child)))]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_key_is_sent_to_the_configured_server_only(
    place: Place, server: EmbeddingServer
) -> None:
    config = configured(place, server)
    with EmbeddingServer() as stranger:
        for status in (301, 302, 303, 307, 308):
            server.spoil(Behaviour(status, {**JSON, "Location": f"{stranger.url}/embeddings"}, b""))
            run(place, config, "index", OPENAI_API_KEY=KEY)
        assert server.requests
        assert stranger.requests == []
