"""Messages become chunks with the lines of the transcript, readable, within the size, and the same
from any place on.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

from clawmark.text.chunking.tokens import quarter_tokens
from clawmark.text.transcripts.chunks import TranscriptChunker, render_message
from clawmark.text.transcripts.records import TranscriptMessage


def message(line: int, text: str, time: str = "2026-02-24T10:03:07Z") -> TranscriptMessage:
    return TranscriptMessage(
        role="user" if line % 2 else "assistant", text=text, time=time, line=line
    )


def packed(*said: TranscriptMessage, tokens: int = 100, overlap: int = 20) -> TranscriptChunker:
    packer = TranscriptChunker(tokens, overlap)
    for one in said:
        packer.add(one)
    packer.close()
    return packer


def test_a_message_reads_as_who_when_and_what() -> None:
    assert render_message(message(1, "Hello\nthere")) == "User (2026-02-24 10:03Z): Hello\nthere"
    assert render_message(message(2, "Hi", time="")) == "Assistant: Hi"


def test_messages_share_a_chunk_and_keep_their_lines() -> None:
    (chunk,) = packed(
        message(3, "one"), message(8, "two", "2026-02-26T00:00:00Z"), message(9, "three", "")
    ).chunks
    assert (chunk.start_line, chunk.end_line) == (3, 9)
    assert (
        chunk.text
        == "User (2026-02-24 10:03Z): one\nAssistant (2026-02-26 00:00Z): two\nUser: three"
    )
    assert chunk.heading == "2026-02-24 2026-02-26"
    assert chunk.hash == sha256(chunk.text.encode()).hexdigest()


def test_the_last_messages_begin_the_next_chunk_again() -> None:
    chunks = packed(*(message(line, "word " * 8) for line in range(1, 21)), overlap=40).chunks
    assert len(chunks) > 2
    for first, second in pairwise(chunks):
        assert first.start_line < second.start_line <= first.end_line < second.end_line
        shared = second.text.split("\n")[: first.end_line - second.start_line + 1]
        assert first.text.endswith("\n".join(shared))


def test_no_chunk_is_larger_than_its_size_and_no_message_is_lost() -> None:
    said = [message(line, "word " * (line % 30 + 1)) for line in range(1, 80)]
    chunks = packed(*said).chunks
    assert all(quarter_tokens(chunk.text) <= 400 for chunk in chunks)
    assert all(any(render_message(one).strip() in chunk.text for chunk in chunks) for one in said)


def test_a_message_larger_than_a_chunk_is_cut_under_its_speakers_name() -> None:
    long = "\n\n".join(f"Paragraph {number} says something of its own." for number in range(40))
    before, *pieces, after = packed(
        message(1, "short"), message(4, long), message(5, "short again")
    ).chunks
    assert (before.start_line, after.start_line) == (1, 5)
    assert {(piece.start_line, piece.end_line) for piece in pieces} == {(4, 4)}
    assert all(piece.text.startswith("Assistant (2026-02-24 10:03Z): ") for piece in pieces)
    assert all(quarter_tokens(piece.text) <= 420 for piece in pieces)
    together = "".join(piece.text for piece in pieces)
    assert all(f"Paragraph {number} says" in together for number in range(40))


def test_chunker_given_the_open_messages_continues_another_one() -> None:
    said = [message(line, "word " * (line * 7 % 90 + 1)) for line in range(1, 60)]
    whole = packed(*said).chunks
    for stop in range(len(said)):
        first, second = TranscriptChunker(100, 20), TranscriptChunker(100, 20)
        for one in said[:stop]:
            first.add(one)
        still_open = {turn.line for turn in first.open}
        for one in [one for one in said[:stop] if one.line in still_open] + said[stop:]:
            second.add(one)
        second.close()
        assert first.chunks + second.chunks == whole
