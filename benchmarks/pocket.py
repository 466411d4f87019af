"""Tokens a second of the pocket engine against ``transformers.generate``, equal threads, on the CPU.

Both sample at temperature 1 from 64 rows; the engine draws through the package's own decoder, with keyed
streams and the full record of each token. Runs alternate and the best of each counts, because the machine may
be busy with other things.

    python benchmarks/pocket.py [--folder CHECKPOINT] [--batch 64] [--new 96] [--threads 2] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--folder", type=Path, help="a checkpoint; default: random, 6 layers, 256 wide")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--new", type=int, default=96, help="tokens a row")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--kv-heads", type=int, default=8, help="of the random checkpoint; query heads: 8")
options = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(options.threads)  # before the imports: NumPy and torch take their threads from here

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from ramify.decode import Chain, Side, Temperature, begin, step  # noqa: E402
from ramify.keys import streams  # noqa: E402
from ramify.models.pocket import Pocket  # noqa: E402
from ramify.types import Key  # noqa: E402


def random_checkpoint(folder: Path) -> Path:
    """A model the size of the largest pocket reasoner."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=options.kv_heads,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
        tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def sample(model: Pocket, prompts: list[list[int]], new: int) -> np.ndarray:
    """``new`` tokens a row at temperature 1: the engine and the decoder, nothing else."""
    operator = Chain(Temperature(1.0))
    side = Side(np.zeros((len(prompts), 0), np.int64), np.array(prompts), begin(operator, len(prompts)))
    stream = streams(Key("benchmark", "q", row) for row in range(len(prompts)))
    state, tokens = model.start(prompts), []
    for _ in range(new):
        drawn, side = step(operator, model.logits(state), side, stream)
        state = model.advance(state, drawn.token)
        tokens.append(drawn.token)
    return np.stack(tokens, axis=1)


def generate(model: Any, prompts: list[list[int]], new: int, samples: int) -> torch.Tensor:
    """The same with transformers, which reads ``samples`` copies of each prompt."""
    token = torch.tensor(prompts)
    with torch.inference_mode():
        out: torch.Tensor = model.generate(
            token,
            attention_mask=torch.ones_like(token),
            max_new_tokens=new,
            min_new_tokens=new,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            num_return_sequences=samples,
        )
    return out[:, token.shape[1] :]


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def product_rate(rows: int, inner: int, outer: int) -> float:
    """Floating-point operations a second of one matrix product in NumPy, all threads."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, inner), dtype=np.float32)
    w = rng.standard_normal((inner, outer), dtype=np.float32)
    return 2 * rows * inner * outer / min(seconds(lambda: x @ w) for _ in range(50))


def compare(title: str, model: Pocket, other: Any, prompts: list[list[int]], shared: bool, weights: int) -> None:
    batch, new = options.batch, options.new
    rows, samples = (prompts[:1], batch) if shared else (prompts, 1)
    ours, theirs = [], []
    sample(model, prompts, 2), generate(other, rows, 2, samples)
    for _ in range(options.rounds):
        ours.append(seconds(lambda: sample(model, prompts, new)))
        theirs.append(seconds(lambda: generate(other, rows, new, samples)))
    tokens = batch * new
    read = len(prompts[0]) * len({tuple(prompt) for prompt in prompts})
    print(f"{title}: pocket {tokens / min(ours):.0f} tok/s, transformers {tokens / min(theirs):.0f} tok/s")
    medians = float(np.median(theirs) / np.median(ours))
    print(f"    ratio of the best {min(theirs) / min(ours):.2f}, of the medians {medians:.2f}")
    print(f"    weights in the engine: {2 * weights * (tokens + read) / min(ours) / 1e9:.0f} GFLOP/s")


def main() -> None:
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or random_checkpoint(Path(scratch))
        other = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        model = Pocket(str(folder))
        print(f"loading: {seconds(lambda: model.start([[2]])):.3f} s")
        size, width = other.config.vocab_size, other.config.hidden_size
        weights = sum(p.numel() for p in other.parameters())
        rng = np.random.default_rng(0)
        for length in (32, 128):
            prompts = rng.integers(2, size, size=(options.batch, length)).tolist()
            title = f"{options.batch} samples of one prompt of {length}"
            compare(f"{options.batch} prompts of {length}", model, other, prompts, False, weights)
            compare(title, model, other, prompts[:1] * options.batch, True, weights)
        for shape in ((1024, 1024, 1024), (options.batch, width, 3 * width)):
            print(f"matrix products of {shape}: {product_rate(*shape) / 1e9:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
