"""What can be observed of a memory under a setting; used by `test_every_setting`."""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from commands import Place
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.agent.session.setup import (
    flush_settings,
    model_name,
    models_for,
    note_settings,
    rollover_settings,
)
from clawmark.composition import history_folder, make_query
from clawmark.composition.heartbeat import make_heartbeat
from clawmark.embed.services.make import batch_options
from clawmark.embed.services.settings import remote_options
from clawmark.engine.sync.scan import SyncRequest
from clawmark.history.history import History
from clawmark.model.errors import ClawmarkError
from clawmark.testing import ScriptedCompleter

QUESTION = "where does the heron nest?"
KEY = "not-a-real-key"


class Scene(NamedTuple):
    """A workspace, and a configuration file with one key set."""

    place: Place
    server: EmbeddingServer

    def open(self, provider: str | None = "none", *, background: bool = False) -> Memory:
        """Open the memory with keywords only; None stands for the configured provider."""
        return Memory.open(state_dir=self.place.state, provider=provider, background=background)


class Acts(NamedTuple):
    """Two values of a key, what to look at, and what else has to be set for that."""

    one: object
    other: object
    look: Callable[[Scene], object]
    beside: dict[str, object] = {}  # noqa: RUF012 - never changed


def put(tree: dict[str, Any], key: str, value: object) -> None:
    """Set a dotted key in the tree of a configuration file."""
    *groups, last = key.split(".")
    for group in groups:
        tree = tree.setdefault(group, {})
    tree[last] = value


def found(scene: Scene) -> object:
    with scene.open() as memory:
        return [hit.citation for hit in memory.search(QUESTION, min_score=0).hits]


def found_as_configured(scene: Scene) -> object:
    with scene.open() as memory:
        return [hit.citation for hit in memory.search("heron unicorn avalanche").hits]


def versions_kept(scene: Scene) -> object:
    """How many versions are left of one from forty days ago and two of more than a megabyte."""
    with scene.open() as memory:
        old = History(history_folder(memory.places), clock=lambda: time.time() - 40 * 86_400)
        old.record(memory.workspace.scan().files, memory.workspace.read_bytes, "old")
        for _ in range(2):
            noise = base64.encodebytes(os.urandom(900_000))
            (scene.place.workspace / "memory" / "large.md").write_bytes(noise)
            memory.sync(instant_only=True)
        return len(list(memory.history._history.versions()))


def question(scene: Scene) -> object:
    with scene.open() as memory:
        return make_query(memory.settings.memory_search.query, QUESTION, None, None, memory.today)


def chunks(scene: Scene) -> object:
    with scene.open() as memory:
        memory.sync()
        with memory._builtin.parts.store.snapshot() as reader:
            return [
                (row.start_line, row.end_line, row.text) for row in reader.chunks_of("MEMORY.md")
            ]


def status(scene: Scene) -> object:
    with scene.open(None) as memory:
        memory.sync(instant_only=True)
        state = memory.status()
    return (
        state.index_path,
        state.embedder,
        state.vector_engine,
        [space.identity for space in state.spaces],
    )


def opens(scene: Scene) -> object:
    try:
        return status(scene)
    except ClawmarkError as error:
        return type(error)


def index_owner(scene: Scene) -> object:
    """The name of the index in a shared database; nothing is connected to."""
    with scene.open() as memory:
        store = memory._builtin.parts.store
        return getattr(store, "owner", "")


def tools(scene: Scene) -> object:
    with scene.open() as memory:
        return [tool.name for tool in memory.tools(append=True)]


def tools_by_session(scene: Scene) -> object:
    keys = (
        "main:heartbeat",
        *("main", "direct:5", "telegram:group:1", "slack:channel:1"),
        *("subagent:1", "cron:job", "unheard-of"),
    )
    with scene.open() as memory:
        return {
            key: [tool.name for tool in memory.tools(f"agent:main:{key}", append=True)]
            for key in keys
        }


def answer_in_a_group(scene: Scene) -> object:
    with scene.open() as memory:
        (search, _) = memory.tools("agent:main:telegram:group:42")
        return search.call({"query": QUESTION, "minScore": 0}).get("error")


def recalled_from_a_folder(scene: Scene) -> object:
    folder = scene.place.workspace.parent / "wiki"
    folder.mkdir(exist_ok=True)
    (folder / "birds.md").write_text("The osprey nests on the old crane.\n", encoding="utf-8")
    with scene.open() as memory:
        if not memory.sources():
            memory.add_source(folder)
        return "crane" in memory.recall("Where does the osprey nest?", min_score=0)


def citations(scene: Scene) -> object:
    with scene.open() as memory:
        search = memory.tools()[0]
        return str(search.call({"query": QUESTION, "minScore": 0}))


def prompt(scene: Scene) -> object:
    def clock() -> datetime:
        return datetime(2026, 2, 24, 12, tzinfo=UTC)

    with Memory.open(
        state_dir=scene.place.state, provider="none", clock=clock, background=False
    ) as memory:
        return memory.prompt().text


def today(scene: Scene) -> object:
    with scene.open() as memory:
        return memory.today()


def commands_are_logged(scene: Scene) -> object:
    log = scene.place.state / "logs" / "clawmark.log"
    before = log.stat().st_size if log.exists() else 0
    scene.place.run("ls")
    return log.exists() and log.stat().st_size > before


def log_after_a_new_note(scene: Scene) -> object:
    with scene.open() as memory:
        written = memory.append("The swan is back.")
        return len(memory.read(written.citation).text)


def page_after_a_note_of_an_agent(scene: Scene) -> object:
    with scene.open() as memory:
        tools = {tool.name: tool for tool in memory.tools("agent:main:main", append=True)}
        tools["memory_append"].call({"text": "The pelican nests on the pier.", "to": "MEMORY.md"})
        return "pelican" in memory.read("MEMORY.md").text


def session_start(scene: Scene) -> object:
    with scene.open() as memory:
        return memory.session_started("agent:main:main")


def found_after_a_new_note(scene: Scene) -> object:
    with scene.open() as memory:
        memory.sync()
        scene.place.write("memory/2026-03-01.md", "- The heron has left for the south.\n")
        return [hit.path for hit in memory.search("heron south", min_score=0).hits]


def kept_vectors(scene: Scene) -> object:
    """How many vectors are left after most passages were deleted."""
    with scene.open("static") as memory:
        memory.sync()
        shutil.rmtree(scene.place.workspace / "memory")
        memory.sync()
        return memory.status().cache_entries


def sent(scene: Scene) -> object:
    """The requests for one passage and one question: target, headers and body."""
    scene.server.requests.clear()
    with scene.open(None) as memory:
        memory.sync()
        memory.search(QUESTION)
        return [
            (
                request.target,
                request.headers.get("authorization"),
                request.headers.get("x-more"),
                json.loads(request.body),
            )
            for request in scene.server.requests
        ]


def sent_to_reranker(scene: Scene) -> object:
    """The request for one question; that this server does not answer it like a reranker makes no
    difference.
    """
    scene.server.requests.clear()
    with scene.open() as memory:
        memory.search(QUESTION)
    return [
        (request.target, request.headers.get("authorization"), json.loads(request.body))
        for request in scene.server.requests
    ]


def embedder_key(scene: Scene) -> object:
    with scene.open(None) as memory:
        return [
            embedder.traits.label
            for embedder in (*memory.choice.embedders, *memory.choice.fallbacks)
        ]


def remote(scene: Scene) -> object:
    with scene.open() as memory:
        options = memory.settings.memory_search.remote
    return remote_options("", 0, options, {}), batch_options(options.batch)


def spent(scene: Scene) -> object:
    with scene.open(None) as memory:
        memory.sync()
        return memory.status().due_vectors


def say(file: Path) -> None:
    """Add a message to a transcript."""
    file.parent.mkdir(parents=True, exist_ok=True)
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "The heron nests by pier nine now."}],
    }
    with file.open("a", encoding="utf-8") as stream:
        stream.write(
            json.dumps(
                {"type": "message", "timestamp": "2026-02-24T10:00:00.000Z", "message": message}
            )
            + "\n"
        )


def transcripts(scene: Scene) -> object:
    say(scene.place.state / "agents" / "main" / "sessions" / "a.jsonl")
    say(scene.place.folder / "talks" / "b.jsonl")
    with scene.open() as memory:
        return sorted(
            {
                hit.path
                for hit in memory.search("heron pier nine", min_score=0).hits
                if hit.source == "sessions"
            }
        )


def media_files(scene: Scene) -> object:
    """The images and audio files that are indexed; keywords find them without a service."""
    extra = scene.place.folder / "extra"
    (extra / "heron.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (extra / "heron.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt ")
    with scene.open() as memory:
        memory.sync()
        return sorted(hit.path for hit in memory.search("heron png wav").hits if hit.mime)


def due_after_small_growth(scene: Scene) -> object:
    """Whether a watcher's sync leaves a transcript that grew by one message."""
    with scene.open() as memory:
        file = scene.place.state / "agents" / "main" / "sessions" / "a.jsonl"
        say(file)
        memory.sync()
        say(file)
        return memory._builtin.run_sync(SyncRequest(deltas=True)).due_files


def due_after_compaction(scene: Scene) -> object:
    with scene.open(background=True) as memory:
        file = scene.place.state / "agents" / "main" / "sessions" / "a.jsonl"
        say(file)
        memory.sync()
        say(file)
        memory.compacted()
        keeper = memory._builtin.background().worker()
        assert keeper.wait_for(lambda: keeper.is_idle and keeper.runs > 0, 60)
        return memory.status().due_files


def heartbeat(scene: Scene) -> object:
    with scene.open() as memory:
        return make_heartbeat(memory, None, "", apply=False, days=7).settings


def consolidation(scene: Scene) -> object:
    """What is proposed of a statement of two days within three and six weeks, and by heartbeats."""
    with scene.open() as memory:
        days = [memory.now() - timedelta(days=back) for back in (3, 2, 20)]
        for moment in days:
            memory.append("The heron is safest by the old mill.", day=moment.date().isoformat())
        answer = ScriptedCompleter(lambda request: "HEARTBEAT_OK")
        report = memory.heartbeat(completer=answer).consolidation
        changes = memory.consolidate(dry_run=True).changes
        return report is None, [change.hunk.citations for change in changes]


def conversation(scene: Scene) -> object:
    with scene.open() as memory:
        settings = memory.settings
    models = models_for(settings, {}, None, 0)
    names = (model_name(settings, {}), model_name(settings, {}, for_flush=True))
    return (
        flush_settings(settings),
        note_settings(settings),
        rollover_settings(settings),
        models.window,
        names,
    )
