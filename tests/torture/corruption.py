"""I-09: a damaged index heals by itself: no answer is wrong without saying so, and one `clawmark
index` makes all of them right.

The files of a sound index are spoiled in many ways: flipped bits, random pages, pages cut off, a
head of zeros, the log of another index, an empty file, no database at all, another program's
database, the schema of a newer version, a foreign trigger. A search that meets the damage must give
the right answers or say what it is doing; half of the time there is none. Then `clawmark index`
must end well, every answer must be right, every row must be what its file says, and at most two of
each kind of spoiled index are kept aside."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
from frame import Outcome
from scene import SIDECARS, Scene, essence, finish, is_clean, is_honest

from clawmark.store.sqlite.db import checking_vfs

CORRUPTIONS, FILES, QUERIES = 300, 60, 12
FEW_CORRUPTIONS, FEW_FILES = 13, 20
PAGE = 16384

Spoil = Callable[[Path, random.Random], None]


def run(work: Path, full: bool, seed: int) -> Outcome:
    scene, other = Scene(work / "one", "static"), Scene(work / "other", "static")
    chance = random.Random(seed)
    queries = chance.sample(scene.write_notes(FILES if full else FEW_FILES, seed), QUERIES)
    other.write_notes(5, seed + 1)
    other.run("index")
    scene.run("index")
    expected = scene.answers(queries)
    sound = {suffix: Path(f"{scene.index}{suffix}").read_bytes() for suffix in ("", ".seal")}
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    kinds = _kinds(other)
    for number in range(CORRUPTIONS if full else FEW_CORRUPTIONS):
        name = list(kinds)[number % len(kinds)]
        _restore(scene, sound)
        kinds[name](scene.index, chance)
        problem = (
            _search_first(scene, queries, expected, tally) if number // len(kinds) % 2 == 0 else ""
        )
        problem = problem or _heal(scene, queries, expected, tally)
        tally[name] += 1
        if problem:
            complaints.append(f"{name} ({number}): {problem}")
    _restore(scene, sound)
    aside = Counter(name.split(".sqlite.")[1].split("-")[0] for name in scene.set_aside())
    if any(count > 2 for kind, count in aside.items() if kind != "foreign"):
        complaints.append(f"too many were kept: {scene.set_aside()}")
    passed = (CORRUPTIONS if full else FEW_CORRUPTIONS) - len(complaints)
    return Outcome(passed, len(complaints), dict(sorted(tally.items())), tuple(complaints))


def _restore(scene: Scene, sound: dict[str, bytes]) -> None:
    """The sound index again, as a writer left it, with a seal that fits until somebody else touches
    the file.
    """
    for suffix in SIDECARS:
        Path(f"{scene.index}{suffix}").unlink(missing_ok=True)
    for suffix, content in sound.items():
        Path(f"{scene.index}{suffix}").write_bytes(content)
    facts = scene.index.stat()
    name = sound[".seal"].split(b" ")[2].decode()
    Path(f"{scene.index}.seal").write_text(
        f"{facts.st_size} {facts.st_mtime_ns} {name} ", encoding="ascii"
    )


def _search_first(
    scene: Scene, queries: list[str], expected: list[dict[str, object]], tally: Counter[str]
) -> str:
    """Meet the damage with a search; what went wrong, or nothing."""
    ended = finish(
        scene.start("search", "--batch", "-"), "".join(f"{query}\n" for query in queries)
    )
    if not is_clean(ended):
        return f"search ended with {ended.code}: {ended.err[-300:]}"
    answers = [json.loads(line) for line in ended.out.splitlines()]
    for answer, wanted in zip(answers, expected, strict=True):
        if not is_honest(answer, wanted):
            return f"a wrong answer that claims to be complete: {json.dumps(answer)[:300]}"
    tally["healed by the search"] += any(answer.get("degraded") for answer in answers)
    return ""


def _heal(
    scene: Scene, queries: list[str], expected: list[dict[str, object]], tally: Counter[str]
) -> str:
    """Index, search, verify; what went wrong, or nothing."""
    ended = scene.run("index", "--json")
    if not is_clean(ended):
        return f"index ended with {ended.code}: {ended.out[-300:]} {ended.err[-300:]}"
    tally["healed by the index run"] += bool(json.loads(ended.out)["healed"])
    if [essence(answer) for answer in scene.answers(queries)] != [
        essence(answer) for answer in expected
    ]:
        return "other answers after the index run"
    ended = scene.run("verify")
    return "" if is_clean(ended) else f"verify: {ended.out[-400:]}"


# --- ways to spoil an index -----------------------------------------------------------------------


def _kinds(other: Scene) -> dict[str, Spoil]:
    return {
        "flipped bits": _flip_bits,
        "one flipped bit": lambda path, chance: _flip_bits(path, chance, most=1),
        "a random page": _random_page,
        "a page in the place of another": _swap_pages,
        "cut off at a page": _cut_at_page,
        "cut off anywhere": _cut,
        "a head of zeros": lambda path, chance: _overwrite(path, 0, bytes(PAGE)),
        "the log of another index": lambda path, chance: _foreign_log(path, other),
        "an empty file": lambda path, chance: path.write_bytes(b"") and None,
        "no database": lambda path, chance: (
            path.write_bytes(chance.randbytes(chance.randrange(1, 100_000))) and None
        ),
        "another program's database": _foreign_database,
        "a newer schema": lambda path, chance: _tamper(
            path, "UPDATE meta SET value = '99' WHERE key = 'schema_version'"
        ),
        "a foreign trigger": lambda path, chance: _tamper(
            path, "CREATE TRIGGER evil AFTER INSERT ON files BEGIN DELETE FROM chunks; END"
        ),
    }


def _flip_bits(path: Path, chance: random.Random, most: int = 400) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.randrange(most) + 1):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def _random_page(path: Path, chance: random.Random) -> None:
    page = chance.randrange(path.stat().st_size // PAGE)
    _overwrite(path, page * PAGE, chance.randbytes(PAGE))


def _swap_pages(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    one, two = (chance.randrange(1, len(content) // PAGE) * PAGE for _ in range(2))
    _overwrite(path, one, content[two : two + PAGE])


def _cut_at_page(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(1, len(content) // PAGE) * PAGE])


def _cut(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(1, len(content))])


def _overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def _foreign_log(path: Path, other: Scene) -> None:
    """What a bad restore leaves: the log of another index, long enough to replace every page."""
    shutil.copyfile(other.index, f"{path}.copy")
    log = apsw.Connection(f"{path}.copy", vfs=checking_vfs())
    log.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    log.execute("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").fetchall()
    log.execute(
        "CREATE TABLE x (y); DROP TABLE x; UPDATE meta SET value = value; UPDATE files SET path "
        "= path || 'x'"
    )
    log.close()
    Path(f"{path}.copy-wal").replace(f"{path}-wal")
    for suffix in ("", "-shm"):
        Path(f"{path}.copy{suffix}").unlink(missing_ok=True)


def _foreign_database(path: Path, _: random.Random) -> None:
    path.unlink()
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE precious (text); INSERT INTO precious VALUES ('something')")
    other.close()


def _tamper(path: Path, statements: str) -> None:
    other = apsw.Connection(str(path), vfs=checking_vfs())
    other.execute(statements)
    other.close()
