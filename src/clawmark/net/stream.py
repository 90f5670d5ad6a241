"""Bytes to and from a socket before a deadline, and the one place where its errors become
sentences.

In: a connected socket, plain or TLS, and the moment at which everything must be over. Out: bytes,
or `HttpTrouble` with a reason a person understands. What the bytes mean is left to `answer`, where
the socket comes from to `dial`."""

from __future__ import annotations

import errno
import socket
import time

PIECE = 64 << 10
LONG_PIECE = 1 << 20
"""How much of a body is read at once.

Every read waits for other threads to let go of the interpreter.
"""
_ENDED = (
    "SSLEOFError",
    "SSLZeroReturnError",
)  # by name, so that a plain connection does not load ssl


class HttpTrouble(Exception):
    """No usable answer; `reason` says why, without headers, keys or the server's own words.

    A `permanent` trouble (a wrong certificate, a refused address) is the same a second later.
    """

    def __init__(self, reason: str, *, permanent: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.hint = hint


class Unanswered(HttpTrouble):
    """The connection ended before the first byte of an answer: a kept one may simply have grown too
    old.
    """


class Deadline:
    """The moment at which an exchange is over, whatever happens."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left; raises TimeoutError when none are."""
        left = self._end - time.monotonic()
        if not left > 0:
            raise TimeoutError
        return left


class Stream:
    """A connection, and what has arrived on it and not been read yet."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self.sock = sock
        self.deadline = deadline
        self.buffer = bytearray()
        self.received = 0
        """Bytes since the exchange began."""

    def begin(self, deadline: Deadline) -> None:
        """Start another exchange on a kept connection."""
        self.deadline = deadline
        self.received = 0

    def send(self, data: bytes) -> None:
        """Send everything; raises OSError."""
        view = memoryview(data)
        while view:
            # The limit of a socket is for one call: a reader that takes a byte a second would never
            # reach it.
            self.sock.settimeout(self.deadline.left())
            view = view[self.sock.send(view[:PIECE]) :]

    def fill(self) -> bool:
        """Wait for more bytes; False when the other side has closed the connection."""
        data = self._receive(PIECE)
        self.buffer += data
        return bool(data)

    def take(self, most: int) -> bytes:
        """Up to `most` bytes, at least one; empty at the end of the connection."""
        if not self.buffer:
            data = self._receive(
                min(most + 1, LONG_PIECE)
            )  # with one more, what nobody asked for is noticed
            self.buffer += data[most:]
            return data[:most]
        data = bytes(self.buffer[:most])
        del self.buffer[:most]
        return data

    def _receive(self, most: int) -> bytes:
        try:
            self.sock.settimeout(self.deadline.left())
            data = self.sock.recv(most)
        except OSError as error:
            raise self.trouble(error) from None
        self.received += len(data)
        return data

    def line(self, most: int) -> bytes | None:
        """A line without its end; None when it is longer than `most` or the connection ends before
        it does.
        """
        start = 0
        while (end := self.buffer.find(b"\n", start)) < 0:
            start = len(self.buffer)
            if start > most or not self.fill():
                return None
        if end > most:
            return None
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line.removesuffix(b"\r")

    def trouble(self, error: OSError) -> HttpTrouble:
        """The sentence for an error while an answer was due."""
        if isinstance(error, TimeoutError):
            if self.received:
                return HttpTrouble(
                    f"the answer was not complete within {self.deadline.seconds:g} s"
                )
            return HttpTrouble(f"no answer within {self.deadline.seconds:g} s")
        if not self.received and (
            isinstance(error, ConnectionError) or type(error).__name__ in _ENDED
        ):
            return Unanswered("the connection was closed before an answer came")
        return said(error)

    def abort(self) -> None:
        """Make whoever reads or writes here stop at once; closing alone would not wake him."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other side was quicker
            return

    def close(self) -> None:
        close(self.sock)


def close(sock: socket.socket) -> None:
    """Close a socket, whatever state it is in."""
    try:
        sock.close()
    except OSError:  # a descriptor that is gone already is closed enough
        return


def said(error: OSError) -> HttpTrouble:
    """The sentence for an error of the network that is no timeout."""
    if type(error).__module__ == "ssl":
        return _said_of_tls(error)
    if isinstance(error, ConnectionRefusedError):
        return HttpTrouble(
            "the connection was refused",
            hint="Check that the service runs and that its address is right.",
        )
    if isinstance(error, ConnectionError):
        return HttpTrouble("the connection was cut")
    known = {
        errno.ENETUNREACH: "the network cannot be reached",
        errno.EHOSTUNREACH: "there is no way to the host",
        errno.ENETDOWN: "the network is down",
        errno.EMFILE: "this process has too many open files",
        errno.ENFILE: "this machine has too many open files",
        errno.EADDRNOTAVAIL: "this machine has no free port",
    }
    reason = known.get(error.errno or 0)
    return HttpTrouble(reason or f"the network failed ({error.strerror or type(error).__name__})")


def _said_of_tls(error: OSError) -> HttpTrouble:
    """OpenSSL's own words are for experts; these are the cases people meet."""
    code = getattr(error, "verify_code", None)
    if code is not None:
        known = {
            62: "the certificate is for another name",
            64: "the certificate is for another address",
            10: "the certificate has expired",
            9: "the certificate is not valid yet: is the clock of this machine right?",
            18: "the certificate is signed by itself and not trusted",
        }
        reason = known.get(code, "the certificate is not trusted")
        hint = (
            "Check the address; a certificate authority of your own "
            "is named by the variable SSL_CERT_FILE."
        )
        return HttpTrouble(reason, permanent=True, hint=hint)
    what = str(getattr(error, "reason", "") or "")
    if what in (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
    ):
        hint = "Check whether the address starts with http:// there."
        return HttpTrouble(
            "the server does not speak TLS (https) on this port", permanent=True, hint=hint
        )
    if type(error).__name__ in _ENDED:
        return HttpTrouble("the connection was cut")
    return HttpTrouble(
        "no secure connection could be made"
        + (f" ({what.lower().replace('_', ' ')})" if what else "")
    )
