"""Decoding on a model small enough to enumerate: what each protocol proposes, exactly, and what its draws look like.

python examples/decoding.py
"""

from __future__ import annotations

import numpy as np

from ramify.decode import Chain, Mirostat, Operator, Parallel, SamplingCard, Temperature, TopK, TopP, Typical, Xtc
from ramify.models import Tabular, decode_with, leaves
from ramify.types import Key, Request

VOCABULARY = ("yes", "no", "maybe", ".")
# The next word depends on the last one; a row not listed falls back to the empty context.
MODEL = Tabular(
    VOCABULARY,
    rows=(
        ((), (0.45, 0.30, 0.15, 0.10)),
        ((0,), (0.10, 0.20, 0.10, 0.60)),
        ((1,), (0.25, 0.05, 0.20, 0.50)),
        ((2,), (0.35, 0.35, 0.05, 0.25)),
    ),
    eos=3,
)
CAP, SAMPLES = 4, 20_000

PROTOCOLS: dict[str, Operator] = {
    "the model itself": Chain(),
    "temperature 0.5": Temperature(0.5),
    "top-k 3 then top-p 0.8": Chain(TopK(3), TopP(0.8)),
    "top-p 0.8 then top-k 3": Chain(TopP(0.8), TopK(3)),
    "top-k 3 beside top-p 0.8": Parallel(TopK(3), TopP(0.8)),
    "typical 0.4": Typical(0.4),
    "XTC, a coin at every token": Xtc(0.5, 0.2),
    "mirostat, a state a trace": Mirostat(tau=1.2, eta=0.5),
}


def main() -> None:
    print(f"every leaf of at most {CAP} tokens, its exact probability, and how often {SAMPLES:,} draws gave it\n")
    print(f"{'protocol':<28}{'leaves':>7}{'sum q':>15}{'E[length]':>11}{'max |draws - q|':>17}   likeliest leaf")
    for name, operator in PROTOCOLS.items():
        exact = leaves(MODEL, operator, (), CAP)
        q = np.exp(exact.log_q)
        index = {tuple(leaf): i for i, leaf in enumerate(exact.tokens.tolist())}
        drawn = np.zeros(len(q))
        requests = (Request(Key("demo", "weather", i), prompt=(), cap=CAP) for i in range(SAMPLES))
        for leaf in decode_with(MODEL, operator, batch=2048)(requests):
            drawn[index[tuple(leaf.tokens.tolist()) + (-1,) * (CAP - len(leaf.tokens))]] += 1 / SAMPLES
        length = float((q * (exact.tokens >= 0).sum(-1)).sum())
        mode = exact.tokens[np.argmax(q)]
        text = f"{MODEL.text(mode[mode >= 0].tolist())!r} {q.max():.3f}"
        print(f"{name:<28}{len(q):>7}{q.sum():>15.12f}{length:>11.3f}{np.abs(drawn - q).max():>17.4f}   {text}")
    print("\nthe sampling card of the last protocol, printed from its values:\n")
    print(SamplingCard(PROTOCOLS["mirostat, a state a trace"], eos=MODEL.eos, cap=CAP, samples=SAMPLES, run="demo"))


if __name__ == "__main__":
    main()
