"""`HttpError`, the deadline of a request, and readable reasons for network errors."""

from __future__ import annotations

import errno
import time

_PEER_CLOSED = ("SSLEOFError", "SSLZeroReturnError")
"""By name, so that this module does not import ssl."""

_KNOWN_ERRORS = {
    errno.ENETUNREACH: "the network cannot be reached",
    errno.EHOSTUNREACH: "there is no route to the host",
    errno.ENETDOWN: "the network is down",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "this machine has too many open files",
    errno.EADDRNOTAVAIL: "this machine has no free port",
}
_KNOWN_CERTIFICATE_ERRORS = {
    62: "the certificate is for another name",
    64: "the certificate is for another address",
    10: "the certificate has expired",
    9: "the certificate is not valid yet: is the clock of this machine right?",
    18: "the certificate is self-signed and not trusted",
}


class HttpError(Exception):
    """There is no usable response; `reason` says why, without headers, keys or the server's words.

    A `permanent` error (a wrong certificate, a refused address) would be the same a second later.
    """

    def __init__(self, reason: str, *, permanent: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.hint = hint


class Unanswered(HttpError):
    """The connection ended before the first byte of a response.

    On a connection that was kept open this says nothing about the service.
    """


class Deadline:
    """The moment at which a request must be over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; raise TimeoutError when none are."""
        left = self._end - time.monotonic()
        if not left > 0:
            raise TimeoutError
        return left


def has_peer_closed(error: BaseException | None) -> bool:
    """Return whether this error means that the other side closed the connection."""
    return isinstance(error, ConnectionError) or type(error).__name__ in _PEER_CLOSED


def describe(error: BaseException | None) -> HttpError:
    """Return the error with a readable reason for an operating system or TLS error."""
    if isinstance(error, ConnectionRefusedError):
        return HttpError(
            "the connection was refused",
            hint="Check that the service runs and that its address is right.",
        )
    if has_peer_closed(error):
        return HttpError("the connection was cut")
    if type(error).__module__ == "ssl":
        return _describe_tls(error)
    number = getattr(error, "errno", None) or 0
    words = getattr(error, "strerror", None) or type(error).__name__
    return HttpError(_KNOWN_ERRORS.get(number) or f"the network failed ({words})")


def _describe_tls(error: BaseException | None) -> HttpError:
    code = getattr(error, "verify_code", None)
    if code is not None:
        return HttpError(
            _KNOWN_CERTIFICATE_ERRORS.get(code, "the certificate is not trusted"),
            permanent=True,
            hint="Check the address. To trust your own certificate authority, name its file in "
            "the variable SSL_CERT_FILE.",
        )
    what = str(getattr(error, "reason", "") or "")
    if what in (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
    ):
        return HttpError(
            "the server does not speak TLS (https) on this port",
            permanent=True,
            hint="Check whether the address starts with http:// there.",
        )
    words = f" ({what.lower().replace('_', ' ')})" if what else ""
    return HttpError(f"the TLS handshake failed{words}")
