"""The differences and counts that docs/pocket.md states under "What to look for", from what pocket_table.py cached.

python studies/pocket_findings.py
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from pocket_table import TASKS, Cell, Job, cells, interval, rules

from ramify.tasks.pocket import EFFORTS, decode

NAMED = (
    "mid-modular-3-medium",
    "mid-countdown-5-medium",
    "slip-arithmetic-4-medium-claims",
    "slip-arithmetic-7-medium-claims",
    "early-arithmetic-2-medium",
    "tiny-arithmetic-6-medium",
    "tiny-modular-5-medium",
    "main-modular-12-medium",
    "main-countdown-5-medium",
)


def against_one_sample(name: str, cell: Cell) -> None:
    """Every rule's accuracy, minus that of one sample, with its interval over questions."""
    one = cell.correct.mean(axis=1)
    for rule, right in rules(cell).items():
        low, high = interval(right - one)
        gain = f"{(right - one).mean():+8.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"{name:<36}{rule:<14}{one.mean():7.3f}{right.mean():7.3f}{gain}")


def counts(found: dict[Job, Cell]) -> None:
    """In how many rows at medium effort a rule is below or above one sample, with an interval that excludes zero."""
    seen: Counter[tuple[str, str]] = Counter()
    for job, cell in found.items():
        if job.run == "pocket" and job.task in TASKS:
            one = cell.correct.mean(axis=1)
            for rule, right in rules(cell).items():
                low, high = interval(right - one, 2000)
                seen[rule, "below" if high < 0 else "above" if low > 0 else "open"] += 1
                if high < 0 and (right - one).mean() < -0.03 and rule != "outcome head" and job.checkpoint != "slip":
                    print(f"below: {job.label} {rule} {(right - one).mean():+.3f} [{low:+.3f}, {high:+.3f}]")
    for rule in dict.fromkeys(rule for rule, _ in seen):
        print(f"{rule:<14}" + "  ".join(f"{kind} {seen[rule, kind]}" for kind in ("below", "open", "above")))


def efforts(found: dict[str, Cell]) -> None:
    """What more effort buys `main`, question by question."""
    for family, level in (("arithmetic", 8), ("modular", 12), ("countdown", 4)):
        right = {effort: found[f"main-{family}-{level}-{effort}"].correct.mean(axis=1) for effort in EFFORTS}
        for one, other in (("low", "medium"), ("medium", "high")):
            gain = right[other] - right[one]
            low, high = interval(gain)
            print(f"{family} {level}, {one} to {other}: {gain.mean():+.3f} [{low:+.3f}, {high:+.3f}]")


def checks(name: str, cell: Cell) -> None:
    """Whether the outcome head does better on slip than picking any response that checks itself."""
    ends = np.concatenate([[0], np.cumsum(cell.length.ravel())])
    texts = [decode(cell.text[ends[i] : ends[i + 1]]) for i in range(cell.length.size)]
    checked = np.array(["?" in text for text in texts]).reshape(cell.length.shape)
    assert cell.outcome is not None, "run `score` first"
    valid = (cell.answer >= 0) & ~np.isnan(cell.outcome)
    best, q = np.argmax(np.where(valid, cell.outcome, -1), axis=1), np.arange(len(checked))
    pairs = zip(cell.correct, checked, strict=True)
    random = np.array([right[mine].mean() if mine.any() else right.mean() for right, mine in pairs])
    picked = cell.correct[q, best]
    low, high = interval(picked - random)
    print(
        f"{name}: {checked[q, best].mean():.2f} of those picked check themselves, right in {picked.mean():.3f};",
        end=" ",
    )
    print(f"a random one that does is right in {random.mean():.3f}; difference [{low:+.3f}, {high:+.3f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("build/pocket"))
    options = parser.parse_args()
    options.questions, options.samples = 60, 80
    found = cells(options)
    named = {job.label: cell for job, cell in found.items()}
    for name in NAMED:
        against_one_sample(name, named[name])
    counts(found)
    efforts(named)
    for name in NAMED[2:4]:
        checks(name, named[name])


if __name__ == "__main__":
    main()
