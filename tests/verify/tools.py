"""A judge that says what a function tells it to, with label probabilities as given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from ramify.types import SAMPLED, Leaf, Request, Top
from ramify.verify import Judge

# What is said to a prompt: the pieces of the reply, and by position the probabilities of what might have stood there.
Script = Callable[[str], tuple[list[str], Mapping[int, Mapping[str, float]]]]


class Scripted:
    """A sampler by script, which counts what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script, self.asked, self.words = script, list[str](), list[str]()

    def id(self, piece: str) -> int:
        if piece not in self.words:
            self.words.append(piece)
        return self.words.index(piece)

    def __call__(self, requests: Iterable[Request]) -> Iterator[Leaf]:
        for request in requests:
            assert isinstance(request.prompt, tuple)
            prompt = "".join(map(chr, request.prompt))
            self.asked.append(prompt)
            pieces, shown = self.script(prompt)
            pieces = pieces[: request.cap]
            ids, logprobs = np.full((len(pieces), request.top), -1), np.full((len(pieces), request.top), -np.inf)
            for place in range(len(pieces)):
                likely = shown.get(place, {pieces[place]: 1.0})
                for column, (piece, probability) in enumerate(list(likely.items())[: request.top]):
                    ids[place, column], logprobs[place, column] = self.id(piece), np.log(probability)
            zeros = np.zeros(len(pieces))
            yield Leaf(
                key=request.key,
                tokens=np.array([self.id(piece) for piece in pieces], dtype=np.int64),
                role=np.full(len(pieces), SAMPLED, dtype=np.int8),
                logprob=zeros,
                log_q=zeros,
                rank=np.ones(len(pieces), dtype=np.int64),
                support=np.ones(len(pieces), dtype=np.int64),
                fallback=zeros.astype(bool),
                ended="eos",
                top=Top(ids, logprobs) if request.top else None,
            )


def judge_by(script: Script, name: str = "scripted", context: int | None = None) -> tuple[Judge, Scripted]:
    sampler = Scripted(script)
    return Judge(
        name, sampler, lambda text: tuple(map(ord, text)), lambda token: sampler.words[token], context
    ), sampler
