"""Read the folder of an ONNX model, as sentence-transformers and optimum write it.

The folder is given directly, by an `.onnx` file in it, or by the name of an installed package,
which is never imported. Only small JSON files are read. A ValueError says what is wrong as the end
of a sentence."""

from __future__ import annotations

import json
import os
import re
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

from clawmark.embed.local.model_file import Stamp, plain, prompts_of, stamp_of

LARGEST_JSON = 64 << 20
"""Vocabularies of multilingual models take 20 MB."""
MOST_TOKENS, FEWEST_TOKENS = 2048, 512
"""Passages have a few hundred tokens; memory and time grow with the square of the limit."""
MOST_DIMS = 1 << 16
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
_SUBFOLDERS = ("", "onnx", "model", os.path.join("model", "onnx"))
_SIZES = ("hidden_size", "dim", "d_model")
_GENERIC = ("model", "onnx", "models", "main", "snapshots", "")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHIFTED = re.compile("roberta|mpnet|camembert")
"""Families whose positions begin after two reserved ones."""


class Folder(NamedTuple):
    """Everything about a model that can be known without loading it."""

    name: str
    model: str
    tokenizer: str
    """The folder with the tokenizer's files."""
    files: tuple[Stamp, ...]
    """The files that the vectors depend on, the model first."""
    dims: int
    """0 when it is not known without loading the model."""
    tokens: int
    pooling: str
    """`mean` or `cls`."""
    dense: bool
    """Whether a dense layer follows the pooling."""
    prompts: tuple[str, str]
    family: str
    """The base model named by the configuration."""


def read_folder(source: str, tokenizer: str = "") -> Folder:
    """Read the folder; `tokenizer` names another folder or package for a model without one; raises
    OSError, ValueError.
    """
    root = find_root(source)
    model = _find_model(root)
    places = _places(root, model)
    words = [find_root(tokenizer)] if tokenizer else places
    words_at = next((place for place in words if _has_tokenizer(place)), "")
    if not words_at:
        raise ValueError("it has no tokenizer: neither tokenizer.json nor vocab.txt is in it")
    config, name = _read_any(places, "config.json"), _name_of(model)
    family = plain(str(config.get("_name_or_path") or ""))
    pooling, dense = _read_any(places, os.path.join("1_Pooling", "config.json")), _dense(places)
    files = [model, *_companions(model)]
    files += [
        os.path.join(words_at, file)
        for file in TOKENIZER_FILES
        if os.path.isfile(os.path.join(words_at, file))
    ]
    return Folder(
        name=name,
        model=model,
        tokenizer=words_at,
        files=tuple(map(stamp_of, files)),
        dims=_size(
            dense.get("out_features"),
            pooling.get("word_embedding_dimension"),
            *map(config.get, _SIZES),
        ),
        tokens=_tokens(
            config,
            _read_any(places, "sentence_bert_config.json"),
            read_json(words_at, "tokenizer_config.json"),
        ),
        pooling=_pooling(pooling),
        dense=bool(dense),
        prompts=_prompts(_read_any(places, "config_sentence_transformers.json"))
        or prompts_of(name, family),
        family=family,
    )


def find_root(source: str) -> str:
    """The folder or file of a path or package name."""
    given = os.path.expanduser(source)
    if os.path.isdir(given) or os.path.isfile(given):
        return os.path.abspath(given)
    if _PACKAGE.fullmatch(source):
        spec = PathFinder.find_spec(source.replace("-", "_"))
        for folder in (spec and spec.submodule_search_locations) or ():
            return os.path.abspath(folder)
        raise ValueError("there is no such folder, and no such package is installed")
    raise ValueError("there is no such folder")


def read_json(folder: str, file: str) -> dict[str, Any]:
    """The JSON object in a file of a folder; empty when there is no such file."""
    value = _load_json(folder, file)
    if not isinstance(value, dict):
        raise ValueError(f"its {file} does not hold a JSON object")
    return value


def _load_json(folder: str, file: str) -> Any:
    try:
        with open(os.path.join(folder, file), "rb") as stream:
            data = stream.read(LARGEST_JSON + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(data) > LARGEST_JSON:
        raise ValueError(f"its {file} is larger than {LARGEST_JSON >> 20} MB")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {file} is not JSON") from error


def _find_model(root: str) -> str:
    if os.path.isfile(root):
        return root
    found: list[str] = []
    for folder in [os.path.join(root, part) for part in _SUBFOLDERS]:
        names = sorted(
            name
            for name in (os.listdir(folder) if os.path.isdir(folder) else ())
            if name.endswith(".onnx")
        )
        if "model.onnx" in names:
            return os.path.join(folder, "model.onnx")
        found += [os.path.join(folder, name) for name in names]
    if not found:
        raise ValueError("it holds no .onnx file")
    if len(found) > 1:
        raise ValueError(
            f"it holds {len(found)} models; name one of them, such as "
            f"{os.path.relpath(found[0], root)}"
        )
    return found[0]


def _places(root: str, model: str) -> list[str]:
    """Where the model's other files may be: in its folder and above it, up to the given folder."""
    folder = os.path.dirname(model)
    top = (
        root
        if os.path.isdir(root)
        else os.path.dirname(folder)
        if os.path.basename(folder) == "onnx"
        else folder
    )
    places = [folder]
    while folder != top and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        places.append(folder)
    return places


def _companions(model: str) -> list[str]:
    """The other weight files of a large model: `model.onnx_data`, `model.onnx.data`."""
    folder, name = os.path.split(model)
    others = [
        os.path.join(folder, other)
        for other in sorted(os.listdir(folder))
        if other.startswith(name) and other != name
    ]
    return [other for other in others if os.path.isfile(other)]


def _has_tokenizer(place: str) -> bool:
    return any(os.path.isfile(os.path.join(place, file)) for file in TOKENIZER_FILES[:2])


def _read_any(places: list[str], file: str) -> dict[str, Any]:
    return next((found for found in (read_json(place, file) for place in places) if found), {})


def _name_of(model: str) -> str:
    """The nearest folder with a descriptive name; in a hub's cache it is `models--owner--name`."""
    folders = os.path.dirname(model).split(os.sep)
    for folder in reversed(folders):
        if folder.startswith("models--"):
            return plain(folder.rsplit("--", 1)[-1])
    return (
        plain(next((folder for folder in reversed(folders) if folder.lower() not in _GENERIC), ""))
        or "onnx"
    )


def _dense(places: list[str]) -> dict[str, Any]:
    """The configuration of the last dense layer after the pooling; empty for most models."""
    for place in places:
        steps = _load_json(place, "modules.json")
        paths = [
            str(step.get("path"))
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, dict) and str(step.get("type")).endswith(".Dense")
        ]
        if paths:
            return read_json(place, os.path.join(os.path.basename(paths[-1]), "config.json")) or {
                "out_features": 0
            }
    return {}


def _size(*given: object) -> int:
    return next((value for value in given if isinstance(value, int) and 0 < value <= MOST_DIMS), 0)


def _tokens(config: dict[str, Any], sentence: dict[str, Any], tokenizer: dict[str, Any]) -> int:
    """The smallest of the configured lengths."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and _SHIFTED.search(str(config.get("model_type"))):
        positions -= 2
    given = (sentence.get("max_seq_length"), tokenizer.get("model_max_length"), positions)
    lengths = [int(value) for value in given if isinstance(value, int | float) and 8 <= value < 1e6]
    return min([*lengths, MOST_TOKENS]) if lengths else FEWEST_TOKENS


def _pooling(config: dict[str, Any]) -> str:
    """How the vectors of the tokens become one; the mean by default."""
    given = config.get("pooling_mode")
    names = (
        [given]
        if isinstance(given, str)
        else [key for key, value in config.items() if value is True]
    )
    wanted = sorted(
        name.removeprefix("pooling_mode_") for name in names if name != "include_prompt"
    )
    if wanted in ([], ["mean"], ["mean_tokens"]):
        return "mean"
    if wanted in (["cls"], ["cls_token"]):
        return "cls"
    raise ValueError(
        f"it pools by {plain(' and '.join(wanted))}, and only mean and cls are supported"
    )


def _prompts(config: dict[str, Any]) -> tuple[str, str] | None:
    """The model's own prompts for questions and passages."""
    prompts = config.get("prompts")
    if not isinstance(prompts, dict):
        return None
    query, *documents = (prompts.get(name) for name in ("query", "document", "passage", "corpus"))
    pair = (
        query if isinstance(query, str) else "",
        next((text for text in documents if isinstance(text, str)), ""),
    )
    return pair if any(pair) else None
