"""Opens the index of an agent in PostgreSQL, and its database for `clawmark db`."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence

from clawmark.config.paths import Places
from clawmark.config.schema import Settings, Store
from clawmark.embed.services.settings import filled
from clawmark.model.errors import ConfigError
from clawmark.store.postgres.migrate import DatabaseStatus, database_status, upgrade
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore

URI = "memorySearch.store.uri"


def open_store(
    places: Places, options: Store, cache_entries: int, unsearched: Sequence[str]
) -> PostgresStore:
    """Return the store of an agent; nothing is opened yet."""
    return PostgresStore(
        open_server(options),
        owner_of(places, options),
        cache_entries=cache_entries,
        unsearched=unsearched,
    )


def upgrade_database(settings: Settings) -> tuple[str, ...]:
    """Bring the tables up to date; return what was applied."""
    return upgrade(open_server(settings.memory_search.store))


def examine_database(settings: Settings) -> DatabaseStatus:
    """Examine the tables, without changing them."""
    return database_status(open_server(settings.memory_search.store))


def open_server(options: Store, environ: Mapping[str, str] = os.environ) -> Server:
    """Return the configured database, without connecting to it."""
    uri = filled(options.uri, URI, environ).strip()
    if not uri:
        raise ConfigError(
            f"{URI} is not set, so the index is in SQLite.",
            key=URI,
            hint=f"Set {URI} to postgresql://USER:PASSWORD@HOST/DATABASE to use PostgreSQL.",
        )
    return Server(uri)


def owner_of(places: Places, options: Store) -> str:
    """Return the name of an agent's index: as configured, or unique for its folder and machine."""
    if options.owner:
        return options.owner.replace("{agentId}", places.agent_id)
    folder = hashlib.sha256(os.path.realpath(places.index_path).encode()).hexdigest()[:8]
    return f"{places.agent_id}@{platform.node() or 'localhost'}-{folder}"
