"""Several real processes on one index die, race and fork, and no answer is wrong."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark.model.errors import IndexDamaged, IndexStoreError
from clawmark.model.values import noise_fact
from clawmark.store.sqlite.files import lock_path, set_aside
from clawmark.store.sqlite.locks import WriteLock
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, fill, random_vectors

PRELUDE = """
import os, sys
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import *
index = SqliteStore(sys.argv[1])
"""


def start(path: str, code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + code, path, *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def texts(index: SqliteStore) -> dict[str, list[str]]:
    with index.snapshot() as reader:
        assert reader.integrity_problems() == []
        return {path: [row.text for row in reader.chunks_of(path)] for path in reader.files()}


def test_a_writer_killed_in_the_middle_leaves_the_old_rows_and_no_lock(tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"))
    fill(index, "a.md", random_vectors(3, 8, seed=1), 8)
    before = texts(index)
    code = """
with index.transaction() as writer:
    for number in range(200):
        writer.put_file(
            *file_of(f"{number}.md", *[f"never {number} {line} " * 50 for line in range(20)])
        )
    writer.delete_file("a.md")
    print("ready", flush=True)
    sys.stdin.read()
"""
    for _ in range(3):
        process = start(index.path, code)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        kill(process)
        assert texts(index) == before
        with index.transaction(timeout=0) as writer:
            assert writer.count_due(1) == 0
            assert len(writer.nearest(1, random_vectors(1, 8, seed=1)[0], 10)) == 3


REBUILD_FOR_EVER = """
generation = int(sys.argv[2])
while True:
    generation += 1
    building = 0
    while not building:
        with index.transaction() as writer:
            building = writer.begin_rebuild({"run": generation})
            if not building:
                writer.sweep(5)
    for number in range(12):
        with index.transaction() as writer:
            writer.put_file(
                *file_of(f"{number}.md", f"everywhere generation{generation}"), building=building
            )
        print(generation, flush=True)
    with index.transaction() as writer:
        writer.publish(building)
    while True:
        with index.transaction() as writer:
            if not writer.sweep(5):
                break
"""


def generations_seen(index: SqliteStore) -> set[str]:
    """The words of all files in one snapshot; a whole generation has one word, twelve times."""
    with index.snapshot() as reader:
        keys = [key for key, _ in reader.search_keywords(any_of("everywhere"), 100)]
        rows = reader.chunks(keys)
        assert len(rows) == len(keys) == 12
        return {row.text for row in rows.values()}


def test_readers_see_one_whole_generation_while_others_are_built_and_killed(tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"))
    with index.transaction() as writer:
        for number in range(12):
            writer.put_file(*file_of(f"{number}.md", "everywhere generation0"))
    chance = random.Random(7)
    seen: set[str] = set()
    latest = 0
    for _ in range(6):
        process = start(index.path, REBUILD_FOR_EVER, str(latest))
        assert process.stdout is not None
        for _ in range(chance.randrange(5, 60)):
            latest = int(process.stdout.readline())
            now = generations_seen(index)
            assert len(now) == 1
            seen |= now
        kill(process)
        assert len(generations_seen(index)) == 1
    assert len(seen) > 3
    with index.transaction() as writer:
        writer.abandon()
    while True:
        with index.transaction() as writer:
            if not writer.sweep():
                break
    with index.snapshot() as reader:
        assert reader.db.rows("SELECT count(*) FROM chunks") == [(12,)]
        assert reader.integrity_problems() == []


def test_eight_processes_write_forty_times_each_without_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "index.sqlite")
    code = """
for number in range(40):
    with index.transaction(timeout=60) as writer:
        writer.put_file(*file_of(f"{sys.argv[2]}-{number}.md", f"note {sys.argv[2]} {number}"))
    with index.snapshot() as reader:
        assert f"{sys.argv[2]}-{number}.md" in reader.files()
index.close()
"""
    for process in [start(path, code, str(number)) for number in range(8)]:
        finish(process)
    index = SqliteStore(path)
    assert texts(index) == {
        f"{who}-{n}.md": [f"note {who} {n}"] for who in range(8) for n in range(40)
    }


def test_what_four_processes_acknowledged_is_found_by_word_and_by_vector(tmp_path: Path) -> None:
    path = str(tmp_path / "index.sqlite")
    code = """
who = int(sys.argv[2])
vectors = random_vectors(60, 16, seed=who)
for number, vector in enumerate(vectors):
    file = file_of(f"{who}-{number}.md", f"unique{who}x{number}")
    with index.transaction(timeout=60) as writer:
        keys = writer.put_file(*file)
        writer.put_vectors(
            writer.add_space(identity_of(16)).id, [(keys[0], file[1][0].hash, vector)]
        )
"""
    for process in [start(path, code, str(number)) for number in range(4)]:
        finish(process)
    index = SqliteStore(path)
    with index.snapshot() as reader:
        assert len(reader.state().spaces) == 1
        for who in range(4):
            for number, vector in enumerate(random_vectors(60, 16, seed=who)):
                ((by_word, _),) = reader.search_keywords(any_of(f"unique{who}x{number}"), 5)
                assert reader.nearest(1, vector, 1)[0][0] == by_word
                assert reader.chunks([by_word])[by_word].path == f"{who}-{number}.md"


def test_a_forked_child_opens_its_own_connections(tmp_path: Path) -> None:
    code = """
with index.transaction() as writer:
    writer.put_file(*file_of("parent.md", "parent"))
with index.snapshot() as reader:
    assert list(reader.files()) == ["parent.md"]
    child = os.fork()
    if child == 0:
        with index.transaction() as writer:
            writer.put_file(*file_of("child.md", "child"))
        with index.snapshot() as inner:
            assert sorted(inner.files()) == ["child.md", "parent.md"]
        index.close()
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(reader.files()) == ["parent.md"]
with index.transaction() as writer:
    writer.put_file(*file_of("again.md", "again"))
with index.snapshot() as reader:
    assert sorted(reader.files()) == ["again.md", "child.md", "parent.md"]
    assert reader.integrity_problems() == []
"""
    finish(start(str(tmp_path / "index.sqlite"), code))


def damage(content: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    spoiled = bytearray(content)
    match seed % 5:
        case 0:
            del spoiled[chance.randrange(len(spoiled)) :]
        case 1:
            spoiled[:16384] = bytes(16384)
        case 2:
            at = chance.randrange(len(spoiled) // 16384) * 16384
            spoiled[at : at + 16384] = chance.randbytes(16384)
        case _:
            for _ in range(chance.randrange(1, 200)):
                spoiled[chance.randrange(len(spoiled))] ^= 1 << chance.randrange(8)
    return bytes(spoiled)


def ask_everything(index: SqliteStore, vector: bytes) -> None:
    with index.snapshot() as reader:
        state = reader.state()
        keys = [key for key, _ in reader.search_keywords(any_of("passage"), 100)]
        reader.score_keywords([any_of("passage"), any_of("md")], keys)
        reader.count_keywords([any_of("passage"), any_of("md")])
        reader.chunks(keys)
        for path in reader.files():
            reader.chunks_of(path)
        for space in state.spaces:
            reader.nearest(space.id, vector, 20, keys)
            reader.sample_vectors(space.id, 10)
            reader.facts(noise_fact(space.id))
            reader.due_chunks(space.id, reader.due_keys(space.id)[:10])


@pytest.mark.parametrize("batch", range(6))
def test_a_spoiled_file_answers_or_says_so_and_can_be_replaced(batch: int, tmp_path: Path) -> None:
    source = SqliteStore(str(tmp_path / "source.sqlite"))
    vectors = random_vectors(300, 16, seed=1)
    for number in range(6):
        fill(source, f"{number}.md", vectors[number * 50 : number * 50 + 50], 16)
    source.close()
    sound = Path(source.path).read_bytes()
    for seed in range(batch * 25, batch * 25 + 25):
        index = SqliteStore(str(tmp_path / f"{seed}.sqlite"))
        Path(index.path).write_bytes(damage(sound, seed))
        try:
            ask_everything(index, vectors[0])
            with index.transaction() as writer:
                writer.put_file(*file_of("new.md", "new text"))
        except (IndexDamaged, IndexStoreError) as error:
            assert error.hint
        index.close()
        with WriteLock(lock_path(index.path)).held(1.0):
            set_aside(index.path, "corrupt")
        keys = fill(index, "again.md", vectors[:5], 16)
        with index.snapshot() as reader:
            assert reader.nearest(1, vectors[2], 1)[0][0] == keys[2]
        index.close()
