"""Writes the files that ship inside the package, from what the trainings saved.

    python -m training.export --static static.npz --student student.npz --work FOLDER

It prints the values that belong into the source code: the SHA-256 of each file and the key of its
vectors. `--out` names another folder than the package's.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import torch

from clawmark.embed.local import static, weights
from training.files import encoder_file, table_file

DATA = Path(static.PATH).parent


def key_of(provider: str, model: str, sha256: str, pooling: str) -> str:
    return hashlib.sha256("\n".join((provider, model, sha256, pooling)).encode()).hexdigest()


def export_static(source: Path, folder: Path) -> None:
    saved = np.load(source)
    data = table_file(saved["steps"], saved["factors"], str(saved["pieces"]).split("\n"))
    (folder / "static.bin").write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    print(f"static.bin: {len(data)} bytes\n  SHA256 {sha256}")
    print(f"  key {key_of(static.PROVIDER, static.MODEL, sha256, static.POOLING)}")


def export_student(source: Path, work: Path, folder: Path) -> None:
    tokens = torch.load(work / "tokens.pt", weights_only=False)
    data = encoder_file(dict(np.load(source)), tokens["vocabulary"], tokens["merges"])
    (folder / "encoder.bin").write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    print(f"encoder.bin: {len(data)} bytes\n  SHA256 {sha256}")
    print(f"  key {key_of(weights.PROVIDER, weights.OWN.name, sha256, weights.POOLING)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--static", type=Path)
    parser.add_argument("--student", type=Path)
    parser.add_argument("--work", type=Path, help="the folder with tokens.pt")
    parser.add_argument("--out", type=Path, default=DATA)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.static:
        export_static(given.static, given.out)
    if given.student:
        export_student(given.student, given.work, given.out)


if __name__ == "__main__":
    main()
