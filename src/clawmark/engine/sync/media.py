"""Images and audio files in a sync: one chunk for each, and its vector.

The text of the chunk is a label such as `Image file: notes:heron.png`, so that keywords find the
file by its name. Its hash, which is also the hash of the file's row, covers path, type and bytes:
an unchanged file is not embedded again, and a changed one is. Embedders that take only text embed
the label.

Files are sent in small groups. A group that the service rejects is split; a single file that it
rejects gets no vector and is not sent again until it changes.

Imported only if `memorySearch.multimodal` is enabled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from clawmark.embed.base import Embedder
from clawmark.embed.media_file import MediaFile
from clawmark.model.documents import Document
from clawmark.model.errors import EmbeddingError, EmbeddingRejected, NotText, WorkspaceError
from clawmark.model.values import Skipped, Vector, is_media
from clawmark.store.base import IndexStore
from clawmark.workspace import Workspace
from clawmark.workspace.guard import shown
from clawmark.workspace.read import SNIFFED_BYTES, media_type

FILES_AT_ONCE, BYTES_AT_ONCE = 6, 8 << 20
"""How much one request holds. A larger file is sent alone."""
_LABELS = {"image": "Image file", "audio": "Audio file"}
_TYPES = {"image": "a PNG or JPEG image", "audio": "an MP3 or WAV file"}


class MediaSync(NamedTuple):
    """Reads the images and audio files of a workspace."""

    workspace: Workspace

    def read(self, path: str) -> Document:
        """Read a file; its text is a label.

        Raises NotText if its content does not match its extension."""
        return self.read_with_bytes(path)[0]

    def read_with_bytes(self, path: str) -> tuple[Document, bytes]:
        """Read a file, and return its bytes too."""
        state, data = self.workspace.read_media(path)
        rules = self.workspace.media
        modality = rules.modality_of(path) if rules is not None else ""
        mime = media_type(data[:SNIFFED_BYTES])
        if not modality or mime.partition("/")[0] != modality:
            what = f"is not {_TYPES.get(modality, 'memory')}" if data else "is empty"
            raise NotText(f"{shown(path)} {what}.", hint="Correct its name, or save it again.")
        label = f"{_LABELS[modality]}: {shown(path)}"
        file_hash = hash_of(path, label, mime, data)
        return Document(state=state, text=label, hash=file_hash, mime=mime), data

    def find(self, store: IndexStore, embedder: Embedder) -> MediaFiles | None:
        """Return the indexed files for an embedder; None if it takes only text, or there are
        none."""
        embed = getattr(embedder, "embed_media", None)
        if embed is None or not embedder.traits.media:
            return None
        with store.snapshot() as snapshot:
            rows = [*snapshot.files().values(), *snapshot.files(which="rebuilt").values()]
        paths = {
            row.hash: row.path
            for row in rows
            if row.chunks and row.source == "memory" and is_media(row.path)
        }
        if not paths:
            return None
        return MediaFiles(
            reader=self, paths=paths, embed=embed, probe=lambda: embedder.embed_texts(["size"])
        )


def hash_of(path: str, label: str, mime: str, data: bytes) -> str:
    """Return the SHA-256 hex of what a file's vector depends on, as OpenClaw computes it."""
    facts = {
        "path": path,
        "contentText": label,
        "mimeType": mime,
        "dataHash": sha256(data).hexdigest(),
    }
    text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


class MediaReport(NamedTuple):
    """What embedding some files did."""

    waiting: frozenset[str]
    """Hashes of files that still need a vector."""
    refused: tuple[Skipped, ...]
    """Files that the service does not take."""
    failure: EmbeddingError | None = None


class MediaFiles(NamedTuple):
    """The indexed images and audio files, and an embedder that takes them."""

    reader: MediaSync
    paths: Mapping[str, str]
    """The path of each file by the hash of its chunk."""
    embed: Callable[[Sequence[MediaFile]], list[Vector]]
    probe: Callable[[], object]
    """Embeds a short text; raises EmbeddingError if the service takes nothing at all."""

    def embed_due(
        self,
        due: Sequence[str],
        store: Callable[[dict[str, Vector]], None],
        out_of_time: Callable[[], bool],
    ) -> MediaReport:
        """Embed the files with these hashes, group by group; `store` gets the vectors of each."""
        waiting, refused = set(due), list[Skipped]()
        for group in self._groups(due):
            attempt = self._attempt(group)
            if attempt.vectors:
                store(attempt.vectors)
            refused += [Skipped(sent.path, reason) for sent, reason in attempt.refused]
            waiting -= attempt.vectors.keys() | {sent.hash for sent, _ in attempt.refused}
            if attempt.failure is not None or out_of_time():
                return MediaReport(frozenset(waiting), tuple(refused), attempt.failure)
        return MediaReport(frozenset(waiting), tuple(refused))

    def _groups(self, due: Sequence[str]) -> Iterator[list[_Sent]]:
        """Yield files that fit into one request.

        A file that cannot be read, or has changed since it was indexed, is left out: the next sync
        indexes it again."""
        group: list[_Sent] = []
        size = 0
        for file_hash in due:
            try:
                document, data = self.reader.read_with_bytes(self.paths[file_hash])
            except WorkspaceError:
                continue
            if document.hash != file_hash:
                continue
            if group and (len(group) == FILES_AT_ONCE or size + len(data) > BYTES_AT_ONCE):
                yield group
                group, size = [], 0
            file = MediaFile(document.text, document.mime, data)
            group.append(_Sent(file_hash, document.state.path, file))
            size += len(data)
        if group:
            yield group

    def _attempt(self, group: Sequence[_Sent]) -> _Attempt:
        """Send a group, in parts if it is rejected; what came before a failure is kept, because it
        is paid for."""
        try:
            vectors = self.embed([sent.file for sent in group])
        except EmbeddingRejected as error:
            if len(group) == 1:
                return self._blame(group[0], error)
        except EmbeddingError as error:
            return _Attempt({}, [], error)
        else:
            hashes = [sent.hash for sent in group]
            return _Attempt(dict(zip(hashes, vectors, strict=True)), [])
        half = (len(group) + 1) // 2
        first = self._attempt(group[:half])
        if first.failure is not None:
            return first
        second = self._attempt(group[half:])
        return _Attempt(
            first.vectors | second.vectors, [*first.refused, *second.refused], second.failure
        )

    def _blame(self, sent: _Sent, error: EmbeddingRejected) -> _Attempt:
        """Decide whether the service rejects this file, or everything."""
        try:
            self.probe()
        except EmbeddingError as failure:
            return _Attempt({}, [], failure)
        return _Attempt({}, [(sent, error.message.rstrip("."))])


class _Sent(NamedTuple):
    """A file that is ready to be sent."""

    hash: str
    path: str
    file: MediaFile


class _Attempt(NamedTuple):
    """What sending a group led to."""

    vectors: dict[str, Vector]
    refused: list[tuple[_Sent, str]]
    failure: EmbeddingError | None = None
