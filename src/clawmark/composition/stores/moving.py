"""Opens the two stores of `clawmark migrate`: the configured one and the one that is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from clawmark.composition.stores import open_store, with_uri
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.embed.services.settings import filled
from clawmark.model.errors import ConfigError
from clawmark.store.base import ManagedStore
from clawmark.store.sqlite.files import refuse_other_file
from clawmark.store.sqlite.store import SqliteStore

SQLITE = "sqlite"
"""The address of the SQLite file that is used without `memorySearch.store.uri`."""
ALL_SOURCES = ("memory", "sessions")
_DATABASES = ("postgresql://", "postgres://")


class StorePair(NamedTuple):
    """Where an index is moved from, and where to."""

    source: ManagedStore
    target: ManagedStore


@contextmanager
def open_pair(
    places: Places, settings: Settings, *, source: str | None, target: str | None
) -> Iterator[StorePair]:
    """Open two stores with all of their files; an address of None is the configured store."""
    if source == target:
        raise ConfigError(
            "Source and target are the same.", hint="Name the other one with --to or --from."
        )
    with ExitStack() as stack:
        pair = StorePair(
            *(
                stack.enter_context(closing(_open(places, settings, address)))
                for address in (source, target)
            )
        )
        if _identity(pair.source) == _identity(pair.target):
            raise ConfigError(
                f"The index is in {pair.source.path} already.",
                hint="Name another place with --to or --from.",
            )
        yield pair


def _open(
    places: Places,
    settings: Settings,
    address: str | None,
    environ: Mapping[str, str] = os.environ,
) -> ManagedStore:
    # All sources, also those that are not searched at the moment.
    options = settings.memory_search._replace(sources=ALL_SOURCES)
    cache_entries = options.cache.max_entries if options.cache.enabled else 0
    if address is None:
        return open_store(places, options, cache_entries)
    name = filled(address, "--to or --from", environ).strip()
    if name.startswith(_DATABASES):
        options = with_uri(settings, address).memory_search._replace(sources=ALL_SOURCES)
        return open_store(places, options, cache_entries)
    if "://" in name:
        raise ConfigError(
            "An index can be moved to PostgreSQL or to an SQLite file.",
            hint="Write postgresql://USER:PASSWORD@HOST/DATABASE, sqlite, or the path of a file.",
        )
    if not name:
        raise ConfigError(
            "The address of --to or --from is empty.",
            hint="Write postgresql://USER:PASSWORD@HOST/DATABASE, sqlite, or the path of a file.",
        )
    path = places.index_path if name == SQLITE else os.path.abspath(os.path.expanduser(name))
    refuse_other_file(path)
    return SqliteStore(path, vector_engine=options.store.vector.engine, cache_entries=cache_entries)


def _identity(store: ManagedStore) -> tuple[str, str]:
    path = store.path if "://" in store.path else os.path.realpath(store.path)
    return path, str(getattr(store, "owner", ""))
