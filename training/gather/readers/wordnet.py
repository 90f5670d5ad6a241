"""Read definitions and example sentences from the data files of WordNet."""

import re
from collections.abc import Iterator

from training.gather.values import Section


def read_wordnet(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each meaning: its words, its definition and its examples."""
    for line in content.decode("utf-8").splitlines():
        if line.startswith("  ") or "|" not in line:
            continue
        fields, _, gloss = line.partition("|")
        words = _words(fields.split())
        parts = [each.strip(' "') for each in re.split(r';\s+(?=")', gloss.strip())]
        definition, examples = parts[0], [each for each in parts[1:] if each.count(" ") > 3]
        heading = " or ".join(words[:3])
        yield Section(heading, (f"{heading}: {definition}",))
        for example in examples:
            yield Section("", (example[:1].upper() + example[1:] + ".",))


def _words(fields: list[str]) -> list[str]:
    count = int(fields[3], 16)
    return [re.sub(r"\(\w+\)$", "", fields[4 + 2 * i]).replace("_", " ") for i in range(count)]
