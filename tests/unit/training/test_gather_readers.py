"""Readers of packages' files."""

import json
import zlib

from training.gather.readers.comments import read_comments
from training.gather.readers.conversations import read_conversations, read_dialog, read_intents
from training.gather.readers.descriptions import read_json
from training.gather.readers.factbook import read_factbook
from training.gather.readers.html import read_html
from training.gather.readers.markdown import read_changelog, read_markdown
from training.gather.readers.plain import read_lines, read_text
from training.gather.readers.python_source import read_python, words_of
from training.gather.readers.r_data import read_r_data
from training.gather.readers.wordnet import read_wordnet
from training.gather.values import Section


def test_docstrings_are_read_without_examples_and_markup() -> None:
    source = '''
class CsvReader:
    """Reads :class:`rows <csv.Row>` from a ``file``.

    >>> CsvReader("a.csv")
    """
'''
    assert list(read_python("csv.py", source.encode())) == [
        Section("csv reader", ("Reads rows from a file.",))
    ]


def test_a_file_that_does_not_parse_gives_nothing() -> None:
    assert list(read_python("old.py", b"print 'hello'")) == []


def test_identifiers_become_words() -> None:
    assert words_of("read_csv_file.py") == "read csv file"
    assert words_of("DescribeInstances") == "describe instances"


def test_html_gives_a_section_for_each_heading_without_scripts_and_code() -> None:
    page = """<html><head><title>x</title></head><body><script>var a = 1;</script>
    <h1>2. Backups¶</h1><p>Copy the <b>file</b>.</p><pre>cp a b</pre>
    <h2>Restore</h2><ul><li>Stop the server.</li><li>Copy it back.</li></ul></body></html>"""
    assert list(read_html("a.html", page.encode())) == [
        Section("Backups", ("Copy the file.",)),
        Section("Restore", ("Stop the server.", "Copy it back.")),
    ]


def test_html_sidebars_are_left_out_with_what_is_inside_them() -> None:
    page = '<div class="sphinxsidebar"><div>Menu</div><p>Links</p></div><p>The text.</p>'
    assert list(read_html("a.html", page.encode())) == [Section("", ("The text.",))]


def test_markdown_gives_headings_and_paragraphs_without_code() -> None:
    text = "# Use\n\nOpen **it** with [a key](https://example.org).\n\n```sh\nopen it\n```\n"
    assert list(read_markdown("README.md", text.encode())) == [
        Section("Use", ("Open it with a key.",))
    ]


def test_underlined_headings_are_headings() -> None:
    assert list(read_markdown("a.rst", b"Use\n===\n\nOpen it.\n")) == [
        Section("Use", ("Open it.",))
    ]


def test_changelog_entries_are_notes_without_links() -> None:
    text = "## 1.2.0\n\n* Fix a crash (#12)\n* Add a cache ([abc1234](https://example.org/x))\n"
    (section,) = read_changelog("CHANGELOG.md", text.encode())
    assert section.kind == "note"
    assert section.paragraphs == ("Fix a crash", "Add a cache")


def test_descriptions_are_found_at_any_depth_and_have_the_name_as_heading() -> None:
    document = {"operations": {"CreateBucket": {"documentation": "<p>Creates a bucket.</p>"}}}
    assert list(read_json("service.json", json.dumps(document).encode())) == [
        Section("create bucket", ("Creates a bucket.",))
    ]


def test_a_book_is_read_without_the_terms_around_it() -> None:
    book = "Terms.\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\nOne.\n\nTwo\nlines.\n"
    end = "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\nMore terms.\n"
    assert list(read_text("x.txt", (book + end).encode())) == [Section("", ("One.", "Two lines."))]


def test_lines_are_texts_of_their_own() -> None:
    found = [section.paragraphs for section in read_lines("x", b"one\n\n two  words \n")]
    assert found == [("one",), ("two words",)]


def test_a_wordnet_line_gives_its_definition_and_its_examples() -> None:
    line = (
        '00001740 03 n 02 dog 0 domestic_dog 0 001 @ 00001930 n 0000 | a pet that barks; "the'
        ' dog barked all night"  \n'
    )
    assert list(read_wordnet("data.noun", ("  1 licence\n" + line).encode())) == [
        Section("dog or domestic dog", ("dog or domestic dog: a pet that barks",)),
        Section("", ("The dog barked all night.",)),
    ]


def test_conversations_give_turns_and_the_whole() -> None:
    corpus = "categories:\n- AI\nconversations:\n- - What is AI?\n  - A branch of\n    science.\n"
    assert list(read_conversations("ai.yml", corpus.encode())) == [
        Section("", ("What is AI?",), "query"),
        Section("", ("A branch of science.",), "dialogue"),
        Section("", ("user: What is AI?\nassistant: A branch of science.",), "dialogue"),
    ]


def test_sentences_of_voice_skills_have_one_alternative_and_named_slots() -> None:
    content = b"# comment\n(what is|tell me) the [current] time in {city_name}?\n"
    assert list(read_dialog("time.intent", content)) == [
        Section("", ("what is the current time in city name?",), "query")
    ]


def test_intents_are_queries() -> None:
    document = {"intents": {"X": {"data": [{"sentences": ["turn on (the|my) <name>"]}]}}}
    assert list(read_intents("en.json", json.dumps(document).encode())) == [
        Section("", ("turn on the name",), "query")
    ]


def test_comments_are_read_without_tags_and_examples() -> None:
    source = """
/**
 * Opens a {@link Door door}.
 * @param key the key to use
 * @internal
 * @example
 * open(1)
 */
export function openDoor(key: string): void;
"""
    assert list(read_comments("a.d.ts", source.encode())) == [
        Section("open door", ("Opens a Door door.", "key the key to use"))
    ]


def test_the_factbook_gives_one_section_for_each_subject() -> None:
    profile = {
        "Government": {"Country name": {"conventional short form": {"text": "Peru"}}},
        "Geography": {"Terrain": {"text": "coastal plain"}},
    }
    assert list(read_factbook("pe.json", json.dumps(profile).encode())) == [
        Section("Peru, government", ("Country name: conventional short form Peru",)),
        Section("Peru, geography", ("Terrain: coastal plain",)),
    ]


def test_lines_in_r_data_become_paragraphs() -> None:
    def string(text: bytes) -> bytes:
        return b"\x00\x04\x00\x09" + len(text).to_bytes(4, "big") + text

    vector = b"".join(map(string, (b"It is a truth", b"acknowledged.", b"", b"Yes.")))
    stored = zlib.compress(vector)
    assert list(read_r_data("Rdata.rdb", len(vector).to_bytes(4, "big") + stored)) == [
        Section("", ("It is a truth acknowledged.", "Yes."))
    ]
