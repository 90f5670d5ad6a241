"""Why a search with filters found nothing: the filters left no passage, or none with the words that
were asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawmark.model.values import NothingFound, Query, Term
from clawmark.store.sqlite.store import Reader
from clawmark.text.keywords.query import any_of


def why_filtered(
    query: Query, terms: Sequence[Term], whole: Reader, narrowed: Reader
) -> NothingFound | None:
    """The reason when it is the filters; nothing when the words do not occur outside of them
    either.
    """
    filters = query.filters
    selected = len(narrowed.selected())
    if selected:
        if not terms or not whole.keywords(any_of(terms), 1):
            return None
        message = (
            f"The words occur in the memory, but not in the "
            f"{selected} passages that match the filters"
        )
        return NothingFound("filtered-out", f"{message} ({filters.summary}).", None)
    message = f"No passage matches the filters ({filters.summary})."
    if filters.source and filters.source.lower() not in map(str.lower, whole.sources()):
        message += (
            f" No file of a source {filters.source!r} is indexed; there "
            f"are files of {', '.join(whole.sources())}."
        )
    elif filters.since or filters.until:
        undated = whole.within(filters._replace(since="", until="")).count_undated()
        if undated:
            message += (
                f" since and until leave out passages without a date; there are {undated} of them."
            )
    return NothingFound("filtered-out", message, None)
