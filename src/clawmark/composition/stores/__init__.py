"""Opens the configured index store: SQLite, or PostgreSQL with the extra `postgres`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from clawmark.config.paths import Places
from clawmark.config.schema import MemorySearch, Settings
from clawmark.model.errors import ConfigError
from clawmark.store.sqlite.files import refuse_other_file
from clawmark.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from clawmark.composition.stores.team_admin import TeamAdmin
    from clawmark.store.base import ManagedStore
    from clawmark.store.postgres.migrate import DatabaseStatus


def open_store(places: Places, options: MemorySearch, cache_entries: int) -> ManagedStore:
    """Return the configured store; nothing is opened yet."""
    unsearched = [source for source in ("memory", "sessions") if source not in options.sources]
    if options.store.uri:
        postgres = _postgres()
        made: ManagedStore = postgres.open_store(places, options.store, cache_entries, unsearched)
        return made
    if options.store.path:
        refuse_other_file(places.index_path)
    return SqliteStore(
        places.index_path,
        vector_engine=options.store.vector.engine,
        cache_entries=cache_entries,
        unsearched=unsearched,
    )


def _postgres(module: str = "postgres") -> ModuleType:
    # Imported here: an optional extra, and most memories have their index in SQLite.
    try:
        return import_module(f"clawmark.composition.stores.{module}")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"memorySearch.store.uri is set, but the package {error.name} is not installed.",
            key="memorySearch.store.uri",
            hint="Install the extra: pip install 'clawmark[postgres]'.",
        ) from None


def with_uri(settings: Settings, uri: str) -> Settings:
    """Return the settings with the index in a database, for commands that name one."""
    options = settings.memory_search
    store = options.store._replace(uri=uri)
    return settings._replace(memory_search=options._replace(store=store))


def upgrade_database(settings: Settings) -> tuple[str, ...]:
    """Bring the tables in PostgreSQL up to date; return what was applied."""
    done: tuple[str, ...] = _postgres().upgrade_database(settings)
    return done


def database_status(settings: Settings) -> DatabaseStatus:
    """Examine the database of the index, without changing it."""
    status: DatabaseStatus = _postgres().examine_database(settings)
    return status


def open_team_admin(settings: Settings) -> AbstractContextManager[TeamAdmin]:
    """Open the database of the shared spaces as the owner of its tables."""
    opened: AbstractContextManager[TeamAdmin] = _postgres("team_admin").open_team_admin(settings)
    return opened


def vector_engine(options: MemorySearch) -> str:
    """Return the name of the vector engine; empty if vectors are switched off."""
    if not options.store.vector.enabled:
        return ""
    return "pgvector" if options.store.uri else options.store.vector.engine
