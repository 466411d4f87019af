"""Tokens a second of the pocket engine against ``transformers.generate``, on the CPU, with equal cores.

Both sample ``--new`` tokens a row at temperature 1 from 64 rows, the end banned; the engine goes through the whole
token loop, with keyed streams and the full record of each token. It has the cores as threads of one process
(``workers=1``) or as processes (``workers=2``); "compiled" is the latter with attention compiled by numba, if there.
Runs alternate and the best of each counts, because the machine may be busy with other things; the medians are
printed beside it.

    python benchmarks/pocket.py [--folder CHECKPOINT] [--batch 64] [--new 96] [--cores 2] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

PROMPTS = (32, 128)  # tokens


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def product_rate(rows: int, inner: int, outer: int) -> float:
    """Floating-point operations a second of one matrix product in NumPy, all threads."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, inner), dtype=np.float32)
    w = rng.standard_normal((inner, outer), dtype=np.float32)
    return 2 * rows * inner * outer / min(seconds(lambda: x @ w) for _ in range(50))


def ours(model: Any, prompts: list[tuple[int, ...]], options: argparse.Namespace, workers: int) -> Callable[[int], int]:
    """Sample so many tokens a row with the engine; the number of tokens."""
    from ramify.decode import Ban, Chain, Temperature
    from ramify.models import decode_with
    from ramify.types import Key, Request

    sampler = decode_with(model, Chain(Temperature(1.0), Ban((model.eos,))), batch=options.batch, workers=workers)

    def sample(new: int) -> int:
        requests = [Request(Key("benchmark", "q", row), prompt, cap=new) for row, prompt in enumerate(prompts)]
        return sum(len(leaf.tokens) for leaf in sampler(requests))

    return sample


def theirs(model: Any, prompts: list[tuple[int, ...]]) -> Callable[[int], int]:
    """The same with transformers: samples of one prompt by ``num_return_sequences``."""
    import torch

    distinct = list(dict.fromkeys(prompts))
    token = torch.tensor(distinct)

    def sample(new: int) -> int:
        with torch.inference_mode():
            out: torch.Tensor = model.generate(
                token,
                attention_mask=torch.ones_like(token),
                max_new_tokens=new,
                min_new_tokens=new,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                num_return_sequences=len(prompts) // len(distinct),
            )
        return int(out[:, token.shape[1] :].numel())

    return sample


def compare(title: str, runs: dict[str, Callable[[int], int]], options: argparse.Namespace, work: float) -> None:
    """Alternate the runs; ``work`` is the floating-point operations of the weights that one of them needs."""
    import numpy as np

    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(2)
    for _ in range(options.rounds):
        for name, run in runs.items():
            times[name].append(seconds(lambda run=run: run(options.new)))  # type: ignore[misc]
    tokens, base = options.batch * options.new, times["transformers"]
    print(title)
    for name, took in times.items():
        best, middle = min(base) / min(took), float(np.median(base) / np.median(took))
        speed = f"{tokens / min(took):7.0f} tok/s, {work / min(took) / 1e9:4.0f} GFLOP/s in products with weights"
        print(f"    {name:14} {speed}, {best:.2f} times as fast (medians {middle:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default="main", help="a checkpoint of the package, or a folder")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--new", type=int, default=96, help="tokens a row")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.cores)  # before the imports: NumPy and torch take their threads from here
    import numpy as np
    import torch
    import transformers

    from ramify.models.pocket import Pocket

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(options.cores)
    model = Pocket(options.folder)
    print(f"loading: {seconds(lambda: model.start([[2]])):.3f} s")
    other = transformers.AutoModelForCausalLM.from_pretrained(model.folder, dtype=torch.float32).eval()
    size, width = other.config.vocab_size, other.config.hidden_size
    weights = sum(p.numel() for name, p in other.named_parameters() if "embed" not in name)
    rng = np.random.default_rng(0)
    for length in PROMPTS:
        different = [tuple(row) for row in rng.integers(2, size, size=(options.batch, length)).tolist()]
        for title, prompts in (("prompts", different), ("samples of one prompt", different[:1] * options.batch)):
            runs = {"transformers": theirs(other, prompts), "workers=1": ours(model, prompts, options, 1)}
            runs[f"workers={options.cores}"] = ours(model, prompts, options, options.cores)
            if find_spec("numba"):
                fast = Pocket(options.folder, kernel="numba")
                runs["compiled"] = ours(fast, prompts, options, options.cores)
            read = options.batch * options.new + length * len(set(prompts))
            compare(f"{options.batch} {title} of {length} tokens", runs, options, 2.0 * weights * read)
    for shape in ((1024, 1024, 1024), (options.batch, width, 3 * width)):
        print(f"matrix products of {shape}: {product_rate(*shape) / 1e9:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
