"""Read docstrings from Python source."""

import ast
import inspect
import re
import warnings
from collections.abc import Iterator

from training.gather.readers.plain import paragraphs_of
from training.gather.values import Section

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def read_python(name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each docstring; its heading is the name in words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (*_NAMED, ast.Module)):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                heading = node.name if isinstance(node, _NAMED) else name.rpartition("/")[2]
                yield Section(words_of(heading), prose(inspect.cleandoc(docstring)))


def words_of(identifier: str) -> str:
    """Turn `read_csv_file` and `ReadCSVFile` into words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+", " ", identifier.removesuffix(".py"))
    return " ".join(spaced.split()).lower()


def prose(docstring: str) -> tuple[str, ...]:
    """Return the paragraphs of a docstring, without examples, rulers and markup."""
    lines = [line for line in docstring.splitlines() if not re.match(r"\s*(>>>|\.\.\.)", line)]
    return tuple(clean_markup(each) for each in paragraphs_of("\n".join(lines)))


def clean_markup(text: str) -> str:
    """Remove the markup of reStructuredText and Markdown that stands inside a line."""
    text = re.sub(r":[a-z:]+:`~?\.?([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`+~?([^`]*?)(?:\s*<[^`]*>)?`+_*", r"\1", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"\1", text)
    return " ".join(text.split())
