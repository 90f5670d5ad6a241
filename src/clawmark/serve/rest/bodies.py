"""The bodies and the query parameters of REST requests, and what answers look like.

Requests are checked against these classes; the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, field

MAX_ENTRY = 32_000
"""Characters of an entry."""
MAX_DOCUMENT = 4_000_000
MAX_DOCUMENTS = 200
"""Documents that are published or withdrawn at once."""
MAX_CHANGES = 500
MAX_RESULTS = 50
MAX_QUERY = 50_000

SpaceName: TypeAlias = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", description="The name of a space.")
]
Path: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1_000,
        description="The path of a file in the caller's workspace, with forward slashes.",
    ),
]
Hash: TypeAlias = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the file's bytes.")
]
Filter: TypeAlias = Annotated[str, Meta(max_length=500)]
Line: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class Request(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """What a client sends; an unknown field is an error."""


class Answer(Struct, rename="camel", frozen=True):
    """What the server answers."""


class SearchRequest(Request, frozen=True):
    """A search of some spaces, or of all that the caller may read."""

    query: Annotated[str, Meta(max_length=MAX_QUERY)]
    spaces: Annotated[list[SpaceName], Meta(max_length=100)] = []
    max_results: Annotated[int, Meta(ge=1, le=MAX_RESULTS)] | None = None
    min_score: Annotated[float, Meta(ge=0, le=1)] | None = None
    since: Filter | None = None
    until: Filter | None = None
    path: Filter | None = None
    explain: bool = False


class AppendRequest(Request, frozen=True):
    """An entry for today's log of a space."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_ENTRY)]
    key: Annotated[
        str,
        Meta(
            pattern=r"^[!-~]{1,200}$",
            description="Identifies the entry: sent again with the same key, it is stored once.",
        ),
    ]


class PublishedDocument(Request, frozen=True):
    """A file that is published."""

    path: Path
    text: Annotated[str, Meta(max_length=MAX_DOCUMENT)]
    hash: Hash


class PublishRequest(Request, frozen=True):
    """Files to store or replace, all of them or none."""

    documents: Annotated[list[PublishedDocument], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class WithdrawRequest(Request, frozen=True):
    """Files to remove; absent ones are ignored."""

    paths: Annotated[list[Path], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class NoQuery(Request, frozen=True):
    """A route without query parameters."""


class ReadQuery(Request, frozen=True):
    """Which lines of a document are read."""

    from_: Line | None = field(name="from", default=None)
    lines: Line | None = None
    max_chars: Annotated[int, Meta(ge=1, le=200_000)] = 12_000


class ChangesQuery(Request, frozen=True):
    """Which changes are listed."""

    since: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_CHANGES)] = 100


class SpaceAnswer(Answer, frozen=True):
    """A space as its members see it."""

    name: str
    may_write: bool
    documents: int
    entries: int


class SpacesAnswer(Answer, frozen=True):
    """The spaces that the caller may read, by name."""

    spaces: list[SpaceAnswer]


class HitAnswer(Answer, frozen=True):
    """A passage; `path` and the lines cite it."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: str
    citation: str
    snippet_lines: list[int]
    snippet_ranges: list[list[int]]
    vector_score: float
    text_score: float
    space: str
    author: str
    date: str = ""


class FoundAnswer(Answer, frozen=True):
    """What `clawmark search --json` prints: hits, or the reason why there are none."""

    results: list[HitAnswer]
    mode: str
    provider: str
    model: str
    due_files: int | None
    due_vectors: int
    milliseconds: float
    nothing: dict[str, Any] = {}
    degraded: dict[str, Any] = {}
    fallback: dict[str, Any] = {}
    explanation: dict[str, Any] = {}


class ExcerptAnswer(Answer, frozen=True):
    """Lines of a document."""

    path: str
    text: str
    start: int
    lines: int
    total_lines: int
    truncated: bool
    next_start: int | None
    missing: bool
    mime: str


class AppendedAnswer(Answer, frozen=True):
    """An entry that is stored durably."""

    path: str
    start_line: int
    end_line: int
    author: str
    at: str
    is_repeated: bool


class PublishedAnswer(Answer, frozen=True):
    """The hashes of the files that the caller has published, by path."""

    documents: dict[str, str]


class DocumentAnswer(Answer, frozen=True):
    """A document of a space; its text is null if it was withdrawn."""

    path: str
    author: str
    hash: str
    text: str | None
    changed: str
    version: int


class ChangesAnswer(Answer, frozen=True):
    """What has changed after a version; ask again with `version` for what follows."""

    documents: list[DocumentAnswer]
    version: int
    is_complete: bool


class ProblemAnswer(Answer, frozen=True):
    """What went wrong, and what to do next."""

    type: str
    message: str
    hint: str


class ErrorAnswer(Answer, frozen=True):
    """Why a request failed."""

    error: ProblemAnswer
