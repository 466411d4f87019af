"""What searches make of a proposal: tables of docs/search-analysis.md.

    python studies/shift.py run   [--checkpoint main] [--level 5]
    python studies/shift.py write

Every execution of small searches on an enumerable model, keyed executions of larger ones, and executions on a pocket
model. Each part is kept under ``--cache`` when it is done, so ``run`` goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bench import Bench, Measure, Rows, measured_once, options_of, over_questions, tables_written

from ramify.bank import Proposal
from ramify.decide import BestOfN
from ramify.decode import Chain
from ramify.ledger import Ledger, Tokens
from ramify.metrics import (
    Joint,
    Law,
    Shift,
    joint_law,
    proposal_shift,
)
from ramify.models import Pocket, Tabular, ValueHead, decode_with, leaves
from ramify.run import Arm, Execution, Search, every_execution, executions
from ramify.search import (
    DVTS,
    UCT,
    Beam,
    BestFirst,
    Controller,
    Evaluator,
    Even,
    Exponentiated,
    Likelihood,
    Particles,
    PerLength,
    RawLikelihood,
    Rebase,
    Rollout,
    ToDelimiter,
    TopTokens,
)
from ramify.tasks import Countdown
from ramify.tasks.pocket import encode
from ramify.types import Key, Question

BEST, CAP = BestOfN("score"), 120
STEP = ToDelimiter((int(encode("\n")[0]),), most=40)
BEGIN, END = "<!-- begin: `python studies/shift.py write`, {} -->", "<!-- end: {} -->"
MEAN = Exponentiated(PerLength(Likelihood()))


def whole(text: str, _: Question) -> str:
    return text


# ------------------------------------------------------------------------------- laws of enumerable models, exactly

TINY = Tabular(("h", "t", "."), (((), (0.5, 0.3, 0.2)), ((0,), (0.125, 0.625, 0.25)), ((1,), (0.25, 0.25, 0.5))), eos=2)
LISTED: dict[str, Search] = {
    "best of 3 leaves": Search(Beam(3, 1, Rollout(), depth=1), Likelihood(), cap=3, rule=BEST),
    "beam, 1 live of 2": Search(Beam(2, 2), Likelihood(), cap=3, rule=BEST),
    "DVTS, 1 subtree of 2": Search(DVTS(2, 2), Likelihood(), cap=3, rule=BEST),
    "best-first, 1 leaf": Search(BestFirst(2, leaves=1), Likelihood(), cap=3, rule=BEST),
    "best-first, top 3 tokens": Search(BestFirst(3, TopTokens(2), bound=True), RawLikelihood(), cap=3, rule=BEST),
}


def proposal(model: Tabular, cap: int) -> Law:
    found = leaves(model, Chain(), (), cap)
    rows = zip(found.tokens.tolist(), found.log_q.tolist(), strict=True)
    return Law.exact({tuple(token for token in row if token >= 0): math.exp(log_q) for row, log_q in rows})


def arm_of(model: Tabular, run: str) -> Arm:
    return Arm(Proposal(run=run, protocol="Chain()"), decode_with(model, Chain(), batch=512), lambda _: ())


def listed(_: argparse.Namespace) -> dict[str, Any]:
    """Every execution of small searches, and what a thousand keyed ones would have said."""
    before, found = proposal(TINY, 3), {}
    for name, search in LISTED.items():
        every = every_execution(search, Question("q", ""), TINY, Chain())
        mass: dict[Any, float] = {}
        for each in every:
            mass[each.submitted] = mass.get(each.submitted, 0.0) + each.probability
        (drawn,) = executions(search, [Question("q", "")], arm_of(TINY, name), Ledger("x", Tokens()), whole, 1000)
        joint = joint_law([each.bank for each in every], [each.probability for each in every])
        exact, seen = proposal_shift(before, Law.exact(mass)), proposal_shift(before, Law.drawn(submitted(drawn)))
        found[name] = {
            "executions": len(every),
            "exact": numbers(before, exact, joint),
            "seen": numbers(before, seen, joint_law([each.bank for each in drawn])),
        }
    return found


def submitted(found: Sequence[Execution]) -> list[Any]:
    return [each.submitted for each in found]


def numbers(before: Law, shift: Shift, joint: Joint) -> dict[str, Any]:
    """A shift and a joint law as plain numbers."""
    dependence = joint.estimates()["dependence"]
    return {
        "any": proposal_shift(before, joint.one_leaf()).moved.value,
        "moved": [shift.moved.value, shift.moved.low, shift.moved.high],
        "floor": shift.floor,
        "gained": shift.gained.value,
        "given_up": shift.given_up.value,
        "lost": [shift.lost.value, shift.lost.low, shift.lost.high],
        "suppressed": shift.suppressed,
        "rare": shift.rare,
        "unseen": shift.unseen.high,
        "effective": list(shift.effective),
        "size": joint.mean_size,
        "distinct": joint.mean_distinct,
        "within": joint.within,
        "between": joint.between,
        "dependence": [dependence.value, dependence.low, dependence.high],
        "cooccurrence": joint.cooccurrence,
    }


MODELS = [Tabular.random(Key("shift", "tabular", i), vocabulary=4, order=2) for i in range(6)]
TABULAR_CAP, RUNS = 5, 400
SEARCHES: dict[str, Controller] = {
    "one leaf": Beam(1, 1, Rollout(), depth=1),
    "best of 8 leaves": Beam(8, 1, Rollout(), depth=1),
    "beam 8/2": Beam(8, 2),
    "DVTS 8/2": DVTS(8, 2),
    "REBASE 8": Rebase(8),
    "best-first, 4 leaves": BestFirst(2, leaves=4),
    "UCT, 16 expansions": UCT(0.2, 2, most=16),
    "particles 8": Particles(8),
}


def tabular(_: argparse.Namespace) -> dict[str, Any]:
    """Keyed executions of larger searches on random models, against the enumerated proposal."""
    found: dict[str, Any] = {}
    for name, controller in SEARCHES.items():
        search = Search(controller, MEAN, cap=TABULAR_CAP, rule=BEST)
        rows = []
        for i, model in enumerate(MODELS):
            arm = arm_of(model, f"tabular/{name}/{i}")
            (drawn,) = executions(search, [Question("q", "")], arm, Ledger("x", Tokens()), whole, RUNS)
            before = proposal(model, TABULAR_CAP)
            shift = proposal_shift(before, Law.drawn(submitted(drawn)))
            rows.append(numbers(before, shift, joint_law([each.bank for each in drawn])))
        found[name] = rows
        print(f"  {name:24s} moved {np.mean([row['moved'][0] for row in rows]):.3f}", flush=True)
    return found


# ----------------------------------------------------------------------------------------------- laws of a pocket model

ASKED, TIMES = 6, 32


def pocket_searches(name: str) -> dict[str, Search]:
    def search(controller: Controller, evaluator: Evaluator) -> Search:
        return Search(controller, evaluator, cap=CAP, rule=BEST)

    value = ValueHead(name, shared=True)
    return {
        "one leaf, drawn again": search(Beam(1, 1, Rollout(), depth=1), Even()),
        "best of 4 leaves, likelihood": search(Beam(4, 1, Rollout(), depth=1), MEAN),
        "best of 4 leaves, value": search(Beam(4, 1, Rollout(), depth=1), value),
        "beam 4/2, likelihood": search(Beam(4, 2, STEP), MEAN),
        "beam 4/2, value": search(Beam(4, 2, STEP), value),
        "REBASE 4, value": search(Rebase(4, unit=STEP), value),
        "particles 4, value": search(Particles(4, STEP), value),
    }


def pocket(options: argparse.Namespace) -> dict[str, Any]:
    """Answers of repeated executions on a pocket model, and of leaves drawn from the proposal."""
    task, found = Countdown(options.level), dict[str, Any]()
    bench = Bench(Pocket(options.checkpoint), task, task.questions(ASKED, run="shift"))
    one = Search(Beam(1, 1, Rollout(), depth=1), Even(), cap=CAP, rule=BEST)
    found["proposal"] = repeated(bench, one, "shift/proposal", 4 * TIMES)
    for name, search in pocket_searches(options.checkpoint).items():
        start = time.perf_counter()
        found[name] = repeated(bench, search, f"shift/{name}", TIMES)
        print(f"  {name:32s} {time.perf_counter() - start:6.1f} s", flush=True)
    return found


def repeated(bench: Bench, search: Search, run: str, times: int) -> list[dict[str, Any]]:
    """For each question: what was submitted, its utility and cost, and the answers of the banks."""
    found = executions(search, bench.asked, bench.arm(run), Ledger("tokens", Tokens()), bench.parse, times)
    return [
        {
            "answers": [each.answer for each in rows],
            "right": [bench.grade(each.answer, q) for each in rows],
            "banks": [each.answers for each in rows],
            "cost": [each.cost for each in rows],
        }
        for q, rows in enumerate(found)
    ]


# ---------------------------------------------------------------------------------------------------------- run, write

PARTS: dict[str, Measure] = {
    "listed": listed,
    "tabular": tabular,
    "pocket": pocket,
}


def table(*columns: str) -> Iterator[str]:
    yield row(*columns)
    yield row(*("---" for _ in columns)).replace(" ", "")


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def plain(value: float, digits: int = 3) -> str:
    return "–" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"  # no minus before zero


def two(one: float, other: float, digits: int = 1) -> str:
    return f"{plain(one, digits)}, {plain(other, digits)}"


def ends(triple: Sequence[float], sign: str = "") -> str:
    return "{:{s}.3f} ({:{s}.3f} to {:{s}.3f})".format(*triple, s=sign)


def rows_listed(found: dict[str, Any]) -> Iterator[str]:
    """Exact numbers beside what executions say of the same searches."""
    columns = (
        "search",
        "executions",
        "moved",
        "of 1,000 keyed (95 %)",
        "moved, any leaf",
        "lost",
        "never returned",
        "KL gained",
    )
    yield from table(*columns, "bank: size, distinct", "dependence")
    for name, each in found.items():
        exact, seen = each["exact"], each["seen"]
        laws = [plain(exact["moved"][0], 4), ends(seen["moved"]), plain(exact["any"], 4)]
        laws += [plain(exact["lost"][0], 4), plain(seen["lost"][0], 4)]
        bank = two(exact["size"], exact["distinct"], 2), plain(exact["dependence"][0])
        yield row(name, f"{each['executions']:,}", *laws, plain(exact["gained"], 4), *bank)


def rows_tabular(found: dict[str, Any]) -> Iterator[str]:
    """Means over models."""
    columns = ("search", "moved (floor)", "moved, any leaf", "KL gained", "never returned", "shown to be rarer")
    yield from table(*columns, "effective leaves", "bank: size, distinct", "two agree: within, between", "dependence")
    for name, rows in found.items():

        def mean(key: str, place: int = 0, rows: Any = rows) -> float:
            values = [each[key][place] if isinstance(each[key], list) else each[key] for each in rows]
            return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan

        yield row(
            name,
            f"{mean('moved'):.3f} ({mean('floor'):.3f})",
            plain(mean("any")),
            plain(mean("gained")),
            plain(mean("lost")),
            plain(mean("suppressed")),
            f"{mean('effective'):.1f} to {mean('effective', 1):.1f}",
            two(mean("size"), mean("distinct")),
            two(mean("within"), mean("between"), 3),
            plain(mean("dependence")),
        )


def rows_pocket(found: dict[str, Any]) -> Iterator[str]:
    """Means over questions; the gain in accuracy with its interval over questions."""
    before = found.pop("proposal")
    own = np.mean([np.mean(each["right"]) for each in before])
    columns = ("search", "moved (floor)", "p, nothing moved", "never returned", "two submissions agree")
    yield from table(*columns, "bank: size, distinct", "dependence", f"accuracy less {own:.3f}", "tokens")
    for name, rows in found.items():
        laws = [(Law.drawn(b["answers"]), Law.drawn(a["answers"])) for b, a in zip(before, rows, strict=True)]
        shifts = [proposal_shift(*pair, replicates=1999, run=f"{name} {q}") for q, pair in enumerate(laws)]
        null, seen = sum(each.null for each in shifts), sum(each.moved.value for each in shifts)
        p = (1 + (null >= seen - 1e-9).sum()) / (1 + null.size)  # of all questions together
        joints = [joint_law(each["banks"]) for each in rows]
        gains = [float(np.mean(a["right"]) - np.mean(b["right"])) for b, a in zip(before, rows, strict=True)]
        gain = over_questions(gains, "docs/search-analysis")
        depends = [each.dependence for each in joints if not math.isnan(each.dependence)]
        yield row(
            name,
            f"{np.mean([each.moved.value for each in shifts]):.3f} ({np.mean([each.floor for each in shifts]):.3f})",
            f"{p:.4f}",
            plain(float(np.mean([each.lost.value for each in shifts]))),
            "{:.3f} to {:.3f}".format(*np.mean([[law.agree for law in pair] for pair in laws], axis=0)),
            two(*np.mean([(each.mean_size, each.mean_distinct) for each in joints], axis=0)),
            plain(float(np.mean(depends)) if depends else math.nan),
            ends((gain.value, gain.low, gain.high), "+"),
            f"{np.mean([each['cost'] for each in rows]):.0f}",
        )


ROWS: dict[str, Rows] = {
    "listed": rows_listed,
    "tabular": rows_tabular,
    "pocket": rows_pocket,
}


def main() -> None:
    options = options_of(__doc__, "build/shift")
    if options.command == "run":
        measured_once(PARTS, options)
    else:
        tables_written(ROWS, BEGIN, END, options)


if __name__ == "__main__":
    main()
