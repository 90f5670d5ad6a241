"""The values that travel between the stages: immutable, complete, and free of behaviour.

They are named tuples and not dataclasses because they are on the path of every cold search:
defining twenty frozen dataclasses costs 17 ms more than twenty named tuples, more than the search
itself takes."""

from typing import Literal, NamedTuple, TypeAlias

Vector: TypeAlias = bytes
"""A unit vector as packed little-endian float32 numbers; read it with `memoryview(v).cast("f")`."""

SourceName: TypeAlias = Literal["memory", "sessions"]
Mode: TypeAlias = Literal["hybrid", "fts-only", "vector-only"]


# --- workspace ---------------------------------------------------------------------------------------------------


class FileState(NamedTuple):
    """What a scan saw of one memory file, without opening it."""

    path: str
    """As cited: relative to the workspace, forward slashes; `../docs/x.md` for an extra path
    outside it, `notes:x.md` for a file of the source `notes`."""
    source: SourceName
    size: int
    mtime_ns: int
    """When the system last changed anything about it: its ctime, since an editor may put the mtime
    itself back.
    """
    inode: int
    device: int


class Skipped(NamedTuple):
    """A file that was found and left alone, and why."""

    path: str
    reason: str


class ScanFailure(NamedTuple):
    """A folder that could not be listed: nothing below `path` may be taken for deleted."""

    path: str
    reason: str


class Scan(NamedTuple):
    """Everything one look at the workspace found."""

    files: tuple[FileState, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[ScanFailure, ...]
    taken_ns: int
    roots: tuple[tuple[str, int, int], ...] = ()
    """The folders that were meant: path, device and inode; -1 and -1 for an extra path that cannot
    be used now.
    """
    temporary: tuple[str, ...] = ()
    """Temporary files of writers, living or dead."""


# --- text --------------------------------------------------------------------------------------------------------


class Term(NamedTuple):
    """One thing the keyword leg looks for."""

    text: str
    """As a person would recognise it."""
    phrase: str
    """One or more words as `index_words` stores them, separated by spaces."""


# --- embed -------------------------------------------------------------------------------------------------------


class Identity(NamedTuple):
    """What makes vectors comparable: two vectors with different identities never meet."""

    provider: str
    model: str
    provider_key: str
    """SHA-256 hex over everything that changes the numbers (endpoint, prefixes, weights' hash …).
    """
    dims: int


# --- index -------------------------------------------------------------------------------------------------------


FileStat: TypeAlias = tuple[int, int, int, int, int]
"""Size, mtime_ns, inode and device of an indexed file, and when it was read (`FileRow.seen_ns`)."""


class FileRow(NamedTuple):
    """One indexed file as the database remembers it."""

    path: str
    source: SourceName
    hash: str
    size: int
    mtime_ns: int
    inode: int
    device: int
    seen_ns: int
    """When it was read, to distrust a file changed within the clock's grain of that moment."""
    chunks: int
    progress: str = ""
    """How far a transcript is indexed, as `sync.reached` writes it; empty for a memory file, which
    is indexed as a whole.
    """


class ChunkRow(NamedTuple):
    """One indexed chunk; `key` is its row number, good within one snapshot."""

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
    """A set of comparable vectors in the index.

    `ready` once it has covered every chunk at least once.
    """

    id: int
    identity: Identity
    ready: bool
    vectors: int


# --- sync --------------------------------------------------------------------------------------------------------


class SyncPlan(NamedTuple):
    """What has to happen for the index to match the disk; computed, never stored."""

    add: tuple[FileState, ...]
    check: tuple[FileState, ...]
    """Known files whose size, time or inode changed: read and hashed, then updated or just touched.
    """
    recheck: tuple[FileState, ...]
    """Files that look the same but were indexed within the clock's grain of their last change:
    hashed to be sure.
    """
    delete: tuple[str, ...]
    unchanged: int
    kept: tuple[str, ...]
    """Paths that were not seen but lie under a folder that could not be listed."""
    was: tuple[FileStat, ...] = ()
    """What was indexed of the files to delete, in their order: who finds something else there
    leaves it.
    """

    @property
    def due(self) -> int:
        return len(self.add) + len(self.check) + len(self.delete)


class Degraded(NamedTuple):
    """Why an answer is less than it could be, and what would make it whole."""

    reason: str
    fix: str
    needs_change: bool = False
    """Whether it stays like this until the settings change, however often it is tried."""


# --- search ------------------------------------------------------------------------------------------------------


class Filters(NamedTuple):
    """Which passages a search may return; an empty field filters nothing."""

    since: str = ""
    until: str = ""
    """Days, YYYY-MM-DD, inclusive. A passage without a date passes neither."""
    path: str = ""
    """A pattern for paths, as `text.globs` reads it."""
    source: str = ""

    @property
    def summary(self) -> str:
        """`since 2026-01-01, path memory/**`; empty without filters."""
        return ", ".join(
            f"{name} {value}" for name, value in zip(self._fields, self, strict=True) if value
        )


NO_FILTERS = Filters()


class Query(NamedTuple):
    """A complete question: nothing below the tools asks whether something was given."""

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
    """The day to measure ages from and to read "last week" by, YYYY-MM-DD; needed with a half-life.
    """
    explain: bool = False
    filters: Filters = NO_FILTERS


class Hit(NamedTuple):
    """One cited answer."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    """What of the passage answers the query, to the letter; between parts that are not neighbours
    stands a line with "…".
    """
    snippet_start: int
    snippet_end: int
    """The first and the last line the snippet comes from, within start_line..end_line."""
    source: SourceName
    vector_score: float
    text_score: float
    date: str
    """The last day the passage is about, YYYY-MM-DD: from the file's name, a heading or a
    transcript; else empty.
    """
    snippet_ranges: tuple[tuple[int, int], ...] = ()
    """The lines of each part of the snippet, in order."""

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


class NothingFound(NamedTuple):
    """Why there are no hits."""

    code: Literal[
        "empty-query",
        "empty-index",
        "still-indexing",
        "below-threshold",
        "no-such-words",
        "filtered-out",
    ]
    message: str
    best_score: float | None


class Step(NamedTuple):
    """What one numbered step of the pipeline did, for `--explain` and the inspector."""

    number: int
    name: str
    summary: str
    milliseconds: float


class CandidateStory(NamedTuple):
    """Everything that happened to one candidate; `outcome` is "hit 3" or the reason it was dropped."""

    citation: str
    vector: float
    vector_space: str
    text: float
    name: float
    line: float
    user: float
    stated: float
    bm25: float
    terms: str
    """The query terms it met, as `3/5 billing, database, choose`."""
    decay: float
    score: float
    outcome: str
    when: float = 0.0
    """How well its days agree with a time named in the question, 0 to 1."""
    rerank: float | None = None
    """The reranker's score, 0 to 1; nothing when it was not reranked."""


class Explanation(NamedTuple):
    """The pipeline's own account of an answer."""

    steps: tuple[Step, ...]
    candidates: tuple[CandidateStory, ...]
    passages: int = 0
    """How many there were to find."""


class Found(NamedTuple):
    """The answer to a query."""

    hits: tuple[Hit, ...]
    nothing: NothingFound | None
    mode: Mode
    provider: str
    model: str
    degraded: Degraded | None
    due_files: int | None
    """Files that differ from the index, by a look at the disk at most a second old; None when that
    is not known.
    """
    milliseconds: float
    explanation: Explanation | None = None
    due_vectors: int = 0
    """Passages that wait for a vector of the best embedder."""
    fallback_from: str = ""
    """The provider in whose place another one answered, because it failed or cannot be used;
    `degraded` says why.
    """


def is_in_workspace(path: str) -> bool:
    """Whether a cited path is one of the workspace's own, and not of a source or of an extra path
    outside.
    """
    return not path.startswith("../") and not added_source(path)


def added_source(path: str) -> str:
    """The name of the source that a cited path belongs to: `notes` for `notes:projects/ferry.md`,
    empty for other paths.
    """
    name, colon, _ = path.partition("/")[0].partition(":")
    return name if colon else ""


def is_cited_below(path: str, folder: str) -> bool:
    """Whether a cited path lies in a folder, cited likewise; `notes:` is the folder of the source
    `notes`.
    """
    return path.startswith(folder if folder.endswith(":") else f"{folder}/")


def citation(path: str, start: int, end: int) -> str:
    """`memory/2026-02-24.md#L12-L28`, or `#L12` for one line."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"
