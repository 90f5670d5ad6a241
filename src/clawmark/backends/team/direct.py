"""The shared spaces of a caller, in PostgreSQL.

A call is one transaction of the service role for the caller: the policies of the database decide
what it sees. An answer is from one moment. A change is made together with its part of the index,
and is stored durably when the call returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from clawmark.backends.team import indexing, log_format
from clawmark.backends.team.access import APPEND, FULL_ACCESS, PUBLISH, Access
from clawmark.backends.team.base import Appended, Changes, Published, SharedDocument, SpaceInfo
from clawmark.backends.team.log_chunks import RenderedEntry
from clawmark.backends.team.searching import NO_SPACES, QueryVectors, merge
from clawmark.backends.team.sessions import SpaceSessions, Writing
from clawmark.embed.base import Choice
from clawmark.engine.parts import count_due_vectors
from clawmark.engine.search.pipeline import search
from clawmark.engine.sync.vectors import fill_space
from clawmark.model.documents import Excerpt
from clawmark.model.errors import SpaceInputError
from clawmark.model.values import Degraded, Found, Freshness, Hit, Query, Vector, parse_citation
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.snapshot import PostgresSnapshot
from clawmark.store.postgres.team import documents, entries
from clawmark.store.postgres.team.documents import DocumentRow
from clawmark.store.postgres.team.entries import EntryRow
from clawmark.store.postgres.team.members import Member, next_version, version_of
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.keywords.query import clean_query
from clawmark.text.space_paths import (
    SpacePath,
    check_published_path,
    log_path,
    parse_space_path,
    published_path,
)
from clawmark.workspace.read import absent, excerpt

if TYPE_CHECKING:
    from clawmark.engine.search.rerank import RerankStep

NO_EMBEDDERS = Choice((), "no embedder is given", None)
LONGEST_DOCUMENT = 4_000_000
"""Characters of one published file."""
MOST_CHANGES = 1_000
LAST_VERSION = 2**63 - 1
CHANGED_CHARS = 8_000_000
"""Characters of text in one answer of `changes`, unless a single document has more."""
MAX_LINES = 120
"""How many lines `read` returns if it is not given a number."""
_CURRENT = Freshness(0, "the index of a space changes with its documents", 0.0)


class Due(NamedTuple):
    """What `embed_due` has left to do."""

    vectors: int
    degraded: Degraded | None


class _New(NamedTuple):
    """A document to publish: as it is stored, as it is indexed, and its vectors."""

    document: Published
    prepared: indexing.Prepared
    vectors: list[dict[str, Vector | None]]
    """By the hash of the text, for each fast embedder."""


class DirectSpaces:
    """The spaces of one caller in a database; see `TeamSpaces` for the methods."""

    def __init__(
        self,
        server: Server,
        name: str,
        choice: Choice = NO_EMBEDDERS,
        *,
        rerank: RerankStep | None = None,
        clock: Callable[[], datetime] | None = None,
        access: Access = FULL_ACCESS,
        owns_server: bool = True,
    ) -> None:
        """`name` names the caller among those of the same login. Without a clock, entries have the
        time of the database. `owns_server` closes the connections with this object."""
        self._server = server
        self._sessions = SpaceSessions(server, name, access)
        self._access = access
        self._choice = choice
        self._instant = tuple(one for one in choice.embedders if one.traits.instant)
        self._scout = self._instant[0] if self._instant else None
        self._rerank = rerank
        self._clock = clock
        self._owns_server = owns_server

    # --- reading ----------------------------------------------------------------------------------

    def spaces(self) -> tuple[SpaceInfo, ...]:
        with self._sessions.reading() as reading:
            return tuple(
                SpaceInfo(
                    name=member.space,
                    may_write=member.may_write and self._access.may_write,
                    documents=documents.count(reading.connection, member.scope),
                    entries=entries.count(reading.connection, member.scope),
                )
                for member in reading.members.values()
            )

    def search(self, query: Query, names: Sequence[str] = ()) -> Found:
        self._sessions.check_reading()
        query = query._replace(text=clean_query(query.text))
        chosen, fallbacks = self._choice.embedders, reversed(self._choice.fallbacks)
        vectors = QueryVectors(query.text, (*chosen[:-1], *fallbacks, *chosen[-1:]))
        if vectors.is_slow:
            # No transaction stays open while a service answers.
            with self._sessions.reading() as reading:
                opened = self._sessions.snapshots(reading, reading.only(names))
                spaces = [snapshot.spaces() for _, snapshot in opened]
            for held in spaces:
                vectors.of_space(held)
        with self._sessions.reading() as reading:
            opened = self._sessions.snapshots(reading, reading.only(names))
            answers = {
                member.space: _with_authors(
                    self._answer(query, snapshot, vectors), reading.connection, member.scope
                )
                for member, snapshot in opened
            }
        return merge(query, answers) if answers else _nothing()

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        self._sessions.check_reading()
        named = parse_citation(path)
        if start is None:
            start, lines = named.start, named.lines if lines is None else lines
        parts = parse_space_path(named.path)
        if parts is None:
            raise SpaceInputError(
                f"{named.path[:80]!a} is not a path of a shared space.",
                argument="path",
                hint="Cite it as a search does: spaces/SPACE/…",
            )
        with self._sessions.reading() as reading:
            member = reading.member(parts.space)
            is_possible = parts.path.isprintable()  # others are not stored
            document = self._document(reading.connection, member, parts) if is_possible else None
        if document is None or document.text is None:
            return absent(parts.cited, start)
        return excerpt(document.text.encode(), parts.cited, start, lines, MAX_LINES, max_chars)

    def published(self, space: str) -> dict[str, str]:
        self._sessions.check_reading(space)
        with self._sessions.reading() as reading:
            member = reading.member(space)
            known = documents.stored(reading.connection, member.scope, member.author)
        prefix = f"{member.author}/"
        return {path.removeprefix(prefix): document.hash for path, document in known.items()}

    def changes(self, space: str, since: int = 0, limit: int = 100) -> Changes:
        self._sessions.check_reading(space)
        since, limit = max(0, min(since, LAST_VERSION)), max(1, min(limit, MOST_CHANGES))
        with self._sessions.reading() as reading:
            member = reading.member(space)
            connection, scope = reading.connection, member.scope
            changed = documents.changed_after(connection, scope, since, limit + 1)
            found, size = list[SharedDocument](), 0
            for path, version in changed[:limit]:
                document = self._document(connection, member, SpacePath(space, path))
                assert document is not None, path
                size += len(document.text or "")
                if found and size > CHANGED_CHARS:
                    break
                found.append(_shared(space, document, version))
            is_complete = len(found) == len(changed)
            version = version_of(connection, scope) if is_complete else found[-1].version
        return Changes(tuple(found), version, is_complete)

    # --- writing ----------------------------------------------------------------------------------

    def append(self, space: str, text: str, *, key: str) -> Appended:
        text, key = log_format.check_entry(text), log_format.check_key(key)
        with self._sessions.writing(space, APPEND) as writing:
            scope = writing.member.scope
            earlier = entries.find(writing.connection, scope, writing.caller, key)
            if earlier is not None:
                if earlier.text != text:
                    raise SpaceInputError(
                        "The key was used before, for another text.",
                        argument="key",
                        hint="Use a new key for each entry.",
                    )
                return _appended(space, earlier, is_repeated=True)
            return _appended(space, self._add_entry(writing, text, key))

    def publish(self, space: str, documents: Sequence[Published]) -> None:
        last = {document.path: _checked(document) for document in documents}
        with self._sessions.reading() as reading:
            author = self._sessions.may_write(reading, space).author
        new = [self._prepare(space, author, document) for document in last.values()]
        with self._sessions.writing(space, PUBLISH) as writing:
            self._store(writing, author, new)

    def withdraw(self, space: str, paths: Sequence[str]) -> None:
        with self._sessions.writing(space, PUBLISH) as writing:
            connection, member = writing.connection, writing.member
            known = documents.stored(connection, member.scope, member.author)
            for path in dict.fromkeys(paths):
                place = published_path(space, member.author, path)
                if place.path not in known:
                    continue
                row = DocumentRow(
                    path=place.path,
                    author=member.author,
                    hash="",
                    text=None,
                    changed=self._now(),
                    version=next_version(connection, member.scope),
                )
                documents.put(connection, member.scope, writing.caller, row)
                writing.transaction.delete_file(place.cited)

    def embed_due(self, space: str, *, out_of_time: Callable[[], bool] = lambda: False) -> Due:
        """Give passages of a space the vectors that they do not have yet; what is done is kept.

        Fast embedders cover new passages when they are stored, so this is for the others."""
        due, degraded = 0, self._choice.degraded
        with self._sessions.store(space) as store:
            for embedder in self._choice.embedders:
                report = fill_space(
                    embedder, store=store, progress=lambda _: None, out_of_time=out_of_time
                )
                due, degraded = due + report.due, report.degraded or degraded
                if report.embedded or report.reused:
                    store.trim_cache()
                    store.tidy()
        return Due(due, degraded)

    def close(self) -> None:
        if self._owns_server:
            self._server.close()

    # --- internal ---------------------------------------------------------------------------------

    def _answer(self, query: Query, snapshot: PostgresSnapshot, vectors: QueryVectors) -> Found:
        found = search(
            query,
            snapshot=snapshot,
            asked=vectors.of_space(snapshot.spaces()),
            scout=self._scout,
            freshness=_CURRENT,
            rerank_with=self._rerank,
        )
        return found._replace(
            degraded=found.degraded or self._choice.degraded,
            due_vectors=count_due_vectors(snapshot, self._choice.embedders),
        )

    def _document(
        self, connection: Connection, member: Member, path: SpacePath
    ) -> DocumentRow | None:
        """Return a document of a space; a log is made from its entries."""
        if not path.is_log:
            return documents.find(connection, member.scope, path.path)
        day = _day(path)
        found = entries.of_day(connection, member.scope, day) if day is not None else []
        if not found:
            return None
        text = _log_text(found)
        return DocumentRow(
            path=path.path,
            author="",
            hash=sha256(text.encode()).hexdigest(),
            text=text,
            changed=found[-1].at,
            version=found[-1].version,
        )

    def _add_entry(self, writing: Writing, text: str, key: str) -> EntryRow:
        connection, member = writing.connection, writing.member
        at = entries.next_time(connection, member.scope, self._clock and self._clock())
        last = entries.last_line(connection, member.scope, at.date())
        start = last + 1 if last else log_format.FIRST_LINE
        rendered = log_format.render_entry(at, member.author, text)
        entry = EntryRow(
            version=next_version(connection, member.scope),
            day=at.date(),
            at=at,
            author=member.author,
            text=text,
            start_line=start,
            end_line=start + rendered.count("\n") - 1,
        )
        entries.add(connection, member.scope, writing.caller, key, entry)
        self._index_log(writing, entry)
        return entry

    def _index_log(self, writing: Writing, added: EntryRow) -> None:
        """Index the end of a log, from its last passage on."""
        path = log_path(writing.member.space, added.day.isoformat())
        first = entries.last_passage(writing.transaction, path.cited, indexing.LOG_CHUNKER)
        found = entries.of_day(writing.connection, writing.member.scope, added.day, first)
        rendered = [RenderedEntry(entry.start_line, _rendered(entry)) for entry in found]
        log = indexing.prepare_log(path, rendered, added.version, _nanoseconds(added.at))
        rows = indexing.extend(writing.transaction, log)
        for embedder in self._instant:
            vectors = indexing.embed(embedder, {row.hash: row.text for row in rows})
            passages = [(row.key, row.hash) for row in rows]
            indexing.cover(writing.transaction, embedder, passages, vectors)

    def _prepare(self, space: str, author: str, document: Published) -> _New:
        place = published_path(space, author, document.path)
        prepared = indexing.prepare(place, document.text, _nanoseconds(self._now()))
        texts = {chunk.hash: chunk.text for chunk in prepared.chunks}
        return _New(
            document, prepared, [indexing.embed(embedder, texts) for embedder in self._instant]
        )

    def _store(self, writing: Writing, author: str, new: Sequence[_New]) -> None:
        connection, member = writing.connection, writing.member
        known = documents.stored(connection, member.scope, author)
        for document, prepared, vectors in new:
            path, digest = prepared.path.path, sha256(document.text.encode()).digest()
            if path in known and known[path] == (document.hash, digest):
                continue
            row = DocumentRow(
                path=path,
                author=author,
                hash=document.hash,
                text=document.text,
                changed=self._now(),
                version=next_version(connection, member.scope),
            )
            documents.put(connection, member.scope, writing.caller, row)
            keys = indexing.put(writing.transaction, prepared)
            passages = [(key, chunk.hash) for key, chunk in zip(keys, prepared.chunks, strict=True)]
            for embedder, known_vectors in zip(self._instant, vectors, strict=True):
                indexing.cover(writing.transaction, embedder, passages, known_vectors)

    def _now(self) -> datetime:
        return self._clock() if self._clock is not None else datetime.now(UTC)


def _checked(document: Published) -> Published:
    """Return a file as it is stored; raise SpaceInputError if it cannot be."""
    check_published_path(document.path)
    text = well_formed(document.text).replace("\0", "\ufffd")
    if len(text) > LONGEST_DOCUMENT:
        raise SpaceInputError(
            f"{document.path} has {len(text):,} characters; a published file may have "
            f"{LONGEST_DOCUMENT:,}.",
            argument="text",
            hint="Split it into several files.",
        )
    if not document.hash.isalnum() or not document.hash.isascii() or len(document.hash) > 128:
        raise SpaceInputError(
            f"The hash of {document.path} is not a SHA-256 in hexadecimal digits.",
            argument="hash",
            hint="Give the SHA-256 of the file's bytes.",
        )
    return document._replace(text=text)


def _day(path: SpacePath) -> date | None:
    try:
        return date.fromisoformat(path.path.removesuffix(".md"))
    except ValueError:
        return None


def _with_authors(found: Found, connection: Connection, scope: int) -> Found:
    """Name the author of each passage of a log that has only one."""
    hits = list[Hit]()
    for hit in found.hits:
        path = parse_space_path(hit.path)
        day = _day(path) if path is not None and path.is_log else None
        if day is not None:
            authors = entries.authors_of(connection, scope, day, hit.start_line, hit.end_line)
            hit = hit._replace(author=authors[0] if len(authors) == 1 else "")
        hits.append(hit)
    return found._replace(hits=tuple(hits))


def _log_text(found: Sequence[EntryRow]) -> str:
    """Return the log of a day from its entries, of which there is at least one."""
    return log_format.render_log(
        found[0].day.isoformat(),
        map(_rendered, found),
    )


def _rendered(entry: EntryRow) -> str:
    return log_format.render_entry(entry.at, entry.author, entry.text)


def _appended(space: str, entry: EntryRow, *, is_repeated: bool = False) -> Appended:
    return Appended(
        path=log_path(space, entry.day.isoformat()).cited,
        start_line=entry.start_line,
        end_line=entry.end_line,
        author=entry.author,
        at=_iso(entry.at),
        is_repeated=is_repeated,
    )


def _shared(space: str, document: DocumentRow, version: int) -> SharedDocument:
    return SharedDocument(
        path=SpacePath(space, document.path).cited,
        author=document.author,
        hash=document.hash,
        text=document.text,
        changed=_iso(document.changed),
        version=version,
    )


def _nothing() -> Found:
    return Found(
        hits=(),
        nothing=NO_SPACES,
        mode="fts-only",
        provider="none",
        model="fts-only",
        degraded=None,
        due_files=0,
        milliseconds=0.0,
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
