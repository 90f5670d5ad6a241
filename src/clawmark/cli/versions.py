"""The versions for `clawmark --version --json`: of Clawmark, and of what it uses."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import apsw

from clawmark import __version__
from clawmark.embed.local import static, static_table, weights

PACKAGES = (
    *("apsw", "dulwich", "httpcore", "msgspec", "simsimd", "watchfiles"),
    *("numpy", "onnxruntime", "xllamacpp", "sqlite-vec", "lancedb", "psycopg"),
    *("mcp", "starlette", "uvicorn", "jinja2", "markdown-it-py", "pydantic-ai-slim"),
)
"""What Clawmark needs, and what its extras add to search, storage and servers."""


def versions() -> dict[str, object]:
    """Return all versions; None for a package that is not installed."""
    return {
        "clawmark": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "sqlite": apsw.sqlite_lib_version(),
        "packages": {name: installed_version(name) for name in PACKAGES},
        "models": [
            {
                "provider": static.PROVIDER,
                "model": static.MODEL,
                "sha256": static_table.SHA256,
            },
            *(
                {"provider": weights.PROVIDER, "model": model.name, "sha256": model.sha256}
                for model in (weights.TEACHER, weights.OWN)
            ),
        ],
    }


def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
