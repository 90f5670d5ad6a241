"""How fast and how exact the two vector engines are: the same vectors, the same queries, one run.

    python bench/vectors.py [--rows 100000] [--dims 384]

prints the numbers and writes bench/results/vectors.json. Times are CPU milliseconds per search for
24 results. The made-up vectors are clustered, anisotropic and have a power-law spectrum, as models'
vectors do; the real ones are the static tier's for passages of Python's own documentation.
`one_bit` is what scanning one bit per component first would have found."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from harness import write_result

from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of, identity_of

K = 24
QUERIES = 128
TURN = 16
FILE_CHUNKS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dims", type=int, default=384)
    options = parser.parse_args()
    vectors, queries = made_up(options.rows, options.dims)
    results: dict[str, Any] = {
        "rows": options.rows,
        "dims": options.dims,
        "k": K,
        "queries": QUERIES,
    }
    with tempfile.TemporaryDirectory() as folder:
        opened = {}
        for engine in ("blocks", "sqlite-vec"):
            index = opened[engine] = SqliteStore(
                os.path.join(folder, f"{engine}.sqlite"), vector_engine=engine
            )
            results[f"{engine}_insert_us"] = round(store(index, vectors) * 1e6 / len(vectors), 1)
        results.update(compare(opened["blocks"], opened["sqlite-vec"], vectors, queries))
        for index in opened.values():
            index.close()
        for rows in (5_000, 20_000, options.rows):
            index = SqliteStore(os.path.join(folder, f"cold{rows}.sqlite"))
            store(index, vectors[:rows])
            results[f"cold_open_and_search_ms_{rows}"] = cold(index.path, queries[0])
        results.update(
            {f"one_bit_{name}": value for name, value in one_bit(vectors, queries).items()}
        )
        results["static_tier"] = static_tier(folder)
    print(json.dumps(results, indent=2))
    write_result("vectors", "python bench/vectors.py", sys.executable, results)


def made_up(rows: int, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around 400 centres, and queries that are noisy copies of some."""
    chance = np.random.default_rng(1)
    spectrum = (np.arange(1, dims + 1) ** -0.5).astype(np.float32)
    turn = np.linalg.qr(chance.standard_normal((dims, dims)))[0].astype(np.float32)
    centres = chance.standard_normal((400, dims)).astype(np.float32)
    common = chance.standard_normal(dims).astype(np.float32) * 0.08

    def spread(count: int, around: np.ndarray, noise: float) -> np.ndarray:
        points = (
            around + noise * chance.standard_normal((count, dims)).astype(np.float32)
        ) * spectrum @ turn + common
        unit: np.ndarray = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(
            np.float32
        )
        return unit

    members = centres[chance.integers(0, 400, rows)] + 0.7 * chance.standard_normal(
        (rows, dims)
    ).astype(np.float32)
    return spread(rows, members, 0.0), spread(
        QUERIES, members[chance.integers(0, rows, QUERIES)], 0.25
    )


def store(index: SqliteStore, vectors: np.ndarray) -> float:
    """Put the vectors into an index, a chunk each; the CPU seconds that the vectors alone took."""
    spent = 0.0
    for start in range(0, len(vectors), FILE_CHUNKS):
        part = vectors[start : start + FILE_CHUNKS]
        file = file_of(
            f"memory/{start}.md", *[f"passage {start + number}" for number in range(len(part))]
        )
        with index.transaction() as writer:
            keys = writer.put_file(*file)
            space = writer.add_space(identity_of(vectors.shape[1])).id
            rows = [
                (key, chunk.hash, row.tobytes())
                for key, chunk, row in zip(keys, file[1], part, strict=True)
            ]
            began = time.process_time()
            writer.put_vectors(space, rows)
            spent += time.process_time() - began
    index.close()
    return spent


def compare(
    blocks: SqliteStore, vec0: SqliteStore, vectors: np.ndarray, queries: np.ndarray
) -> dict[str, Any]:
    """Search with both in turns of sixteen, so that a busy moment of the machine meets both and
    each is warm.
    """
    truth = exact(vectors, queries)
    times: dict[str, list[float]] = {"blocks": [], "sqlite-vec": []}
    found: dict[str, list[list[int]]] = {"blocks": [], "sqlite-vec": []}
    with blocks.snapshot() as one, vec0.snapshot() as other:
        for start in range(0, len(queries), TURN):
            for name, reader in (("blocks", one), ("sqlite-vec", other)):
                reader.nearest(1, queries[start - 1].tobytes(), K)
                for query in queries[start : start + TURN]:
                    began = time.process_time()
                    answer = reader.nearest(1, query.tobytes(), K)
                    times[name].append((time.process_time() - began) * 1000)
                    # Keys are handed out from 1 in the order of the rows.
                    found[name].append([key - 1 for key, _ in answer])
    results: dict[str, Any] = {}
    for name in times:
        results[f"{name}_ms"] = {
            "min": round(min(times[name]), 3),
            "median": round(statistics.median(times[name]), 3),
        }
        results[f"{name}_recall"] = recall(found[name], truth)
    results["times_faster"] = round(
        statistics.median(times["sqlite-vec"]) / statistics.median(times["blocks"]), 1
    )
    return results


def exact(vectors: np.ndarray, queries: np.ndarray) -> list[list[int]]:
    return [list(np.argsort(-(vectors @ query), kind="stable")[:K]) for query in queries]


def recall(found: list[list[int]], truth: list[list[int]]) -> float:
    return round(
        statistics.fmean(len(set(a) & set(b)) / K for a, b in zip(found, truth, strict=True)), 5
    )


def cold(path: str, query: np.ndarray) -> float:
    """Open, search once, close; the best of five."""

    def once() -> None:
        index = SqliteStore(path)
        with index.snapshot() as reader:
            reader.nearest(1, query.tobytes(), K)
        index.close()

    return round(best_of(5, once) * 1000, 2)


def one_bit(vectors: np.ndarray, queries: np.ndarray) -> dict[str, float]:
    """Recall when signs around the mean choose 10 or 40 candidates per result."""
    centre = vectors.mean(axis=0)
    codes = np.packbits(vectors > centre, axis=1)
    truth = exact(vectors, queries)
    order = [
        np.argsort(np.bitwise_count(codes ^ code).sum(axis=1), kind="stable")
        for code in np.packbits(queries > centre, axis=1)
    ]
    return {
        f"recall_x{times}": recall([list(row[: K * times]) for row in order], truth)
        for times in (10, 40)
    }


def static_tier(folder: str) -> dict[str, Any]:
    """The same with real vectors: passages of Python's documentation."""
    from pydoc_data.topics import topics

    from clawmark.embed.local.static import StaticEmbedder

    words = " ".join(topics[name] for name in sorted(topics)).split()
    passages = [" ".join(words[start : start + 40]) for start in range(0, len(words) - 40, 10)]
    made = np.frombuffer(b"".join(StaticEmbedder().embed_texts(passages)), np.float32).reshape(
        len(passages), -1
    )
    queries, vectors = made[:: len(made) // QUERIES][:QUERIES], made
    index = SqliteStore(os.path.join(folder, "static.sqlite"))
    store(index, vectors)
    with index.snapshot() as reader:
        found = [[key - 1 for key, _ in reader.nearest(1, query.tobytes(), K)] for query in queries]
    index.close()
    bits = {f"one_bit_{name}": value for name, value in one_bit(vectors, queries).items()}
    return {"rows": len(vectors), "blocks_recall": recall(found, exact(vectors, queries)), **bits}


def best_of(times: int, work: Callable[[], None]) -> float:
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


if __name__ == "__main__":
    main()
