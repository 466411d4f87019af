"""One job after the other, end to end, each kept in a file of its own."""

from __future__ import annotations

import argparse
import json
import math
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bench import Bench, whole

from ramify.decode import Temperature
from ramify.ledger import Ledger, Tokens
from ramify.models import Heads, Pocket, decode_with
from ramify.run import run_search
from ramify.tasks import Countdown, Verified
from ramify.types import Key, Question, Request
from searching.plan import CAP, GROUP, LEAVES, MEMORY, SETS, Job


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
    protocol, questions = job.protocol, asked_by(job, options)
    bench = Bench(Pocket(options.checkpoint), Countdown(options.level), questions)
    arm, start = bench.arm(f"search/{job.name}"), time.process_time()
    row = dict[str, list[Any]](right=[], tokens=[], read=[], leaves=[], shared=[], checks=[])
    for low in range(0, len(questions), GROUP):
        some = questions[low : low + GROUP]
        found = run_search(protocol, some, arm, Ledger("tokens", Tokens()), bench.parse, memory=MEMORY)
        row["right"] += [bench.grade(answer, q) for q, answer in enumerate(found.answers, low)]
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


def work(task: tuple[Job, argparse.Namespace]) -> tuple[Job, float, float, float]:
    """Measure, unless that was done; accuracy, tokens a question and seconds of processor time."""
    job, options = task
    path = file(job, options)
    if not path.exists():
        found = measured(job, options)
        with whole(path) as draft:
            draft.write_text(json.dumps(found))
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


def load(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file(job, options).read_text())
    return found
