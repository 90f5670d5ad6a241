"""Build the team of a memory: its shared spaces, and what is published and pulled."""

from __future__ import annotations

import hashlib
import os
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from clawmark.backends.team.base import TeamSpaces
from clawmark.backends.team.files.copies import CopyFiles
from clawmark.backends.team.files.publisher import Publisher
from clawmark.backends.team.files.publishing import PublishPlan, rules_of
from clawmark.backends.team.files.puller import Puller
from clawmark.backends.team.files.pulling import Pulled
from clawmark.backends.team.merged import MergedBackend, TeamAccess
from clawmark.backends.team.remote import RemoteSpaces
from clawmark.composition import redactor_of
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.config.team import is_server
from clawmark.embed.services.settings import checked_address, filled
from clawmark.model.errors import ClawmarkError, ConfigError
from clawmark.model.sync_report import SpaceSync, SyncReport
from clawmark.model.values import Scan
from clawmark.system.private_files import make_private_folder

if TYPE_CHECKING:
    from clawmark.backends.base import MemoryBackend
    from clawmark.backends.builtin import BuiltinBackend
    from clawmark.engine.sync.scan import SyncRequest
    from clawmark.model.reports import Probe

URI, TOKEN = "team.uri", "team.token"


class TeamParts:
    """The team of one memory; the spaces are opened when they are first needed."""

    def __init__(
        self, builtin: BuiltinBackend, own: MemoryBackend, settings: Settings, places: Places
    ) -> None:
        self._builtin = builtin
        self._settings = settings
        self._places = places
        self._spaces: TeamSpaces | None = None
        self._publisher: Publisher | None = None
        self._lock = allocate_lock()
        self.names = settings.team.spaces
        self.copies = CopyFiles(
            os.path.realpath(places.workspace), os.path.join(places.state_dir, "locks")
        )
        is_builtin = own is builtin
        self.backend = MergedBackend(
            own,
            TeamAccess(
                names=self.names,
                spaces=self.spaces,
                copies=self.copies,
                publish=self._publish_now,
                close=self.close,
            ),
            searches=settings.memory_search.enabled and settings.plugins.has_memory,
            publishes=not is_builtin,
        )
        if is_builtin and settings.plugins.has_memory:
            builtin.after_sync = self._after_sync

    def spaces(self) -> TeamSpaces:
        """Open the spaces; ConfigError if they are not configured completely."""
        with self._lock:
            if self._spaces is None:
                self._spaces = open_spaces(self._settings, self._builtin)
            return self._spaces

    def plan(self) -> tuple[tuple[PublishPlan, SpaceSync], ...]:
        """Return what a sync would publish and withdraw."""
        return self.publisher().plan(self._builtin.parts.workspace.scan())

    def publish(self, scan: Scan, *, force: bool) -> tuple[SpaceSync, ...]:
        """Publish the files of a scan; a failure is part of the report."""
        try:
            done = self.publisher().publish(scan, force=force)
            for one in done:
                if one.published:
                    self._embed(one.space)
            return done
        except ClawmarkError as error:
            return tuple(
                SpaceSync(name, problem=error.message, next_step=error.hint) for name in self.names
            )

    def _embed(self, space: str) -> None:
        """Make the vectors of what was published, where this process has the database."""
        if not isinstance(self.spaces(), RemoteSpaces):
            _direct().embed_due(self.spaces(), space)

    def publisher(self) -> Publisher:
        """Return what publishes; ConfigError as for `spaces`."""
        if self._publisher is None:
            self._publisher = Publisher(
                self.spaces(),
                self._builtin.parts.workspace,
                rules_of(self.names, self._settings.team.publish),
                lambda: redactor_of(self._settings.memory_search),
            )
        return self._publisher

    def pull(self, name: str) -> Pulled:
        """Bring the copies of one space up to date."""
        own = os.path.join(self._places.state_dir, "agents", self._places.agent_id)
        folder = os.path.join(own, "team", _place_hash(self._settings))
        make_private_folder(folder)
        return Puller(self.spaces(), self.copies, folder).pull(name)

    def pull_quietly(self) -> Sequence[str]:
        """Pull every space, and return what went wrong in sentences."""
        said = list[str]()
        for name in self.names:
            try:
                said += pull_messages(self.pull(name))
            except (ClawmarkError, OSError) as error:
                said.append(f"The space {name} was not pulled: {error}")
        return said

    def probes(self) -> tuple[Probe, ...]:
        """List the spaces once, for `clawmark doctor`."""
        return (self.backend.probe_spaces(),) if self.names else ()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            spaces, self._spaces = self._spaces, None
        if spaces is not None:
            spaces.close()

    def _after_sync(self, report: SyncReport, scan: Scan, request: SyncRequest) -> SyncReport:
        return report._replace(spaces=self.publish(scan, force=request.reason == "manual"))

    def _publish_now(self) -> tuple[SpaceSync, ...]:
        return self.publish(self._builtin.parts.workspace.scan(), force=True)


def build_team(
    builtin: BuiltinBackend, own: MemoryBackend, settings: Settings, places: Places
) -> TeamParts:
    """Return the team of a memory; nothing is opened yet."""
    return TeamParts(builtin, own, settings, places)


def open_spaces(
    settings: Settings, builtin: BuiltinBackend, environ: Mapping[str, str] = os.environ
) -> TeamSpaces:
    """Connect to the configured server, or to its database."""
    team = settings.team
    uri = filled(team.uri or settings.memory_search.store.uri, URI, environ).strip()
    if is_server(uri):
        token = filled(team.token, TOKEN, environ).strip()
        if not token:
            raise ConfigError(
                "team.token is not set.",
                key=TOKEN,
                hint="Ask for a token, made with `clawmark token create`, and set team.token.",
            )
        return RemoteSpaces(checked_address(uri, URI), token)
    if not uri.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            "team.uri is neither the address of a server nor that of a database.",
            key=URI,
            hint="Write https://HOST, or postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    if not team.name:
        raise ConfigError(
            "team.name is not set.",
            key="team.name",
            hint="Set it to the name that `clawmark space grant` was given.",
        )
    made: TeamSpaces = _direct().open_direct(uri, team.name, builtin.parts)
    return made


def _direct() -> ModuleType:
    # Imported here: an optional extra, and a client of a server does without it.
    try:
        return import_module("clawmark.composition.stores.spaces")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"team.uri names a database, but the package {error.name} is not installed.",
            key=URI,
            hint="Install the extra: pip install 'clawmark[postgres]'.",
        ) from None


def pull_messages(pulled: Pulled) -> list[str]:
    """Return what the user should know about a pull, in sentences."""
    changed = "was changed here and in the space; it is left as it is."
    said = [f"{path} {changed}" for path in pulled.conflicts]
    said += [f"{path} was withdrawn, but changed here; it is kept." for path in pulled.kept]
    said += [f"The space {pulled.space}: {reason}" for reason in pulled.refused]
    if pulled.problem:
        said.append(f"The space {pulled.space} was not pulled completely: {pulled.problem}")
    return said


def _place_hash(settings: Settings) -> str:
    """Return a name for where the spaces are and for whom; a password in it does not count."""
    team = settings.team
    uri = filled(team.uri or settings.memory_search.store.uri, URI, os.environ)
    scheme, _, rest = uri.partition("://")
    place = f"{scheme}://{rest.rpartition('@')[2]} {team.name}"
    return hashlib.sha256(place.encode()).hexdigest()[:12]
