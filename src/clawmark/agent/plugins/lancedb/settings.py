"""Read and check `plugins.entries.memory-lancedb.config`.

`${NAME}` is replaced by the environment variable. A wrong value raises ConfigError with one
sentence that names the key."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from clawmark.config.check import fill_in, show
from clawmark.config.urls import problem_with
from clawmark.embed.known_services import COMPATIBLE, REMOTE
from clawmark.model.errors import ConfigError

ROOT = "plugins.entries.memory-lancedb.config"
MOST_TRIGGERS = 50
WITHOUT_EFFECT = ("dreaming", "storageOptions")
"""Keys of OpenClaw that are accepted; `config/unsupported.py` has the warnings."""
_EMBEDDING_WITHOUT_EFFECT = ("timeoutMs", "maxRetries")


class EmbeddingSettings(NamedTuple):
    """`embedding.*`: the service that makes the vectors."""

    provider: str
    model: str = ""
    api_key: str = ""
    base_url: str = ""
    dimensions: int = 0


class LanceSettings(NamedTuple):
    """The settings of the plugin."""

    embedding: EmbeddingSettings | None = None
    """None for the memory's own embedder."""
    db_path: str = ""
    """Empty for a folder in the state folder."""
    auto_capture: bool = False
    auto_recall: bool = True
    capture_max_chars: int = 500
    recall_max_chars: int = 1000
    custom_triggers: tuple[str, ...] = ()


def read_settings(config: Mapping[str, object], environ: Mapping[str, str]) -> LanceSettings:
    """Return the checked settings."""
    _refuse_unknown(
        config,
        ROOT,
        (
            "embedding",
            "dbPath",
            "autoCapture",
            "autoRecall",
            "captureMaxChars",
            "recallMaxChars",
            "customTriggers",
            *WITHOUT_EFFECT,
        ),
    )
    given = _Values(config, ROOT, environ)
    usual = LanceSettings()
    return LanceSettings(
        embedding=_embedding(config.get("embedding"), environ),
        db_path=_folder(given.text("dbPath")),
        auto_capture=given.flag("autoCapture", usual.auto_capture),
        auto_recall=given.flag("autoRecall", usual.auto_recall),
        capture_max_chars=given.whole("captureMaxChars", usual.capture_max_chars, 100, 10_000),
        recall_max_chars=given.whole("recallMaxChars", usual.recall_max_chars, 100, 10_000),
        custom_triggers=given.texts("customTriggers", MOST_TRIGGERS),
    )


def _embedding(value: object, environ: Mapping[str, str]) -> EmbeddingSettings | None:
    key = f"{ROOT}.embedding"
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _wrong(key, f"must be an object, not {show(value)}")
    known = ("provider", "model", "apiKey", "baseUrl", "dimensions", *_EMBEDDING_WITHOUT_EFFECT)
    _refuse_unknown(value, key, known)
    if not value.keys() - set(_EMBEDDING_WITHOUT_EFFECT):
        return None
    given = _Values(value, key, environ)
    base_url = given.text("baseUrl")
    problem = problem_with(base_url) if base_url else ""
    if problem:
        raise _wrong(f"{key}.baseUrl", f"is refused: {problem}")
    provider = given.text("provider") or ("openai-compatible" if base_url else "openai")
    names = (*REMOTE, *COMPATIBLE, "local")
    if provider not in names:
        raise _wrong(f"{key}.provider", f"must be one of {', '.join(names)}, not {show(provider)}")
    model = given.text("model")
    return EmbeddingSettings(
        provider=provider,
        model=model or ("text-embedding-3-small" if provider == "openai-compatible" else ""),
        api_key=given.text("apiKey"),
        base_url=base_url,
        dimensions=given.whole("dimensions", 0, 1, 65_536),
    )


class _Values:
    """Reads values of an object and names the key of a wrong one."""

    def __init__(self, values: Mapping[str, object], root: str, environ: Mapping[str, str]) -> None:
        self._values, self._root, self._environ = values, root, environ

    def flag(self, name: str, usual: bool) -> bool:
        value = self._values.get(name, usual)
        if isinstance(value, bool):
            return value
        raise _wrong(f"{self._root}.{name}", f"must be true or false, not {show(value)}")

    def whole(self, name: str, usual: int, low: int, high: int) -> int:
        value = self._values.get(name, usual)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        is_usual = name not in self._values
        if type(value) is int and (is_usual or low <= value <= high):
            return value
        raise _wrong(
            f"{self._root}.{name}",
            f"must be a whole number from {low} to {high}, not {show(value)}",
        )

    def text(self, name: str) -> str:
        key, value = f"{self._root}.{name}", self._values.get(name, "")
        if not isinstance(value, str):
            shown = "another value" if name == "apiKey" else show(value)
            raise _wrong(key, f"must be a text, not {shown}")
        return fill_in(value, key, self._environ).strip()

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        key, value = f"{self._root}.{name}", self._values.get(name, [])
        if not isinstance(value, list) or not all(
            isinstance(one, str) and 2 <= len(one.strip()) <= 100 for one in value
        ):
            raise _wrong(key, "must be a list of texts with 2 to 100 characters each")
        if len(value) > most:
            raise _wrong(key, f"has {len(value)} texts; at most {most} are allowed")
        return tuple(one.strip() for one in value)


def _folder(path: str) -> str:
    if "://" in path:
        raise _wrong(f"{ROOT}.dbPath", f"must be a folder on this machine, not {show(path)}")
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def _refuse_unknown(values: Mapping[str, object], root: str, known: Collection[str]) -> None:
    for name in values:
        if name not in known:
            raise _wrong(f"{root}.{name}", f"is not a key; known are {', '.join(known)}")


def _wrong(key: str, sentence_end: str) -> ConfigError:
    hint = "docs/how-to/lancedb.md lists the keys of the plugin."
    return ConfigError(f"{key} {sentence_end}.", key=key, hint=hint)
