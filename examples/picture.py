"""A beam search of the embedded reasoner on Countdown, drawn. A few seconds, no download.

python examples/picture.py [--question 2] [--svg tree.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ramify.bank import Proposal
from ramify.decide import BestOfN
from ramify.decode import Temperature
from ramify.ledger import Ledger, Tokens
from ramify.models import Pocket, ValueHead, decode_with
from ramify.run import Arm, Search, run_search
from ramify.search import Beam, ToDelimiter, svg_picture, text_picture
from ramify.tasks import Countdown, Sound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question", type=int, default=2)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()

    model, task = Pocket("main"), Countdown(4)
    question = task.questions(options.question + 1, run="docs/search")[-1]
    arm = Arm(Proposal(run="picture"), decode_with(model, Temperature(1.0)), lambda q: tuple(model.encode(q.prompt)))
    line = ToDelimiter(tuple(model.encode("\n")), most=24)
    protocol = Search(Beam(n=9, m=3, unit=line), ValueHead("main"), Sound(), cap=120, rule=BestOfN("score"))
    ledger = Ledger("tokens", Tokens(), limit=4000)
    found = run_search(protocol, [question], arm, ledger, lambda text, q: task.parse(text, q).answer)

    [tree], returned = found.trees, [row for row in found.returned if row >= 0]
    print(f"{question.prompt!r} -> {found.answers[0]}, {found.ledgers[0].total:,} tokens charged\n")
    print(text_picture(tree, model.text, returned=returned, width=44))
    if options.svg:
        options.svg.write_text(svg_picture(tree, model.text, returned=returned, most=30) + "\n")


if __name__ == "__main__":
    main()
