"""Read The World Factbook: one JSON file for each country."""

import json
from collections.abc import Iterator

from training.gather.values import Section


def read_factbook(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each subject of a country, such as its economy."""
    profile = json.loads(content)
    if not isinstance(profile, dict) or "Government" not in profile:
        return
    country = _country(profile)
    for subject, fields in profile.items():
        paragraphs = tuple(_fields(fields))
        if paragraphs:
            yield Section(f"{country}, {subject.lower()}", paragraphs)


def _country(profile: dict[str, object]) -> str:
    names = profile["Government"]
    for key in ("Country name", "conventional short form", "text"):
        names = names.get(key, "") if isinstance(names, dict) else names
    return str(names) or "This country"


def _fields(fields: object) -> Iterator[str]:
    """Give `field: text` for each field, with the texts of its parts in one line."""
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        text = "; ".join(_texts(value))
        if text:
            yield text if len(text.split()) > 40 else f"{name}: {text}"


def _texts(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name, child in value.items():
        if name == "text" and isinstance(child, str):
            yield " ".join(child.replace("++", ";").split())
        else:
            for text in _texts(child):
                yield f"{name} {text}"
