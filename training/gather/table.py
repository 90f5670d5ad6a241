"""Write `training/LICENCES.md` and the counts in `sources.json` from the manifest of a run.

`python -m training.gather.table DIR/manifest.json`
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from training.gather.sources import SOURCES, Source, read_sources

LICENCES = SOURCES.parent / "LICENCES.md"
_REGISTRIES = {"pypi": "PyPI", "npm": "npm", "debian": "Debian"}
_OWN = (
    ("python-standard-library", "Python's standard library", "PSF-2.0", "`LICENSE.txt` of Python"),
    ("templates", "written by Clawmark's own grammars", "MIT", "`LICENSE` of Clawmark"),
)
_INTRODUCTION = """# Where the training text comes from

The models are distilled from an Apache-2.0 teacher with the texts below. Each licence is
permissive, public domain, or Creative Commons with attribution. The column "evidence" names the
file of the package that shows the licence; gathering stops when that file is missing.
`python -m training.gather.table` writes this page from the manifest of a run.

"""


def table(sources: list[Source], manifest: Mapping[str, object]) -> str:
    """Return the page as Markdown."""
    counts = manifest["sources"]
    dropped = manifest["dropped"]
    assert isinstance(counts, dict) and isinstance(dropped, dict)
    lines = [
        "| source | package | licence | evidence | attribution | texts |",
        "|---|---|---|---|---|--:|",
    ]
    for source in sources:
        package = f"{_REGISTRIES[source.registry]}: `{source.package}` {source.version}"
        texts = counts.get(source.name, {}).get("texts", 0)
        lines.append(
            f"| {source.name} | {package} | {source.licence} | `{source.evidence}` |"
            f" {source.attribution} | {texts:,} |"
        )
    for name, package, licence, evidence in _OWN:
        texts = counts.get(name, {}).get("texts", 0)
        lines.append(f"| {name} | {package} | {licence} | {evidence} | | {texts:,} |")
    return _INTRODUCTION + "\n".join(lines) + "\n\n" + _summary(manifest, dropped)


def record_counts(path: Path, manifest: Mapping[str, object]) -> None:
    """Write the number of texts of each source into the list of sources."""
    counts = manifest["sources"]
    assert isinstance(counts, dict)
    listed = json.loads(path.read_text("utf-8"))
    for row in listed["sources"]:
        row["texts"] = counts.get(row["name"], {}).get("texts", 0)
    path.write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _summary(manifest: Mapping[str, object], dropped: Mapping[str, int]) -> str:
    return (
        f"{manifest['texts']:,} texts with {manifest['words']:,} words; SHA-256 of the lines"
        f" `{manifest['sha256']}`. {dropped['duplicate']:,} duplicates were dropped, and"
        f" {dropped['overlap']:,} texts that share twelve words in a row with an evaluation set,"
        " or are equal to one of its shorter texts.\n"
    )


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m training.gather.table DIR/manifest.json\n")
        return 2
    manifest = json.loads(Path(arguments[0]).read_text("utf-8"))
    record_counts(SOURCES, manifest)
    LICENCES.write_text(table(read_sources(), manifest), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
