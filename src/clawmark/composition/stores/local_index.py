"""Builds the local index that answers while the database of the index cannot be used."""

from __future__ import annotations

import os

from clawmark.backends.builtin import BuiltinBackend
from clawmark.backends.local_index import LocalIndexFallback
from clawmark.composition import build
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded, Settings, Store


def with_local_index(
    database: BuiltinBackend, settings: Settings, places: Places
) -> LocalIndexFallback:
    """Return the backend of a database with a local index as its fallback; nothing is opened.

    The local index has static vectors at most, so that no service is paid twice."""
    options = settings.memory_search
    own = settings._replace(
        memory_search=options._replace(store=Store(vector=options.store.vector))
    )
    path = os.path.join(local_index_folder(places), "index.sqlite")
    local = build(
        places._replace(index_path=path),
        Loaded(own, {}, ()),
        None,
        "none" if options.provider == "none" else "static",
        background=False,
    )
    return LocalIndexFallback(database, local)


def local_index_folder(places: Places) -> str:
    """Return the folder of the local index of an agent."""
    return os.path.join(places.state_dir, "fallback", places.agent_id)
