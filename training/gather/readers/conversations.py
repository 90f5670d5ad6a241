"""Read questions and answers from the corpus files of chat bots."""

import json
import re
from collections.abc import Iterator

from training.gather.readers.plain import decode
from training.gather.values import Section

_TURN = re.compile(r"^(- -|  -)\s+(.*)$")


def read_conversations(_name: str, content: bytes) -> Iterator[Section]:
    """Give each conversation of a ChatterBot file, and each of its turns."""
    conversation: list[str] = []
    for line in [*decode(content).splitlines(), "- - "]:
        match = _TURN.match(line)
        if match is None:
            if conversation and line.startswith("    "):
                conversation[-1] = f"{conversation[-1]} {line.strip()}"
            continue
        if match[1] == "- -" and conversation:
            yield from _sections(conversation)
            conversation = []
        conversation.append(match[2].strip().strip("'\""))


def _sections(turns: list[str]) -> Iterator[Section]:
    turns = [turn for turn in turns if turn]
    for turn in turns:
        yield Section("", (turn,), "query" if turn.endswith("?") else "dialogue")
    if len(turns) > 1:
        names = ("user", "assistant")
        lines = (f"{names[index % 2]}: {turn}" for index, turn in enumerate(turns))
        yield Section("", ("\n".join(lines),), "dialogue")


def read_dialog(_name: str, content: bytes) -> Iterator[Section]:
    """Give the sentences of a voice skill; each `(a|b)` becomes its first alternative."""
    for line in decode(content).splitlines():
        sentence = _plain_sentence(line)
        if sentence and not line.startswith("#"):
            yield Section("", (sentence,), "query" if sentence.endswith("?") else "dialogue")


def read_intents(_name: str, content: bytes) -> Iterator[Section]:
    """Give the example sentences of Home Assistant's intents as queries."""
    for intent in json.loads(content)["intents"].values():
        for block in intent.get("data", ()):
            for sentence in block.get("sentences", ()):
                yield Section("", (_plain_sentence(sentence),), "query")


def _plain_sentence(template: str) -> str:
    text = re.sub(r"<(\w+)>|\{\{?(\w+)(?::\w+)?\}?\}", lambda m: _spaced(m[1] or m[2]), template)
    while True:
        shorter = re.sub(r"[(\[]([^()\[\]|]*)(?:\|[^()\[\]]*)?[)\]]", r"\1", text)
        if shorter == text:
            return " ".join(text.split(";")[0].split())
        text = shorter


def _spaced(name: str) -> str:
    return name.replace("_", " ")
