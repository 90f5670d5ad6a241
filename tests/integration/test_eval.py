"""`clawmark eval`: a healthy memory scores well, a broken ranking is noticed, and two
configurations are compared.
"""

from __future__ import annotations

import json
import random
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from chat import ChatServer, Seen, Turn, fault, say
from commands import Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.engine.maintenance.evaluate import changed
from clawmark.model.values import Vector
from clawmark.testing import HashingEmbedder

ANIMALS = (
    "heron",
    "otter",
    "badger",
    "falcon",
    "beaver",
    "marten",
    "kestrel",
    "salmon",
    "hedgehog",
    "squirrel",
)
KEY = "sk-test-4f9aXb21Qz77Lm03"


class NoiseEmbedder(HashingEmbedder):
    """Vectors that have nothing to do with the texts."""

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return [self._noise(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self._noise(text[::-1])

    def _noise(self, text: str) -> Vector:
        chance = random.Random(text)
        numbers = [chance.gauss(0, 1) for _ in range(self.identity.dims)]
        length = sum(number * number for number in numbers) ** 0.5
        return array("f", [number / length for number in numbers]).tobytes()


def write_notes(root: Path) -> list[dict[str, str]]:
    """A note on each animal, and a question about each."""
    (root / "memory").mkdir(parents=True, exist_ok=True)
    for animal in ANIMALS:
        text = (
            f"# {animal}\n\nThe {animal} lives by the river and was "
            f"counted twice this spring by the wardens.\n"
        )
        (root / "memory" / f"{animal}.md").write_text(text, encoding="utf-8")
    return [
        {"question": f"by which river is the {animal} at home?", "path": f"memory/{animal}.md#L3"}
        for animal in ANIMALS
    ]


def test_a_ranking_by_noise_is_noticed(tmp_path: Path) -> None:
    questions = write_notes(tmp_path / "agent")
    results = {}
    for name, embedder in (("sound", HashingEmbedder()), ("noise", NoiseEmbedder())):
        overrides = {"memorySearch.query.hybrid.enabled": False, "memorySearch.query.minScore": 0.0}
        with Memory.open(
            tmp_path / "agent",
            state_dir=tmp_path / name,
            embedder=embedder,
            overrides=overrides,
            background=False,
        ) as memory:
            memory.sync()
            results[name] = memory.evaluate(questions)
    sound, noise = results["sound"], results["noise"]
    assert (sound.recall_1, sound.mrr, sound.seen) == (1.0, 1.0, 1.0)
    assert noise.recall_1 <= 0.5 and noise.mrr <= 0.6
    assert len(changed(sound, noise)) >= 5


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    questions = write_notes(made.workspace)
    made.state.mkdir()
    (made.state / "clawmark.json").write_text(
        '{ memorySearch: { provider: "none" } }', encoding="utf-8"
    )
    (tmp_path / "questions.jsonl").write_text(
        "\n".join(map(json.dumps, questions)), encoding="utf-8"
    )
    return made


def test_the_figures_are_shown_as_a_table_and_as_json(place: Place) -> None:
    ran = place.run("eval", "questions.jsonl")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].split() == [
        "recall@1",
        "recall@3",
        "recall@6",
        "mrr",
        "seen",
        "questions",
    ]
    assert ran.out.splitlines()[1].split() == ["1.000"] * 5 + ["10"]
    body = place.run("eval", "questions.jsonl", "--json").json()
    assert (body["recall@1"], body["seen"], body["questions"]) == (1.0, 1.0, 10)
    assert body["results"][0]["rank"] == 1


def test_a_setting_that_spoils_the_answers_shows_which_questions_changed(place: Place) -> None:
    ran = place.run(
        "eval",
        "questions.jsonl",
        "--set",
        "query.maxResults=6",
        "--set",
        "memorySearch.provider=none",
    )
    assert "No question is answered differently." in ran.out
    ran = place.run("eval", "questions.jsonl", "--set", "query.minScore=1")
    assert ran.out.splitlines()[3].split() == ["change", *["-1.000"] * 5]
    assert "10 questions answered differently" in ran.out
    assert "  1 → –   1.0 → 0.0  by which river is the heron at home?" in ran.out
    body = place.run("eval", "questions.jsonl", "--set", "query.minScore=1", "--json").json()
    assert (body["configured"]["mrr"], body["other"]["mrr"], len(body["changed"])) == (1.0, 0.0, 10)


def indexed(place: Place) -> list[object]:
    """How the passages of the only index were cut, and which they are."""
    [file] = (place.state / "memory").glob("*.sqlite")
    with closing(sqlite3.connect(file)) as index:
        chunker = index.execute("SELECT value FROM meta WHERE key = 'chunker'").fetchall()
        return (
            chunker
            + index.execute(
                "SELECT start_line, end_line, text FROM chunks ORDER BY text"
            ).fetchall()
        )


def test_a_configuration_that_needs_another_index_does_not_change_this_one(place: Place) -> None:
    place.run("index")
    (place.folder / "other.json").write_text(
        '{ memorySearch: { provider: "none", chunking: { tokens: 32 }, extraPaths: [] } }',
        encoding="utf-8",
    )
    before = indexed(place)
    compared = place.run("eval", "questions.jsonl", "--against", "other.json", "--json")
    assert compared.code == 0 and "needs another index" in compared.err
    assert compared.json()["other"]["recall@6"] == 1.0
    assert indexed(place) == before


def test_questions_that_are_lost_are_listed(place: Place) -> None:
    lines = (place.folder / "questions.jsonl").read_text(encoding="utf-8")
    lines += '\n{"question": "where does the lynx live?", "path": "memory/lynx.md"}'
    (place.folder / "questions.jsonl").write_text(lines, encoding="utf-8")
    ran = place.run("eval", "questions.jsonl")
    assert "memory/lynx.md" in ran.err and "where does the lynx live?" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.jsonl",), "none.jsonl could not be read"),
        (("broken.jsonl",), "Line 1 of broken.jsonl is not JSON."),
        (("questions.jsonl", "--set", "query.minScore"), "--set takes KEY=VALUE"),
        (("questions.jsonl", "--set", "no.such=1"), "There is no key no.such"),
        (("questions.jsonl", "--set", "query.minScore=high"), "minScore"),
        (("questions.jsonl", "-n", "5"), "need --make"),
        (("questions.jsonl", "--set", "a=1", "--against", "b"), "cannot be combined"),
        (("questions.jsonl", "--make", "--model", "ollama:x"), "exists already"),
    ],
)
def test_what_cannot_be_done_is_one_clear_sentence(
    place: Place, words: tuple[str, ...], message: str
) -> None:
    (place.folder / "broken.jsonl").write_text("{\n", encoding="utf-8")
    ran = place.run("eval", *words)
    assert (ran.code, ran.out) == (2, "") and message in ran.err
    assert says_one_clear_thing(ran)


# --- making questions -----------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key=KEY) as made:
        yield made


def model(server: ChatServer) -> tuple[str, str]:
    return "--model", f"scripted@{server.openai_url}"


def ask_about_the_animal(seen: Seen) -> Turn:
    """Quotes the sentence it was given; for the otter it makes one up, and other notes answer
    nothing.
    """
    line = next(
        (line.removeprefix("| ") for line in seen.last_user.splitlines() if "lives by" in line), ""
    )
    if not line:
        return say("{}")
    animal = line.split()[1]
    quote = "The otter is a myth." if animal == "otter" else line
    return say(
        "Here it is:\n"
        + json.dumps({"question": f"By which river is the {animal} found?", "quote": quote})
    )


def test_a_model_writes_questions_with_the_lines_they_come_from(
    place: Place, server: ChatServer
) -> None:
    server.script(ask_about_the_animal)
    ran = place.run(
        "eval",
        "made.jsonl",
        "--make",
        "-n",
        "6",
        *model(server),
        env={"CLAWMARK_MODEL_API_KEY": KEY},
    )
    assert ran.code == 0, ran.err
    made = [
        json.loads(line)
        for line in (place.folder / "made.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(made) == 6
    assert all("otter" not in one["question"] for one in made)
    assert all(one["path"].endswith(".md#L3") and one["text"].startswith("The ") for one in made)
    assert place.run("eval", "made.jsonl", "--json").json()["recall@6"] == 1.0


def test_secrets_of_the_notes_are_not_sent_to_the_model(place: Place, server: ChatServer) -> None:
    secret = "sk-proj-" + "a1B2" * 12
    note = (
        f"The otter lives by the river and its key is {secret} as the wardens told us in spring.\n"
    )
    (place.workspace / "memory" / "otter.md").write_text(note, encoding="utf-8")
    server.script(ask_about_the_animal)
    place.run("eval", "made.jsonl", "--make", *model(server), env={"CLAWMARK_MODEL_API_KEY": KEY})
    assert server.seen and all(secret not in request.body.decode() for request in server.requests)


def test_without_a_model_no_file_is_made(place: Place) -> None:
    ran = place.run(
        "eval", "made.jsonl", "--make", env=dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"))
    )
    assert ran.code == 2 and "No model is configured" in ran.err and says_one_clear_thing(ran)
    assert not (place.folder / "made.jsonl").exists()


def test_what_was_written_before_a_model_fails_is_kept(place: Place, server: ChatServer) -> None:
    answers = iter((1, 2))
    server.script(lambda seen: ask_about_the_animal(seen) if next(answers, 0) else fault("key"))
    ran = place.run(
        "eval", "made.jsonl", "--make", *model(server), env={"CLAWMARK_MODEL_API_KEY": KEY}
    )
    assert ran.code == 0 and KEY not in ran.err and "clawmark:" in ran.err
    assert (place.folder / "made.jsonl").read_text(encoding="utf-8").count("\n") in (1, 2)
    server.script([fault("key")] * 5)
    failed = place.run(
        "eval", "never.jsonl", "--make", *model(server), env={"CLAWMARK_MODEL_API_KEY": KEY}
    )
    assert failed.code == 3 and not (place.folder / "never.jsonl").exists()
