"""The command, its output, the grammar and the comparison with evaluation sets."""

import gzip
import json
import lzma
import random
import re
from pathlib import Path

import pytest
from training.gather.__main__ import main
from training.gather.generate import generate
from training.gather.generate.grammar import Grammar, GrammarError, read_sections
from training.gather.generate.words import wordnet_sections
from training.gather.output import without_duplicates
from training.gather.overlap import OverlapFilter, evaluation_texts
from training.gather.values import Text

LONG = "one two three four five six seven eight nine ten eleven twelve"


def write_set(folder: Path, *rows: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def read_lines(folder: Path) -> list[dict[str, str]]:
    with lzma.open(folder / "texts.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_a_small_run_needs_no_packages_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(tmp_path / "shared" / "data" / "empty", {"text": "nothing in common"})
    monkeypatch.setenv("CLAWMARK_SHARED", str(tmp_path / "shared"))
    for name in ("first", "second"):
        assert main(["--small", "--out", str(tmp_path / name)]) == 0
    rows = read_lines(tmp_path / "first")
    assert 250 <= len(rows) <= 400
    assert {row["kind"] for row in rows} == {"passage", "query", "dialogue", "note"}
    assert rows == read_lines(tmp_path / "second")
    manifest = json.loads((tmp_path / "first" / "manifest.json").read_text())
    assert manifest["texts"] == len(rows)
    assert sum(row["texts"] for row in manifest["sources"].values()) == len(rows)


def test_texts_of_evaluation_sets_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAWMARK_SHARED", str(tmp_path / "none"))
    assert main(["--small", "--out", str(tmp_path / "all")]) == 0
    longest = max((row["text"] for row in read_lines(tmp_path / "all")), key=len)
    write_set(tmp_path / "shared" / "data" / "exam", {"id": "1", "text": longest})
    monkeypatch.setenv("CLAWMARK_SHARED", str(tmp_path / "shared"))
    assert main(["--small", "--out", str(tmp_path / "kept")]) == 0
    assert longest not in {row["text"] for row in read_lines(tmp_path / "kept")}
    manifest = json.loads((tmp_path / "kept" / "manifest.json").read_text())
    assert manifest["dropped"]["overlap"] >= 1


def test_a_run_without_evaluation_sets_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAWMARK_SHARED", str(tmp_path / "none"))
    main(["--small", "--out", str(tmp_path / "out")])
    assert "Set CLAWMARK_SHARED" in capsys.readouterr().err


def test_a_result_that_is_too_large_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("training.gather.__main__.LARGEST", 1000)
    assert main(["--small", "--out", str(tmp_path / "out")]) == 1
    assert "Lower the limits" in capsys.readouterr().err


def test_twelve_shared_words_are_an_overlap_and_eleven_are_not() -> None:
    known = OverlapFilter([f"Before, {LONG}! After."])
    assert known.overlaps(f"Other words. {LONG.upper()} other words.")
    assert not known.overlaps(LONG.removesuffix(" twelve") + " other words at the end of it")


def test_a_short_query_overlaps_only_when_it_is_equal() -> None:
    known = OverlapFilter(["Where did Ann live?"])
    assert known.overlaps("where did ann live")
    assert not known.overlaps("Where did Ann live in May?")


def test_every_string_of_an_evaluation_set_is_known(tmp_path: Path) -> None:
    write_set(tmp_path / "set", {"id": "7", "message": {"content": [{"text": "deep inside"}]}})
    assert list(evaluation_texts(tmp_path)) == ["7", "deep inside"]


def test_texts_that_differ_only_in_case_and_punctuation_are_duplicates() -> None:
    texts = [Text(text, "a", "query") for text in ("What is it?", "what is it", "What was it?")]
    assert [text.text for text in without_duplicates(texts)] == ["What is it?", "What was it?"]


def test_every_reference_in_the_grammar_has_a_section() -> None:
    sections = read_sections()
    parts = {name.partition(".")[2] for name in sections if name.startswith("running.")}
    for name, alternatives in sections.items():
        assert alternatives, name
        for reference in re.findall(r"\{([^{}]+)\}", " ".join(alternatives)):
            plain = reference.removeprefix("^").removeprefix("a:")
            known = plain.startswith(("n:", "@")) or plain in sections
            assert known or plain.removeprefix(".") in parts, f"[{name}] {{{reference}}}"


def test_every_topic_has_every_part() -> None:
    sections = read_sections()
    for topic in sections["topic"]:
        for part in ("thing", "did", "doing", "want", "place", "detail", "ask"):
            assert sections[f"{topic}.{part}"]


def test_an_unknown_section_is_named_in_the_error() -> None:
    with pytest.raises(GrammarError, match=r"no section \[colour\]"):
        Grammar({"a": ("{colour}",)}).choose("a", random.Random(1), {})


def test_generated_texts_are_distinct_and_of_every_kind() -> None:
    texts = generate(500, 3)
    assert len({text.text for text in texts}) == len(texts) == 500
    assert {text.kind for text in texts} == {"passage", "query", "dialogue", "note"}
    assert not any("{" in text.text for text in texts)


def test_wordnet_gives_words_by_subject_without_offensive_ones() -> None:
    data = [
        "  1 licence",
        "02084071 05 n 01 dog 0 001 @ 02083346 n 0000 | a pet that barks",
        "02084072 05 n 01 aardwolf 0 001 @ 02083346 n 0000 | a striped animal",
        "09800000 18 n 01 lout 0 001 @ 00007846 n 0000 | (offensive) a rude person",
        "08800000 15 n 01 Oslo 0 001 @i 08691669 n 0000 | the capital of Norway",
    ]
    index = ["dog n 1 2 @ ~ 1 1 02084071  ", "aardwolf n 1 1 @ 1 0 02084072  "]
    sections = wordnet_sections(data, index)
    assert sections["wn.animal"].count("dog") > sections["wn.animal"].count("aardwolf") == 1
    assert sections["wn.person"] == ()
    assert sections["wn.place"] == ("Oslo",)
