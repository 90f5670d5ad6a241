"""The values that packages exchange.

They are named tuples because every cold search imports them: defining twenty frozen dataclasses
takes 17 ms longer than twenty named tuples, more than the search itself."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from clawmark.model.explanation import Explanation
    from clawmark.model.provenance import Provenance
    from clawmark.model.versions import AsOf, Replaced
else:
    # Not needed by a cold search. An annotation in quotes would be compiled at import: the first
    # one costs 1 ms.
    AsOf = Explanation = Provenance = Replaced = object

Vector: TypeAlias = bytes
"""A unit vector as packed little-endian float32 numbers; read it with `memoryview(v).cast("f")`."""

SourceName: TypeAlias = Literal["memory", "sessions"]
Mode: TypeAlias = Literal["hybrid", "fts-only", "vector-only"]


# workspace


class FileState(NamedTuple):
    """What a scan saw of one memory file, without opening it."""

    path: str
    """As cited: relative to the workspace with forward slashes; `../docs/x.md` for an extra path
    outside it, `notes:x.md` for a file of the source `notes`."""
    source: SourceName
    size: int
    mtime_ns: int
    """The ctime of the file, because an editor may reset its mtime."""
    inode: int
    device: int


class Skipped(NamedTuple):
    """A file that was found but not indexed, and why."""

    path: str
    reason: str


class ScanFailure(NamedTuple):
    """A folder that could not be listed; files below `path` must not be treated as deleted."""

    path: str
    reason: str


class Scan(NamedTuple):
    """The result of one scan of the workspace."""

    files: tuple[FileState, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[ScanFailure, ...]
    taken_ns: int
    roots: tuple[tuple[str, int, int], ...] = ()
    """The scanned folders: path, device and inode; -1 and -1 for an extra path that is unavailable.
    """
    temporary: tuple[str, ...] = ()
    """Temporary files of running or killed writers."""


MEDIA_TYPES = {".jpg": "image", ".jpeg": "image", ".png": "image", ".mp3": "audio", ".wav": "audio"}
"""The modality of each file name extension that can be embedded."""
OTHER_MEDIA_TYPES = {
    **dict.fromkeys((".webp", ".gif", ".heic", ".heif"), "image"),
    **dict.fromkeys((".ogg", ".opus", ".m4a", ".m2a", ".aac", ".flac"), "audio"),
}
"""Common extensions that cannot; files with them are reported as skipped."""


class MediaRules(NamedTuple):
    """Which images and audio files are memory."""

    modalities: tuple[str, ...]
    max_file_bytes: int

    def modality_of(self, name: str) -> str:
        """Return `image` or `audio` for the name of a file that is memory, else an empty string."""
        return self._wanted(MEDIA_TYPES.get(_extension(name), ""))

    def other_modality(self, name: str) -> str:
        """Return the modality of a file that would be memory if its type could be embedded."""
        return self._wanted(OTHER_MEDIA_TYPES.get(_extension(name), ""))

    def _wanted(self, modality: str) -> str:
        return modality if modality in self.modalities else ""


def _extension(name: str) -> str:
    _, dot, last = name.rpartition(".")
    return dot + last.lower()


# text


class Term(NamedTuple):
    """One search term of the keyword leg."""

    text: str
    """As shown to users."""
    phrase: str
    """One or more words as `index_words` stores them, separated by spaces."""


# embed


class Identity(NamedTuple):
    """What makes vectors comparable: vectors with different identities are never compared."""

    provider: str
    model: str
    provider_key: str
    """SHA-256 hex over everything that changes the vectors (endpoint, prefixes, weights …)."""
    dims: int


# index


FileStat: TypeAlias = tuple[int, int, int, int, int]
"""Size, mtime_ns, inode and device of an indexed file, and when it was read (`FileRow.seen_ns`)."""


class FileRow(NamedTuple):
    """One indexed file as stored in the index."""

    path: str
    source: SourceName
    hash: str
    size: int
    mtime_ns: int
    inode: int
    device: int
    seen_ns: int
    """When it was read; a file changed within the clock's resolution of that time is checked again.
    """
    chunks: int
    progress: str = ""
    """How far a transcript is indexed, by `sync.transcript_progress`; empty for a memory file."""


class ChunkRow(NamedTuple):
    """One indexed chunk; `key` is its row number, valid within one snapshot."""

    key: int
    path: str
    source: SourceName
    start_line: int
    end_line: int
    hash: str
    heading: str
    text: str
    first_day: str = ""
    last_day: str = ""
    """The first and the last day the passage is about, YYYY-MM-DD; both empty when it has no date.
    """


class Space(NamedTuple):
    """A set of comparable vectors in the index; `ready` once it has covered every chunk."""

    id: int
    identity: Identity
    ready: bool
    vectors: int


FileSet: TypeAlias = Literal["visible", "rebuilt", "unsearched"]
"""Which files to list: those a search sees, those stored by the current rebuild, or the visible
ones of a source that this configuration does not search."""
Mark: TypeAlias = tuple[int, tuple[int, int, int] | None]
"""Identifies the current index, for `IndexStore.was_replaced`."""


class KeywordQuery(NamedTuple):
    """A keyword query: a chunk matches if it contains any of the terms or any of the pairs.

    A term is one word, or several words separated by spaces that must follow each other."""

    terms: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """Two terms that must be at most `distance` words apart."""
    stated_only: bool = False
    """Ignore what a chunk only asks."""
    distance: int = 6


class KeywordCounts(NamedTuple):
    """How many chunks each of several queries matches, out of how many."""

    total: int
    matches: list[int]


def noise_fact(space: int) -> str:
    """The name of the fact that holds what was measured about chance in a vector space."""
    return f"noise_{space}"


# sync


class SyncPlan(NamedTuple):
    """What has to be done for the index to match the disk; computed, never stored."""

    add: tuple[FileState, ...]
    check: tuple[FileState, ...]
    """Known files whose size, time or inode changed: read and hashed, then updated or touched."""
    recheck: tuple[FileState, ...]
    """Files that look unchanged but were indexed within the clock's resolution of their last
    change: hashed again.
    """
    delete: tuple[str, ...]
    unchanged: int
    kept: tuple[str, ...]
    """Paths that were not found but lie under a folder that could not be listed."""
    was: tuple[FileStat, ...] = ()
    """The indexed state of the files to delete, in the same order; a file whose state has changed
    since is not deleted.
    """

    @property
    def due(self) -> int:
        return len(self.add) + len(self.check) + len(self.delete)


class Degraded(NamedTuple):
    """Why an answer is degraded, and how to fix it."""

    reason: str
    fix: str
    needs_change: bool = False
    """Whether retrying is useless until the settings change."""


# search


class Filters(NamedTuple):
    """Which passages a search may return; an empty field does not filter."""

    since: str = ""
    until: str = ""
    """Days, YYYY-MM-DD, inclusive. A passage without a date matches neither."""
    path: str = ""
    """A pattern for paths, as `text.globs` reads it."""
    source: str = ""
    as_of: str = ""
    """The day whose files are searched, as given; `Memory.search` chooses the index by it, so it is
    empty in a `Query`."""
    space: str = ""
    """A shared space, or `OWN_MEMORY`; empty for the workspace and all of its spaces."""

    @property
    def summary(self) -> str:
        """`since 2026-01-01, path memory/**`; empty without filters."""
        return ", ".join(
            f"{name} {value}" for name, value in zip(self._fields, self, strict=True) if value
        )


NO_FILTERS = Filters()
OWN_MEMORY = "-"
"""As the space of a search: the memory of the workspace alone."""
SPACES = "spaces/"
"""How the cited paths of shared spaces begin."""


class Query(NamedTuple):
    """A complete query, with all settings filled in."""

    text: str
    max_results: int = 6
    min_score: float = 0.35
    vector_weight: float = 0.7
    text_weight: float = 0.3
    hybrid: bool = True
    fusion: str = "calibrated"
    """`calibrated`, or `weighted` for the published sum of the two scores."""
    candidates: int = 100
    """Per leg: max(100, max_results * candidateMultiplier)."""
    mmr_lambda: float | None = None
    half_life_days: float | None = None
    today: str = ""
    """The current day, YYYY-MM-DD, for ages and for "last week"; required with a half-life."""
    explain: bool = False
    filters: Filters = NO_FILTERS


class Hit(NamedTuple):
    """One cited answer."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    """The lines of the passage that answer the query, verbatim; parts that are not adjacent are
    separated by a line with "…".
    """
    snippet_start: int
    snippet_end: int
    """The first and the last line of the snippet, within start_line..end_line."""
    source: SourceName
    vector_score: float
    text_score: float
    date: str
    """The last day the passage is about, YYYY-MM-DD, from the file's name, a heading or a
    transcript; or empty.
    """
    snippet_ranges: tuple[tuple[int, int], ...] = ()
    """The lines of each part of the snippet, in order."""
    mime: str = ""
    """The type of an image or audio file, such as `image/png`; empty for text."""
    replaced: tuple[Replaced, ...] = ()
    """What its lines have replaced, the latest first; `Memory.with_replaced` finds it."""
    origin: Provenance | None = None
    """Where the passage came from, by the journal. It is looked up with `explain`, and by
    `Memory.origins`; None also if the passage is not text of a memory file."""
    space: str = ""
    """The shared space it is from; empty for the memory of the workspace."""
    author: str = ""
    """Who published it in the space; empty for logs, whose entries name their authors."""

    @property
    def modality(self) -> str:
        """`image` or `audio`; empty for text."""
        return self.mime.partition("/")[0]

    @property
    def citation(self) -> str:
        return self.path if self.mime else citation(self.path, self.start_line, self.end_line)


class Freshness(NamedTuple):
    """How the index was brought up to date before a search."""

    due_files: int | None
    """None if unknown."""
    summary: str
    milliseconds: float


class NothingFound(NamedTuple):
    """Why there are no hits."""

    code: Literal[
        "empty-query",
        "empty-index",
        "still-indexing",
        "below-threshold",
        "no-such-words",
        "filtered-out",
        "not-allowed",
    ]
    message: str
    best_score: float | None


class Found(NamedTuple):
    """The answer to a query."""

    hits: tuple[Hit, ...]
    nothing: NothingFound | None
    mode: Mode
    provider: str
    model: str
    degraded: Degraded | None
    due_files: int | None
    """Files that differ from the index, by a scan at most a second old; None when unknown."""
    milliseconds: float
    explanation: Explanation | None = None
    due_vectors: int = 0
    """Passages without a vector of the best embedder."""
    fallback_from: str = ""
    """The provider that failed or cannot be used, when another one answered; `degraded` says why.
    """
    as_of: AsOf | None = None
    """None for the present; its citations are those of the version."""


def is_in_workspace(path: str) -> bool:
    """Whether a cited path lies in the workspace, not in a source or an extra path outside."""
    return not path.startswith("../") and not added_source(path)


def added_source(path: str) -> str:
    """The source of a cited path: `notes` for `notes:projects/ferry.md`, empty for other paths."""
    name, colon, _ = path.partition("/")[0].partition(":")
    return name if colon else ""


def is_media(path: str) -> bool:
    """Whether a memory file is an image or an audio file: all others are Markdown."""
    return path[-3:].lower() != ".md"


def is_cited_below(path: str, folder: str) -> bool:
    """Whether a cited path lies in a cited folder; `notes:` is the folder of the source `notes`."""
    return path.startswith(folder if folder.endswith(":") else f"{folder}/")


def citation(path: str, start: int, end: int) -> str:
    """`memory/2026-02-24.md#L12-L28`, or `#L12` for one line."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"


class Citation(NamedTuple):
    """A path and the lines a citation names; `lines` is None if it names none."""

    path: str
    start: int
    lines: int | None


def parse_citation(text: str) -> Citation:
    """Split `memory/x.md#L3-L9` into path and lines; a name such as `a#L1-L2.md` stays a path."""
    path, mark, span = text.rpartition("#L")
    first, dash, last = span.partition("-")
    last = last.removeprefix("L") if dash else first
    numbers = first + last
    if (
        not mark
        or not path
        or not (first and last and numbers.isascii() and numbers.isdigit() and len(numbers) < 20)
    ):
        return Citation(text, 1, None)
    start = max(1, int(first))
    return Citation(path, start, max(1, int(last) - start + 1))
