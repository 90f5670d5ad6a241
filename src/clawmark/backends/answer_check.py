"""Check the answers of a backend that is not ours before anyone sees them.

`BackendMisbehaved` says what is wrong. A hit whose file is gone, or shorter than the hit says, may
be outdated and is left out."""

from __future__ import annotations

import math

from clawmark.model.documents import Excerpt
from clawmark.model.errors import BackendMisbehaved, PathDenied, WorkspaceError
from clawmark.model.reports import Probe, Status
from clawmark.model.sync_report import SyncReport
from clawmark.model.values import Degraded, Found, Hit, NothingFound
from clawmark.workspace import Workspace

MOST_SNIPPET = 20_000
"""Characters of one snippet."""


class AnswerCheck:
    """Checks the answers of one backend against the files of a workspace."""

    def __init__(self, backend: str, workspace: Workspace) -> None:
        self._backend = backend
        self._workspace = workspace

    def found(self, answer: object, most: int) -> Found:
        """Return the answer to a search with at most `most` hits that can be shown."""
        if not isinstance(answer, Found) or not isinstance(answer.hits, tuple):
            raise self._error(f"returned {_kind(answer)} instead of an answer")
        if not isinstance(answer.nothing, NothingFound | None) or not isinstance(
            answer.degraded, Degraded | None
        ):
            raise self._error("returned an answer that cannot be read")
        checked = [self._hit(hit) for hit in answer.hits]
        hits = tuple(hit for hit in checked if hit is not None)[:most]
        if answer.hits and not hits:
            raise self._error("cites only files or lines that do not exist")
        if not hits and answer.nothing is None:
            raise self._error("returned an empty answer without a reason")
        ordered = tuple(sorted(hits, key=lambda hit: -hit.score))
        return answer._replace(hits=ordered, nothing=None if hits else answer.nothing)

    def status(self, answer: object) -> Status:
        """Return a status whose numbers are numbers."""
        if not isinstance(answer, Status):
            raise self._error(f"returned {_kind(answer)} instead of its status")
        counts = (answer.files, answer.chunks, answer.due_files, answer.due_vectors)
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise self._error("returned a status that cannot be read")
        return answer

    def report(self, answer: object) -> SyncReport:
        """Return the report of a sync."""
        if not isinstance(answer, SyncReport):
            raise self._error(f"returned {_kind(answer)} instead of a report")
        if not all(isinstance(count, int) and count >= 0 for count in answer[:8]):
            raise self._error("returned a report that cannot be read")
        return answer

    def refreshed(self, answer: object) -> bool:
        """Return whether a refresh was started."""
        if not isinstance(answer, bool):
            raise self._error(f"returned {_kind(answer)} instead of true or false")
        return answer

    def probes(self, answer: object) -> tuple[Probe, ...]:
        """Return the results of a probe; failed ones have a reason."""
        if not isinstance(answer, tuple) or not all(isinstance(one, Probe) for one in answer):
            raise self._error(f"returned {_kind(answer)} instead of probes")
        if not all(one.name and (one.reason or one.state == "ok") for one in answer):
            raise self._error("returned a probe without a name or a reason")
        return answer

    def _hit(self, hit: object) -> Hit | None:
        if not isinstance(hit, Hit) or not isinstance(hit.path, str):
            raise self._error(f"returned {_kind(hit)} instead of a hit")
        if not isinstance(hit.snippet, str) or hit.source not in ("memory", "sessions"):
            raise self._error("returned a hit that cannot be read")
        if not isinstance(hit.score, int | float) or not math.isfinite(hit.score):
            raise self._error("returned a score that is not a number")
        lines = (hit.start_line, hit.end_line, hit.snippet_start, hit.snippet_end)
        if not all(type(line) is int for line in lines) or not 1 <= lines[0] <= lines[1]:
            raise self._error("cites lines that cannot exist")
        excerpt = self._read(hit)
        if excerpt is None or excerpt.missing or hit.end_line > excerpt.total_lines:
            return None
        start = min(max(hit.snippet_start, hit.start_line), hit.end_line)
        return hit._replace(
            score=min(1.0, max(0.0, float(hit.score))),
            snippet=hit.snippet[:MOST_SNIPPET],
            snippet_start=start,
            snippet_end=min(max(hit.snippet_end, start), hit.end_line),
        )

    def _read(self, hit: Hit) -> Excerpt | None:
        """Read the first cited line, which shows that the file may be read."""
        try:
            return self._workspace.read_lines(hit.path, hit.start_line, 1)
        except PathDenied as error:
            raise self._error(f"cites {error.path[:80]!a}, which is not memory") from error
        except WorkspaceError:
            return None

    def _error(self, what: str) -> BackendMisbehaved:
        return BackendMisbehaved(f"The backend {self._backend} {what}.", backend=self._backend)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
