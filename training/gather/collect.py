"""Turn the files of one source into texts."""

import gzip
import random
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from training.gather.passages import is_english, passages
from training.gather.questions import questions
from training.gather.readers.comments import read_comments
from training.gather.readers.conversations import read_conversations, read_dialog, read_intents
from training.gather.readers.descriptions import read_json
from training.gather.readers.factbook import read_factbook
from training.gather.readers.html import read_html
from training.gather.readers.markdown import read_changelog, read_markdown
from training.gather.readers.plain import read_lines, read_text
from training.gather.readers.python_source import read_python
from training.gather.readers.r_data import read_r_data
from training.gather.readers.wordnet import read_wordnet
from training.gather.registry import fetch, members
from training.gather.sources import Source, SourceError
from training.gather.values import Kind, Section, Text

MOST_FILES = 1200

READERS: dict[str, Callable[[str, bytes], Iterator[Section]]] = {
    "changelog": read_changelog,
    "comments": read_comments,
    "conversations": read_conversations,
    "dialog": read_dialog,
    "factbook": read_factbook,
    "html": read_html,
    "intents": read_intents,
    "json": read_json,
    "lines": read_lines,
    "markdown": read_markdown,
    "python": read_python,
    "r-data": read_r_data,
    "text": read_text,
    "wordnet": read_wordnet,
}


def collect(source: Source, cache: Path, seed: int) -> list[Text]:
    """Return the texts of one source: no more than its limit, chosen at random by the seed."""
    package = fetch(source, cache)
    files = members(package)
    chosen = [
        (name, gzip.decompress(content) if name.endswith(".gz") else content)
        for name, content in files.items()
        if any(fnmatch(name, pattern) for pattern in source.files)
    ]
    if source.evidence not in files:
        raise SourceError(
            f"{source.name}: {package.name} has no file {source.evidence}, which should show its"
            f" licence. Check the licence of version {source.version}."
        )
    if not chosen:
        raise SourceError(f"{source.name}: no file matches {', '.join(source.files)}.")
    if len(chosen) > MOST_FILES:
        chosen = random.Random(seed).sample(chosen, MOST_FILES)
    return sample(texts_of(source, chosen, seed), source.limit, seed)


def texts_of(source: Source, files: list[tuple[str, bytes]], seed: int) -> list[Text]:
    """Read files and return their texts, each one once."""
    rng = random.Random(f"{seed} {source.name}")
    found: dict[str, Kind] = {}
    for name, content in files:
        for section in READERS[source.reader](name, content):
            for text in passages(section, rng):
                _keep(found, text, section.kind)
            if section.kind != "query":
                for query in questions(section, rng):
                    _keep(found, query, "query")
    return [Text(text, source.name, kind) for text, kind in found.items()]


def sample(texts: list[Text], limit: int, seed: int) -> list[Text]:
    """Choose at random, in the order they came. Queries are at most a quarter of the limit."""
    rng = random.Random(seed)
    queries = [text for text in texts if text.kind == "query"]
    others = [text for text in texts if text.kind != "query"]
    chosen_queries = rng.sample(queries, min(len(queries), limit // 4))
    count = min(len(others), limit - len(chosen_queries))
    return [*rng.sample(others, count), *chosen_queries]


def _keep(found: dict[str, Kind], text: str, kind: Kind) -> None:
    text = text.strip()
    if is_english(text):
        found.setdefault(text, kind)
