"""Accuracy against total cost for searches and leaf protocols on one pocket model: table and figure of docs/search.md.

    python studies/searches.py run   [--jobs 16] [--level 5] [--tuning 60] [--questions 200] [--crossed 60]
    python studies/searches.py write
    python studies/searches.py heads [--tuning 40]    # how well heads order trajectories of one question, line by line

Tokens drawn and positions that an evaluator read are both charged. Every controller has a few settings; which one is
reported was decided on other questions, by the gain over leaf protocols of the same cost there. Controllers are
measured at three sizes on all questions with one evaluator, and with every other evaluator on the first ``--crossed``.
``run`` keeps each measurement under ``--cache`` and goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ramify.bank import Candidates, Proposal, Signal
from ramify.decide import BestOfN, Plurality, Rule, VerifierConstrained, WeightedVote
from ramify.decode import Temperature
from ramify.describe import method
from ramify.evidence import LogProduct, Minimum
from ramify.keys import generator
from ramify.ledger import Ledger, Tokens, Work
from ramify.metrics import Estimate, Percentile, bootstrap_means
from ramify.models import FinishedHead, Heads, Pocket, ProcessHead, ValueHead, decode_with
from ramify.run import Arm, Search, run_search
from ramify.search import (
    ABMCTS,
    DVTS,
    PUCT,
    UCT,
    Beam,
    BestFirst,
    BetaScores,
    Blend,
    Breadth,
    Controller,
    DepthFirst,
    Evaluator,
    Exponentiated,
    GumbelHalving,
    Likelihood,
    Particles,
    PerLength,
    Rebase,
    Restarts,
    Rollouts,
    SpeculativeRejection,
    Staged,
    ToDelimiter,
)
from ramify.tasks import Countdown, Sound, Verified
from ramify.tasks.pocket import encode
from ramify.types import Key, Leaf, Prefix, Question, Request

CAP, GROUP, MEMORY = 120, 60, 200_000  # tokens of a leaf; questions that share a memory of prefixes, of so many tokens
SETS = {"tuning": "search/tuning", "test": "search/test"}
STEP = ToDelimiter((int(encode("\n")[0]),), most=40)
MARK = "<!-- made by `python studies/searches.py write`; edit above this line only -->"


def spelled(question: Question) -> tuple[int, ...]:
    return tuple(Pocket("main").encode(question.prompt))


def convincing(leaf: Leaf, question: Question) -> float:
    """What the outcome head makes of a leaf."""
    return float(Heads("main").outcome([(*spelled(question), *leaf.tokens.tolist())]).values[0])


@method
class Read:
    """Rollouts whose utility reads one position of each completion, and charges it."""

    of: Rollouts

    def __call__(self, prefixes: Sequence[Prefix]) -> Signal:
        values, cost = self.of(prefixes)
        return Signal(values, np.asarray(cost) + self.of.m)

    def worst(self, prompt: int, tokens: int) -> Work:
        work = self.of.worst(prompt, tokens)
        return Work(generated=work.generated + self.of.m, calls=work.calls, evaluator_tokens=work.evaluator_tokens)


VALUE, LENGTH = ValueHead("main", shared=True), Exponentiated(PerLength(Likelihood()))
GUIDED = "value, then outcome"
ROLLOUTS = "two rollouts, outcome head"
EVALUATORS: dict[str, Evaluator] = {
    "likelihood": LENGTH,
    "value": VALUE,
    "process, minimum": ProcessHead("main", Minimum(), shared=True),
    "process, product": Exponentiated(ProcessHead("main", LogProduct(), shared=True)),
    "value and likelihood": Blend((VALUE, LENGTH), (0.7, 0.3)),
    GUIDED: Staged(VALUE, FinishedHead("main", shared=True)),
    ROLLOUTS: Read(
        Rollouts(decode_with(Pocket("main"), Temperature(1.0), batch=256), convincing, spelled, m=2, cap=CAP)
    ),
}

Sized = Callable[[int], Controller]  # size 1, 2 or 4: about 450 tokens a question, and twice and four times that
CONTROLLERS: dict[str, dict[str, Sized]] = {
    "beam": {
        "m = 4": lambda s: Beam(8 * s, 4, STEP),
        "m = 2": lambda s: Beam(8 * s, 2, STEP),
        "m = 2, refilled": lambda s: Beam(8 * s, 2, STEP, refill=True, depth=8),
    },
    "DVTS": {"m = 4": lambda s: DVTS(8 * s, 4, STEP), "m = 2": lambda s: DVTS(8 * s, 2, STEP)},
    "REBASE": {f"T = {t}": lambda s, t=t: Rebase(8 * s, t, STEP) for t in (0.1, 0.2, 0.5)},  # type: ignore[misc]
    "Tree of Thoughts": {"k = 4": lambda s: Breadth(2 * s, 4, STEP), "k = 2": lambda s: Breadth(4 * s, 2, STEP)},
    "best-first": {
        "4 children": lambda s: BestFirst(4, STEP, leaves=2 * s, most=12 * s),
        "2 children": lambda s: BestFirst(2, STEP, leaves=2 * s, most=24 * s),
    },
    "best-first until sure": {
        f"{w} children, {sure}": lambda s, w=w, sure=sure: BestFirst(w, STEP, most=48 * s // w, enough=sure)  # type: ignore[misc]
        for w in (2, 4)
        for sure in (0.8, 0.95)
    },
    "depth-first": {
        f"below {low}": lambda s, low=low: DepthFirst(3, STEP, low, leaves=s, most=16 * s)  # type: ignore[misc]
        for low in (0.1, 0.3)
    },
    "UCT": {
        f"c = {c}, {w} children": lambda s, c=c, w=w: UCT(c, w, STEP, most=48 * s // w)  # type: ignore[misc]
        for c in (0.03, 0.1, 0.3)
        for w in (2, 4)
    },
    "PUCT": {
        f"init = {c}": lambda s, c=c: PUCT(c, width=4, unit=STEP, most=12 * s)  # type: ignore[misc]
        for c in (0.03, 0.1, 0.3)
    },
    "Gumbel halving": {
        f"scale = {scale}": lambda s, scale=scale: GumbelHalving(  # type: ignore[misc]
            m=4, width=8, unit=STEP, most=12 * s, scale=scale, below=PUCT(0.1, width=4)
        )
        for scale in (1.0, 5.0, 20.0)
    },
    "AB-MCTS": {
        "normal": lambda s: ABMCTS(unit=STEP, most=48 * s),
        "beta": lambda s: ABMCTS(BetaScores(), unit=STEP, most=48 * s),
    },
    "particles": {f"ess = {ess}": lambda s, ess=ess: Particles(8 * s, STEP, ess=ess) for ess in (0.5, 1.0)},  # type: ignore[misc]
    "speculative rejection": {
        f"at {at}, keep {keep}": lambda s, at=at, keep=keep: SpeculativeRejection(12 * s, STEP, at, keep)  # type: ignore[misc]
        for at, keep in (((4,), 0.25), ((4,), 0.1), ((3, 4), 0.4))
    },
    "restarts": {
        f"at {at}, below {low}": lambda s, at=at, low=low: Restarts(12 * s, STEP, at, low, enough=0.8)  # type: ignore[misc]
        for at, low in (((4,), 0.1), ((4,), 0.3), ((2, 3, 4), 0.1))
    },
}
SIZES, MIDDLE = (1, 2, 4), 2
ORACLE = "beam with a sound check"
LEAVES = 64  # a question


class Job(NamedTuple):
    """One measurement: a controller with a setting and a size, and an evaluator, on a set of questions."""

    where: str  # tuning or test
    controller: str
    setting: str = ""
    size: int = MIDDLE
    evaluator: str = GUIDED

    @property
    def crossed(self) -> bool:
        """Whether it is one of every controller with every evaluator, on fewer questions."""
        return self.evaluator != GUIDED

    @property
    def name(self) -> str:
        words = "-".join(str(each) for each in self[1:])
        return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in words)

    @property
    def protocol(self) -> Search:
        check = Sound() if self.controller == ORACLE else None
        kind = CONTROLLERS["beam" if check else self.controller]
        controller = kind[self.setting or next(iter(kind))](self.size)
        return Search(controller, EVALUATORS[self.evaluator], check, cap=CAP, rule=BestOfN("score"))


# ------------------------------------------------------------------------------------------------------------ measuring


def asked(options: argparse.Namespace, where: str) -> list[Question]:
    """The questions of a set. Those of the other are left out, should a few be in both."""
    task, count = Countdown(options.level), options.tuning if where == "tuning" else options.questions
    mine = task.questions(count, run=SETS[where])
    if where == "tuning":
        return list(mine)
    others = {question.prompt for question in task.questions(options.tuning, run=SETS["tuning"])}
    return [question for question in mine if question.prompt not in others]


def asked_by(job: Job, options: argparse.Namespace) -> list[Question]:
    questions = asked(options, job.where)
    return questions[: options.crossed] if job.crossed else questions


def measured(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Accuracy of each question and its cost by stage, for one protocol run end to end."""
    if job.controller == "leaves":
        return leaves(job, options)
    model, task, protocol = Pocket(options.checkpoint), Countdown(options.level), job.protocol
    questions = asked_by(job, options)

    def parse(text: str, question: Question) -> str | None:
        return task.parse(text, question).answer

    proposal = Proposal(run=f"search/{job.name}", protocol="Temperature(t=1.0)", model=repr(model))
    arm = Arm(proposal, decode_with(model, Temperature(1.0), batch=256), lambda q: tuple(model.encode(q.prompt)))
    start, row = (
        time.process_time(),
        dict[str, list[Any]](right=[], tokens=[], read=[], leaves=[], shared=[], checks=[]),
    )
    for low in range(0, len(questions), GROUP):
        some = questions[low : low + GROUP]
        found = run_search(protocol, some, arm, Ledger("tokens", Tokens()), parse, memory=MEMORY)
        graded = zip(found.answers, task.references(some), strict=True)
        row["right"] += [float(task.grade(answer, gold)) for answer, gold in graded]
        row["tokens"] += [each.total for each in found.ledgers]
        row["read"] += [each.spent.signal for each in found.ledgers]
        row["leaves"] += [tree.columns.leaves for tree in found.trees]
        row["checks"].append(found.compute.checks.calls)
        shared = found.compute.sharing
        assert shared is not None
        row["shared"].append(
            [shared.computed, shared.represented, shared.evictions, shared.peak_tokens, shared.peak_bytes]
        )
    return {**row, "protocol": repr(protocol), "seconds": time.process_time() - start}


def leaves(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Independent leaves of every question: lengths, answers, the outcome head's scores, and which are right."""
    model, task, start = Pocket(options.checkpoint), Countdown(options.level), time.process_time()
    sampler, questions = decode_with(model, Temperature(1.0), batch=256), asked(options, job.where)
    row: dict[str, list[Any]] = {"right": [], "length": [], "answer": [], "outcome": [], "verified": []}
    for question, gold in zip(questions, task.references(questions), strict=True):
        prompt = tuple(model.encode(question.prompt))
        keys = [Key("search/leaves", question.id, i) for i in range(LEAVES)]
        drawn = sorted(sampler([Request(key, prompt, CAP) for key in keys]), key=lambda leaf: leaf.key)
        answers = [task.parse(leaf.text, question).answer for leaf in drawn]
        outcome = Heads("main").outcome([(*prompt, *leaf.tokens.tolist()) for leaf in drawn]).values
        row["right"].append([float(task.grade(answer, gold)) for answer in answers])
        row["length"].append([len(leaf.tokens) for leaf in drawn])
        row["answer"].append(answers)
        row["outcome"].append([None if math.isnan(each) else each for each in outcome.tolist()])
        row["verified"].append(Verified()(question, answers).tolist())
    return {**row, "seconds": time.process_time() - start}


def heads(options: argparse.Namespace, samples: int = 24) -> None:
    """Print the AUC within questions of each head after each line, over questions with right and wrong trajectories."""
    model, task, asking = Pocket(options.checkpoint), Countdown(options.level), asked(options, "tuning")
    sampler, found = decode_with(model, Temperature(1.0), batch=256), dict[tuple[str, int], list[float]]()
    for question, gold in zip(asking, task.references(asking), strict=True):
        prompt = tuple(model.encode(question.prompt))
        drawn = list(sampler([Request(Key("search/heads", question.id, i), prompt, CAP) for i in range(samples)]))
        texts = [tuple(leaf.tokens.tolist()) for leaf in drawn]
        right = np.array([bool(task.grade(task.parse(leaf.text, question).answer, gold)) for leaf in drawn])
        read, whole = Heads("main"), [(*prompt, *text) for text in texts]
        lines = {"value": [each[1:] for each in read.value(whole).score]}  # the prompt is a line, too
        lines["process"] = list(read.process([prompt] * samples, texts).score)
        lines["outcome"] = [np.array([each]) for each in read.outcome(whole).values]
        for head, scores in lines.items():
            for line in range(5):
                known = np.array([len(each) > line and not math.isnan(each[line]) for each in scores])
                here = np.array([each[line] for each, ok in zip(scores, known, strict=True) if ok])
                if 0 < right[known].sum() < known.sum():
                    found.setdefault((head, line + 1), []).append(auc(here, right[known]))
    for (head, line), each in sorted(found.items()):
        print(f"{head:8} line {line}: {np.mean(each):.3f} over {len(each)} questions")


def auc(score: np.ndarray, right: np.ndarray) -> float:
    """P(a right one scores above a wrong one), ties half."""
    above = score[right][:, None] - score[~right]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def work(task: tuple[Job, argparse.Namespace]) -> tuple[Job, float, float, float]:
    """Measure, unless that was done; accuracy, tokens a question and seconds of processor time."""
    job, options = task
    path = file(job, options)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(measured(job, options)))
        fresh.replace(path)
    row = json.loads(path.read_text())
    tokens = row["tokens"] if "tokens" in row else row["length"]
    return job, float(np.mean(row["right"])), float(np.mean(tokens)), row["seconds"]


def file(job: Job, options: argparse.Namespace) -> Path:
    count = options.tuning if job.where == "tuning" else options.crossed if job.crossed else options.questions
    return Path(options.cache) / f"{options.checkpoint}-{options.level}" / f"{job.where}-{count}" / f"{job.name}.json"


def together(jobs: list[Job], options: argparse.Namespace) -> None:
    """All jobs, a process each; what takes long first."""
    order = sorted(jobs, key=lambda job: (job.controller != "leaves", -job.size))
    tasks, spent = [(job, options) for job in order], 0.0
    with get_context("spawn").Pool(options.jobs) as pool:
        for job, right, tokens, seconds in pool.imap_unordered(work, tasks):
            spent += seconds
            label = f"{job.where:7} {job.controller:24} {job.setting:20} {job.size} {job.evaluator:22}"
            print(f"{label}{right:7.3f}{tokens:8.0f} tokens{seconds:7.0f} s", flush=True)
    print(f"{len(jobs)} jobs, {spent / 60:.0f} minutes of one core")


def run(options: argparse.Namespace) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come
    tuning = [Job("tuning", name, setting) for name, kind in CONTROLLERS.items() for setting in kind]
    together([Job("tuning", "leaves"), *tuning], options)
    chosen = choose(options)
    for name, setting in chosen.items():
        print(f"{name}: {setting}")
    together(test_jobs(chosen), options)


def test_jobs(chosen: dict[str, str]) -> list[Job]:
    """Every controller at every size, and at the middle one with every evaluator."""
    found = [Job("test", "leaves"), *(Job("test", ORACLE, chosen["beam"], size) for size in SIZES)]
    for name, setting in chosen.items():
        found += [Job("test", name, setting, size) for size in SIZES]
        found += [Job("test", name, setting, MIDDLE, each) for each in EVALUATORS if crossed(name, each)]
    return found


def crossed(controller: str, evaluator: str) -> bool:
    """Scores that are good enough by themselves are those of the outcome head; rollouts are dear, and for a few."""
    if evaluator == GUIDED or controller in ("best-first until sure", "restarts"):
        return False
    return evaluator != ROLLOUTS or controller in ("beam", "REBASE", "best-first")


# ------------------------------------------------------------------------------------------------- the leaf protocols


class Curve(NamedTuple):
    """A leaf protocol at growing numbers of leaves."""

    n: np.ndarray  # [K]
    tokens: np.ndarray  # [K] a question
    right: np.ndarray  # [K, Q] expected over orders of the leaves

    def at(self, tokens: float) -> np.ndarray:
        """``[Q]`` at this cost, between neighbours; at the ends if it is beyond them."""
        high = int(np.clip(np.searchsorted(self.tokens, tokens), 1, len(self.n) - 1))
        low, step = high - 1, self.tokens[high] - self.tokens[high - 1]
        share = float(np.clip((tokens - self.tokens[low]) / step, 0, 1)) if step else 1.0
        found: np.ndarray = (1 - share) * self.right[low] + share * self.right[high]
        return found


RULES: dict[str, tuple[Rule, bool]] = {  # and whether each leaf's outcome is read, a position each
    "plurality": (Plurality(), False),
    "best of N by the outcome head": (BestOfN("outcome"), True),
    "votes weighted by the outcome head": (WeightedVote("outcome"), True),
}
VERIFIED = "verifier-constrained (a program)"
SURE = (0.8, 0.95)


def curves(row: dict[str, Any], orders: int = 200) -> dict[str, Curve]:
    """Every leaf protocol, from the leaves of each question in ``orders`` random orders."""
    right, length = np.array(row["right"]), np.array(row["length"])
    outcome = np.array(row["outcome"], dtype=np.float64)
    total = right.shape[1]
    grid = np.array([n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if n <= total])
    found = {}
    rules: dict[str, tuple[Rule, bool]] = {**RULES, VERIFIED: (VerifierConstrained("verified"), False)}
    for name, (rule, reads) in rules.items():
        accuracy = np.stack([_expected(row, rule, n, orders) for n in grid])
        found[name] = Curve(grid, grid * (length.mean() + reads), accuracy)
    rng = generator(Key("studies/searches", "orders", 1))
    order = np.argsort(rng.random((orders, *right.shape)), axis=-1)
    for sure in SURE:
        found[f"until the outcome head says {sure}"] = _until(right, length, outcome, order, sure, grid)
    return found


def _expected(row: dict[str, Any], rule: Rule, n: int, orders: int) -> np.ndarray:
    """``[Q]`` the mean accuracy of a rule over n leaves, over random subsets of them."""
    found, rng = [], generator(Key("studies/searches", "orders", int(n)))
    for q, right in enumerate(np.array(row["right"])):
        answers: list[Any] = row["answer"][q]
        known = {answer: code for code, answer in enumerate(dict.fromkeys(a for a in answers if a is not None))}
        codes = np.array([known.get(answer, -1) for answer in answers])
        evidence = {name: np.array(row[name][q], dtype=np.float64) for name in ("outcome", "verified")}
        some = np.argsort(rng.random((orders, right.size)), axis=-1)[:, :n]
        winner = rule(Candidates(codes[some], evidence={name: each[some] for name, each in evidence.items()})).winner
        picked = right[some[np.arange(orders), np.maximum(winner, 0)]]
        found.append(np.where(winner >= 0, picked, 0.0).mean())
    return np.array(found)


def _until(
    right: np.ndarray, length: np.ndarray, outcome: np.ndarray, order: np.ndarray, sure: float, grid: np.ndarray
) -> Curve:
    """One leaf after the other until one is good enough, the best of them submitted; at most n."""
    score = np.where(np.isnan(outcome), -np.inf, outcome)
    score, right, length = (np.take_along_axis(each[None], order, axis=-1) for each in (score, right, length))
    enough = score >= sure
    first = np.where(enough.any(-1), enough.argmax(-1), score.shape[-1])  # [R, Q]
    accuracy, tokens = [], []
    for n in grid:
        used = np.minimum(first + 1, n)
        best = score[..., :n].argmax(-1)
        pick = np.where(first < n, first, best)
        accuracy.append(np.take_along_axis(right, pick[..., None], axis=-1)[..., 0].mean(0))
        spent = np.take_along_axis(np.cumsum(length + 1, axis=-1), used[..., None] - 1, axis=-1)
        tokens.append(spent.mean())
    return Curve(grid, np.array(tokens), np.stack(accuracy))


class Rival(NamedTuple):
    """A leaf protocol of a given cost, or of less where more leaves do it harm."""

    name: str
    tokens: float

    @staticmethod
    def of(found: dict[str, Curve], tokens: float) -> Rival:
        """The one with the highest accuracy here. A verifier by program is another kind of thing."""
        names = [name for name in found if name != VERIFIED]
        all_of_it = [Rival(name, tokens) for name in names]
        less = [Rival(name, each) for name in names for each in found[name].tokens.tolist() if each < tokens]
        return max([*all_of_it, *less], key=lambda rival: float(rival.right(found).mean()))

    def right(self, found: dict[str, Curve]) -> np.ndarray:
        """``[Q]``"""
        return found[self.name].at(self.tokens)


def choose(options: argparse.Namespace) -> dict[str, str]:
    """By controller, the setting with the largest gain over leaf protocols of its cost, on the tuning questions."""
    base = curves(load(Job("tuning", "leaves"), options))
    gains: dict[str, dict[str, float]] = {}
    for name, kind in CONTROLLERS.items():
        for setting in kind:
            row = load(Job("tuning", name, setting), options)
            tokens = float(np.mean(row["tokens"]))
            against = Rival.of(base, tokens).right(base)
            gains.setdefault(name, {})[setting] = float(np.mean(row["right"])) - float(against.mean())
    return {name: max(each, key=lambda setting: each[setting]) for name, each in gains.items()}


def load(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file(job, options).read_text())
    return found


# -------------------------------------------------------------------------------------------------------------- writing


def interval(values: np.ndarray) -> Estimate:
    """The mean with its 95 % percentile interval over questions."""
    return Percentile()(bootstrap_means(np.asarray(values), Key("docs/search", "bootstrap", 0), 4000))


class Line(NamedTuple):
    """What the table and the figure say about one job."""

    job: Job
    tokens: float
    read: float
    own: Estimate
    rival: str
    gain: Estimate


def lines(options: argparse.Namespace) -> tuple[list[Line], dict[str, Curve]]:
    """Every search against the leaf protocol that the tuning questions name as the best of its cost."""
    tuned, base = curves(load(Job("tuning", "leaves"), options)), curves(load(Job("test", "leaves"), options))
    found = []
    for job in done(options):
        row = load(job, options)
        tokens, right = float(np.mean(row["tokens"])), np.array(row["right"])
        rival = Rival.of(tuned, tokens)
        gain = interval(right - rival.right(base)[: right.size])
        found.append(Line(job, tokens, float(np.mean(row["read"])), interval(right), rival.name, gain))
    return found, base


def done(options: argparse.Namespace) -> list[Job]:
    """The searches of the test set that were measured; the others are named."""
    jobs = test_jobs(choose(options))[1:]
    for job in jobs:
        if not file(job, options).exists():
            print(f"not measured yet: {job}")
    return [job for job in jobs if file(job, options).exists()]


def table(found: list[Line]) -> Iterator[str]:
    yield "| controller | setting | evaluator | accuracy | 95 % | tokens | of these read | gain at equal cost | 95 % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in found:
        job, own, gain = each.job, each.own, each.gain
        yield (
            f"| {job.controller} ×{job.size} | {job.setting} | {job.evaluator} | {own.value:.3f} "
            f"| {own.low:.3f} to {own.high:.3f} | {each.tokens:.0f} | {each.read:.0f} "
            f"| {gain.value:+.3f} | {gain.low:+.3f} to {gain.high:+.3f} |"
        )


def leaf_table(base: dict[str, Curve]) -> Iterator[str]:
    yield "| leaf protocol | leaves at most | accuracy | 95 % | tokens |"
    yield "|---|---|---|---|---|"
    for name, curve in base.items():
        for n in (1, 8, 16, 32, 64):
            k = int(np.flatnonzero(curve.n == n)[0])
            own = interval(curve.right[k])
            yield f"| {name} | {n} | {own.value:.3f} | {own.low:.3f} to {own.high:.3f} | {curve.tokens[k]:.0f} |"


def sharing(options: argparse.Namespace) -> str:
    """What all searches of the test set computed together, against a tree without sharing."""
    rows = [np.array(load(job, options)["shared"]) for job in done(options)]
    computed, represented, evicted = np.concatenate(rows)[:, :3].sum(0).tolist()
    peak, size = np.concatenate(rows)[:, 3:].max(0).tolist()
    return (
        f"All searches of the tables together computed {computed:,} positions for {represented:,} that trees without "
        f"sharing have ({represented / computed:.1f} times as many); {GROUP} questions at a time held at most {peak:,} "
        f"tokens, {size / 2**20:,.0f} MiB, and {evicted:,} rows had to go."
    )


def verdict(found: list[Line]) -> str:
    """How many rows are ahead of leaf protocols of their cost and how many behind, and which are furthest."""
    ahead, behind = [e for e in found if e.gain.low > 0], [e for e in found if e.gain.high < 0]

    def named(each: Line) -> str:
        job, gain = each.job, each.gain
        label = f"{job.controller} ×{job.size} ({job.evaluator}; {each.own.value:.3f} for {each.tokens:.0f} tokens)"
        return f"{label}, {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"

    first, last = max(found, key=lambda e: e.gain.value), min(found, key=lambda e: e.gain.value)
    words = (
        f"Of {len(found)} searches {len(ahead)} are ahead of the best leaf protocol of their cost by an interval above "
    )
    words += (
        f"zero, and {len(behind)} behind by one below. The largest gain has {named(first)}, the smallest {named(last)}."
    )
    return words + f" With {len(found)} rows, one or two of each kind are to be expected by chance."


def write(options: argparse.Namespace) -> None:
    found, base = lines(options)
    count, page = base["plurality"].right.shape[1], Path(options.docs) / "search.md"
    plain = [each for each in found if each.job.controller != ORACLE]
    oracle = [each for each in found if each.job.controller == ORACLE]
    checks = [f"{np.sum(load(each.job, options)['checks']) / count:.0f}" for each in oracle]
    rivals = ", ".join(f"{name} ({sum(e.rival == name for e in plain)} rows)" for name in base if name != VERIFIED)
    head, _, _ = page.read_text().partition(MARK)
    parts = [
        MARK,
        "",
        "![accuracy against cost](search.svg)",
        "",
        verdict(plain),
        "",
        f"`{options.checkpoint}` on `{Countdown(options.level)!r}`, temperature 1, at most {CAP} tokens a leaf.",
        f"Settings were chosen on {options.tuning} questions and are reported on {count} others; rows with another",
        f'evaluator than "{GUIDED}" on the first {options.crossed} of these. Percentile intervals over questions. The',
        "gain is paired, against the leaf protocol of at most the same cost that was best on the tuning questions:",
        f"{rivals}.",
        "",
        *leaf_table(base),
        "",
        *table(plain),
        "",
        "Apart, because a solver is at work in them: every prefix is checked exactly, which no token pays for",
        f"({', '.join(checks)} checks a question).",
        "",
        *table(oracle),
        "",
        sharing(options),
        "",
    ]
    page.write_text(head + "\n".join(parts))
    figure(plain, base, Path(options.docs) / "search.svg")


def figure(found: list[Line], base: dict[str, Curve], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ramify"
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
    markers = "osD^vPX<>*hpd8H"
    panels, axes = plt.subplots(1, 2, figsize=(12, 5.6), sharey=True)
    dashes: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))
    for axis in axes:
        plain = [
            axis.plot(
                curve.tokens, curve.right.mean(1), color="0.55", linestyle=line, linewidth=1, zorder=0, label=name
            )[0]
            for (name, curve), line in zip(base.items(), dashes, strict=True)
        ]
        axis.set(xscale="log", xlabel="tokens a question: drawn, and read by evaluators")
    axes[1].add_artist(axes[1].legend(handles=plain, fontsize=6, loc="lower left", frameon=False))
    for i, name in enumerate(CONTROLLERS):
        mine = [each for each in found if each.job.controller == name and each.job.evaluator == GUIDED]
        style = {"color": colours[i % 7], "marker": markers[i], "markersize": 4, "linewidth": 1, "label": name}
        axes[0].plot([e.tokens for e in mine], [e.own.value for e in mine], **style)
    for i, evaluator in enumerate(EVALUATORS):
        mine = [each for each in found if each.job.size == MIDDLE and each.job.evaluator == evaluator]
        axes[1].scatter(
            [e.tokens for e in mine],
            [e.own.value for e in mine],
            color=colours[i],
            marker=markers[i],
            s=18,
            label=evaluator,
        )
    axes[0].set(ylabel="accuracy", title=f"controllers, three sizes each ({GUIDED})")
    axes[1].set(title="evaluators, every controller at the middle size")
    for axis in axes:
        handles = [each for each in axis.get_legend_handles_labels()[0] if each not in axis.lines[: len(base)]]
        axis.legend(handles=handles, fontsize=6, loc="lower right", frameon=False)
    panels.tight_layout()
    panels.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "write", "heads"))
    parser.add_argument("--checkpoint", default="main")
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--tuning", type=int, default=60, help="questions that settings are chosen on")
    parser.add_argument("--questions", type=int, default=200, help="questions that are reported")
    parser.add_argument("--crossed", type=int, default=60, help="of these, for every controller with every evaluator")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cache", default="build/search")
    parser.add_argument("--docs", default="docs")
    options = parser.parse_args()
    {"run": run, "write": write, "heads": heads}[options.command](options)


if __name__ == "__main__":
    main()
