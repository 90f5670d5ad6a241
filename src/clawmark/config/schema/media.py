"""The settings of images and audio files in added folders."""

from typing import NamedTuple

MODALITIES = ("audio", "image")
MODEL = "gemini-embedding-2"
"""The models whose names begin like this embed images and audio."""


class Multimodal(NamedTuple):
    """`memorySearch.multimodal`."""

    enabled: bool = False
    modalities: tuple[str, ...] = ("all",)
    max_file_bytes: int = 10 << 20

    @property
    def wanted(self) -> tuple[str, ...]:
        """The modalities that are indexed, sorted; none if this is switched off."""
        if not self.enabled:
            return ()
        return MODALITIES if "all" in self.modalities else tuple(sorted(self.modalities))


def can_embed(provider: str, model: str) -> bool:
    """Return whether this provider and model embed images and audio."""
    for prefix in ("models/", "gemini/", "google/"):
        model = model.strip().removeprefix(prefix)
    return provider == "gemini" and model.startswith(MODEL)
