"""Gather training texts: `python -m training.gather --out DIR`."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from training.gather.collect import collect
from training.gather.generate import generate
from training.gather.generate.words import wordnet_sections
from training.gather.output import LARGEST, without_duplicates, write_output
from training.gather.overlap import OverlapFilter, evaluation_folder, evaluation_texts
from training.gather.registry import fetch, members
from training.gather.sources import SourceError, read_sources
from training.gather.standard_library import standard_library
from training.gather.values import Text

GENERATED = 130_000


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    cache = options.cache or options.out / "packages"
    try:
        texts = list(_small(options.seed) if options.small else _all(options.seed, cache))
    except SourceError as error:
        sys.stderr.write(f"gather: {error}\n")
        return 3
    unique = without_duplicates(texts)
    kept, dropped = _drop_overlap(unique)
    counts = {"duplicate": len(texts) - len(unique), "overlap": dropped}
    size = write_output(options.out, kept, options.seed, counts)
    if size > LARGEST:
        sys.stderr.write(
            f"gather: texts.jsonl.xz has {size:,} bytes, more than {LARGEST:,}."
            " Lower the limits in training/sources.json.\n"
        )
        return 1
    sys.stdout.write(f"gather: {len(kept)} texts in {options.out / 'texts.jsonl.xz'}\n")
    return 0


def _small(seed: int) -> Iterator[Text]:
    yield from standard_library(120, seed)
    yield from generate(200, seed)


def _all(seed: int, cache: Path) -> Iterator[Text]:
    for source in read_sources():
        texts = collect(source, cache, seed)
        sys.stderr.write(f"gather: {source.name}: {len(texts)} texts\n")
        yield from texts
    yield from standard_library(2000, seed)
    yield from generate(GENERATED, seed, _wordnet(cache))


def _wordnet(cache: Path) -> dict[str, tuple[str, ...]]:
    source = next(each for each in read_sources() if each.name == "wordnet-nouns")
    files = members(fetch(source, cache))
    data, index = (files[f"usr/share/wordnet/{name}.noun"] for name in ("data", "index"))
    return wordnet_sections(data.decode().splitlines(), index.decode().splitlines())


def _drop_overlap(texts: list[Text]) -> tuple[list[Text], int]:
    folder = evaluation_folder()
    if folder is None:
        sys.stderr.write(
            "gather: the evaluation sets were not found, so texts were not compared with them."
            " Set CLAWMARK_SHARED to the folder that contains them.\n"
        )
        return texts, 0
    known = OverlapFilter(evaluation_texts(folder))
    kept = [text for text in texts if not known.overlaps(text.text)]
    return kept, len(texts) - len(kept)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.gather", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the two result files")
    parser.add_argument("--cache", type=Path, help="folder for downloads (default: OUT/packages)")
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    parser.add_argument(
        "--small", action="store_true", help="about 300 texts, without network, for a quick test"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
