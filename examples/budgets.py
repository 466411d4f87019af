"""Six protocols under one budget on the embedded reasoner: accuracy, tokens, and records that decide again.

python examples/budgets.py [--checkpoint small] [--questions 32] [--tokens 20000]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ramify.bank import Proposal
from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.evidence import mean_logprob
from ramify.ledger import Ledger, Tokens
from ramify.metrics import Percentile, bootstrap_means
from ramify.models import Pocket, decode_with
from ramify.run import Arm, Leaves
from ramify.run.record import record_leaves
from ramify.run.replay import redecide
from ramify.stop import AdaptiveConsistency, Esc
from ramify.tasks import Countdown
from ramify.types import Key, Question

CAP = 120
PROTOCOLS = {
    "one sample": Leaves(n=1, cap=CAP),
    "plurality of 16": Leaves(n=16, cap=CAP),
    "adaptive consistency": Leaves(n=16, cap=CAP, stop=AdaptiveConsistency(0.95)),
    "the uncertain first": Leaves(n=32, cap=CAP, stop=AdaptiveConsistency(0.95), order="uncertain"),
    "ESC, windows of 4": Leaves(n=16, cap=CAP, stop=Esc(4)),
    "likeliest of 16": Leaves(n=16, cap=CAP, rule=BestOfN("logp"), evidence=(("logp", mean_logprob()),)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="small")
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument(
        "--tokens", type=int, default=20_000, help="the budget of each protocol, all questions together"
    )
    options = parser.parse_args()

    model, task = Pocket(options.checkpoint), Countdown(4)
    questions = task.questions(options.questions, run="demo/protocols")

    def parse(text: str, question: Question) -> str | None:
        return task.parse(text, question).answer

    proposal = Proposal(run="demo", protocol="Temperature(t=1.0)", model=repr(model))
    arm = Arm(proposal, decode_with(model, Temperature(1.0), batch=128), lambda q: tuple(model.encode(q.prompt)))
    print(f"{options.questions} questions, {options.tokens:,} tokens for each protocol\n")
    print(f"{'':<24}{'right':>6}   {'95 % over questions':<22}{'tokens':>8}{'leaves':>8}   decided again")
    for name, protocol in PROTOCOLS.items():
        path = Path(tempfile.mkdtemp()) / "run"
        ledger = Ledger("tokens", Tokens(), limit=options.tokens)
        run = record_leaves(path, protocol, questions, [arm], ledger, parse, ahead=128)
        right = [float(task.verify(q, answer)) for q, answer in zip(questions, run.answers, strict=True)]
        found = Percentile()(bootstrap_means(np.array(right), Key("demo", "bootstrap", 0), 2000))
        same = "exactly" if redecide(path, parse).exact else "DIFFERENTLY"
        spread = f"{found.low:.2f} to {found.high:.2f}"
        leaves = int(run.bank.drawn.sum())
        print(f"{name:<24}{found.value:>6.2f}   {spread:<22}{run.ledger.total:>8,}{leaves:>8}   {same}")


if __name__ == "__main__":
    main()
