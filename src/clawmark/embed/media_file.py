"""What an embedder of images and audio is given."""

from typing import NamedTuple


class MediaFile(NamedTuple):
    """An image or audio file to embed."""

    label: str
    """What it is, in words; embedded together with the file."""
    mime: str
    data: bytes
