"""The settings of images and audio files in added folders."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key

MODALITIES = ("audio", "image")
MODEL = "gemini-embedding-2"
"""The models whose names begin like this embed images and audio."""


class Multimodal(NamedTuple):
    """`memorySearch.multimodal`."""

    enabled: Annotated[
        bool,
        Key(
            "Whether images and audio files in extra paths and added folders are indexed; the "
            "provider has to be `gemini` and the model `gemini-embedding-2`."
        ),
    ] = False
    modalities: Annotated[
        tuple[str, ...],
        Key("Which of them: PNG and JPEG images, MP3 and WAV audio.", choices=(*MODALITIES, "all")),
    ] = ("all",)
    max_file_bytes: Annotated[
        int, Key("Larger images and audio files are skipped.", low=1, high=64 << 20)
    ] = 10 << 20

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
