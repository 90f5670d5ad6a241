"""The workspace: one folder of Markdown that is read and written, with extra paths and sources.

Every write is durable, is recorded in the journal, and may first have to wait for the user's
decision. Modules that a cold search does without are imported in the methods that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import MediaRules, Scan
from clawmark.workspace import daily, guard, places
from clawmark.workspace.reader import WorkspaceReader

if TYPE_CHECKING:
    from clawmark.model.documents import Written
    from clawmark.model.provenance import (
        Origin,
        Provenance,
        WriteAction,
        WriteJournal,
        WriteReview,
    )
    from clawmark.system.counters import SharedCounts
    from clawmark.workspace.recording import WriteRecorder
    from clawmark.workspace.transcripts.files import TranscriptFiles


class Workspace(WorkspaceReader):
    """Safe reading and durable writing of a folder of Markdown."""

    def __init__(
        self,
        root: str,
        extra_paths: Sequence[str] = (),
        lock_dir: str | None = None,
        sessions: TranscriptFiles | None = None,
        has_memory: bool = True,
        extra_patterns: Mapping[str, tuple[str, ...]] | None = None,
        sources: Callable[[], tuple[places.Source, ...]] = tuple,
        media: MediaRules | None = None,
        counts: SharedCounts | None = None,
        journal: Callable[[], WriteJournal] | None = None,
        is_forgotten: Callable[[str], bool] = lambda _: False,
        review: Callable[[], WriteReview] | None = None,
        copies: str = "",
    ) -> None:
        super().__init__(
            root, extra_paths, sessions, has_memory, extra_patterns, sources, media, counts, copies
        )
        self._lock_dir = lock_dir
        self._journal = journal
        """Opens the journal that every write is recorded in."""
        self.is_forgotten = is_forgotten
        """Whether the user had a text forgotten; automatic writes leave such text out."""
        self._review = review
        """Opens what keeps the writes of agents for the user's decision."""
        self.changes = 0
        """How often this object has changed a file; each change makes the last scan outdated."""
        self.on_change: Callable[[], None] | None = None
        """Called after each change of this object, in the thread that made it."""

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: no descriptor stays open between calls."""

    def append(
        self,
        path: str,
        text: str,
        *,
        header: str = "",
        origin: Origin | None = None,
        outside: str = "",
    ) -> Written:
        """Add lines to a memory file, durably; a new file starts with `header`.

        `origin` is recorded in the journal; `outside` is the part of the text that came from
        outside."""
        from clawmark.workspace import write

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            self.hold(origin, "append", place.path, text, header=header)
            recording = self.recorder.write(
                origin,
                place.path,
                text,
                action="append",
                header=header,
                outside=outside,
                written=write.describe_entry(text, place.path),
            )
            appended = write.append(
                root,
                place.relative,
                text,
                header=header,
                lock_dir=self._lock_dir,
                on_change=recording.start,
            )
            recording.finish(
                before=appended.before, after=appended.after, written=appended.bytes_written
            )
            return appended.written

    def remember(
        self, text: str, day: str, time: str = "", *, origin: Origin | None = None
    ) -> Written:
        """Add an entry to the daily log of a day (`YYYY-MM-DD`), which may start with the time."""
        return self.append(
            daily.daily_path(day),
            daily.format_entry(text, time),
            header=daily.daily_header(day),
            origin=origin,
        )

    def replace(
        self,
        path: str,
        text: str,
        base_hash: str,
        *,
        origin: Origin | None = None,
        outside: str = "",
    ) -> str:
        """Replace the text that has `base_hash` ("" if there is none) and return the new hash.

        Entries that the old text had keep their origins."""
        from clawmark.workspace import write

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            data = write.text_bytes(text, place.path)
            self.hold(origin, "replace", place.path, text, base_hash=base_hash)
            recording = self.recorder.write(
                origin,
                place.path,
                text,
                action="replace",
                outside=outside,
                written=write.describe_text(data, base_hash),
            )
            new_hash = write.put(
                root,
                place.relative,
                data,
                base_hash,
                lock_dir=self._lock_dir,
                on_change=recording.start,
            )
            recording.finish()
            return new_hash

    def erase(self, path: str, change: Callable[[str], str]) -> bool:
        """Change a text without a trace: no version is kept and nothing is journalled.

        A file whose text becomes empty is deleted. Return whether the file was changed."""
        # Imported here: a search writes nothing.
        from clawmark.workspace import tree

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            return tree.erase(root, place.relative, change, self._lock_dir)

    def put_back(
        self,
        path: str,
        data: bytes | None,
        base_hash: str,
        *,
        origin: Origin,
        undoes: str = "",
        keep: bool = True,
    ) -> None:
        """Replace the content that has `base_hash` by an earlier one; None deletes the file.

        With `keep`, what is replaced is kept as one of the last three texts. The entries of the
        earlier content keep the origins that the journal has for them."""
        # Imported here: only `clawmark restore` and `clawmark undo` need it.
        from clawmark.workspace import tree

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            recording = self.recorder.write(
                origin,
                place.path,
                action="delete" if data is None else "replace",
                written=tree.describe(data, base_hash),
                undoes=undoes,
            )
            tree.put_back(
                root,
                place.relative,
                data,
                base_hash,
                lock_dir=self._lock_dir,
                keep=keep,
                on_change=recording.start,
            )
            recording.finish()

    def kept_texts(self, path: str) -> list[bytes]:
        """Return the last texts of a file that were replaced or deleted, the newest first."""
        # Imported here, as above: a search needs no versions.
        from clawmark.workspace import versions

        with self._place(path, self._extras, writing=True) as (root, place):
            return versions.kept_texts(self._lock_dir, root.path, place.relative)

    @property
    def recorder(self) -> WriteRecorder:
        """Records writes in the journal, for code that changes files of the workspace itself."""
        # Imported here: a search writes nothing.
        from clawmark.workspace.recording import WriteRecorder

        return WriteRecorder(self._journal, self._counts)

    def look_up(self, text: str) -> Provenance | None:
        """Return what the journal knows about a text; None if there is no journal."""
        return None if self._journal is None else self._journal().look_up(text)

    def hold(
        self,
        origin: Origin | None,
        action: WriteAction,
        path: str,
        text: str = "",
        *,
        header: str = "",
        base_hash: str = "",
    ) -> None:
        """Raise KeptForReview if this write has to wait for the user; it is kept as a proposal.

        Called by every write, and by code that changes files of the workspace itself."""
        if self._review is not None and origin is not None:
            self._review().hold(origin, action, path, text, header=header, base_hash=base_hash)

    def delete(self, path: str, *, origin: Origin | None = None) -> bool:
        """Delete a memory file or a folder that holds only such; False if it does not exist."""
        from clawmark.workspace import tree

        self.hold(origin, "delete", path)
        with self._counted(), self._opened(self.root) as root:
            is_folder = tree.is_folder(root, path)
        if is_folder:
            with self._changing(), self._opened(self.root) as root:
                recording = self.recorder.write(origin, path, action="delete", is_file=False)
                was_there = tree.delete_folder(root, path, self._lock_dir, recording.start)
        else:
            with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
                recording = self.recorder.write(origin, place.path, action="delete")
                was_there = tree.delete_file(
                    root, place.relative, self._lock_dir, on_change=recording.start
                )
        recording.finish()
        return was_there

    def rename(self, old: str, new: str, *, origin: Origin | None = None, undoes: str = "") -> bool:
        """Rename a memory file or folder to a free path; False if it does not exist."""
        from clawmark.workspace import tree

        self.hold(origin, "rename", old)
        with self._counted(), self._opened(self.root) as root:
            is_folder = tree.is_folder(root, old)
        recording = self.recorder.write(origin, new, action="rename", moved_from=old, undoes=undoes)
        if is_folder:
            with self._changing(), self._counted(), self._opened(self.root) as root:
                to = "/".join(tree.folder_parts(new))
                was_there = tree.rename(root, old, to, self._lock_dir, recording.start)
        else:
            with (
                self._changing(),
                self._place(new, self._extras, writing=True) as (_, there),
                self._place(old, self._extras, writing=True) as (root, place),
            ):
                was_there = tree.rename(
                    root, place.relative, there.relative, self._lock_dir, recording.start
                )
        recording.finish()
        return was_there

    def sweep(self, scan: Scan) -> None:
        """Remove the temporary files that killed writers left in the workspace."""
        from clawmark.workspace import temporary

        with suppress(WorkspaceError, OSError), self._opened(self.root) as root:
            temporary.sweep(root)
            for path in scan.temporary:
                *parents, name = path.split("/")
                with (
                    suppress(PathDenied, WorkspaceError, OSError),
                    guard.folder_beneath(root, parents, path, 1) as folder,
                ):
                    temporary.sweep(folder, [name])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            yield
        finally:  # a write may have happened before it failed
            with self._counting:
                self.changes += 1
            if self.on_change is not None:
                self.on_change()
