"""Write the texts and the manifest."""

import hashlib
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from training.gather.values import Text

LARGEST = 20 * 1024 * 1024


def without_duplicates(texts: Iterable[Text]) -> list[Text]:
    """Keep the first of the texts that differ only in case, spaces and punctuation."""
    seen: set[bytes] = set()
    kept = []
    for text in texts:
        plain = " ".join(re.findall(r"\w+", text.text.lower()))
        key = hashlib.blake2b(plain.encode(), digest_size=12).digest()
        if key not in seen:
            seen.add(key)
            kept.append(text)
    return kept


def write_output(folder: Path, texts: list[Text], seed: int, dropped: dict[str, int]) -> int:
    """Write the texts in random order and the manifest; return the size of the compressed file."""
    texts = list(texts)
    random.Random(seed).shuffle(texts)
    lines = "".join(
        json.dumps(
            {"text": each.text, "source": each.source, "kind": each.kind}, ensure_ascii=False
        )
        + "\n"
        for each in texts
    ).encode()
    folder.mkdir(parents=True, exist_ok=True)
    packed = lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME)
    (folder / "texts.jsonl.xz").write_bytes(packed)
    manifest = {
        "seed": seed,
        "texts": len(texts),
        "words": sum(len(each.text.split()) for each in texts),
        "compressed_bytes": len(packed),
        "sha256": hashlib.sha256(lines).hexdigest(),
        "kinds": dict(sorted(Counter(each.kind for each in texts).items())),
        "dropped": dropped,
        "sources": _per_source(texts),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    return len(packed)


def _per_source(texts: list[Text]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for text in texts:
        row = counts.setdefault(text.source, {"texts": 0, "bytes": 0})
        row["texts"] += 1
        row["bytes"] += len(text.text.encode())
    return dict(sorted(counts.items()))
