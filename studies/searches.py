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
import os

from searching.heads import heads
from searching.measure import together
from searching.page import write
from searching.plan import CONTROLLERS, Job, test_jobs
from searching.rivals import choose


def run(options: argparse.Namespace) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come
    tuning = [Job("tuning", name, setting) for name, kind in CONTROLLERS.items() for setting in kind]
    together([Job("tuning", "leaves"), *tuning], options)
    chosen = choose(options)
    for name, setting in chosen.items():
        print(f"{name}: {setting}")
    together(test_jobs(chosen), options)


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
