"""The same checkpoints behind the same protocol in torch: how far `HF` is from the embedded engine.

    python studies/pocket_hf.py [--device cuda] [--questions 8] [--samples 4]

For each checkpoint it samples with the embedded engine, reads the same texts with ``HF`` and prints the largest
difference of two logits on the way; then it samples with ``HF`` under the same keys and prints how many leaves are
the same, token for token.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ramify.decode import Chain
from ramify.models import Pocket, decode_with
from ramify.models.hf import HF
from ramify.models.pocket.model import DATA
from ramify.tasks.pocket import Arithmetic, Countdown, Modular
from ramify.types import Key, Leaf, Request

TASKS = (Arithmetic(8), Modular(12), Countdown(5))


def leaves(model: Any, requests: list[Request]) -> dict[Key, Leaf]:
    """What a model says under the given keys."""
    return {leaf.key: leaf for leaf in decode_with(model, Chain(), batch=128)(requests)}


def furthest(ours: Any, theirs: Any, texts: list[tuple[int, ...]], first: int) -> float:
    """The largest difference of two logits while both read ``texts``, from token ``first`` on."""
    a, b = ours.start([text[:first] for text in texts]), theirs.start([text[:first] for text in texts])
    gap = 0.0
    for position in range(first, max(map(len, texts))):
        rows = [i for i, text in enumerate(texts) if len(text) > position]
        gap = max(gap, float(np.abs(ours.logits(a) - theirs.logits(b))[rows].max()))
        token = [text[min(position, len(text) - 1)] for text in texts]  # a row that is over repeats its end
        a, b = ours.advance(a, token), theirs.advance(b, token)
    return gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4)
    options = parser.parse_args()
    for name in sorted(folder.parent.name for folder in DATA.glob("*/config.json")):
        ours, theirs = Pocket(name), HF(str(DATA / name), options.device)
        asked = [question for task in TASKS for question in task.questions(options.questions)]
        requests = [
            Request(Key("hf", question.id, i), ours.encode(question.prompt), cap=200)
            for question in asked
            for i in range(options.samples)
        ]
        mine, other = leaves(ours, requests), leaves(theirs, requests)
        texts = [(*request.ids, *mine[request.key].tokens.tolist()) for request in requests]
        gap = furthest(ours, theirs, texts, min(len(request.prompt) for request in requests))
        same = [np.array_equal(mine[key].tokens, other[key].tokens) for key in mine]
        print(
            f"{name:<12} {options.device}: |logit difference| <= {gap:.1e}; {sum(same)} of {len(same)} leaves the same"
        )


if __name__ == "__main__":
    main()
