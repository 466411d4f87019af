"""Accuracy against tokens for several protocols on one pocket model: the table and figure of docs/run.md.

    python studies/protocols.py run   [--checkpoint small] [--questions 200]
    python studies/protocols.py write

Every protocol runs end to end, with candidates of its own, on the same held-out questions; ``run`` keeps what it
measured under ``--cache`` and goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench import Bench, Kept, between, over_questions

from ramify.decide import BestOfN, FilteredVote
from ramify.decode import Ban, Chain, Temperature
from ramify.evidence import deepconf_lowest, mean_logprob
from ramify.ledger import Ledger, Tokens
from ramify.models import Pocket, decode_with
from ramify.run import BudgetForcing, Leaves, OnlineConfidence, Revise, Sequential, run_leaves, run_sequential
from ramify.stop import AdaptiveConsistency, DirichletConsistency, Esc
from ramify.tasks import Countdown
from ramify.types import Question

CAP, N, PAGE = 120, 24, "docs/run"
TASK = Countdown(4)
MARK = "<!-- made by `python studies/protocols.py write`; edit above this line only -->"


def parse(text: str, question: Question) -> str | None:
    return TASK.parse(text, question).answer


def verified(question: Question, text: str) -> bool:
    """A check that needs no reference: the expression is legal and reaches the target."""
    return bool(TASK.verify(question, parse(text, question)))


LEAVES: dict[str, Leaves] = {
    "one sample": Leaves(n=1, cap=CAP),
    **{f"plurality of {n}": Leaves(n=n, cap=CAP) for n in (4, 8, 16, N)},
    "adaptive consistency": Leaves(n=N, cap=CAP, stop=AdaptiveConsistency(0.95)),
    "Dirichlet stop": Leaves(n=N, cap=CAP, stop=DirichletConsistency(0.95)),
    "ESC, windows of 4": Leaves(n=N, cap=CAP, stop=Esc(4)),
    "best mean log p of 8": Leaves(n=8, cap=CAP, rule=BestOfN("logp"), evidence=(("logp", mean_logprob()),)),
    "DeepConf, offline": Leaves(
        n=N, cap=CAP, top=5, rule=FilteredVote("lowest", keep=0.5), evidence=(("lowest", deepconf_lowest(5, 16)),)
    ),
    "DeepConf, online": Leaves(n=N, cap=CAP, top=5, within=OnlineConfidence(warmup=8, eta=50, window=16, k=5)),
}
SEQUENTIAL: dict[str, Callable[[Any], Sequential]] = {
    **{
        f"budget forcing, {waits} wait{'s' * (waits != 1)}": lambda wait, waits=waits: Sequential(  # type: ignore[misc]
            BudgetForcing(waits=waits, wait=wait, most=480), cap=500
        )
        for waits in (1, 2, 3)
    },
    "verify and revise, 4 rounds": lambda wait: Sequential(
        Revise(rounds=4, critique=wait, cap=CAP, check=verified), cap=500
    ),
}


def measured(name: str, checkpoint: str, count: int) -> dict[str, Any]:
    """Accuracy of each question and its cost in tokens, for one protocol run end to end."""
    model, asked = Pocket(checkpoint), TASK.questions(count, run="protocols")
    bench, ledger = Bench(model, TASK, asked, batch=128), Ledger("tokens", Tokens())
    arm = bench.arm(f"protocols/{name}", top=5, stage="raw")
    start = time.perf_counter()
    surplus = 0.0
    if name in LEAVES:
        run = run_leaves(LEAVES[name], asked, [arm], ledger, parse, ahead=128)
        answers, costs, surplus = list(run.answers), list(run.costs), run.surplus.total
    else:
        held = [decode_with(model, Chain(Temperature(1.0), Ban((model.eos,))), batch=128)]
        protocol = SEQUENTIAL[name](tuple(model.encode("wait\n")))
        found = run_sequential(protocol, asked, [arm], ledger, parse, text=model.text, end=model.eos, held=held)
        answers, costs = [each.answer for each in found], [each.ledger.total for each in found]
    right, took = bench.graded(answers), time.perf_counter() - start
    return {"right": right, "tokens": costs, "surplus": surplus, "seconds": took}


def run(options: argparse.Namespace) -> None:
    kept = Kept(cache(options))
    for name in (*LEAVES, *SEQUENTIAL):
        each = kept(name, measured, name, options.checkpoint, options.questions)
        right, tokens = np.mean(each["right"]), np.mean(each["tokens"])
        print(f"{name:<30}{right:8.3f}{tokens:10.0f} tokens{each['seconds']:8.0f} s", flush=True)


def cache(options: argparse.Namespace) -> Path:
    return Path(options.cache) / f"{options.checkpoint}-{options.questions}.json"


def rows(found: dict[str, Any]) -> Iterator[str]:
    base = found[f"plurality of {N}"]
    yield "| protocol | accuracy | 95 % | tokens a question | against plurality of 24 | 95 % |"
    yield "|---|---|---|---|---|---|"
    for name, each in found.items():
        own = over_questions(each["right"], PAGE)
        gain = over_questions(np.subtract(each["right"], base["right"]), PAGE)
        yield (
            f"| {name} | {own.value:.3f} | {own.low:.3f} to {own.high:.3f} | {np.mean(each['tokens']):.0f} "
            f"| {gain.value:+.3f} | {gain.low:+.3f} to {gain.high:+.3f} |"
        )


def write(options: argparse.Namespace) -> None:
    found = json.loads(cache(options).read_text())
    page = options.docs / "run.md"
    title = (
        f"`{options.checkpoint}` on `{TASK!r}`: {options.questions} held-out questions, temperature 1, at most {CAP}"
    )
    title += " tokens a leaf. Percentile intervals over questions; the last column is paired."
    page.write_text(between(page.read_text(), MARK, "", ["", title, "", *rows(found)]))
    figure(found, options.docs / "protocols.svg")


def figure(found: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ramify"
    figure, axes = plt.subplots(figsize=(8, 4.6))
    for name, each in found.items():
        own = over_questions(each["right"], PAGE)
        x, y = np.mean(each["tokens"]), own.value
        marker = "s" if name in SEQUENTIAL else "o"
        axes.errorbar(
            x, y, yerr=[[y - own.low], [own.high - y]], marker=marker, markersize=5, linewidth=0.8, color="0.3"
        )
        axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=7)
    plain = [found[name] for name in ("one sample", *(f"plurality of {n}" for n in (4, 8, 16, N)))]
    axes.plot([np.mean(e["tokens"]) for e in plain], [np.mean(e["right"]) for e in plain], color="0.7", zorder=0)
    axes.set(xscale="log", xlabel="tokens a question, everything charged", ylabel="accuracy")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "write"))
    parser.add_argument("--checkpoint", default="small")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--cache", type=Path, default=Path("build/protocols"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    {"run": run, "write": write}[options.command](options)


if __name__ == "__main__":
    main()
