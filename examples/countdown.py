"""The embedded reasoner on Countdown: sample, vote, select by likelihood, verify. A few seconds, no download.

python examples/countdown.py [--checkpoint mid] [--questions 16] [--samples 32]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from ramify.decode import SamplingCard, Temperature
from ramify.models import Pocket, decode_with
from ramify.tasks import Countdown
from ramify.types import Key, Leaf, Request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="mid")
    parser.add_argument("--questions", type=int, default=16)
    parser.add_argument("--samples", type=int, default=32)
    options = parser.parse_args()

    model, task, decoder = Pocket(options.checkpoint), Countdown(4), Temperature(1.0)
    asked = task.questions(options.questions, run="demo")
    requests = [
        Request(Key("demo", question.id, i), model.encode(question.prompt), cap=200)
        for question in asked
        for i in range(options.samples)
    ]
    start = time.perf_counter()
    bank: dict[str, dict[int, Leaf]] = {question.id: {} for question in asked}
    for leaf in decode_with(model, decoder, batch=128)(requests):
        bank[leaf.key.question][leaf.key.sample] = leaf
    took = time.perf_counter() - start

    rows = []
    for question in asked:
        leaves = [bank[question.id][i] for i in range(options.samples)]
        answers = [task.parse(leaf.text, question).answer for leaf in leaves]
        right = [task.verify(question, answer) for answer in answers]
        valid = Counter(answer for answer in answers if answer is not None)
        voted = valid.most_common(1)[0][0] if valid else None  # ties go to the answer seen first
        likeliest = int(
            np.argmax([leaf.logprob.sum() if a else -np.inf for leaf, a in zip(leaves, answers, strict=True)])
        )
        rows.append((float(np.mean(right)), task.verify(question, voted), right[likeliest], max(right)))
        if len(rows) == 1:
            share = f"{np.mean(right):.0%} of the samples right"
            print(f"question {question.prompt!r}: {len(valid)} different answers, {share}")
            for word, want in (("a right one", 1.0), ("a wrong one", 0.0)):
                shown = next((leaf for leaf, r in zip(leaves, right, strict=True) if r == want), None)
                if shown is not None:
                    print(f"\n{word} (log p {shown.logprob.sum():.2f}):\n{shown.text}", end="")
    one, vote, best, any_ = np.mean(rows, axis=0)
    tokens = sum(len(leaf.tokens) for leaves in bank.values() for leaf in leaves.values())
    print(f"\n{options.questions} questions, {options.samples} samples each, {tokens:,} tokens, {took:.1f} s\n")
    print(f"one sample                 {one:6.1%}")
    print(f"plurality of {options.samples:<3}           {vote:6.1%}")
    print(f"likeliest of {options.samples:<3}           {best:6.1%}")
    print(f"verified, any of {options.samples:<3}       {any_:6.1%}   (the question itself says what is right)")

    again = {leaf.key: leaf for leaf in decode_with(model, decoder, batch=7)(requests[::-1][:20])}
    same = all(np.array_equal(leaf.tokens, bank[key.question][key.sample].tokens) for key, leaf in again.items())
    print(f"\nthe last 20 again, in reverse order and batches of 7: {'the same leaves' if same else 'OTHER LEAVES'}\n")
    print(SamplingCard(decoder, eos=model.eos, cap=200, samples=options.samples, run="demo"))


if __name__ == "__main__":
    main()
