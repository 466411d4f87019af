"""What a page costs to make and to keep: 100 questions x 16, against one self-contained file for each of its charts.

OMP_NUM_THREADS=1 python benchmarks/report.py
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import vl_convert

from clock import best
from ramify.bank import Bank, Outcomes
from ramify.report import profile_page


def bank_of(questions: int = 100, n: int = 16) -> tuple[Bank, Outcomes]:
    """Answers, a score, and a thousand characters of text for each candidate."""
    rng = np.random.default_rng(0)
    right = rng.random((questions, n)) < rng.beta(0.6, 0.7, (questions, 1))
    answers = np.where(right, "42", rng.integers(1, 6, right.shape).astype(str))
    bank = Bank.of(answers.tolist(), scores={"verifier": right + rng.normal(0, 0.9, right.shape)})
    text = np.array([["so we add, then carry, " * 43 + answer for answer in row] for row in answers], dtype=object)
    return dataclasses.replace(bank, text=text), Outcomes.of(bank, right)


def main() -> None:
    bank, outcomes = bank_of()
    page = profile_page(bank, outcomes)
    numbers = best(lambda: profile_page(bank, outcomes), 3, time.process_time)
    written = best(page.html, 3, time.process_time)
    specs = [figure.vega_lite() for figure in page.figures().values()]
    files = [vl_convert.vegalite_to_html(spec, bundle=True) for spec in specs]
    size = len(page.html().encode())
    text = 0 if bank.text is None else sum(len(str(each)) for each in bank.text.flat)
    print(f"100 x 16, {text / 1e6:.2f} MB of model text, {len(specs)} charts\n")
    print(f"numbers and figures      {1e3 * numbers:8.0f} ms of CPU")
    print(f"the page                 {1e3 * written:8.0f} ms of CPU {size / 1e6:8.2f} MB")
    print(f"a bundled file for each chart             {sum(map(len, files)) / 1e6:8.2f} MB in all")


if __name__ == "__main__":
    main()
