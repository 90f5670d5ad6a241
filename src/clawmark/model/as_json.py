"""Convert values to objects for JSON, with names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping


def as_json(value: object) -> object:
    """Convert named tuples to objects and tuples to lists, recursively."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {camel(name): as_json(inner) for name, inner in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_json(inner) for inner in value]
    return value


def camel(name: str) -> str:
    """Convert `max_results` to `maxResults` and `lambda_` to `lambda`."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in others)
