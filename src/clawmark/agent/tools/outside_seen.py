"""What the tools returned to a session from outside, so that notes which repeat it are recognized.

A note that has at least half of its longer words from one such text counts as text from outside. A
model that says the same in other words is not recognized."""

from __future__ import annotations

from collections import OrderedDict, deque

from clawmark.agent.notes.outside_text import words_of

MOST_TEXTS = 200
"""Of one session; the oldest are dropped."""
MOST_SESSIONS = 100


class OutsideSeen:
    """The texts from outside that one session was given, as sets of words."""

    def __init__(self) -> None:
        self._texts: deque[frozenset[str]] = deque(maxlen=MOST_TEXTS)

    def add(self, text: str) -> None:
        """Remember that a session was given a text."""
        words = words_of(text)
        if words and words not in self._texts:
            self._texts.append(words)

    def is_repeated(self, note: str) -> bool:
        """Check whether a note repeats one of the texts."""
        words = words_of(note)
        return bool(words) and any(
            2 * len(words & text) >= len(words)
            for text in tuple(self._texts)  # another call may add to it
        )


class SessionsSeen:
    """What each session was given; the sessions used last are kept."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, OutsideSeen] = OrderedDict()

    def of(self, session_key: str) -> OutsideSeen:
        """Return what a session was given."""
        seen = self._sessions.setdefault(session_key, OutsideSeen())
        self._sessions.move_to_end(session_key)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return seen
