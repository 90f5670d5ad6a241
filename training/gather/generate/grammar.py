"""A small grammar: named lists of alternatives that refer to each other.

A grammar file has sections, `[name]`, with one alternative on each line. In an alternative,
`{name}` is replaced by an alternative of that section, `{^name}` by one with a capital first
letter, `{a:name}` by one with its article, `{.name}` by one of the section `TOPIC.name`,
`{@name}` by a bound value, `{n:2-40}` by a number, and `\\n` by a line break.
"""

import random
import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "grammar"
_REFERENCE = re.compile(r"\{([^{}]+)\}")
_SECTION = re.compile(r"^\[([\w.]+)\]$")


class GrammarError(Exception):
    """Raised when an alternative refers to a section that does not exist."""


def read_sections(folder: Path = FOLDER) -> dict[str, tuple[str, ...]]:
    """Read every grammar file of a folder."""
    sections: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        name = ""
        for line in path.read_text("utf-8").splitlines():
            match = _SECTION.match(line)
            if match:
                name = match[1]
                sections.setdefault(name, [])
            elif name and line:
                sections[name].append(line)
    return {name: tuple(lines) for name, lines in sections.items()}


class Grammar:
    """Sections, and the expansion of their alternatives."""

    def __init__(self, sections: Mapping[str, tuple[str, ...]]) -> None:
        self.sections = dict(sections)

    def choose(self, section: str, rng: random.Random, bound: Mapping[str, str]) -> str:
        """Expand a random alternative of a section."""
        text = self._resolve(section, rng, bound).replace("\\n", "\n")
        return re.sub(r" *\n *", "\n", text).strip()

    def _expand(self, template: str, rng: random.Random, bound: Mapping[str, str]) -> str:
        return _REFERENCE.sub(lambda match: self._resolve(match[1], rng, bound), template)

    def _resolve(self, reference: str, rng: random.Random, bound: Mapping[str, str]) -> str:
        if reference.startswith("n:"):
            low, high = reference[2:].split("-")
            return str(rng.randint(int(low), int(high)))
        if reference.startswith("@"):
            return bound[reference[1:]]
        if reference.startswith("^"):
            text = self._resolve(reference[1:], rng, bound)
            return text[:1].upper() + text[1:]
        if reference.startswith("a:"):
            text = self._resolve(reference[2:], rng, bound)
            return f"an {text}" if text[:1].lower() in "aeiou" else f"a {text}"
        name = bound["topic"] + reference if reference.startswith(".") else reference
        alternatives = self.sections.get(name)
        if not alternatives:
            raise GrammarError(f"The grammar has no section [{name}]. Add it or correct the name.")
        return self._expand(rng.choice(alternatives), rng, bound)
