"""How many questions and candidates a study needs, before it is run.

The standard error of a functional over Q questions with N candidates each is σ(N) / √Q. σ falls with N to what the
questions themselves differ by, and no further: past that only more questions help.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ramify.arrays import Array
from ramify.errors import InvalidValue, is_whole, require
from ramify.metrics.functionals import Functional
from ramify.metrics.laws import beta_binomial
from ramify.metrics.posterior import BetaPrior, fit_prior
from ramify.metrics.profile import Profile
from ramify.metrics.tally import Tally
from ramify.metrics.units import Layout, errors_of, units_of

__all__ = ["Plan", "candidates_for", "questions_for", "questions_to_separate", "thrifty_candidates", "width_of"]

MOST = 1024  # candidates beyond which a question counts as known


@dataclass(frozen=True, slots=True)
class Plan:
    """So many questions with so many candidates each, and the interval width they should give."""

    questions: int
    candidates: int
    width: float
    level: float

    @property
    def total(self) -> int:
        """All candidates to draw."""
        return self.questions * self.candidates


def spread_of(functional: Functional, difficulty: BetaPrior | Tally, candidates: int) -> float:
    """σ(N): the standard error of the functional over Q questions is σ(N) / √Q, questions and draws together.

    ``difficulty`` is the law of the questions' success probabilities, or a pilot tally that it is fitted to.
    """
    k = int(getattr(functional, "k", 1))
    require(is_whole(candidates, k), "candidates", candidates, f"use at least the functional's k = {k}")
    law = difficulty if isinstance(difficulty, BetaPrior) else fit_prior(difficulty)
    pmf = beta_binomial(candidates, law.alpha, law.beta)
    cells = np.flatnonzero(pmf > 1e-12)
    units = np.zeros((len(cells), candidates + 1))
    units[np.arange(len(cells)), cells] = 1.0

    def statistic(flat: Array) -> Array:
        return functional(Profile({candidates: flat}, "finite bank", 1))

    return float(errors_of(units, (pmf[cells] / pmf[cells].sum())[None], statistic)[0])


def width_of(
    functional: Functional, difficulty: BetaPrior | Tally, questions: int, candidates: int, level: float = 0.95
) -> Plan:
    """The width that an interval over questions will have.

    >>> from ramify.metrics import Accuracy
    >>> plan = width_of(Accuracy(), BetaPrior(1.0, 1.0), questions=300, candidates=8)
    >>> round(plan.width, 4)  # 2 · 1.96 · √((1/12 + 1/6 / 8) / 300)
    0.073
    """
    require(is_whole(questions, 2), "questions", questions, "use at least two")
    width = 2 * _z(level) * spread_of(functional, difficulty, candidates) / math.sqrt(questions)
    return Plan(questions, candidates, width, level)


def questions_for(
    functional: Functional, difficulty: BetaPrior | Tally, width: float, candidates: int, level: float = 0.95
) -> Plan:
    """The fewest questions whose interval is at most ``width`` wide, with so many candidates each."""
    require(width > 0, "width", width, "use a width > 0")
    sigma = spread_of(functional, difficulty, candidates)
    questions = max(2, math.ceil((2 * _z(level) * sigma / width) ** 2))
    return Plan(questions, candidates, 2 * _z(level) * sigma / math.sqrt(questions), level)


def candidates_for(
    functional: Functional, difficulty: BetaPrior | Tally, width: float, questions: int, level: float = 0.95
) -> Plan:
    """The fewest candidates a question whose interval is at most ``width`` wide, with so many questions.

    Refuses where the questions alone vary too much for that width, naming the width they allow.
    """
    law = difficulty if isinstance(difficulty, BetaPrior) else fit_prior(difficulty)

    def reaches(n: int) -> bool:
        return width_of(functional, law, questions, n, level).width <= width

    low = int(getattr(functional, "k", 1))
    if not reaches(MOST):
        floor = width_of(functional, law, questions, MOST, level).width
        raise InvalidValue(f"width = {width!r}: {questions} questions allow {floor:.4g} at best; ask more questions")
    return width_of(functional, law, questions, _first(reaches, low, MOST), level)


def questions_to_separate(
    first: Tally,
    second: Tally,
    functional: Functional,
    gap: float,
    *,
    candidates: int | None = None,
    level: float = 0.95,
    power: float = 0.8,
) -> Plan:
    """The questions that tell two systems a ``gap`` apart, in a paired comparison at this level and power.

    The spread of the paired difference is taken from pilot tallies on the same questions. For another number of
    candidates than the pilot's the part that is due to draws is scaled by N / candidates: exact for the accuracy, and
    the leading term otherwise.
    """
    require(gap != 0, "gap", gap, "use the difference that must not be missed")
    require(0 < power < 1, "power", power, "use a probability in (0, 1)")
    for tally in (first, second):
        tally.need_independence("precision planning")
    pilot = min(int(first.graded.min()), int(second.graded.min()))
    k = int(getattr(functional, "k", 1))
    require(pilot >= k, "tally", pilot, f"use a pilot with at least k = {k} graded candidates of every question")
    total, draws = _paired(first, second, functional)
    number = pilot if candidates is None else candidates
    require(is_whole(number, k), "candidates", number, f"use at least the functional's k = {k}")
    variance = max(total - draws, 0.0) + draws * pilot / number
    need = (_z(level) + float(ndtri(power))) ** 2 * variance / gap**2
    questions = max(2, math.ceil(need))
    return Plan(questions, number, 2 * _z(level) * math.sqrt(variance / questions), level)


def thrifty_candidates(between: float, within: float, question_cost: float, candidate_cost: float) -> int:
    """The candidates a question that buy the most precision: √(within / between · question_cost / candidate_cost).

    ``between`` is the variance of the questions' means and ``within`` that of single candidates around them.

    >>> thrifty_candidates(between=1 / 12, within=1 / 6, question_cost=8.0, candidate_cost=1.0)
    4
    """
    for name, value in (("between", between), ("within", within), ("question_cost", question_cost)):
        require(value >= 0, name, value, "use a number >= 0")
    require(candidate_cost > 0, "candidate_cost", candidate_cost, "use a price > 0")
    require(between > 0, "between", between, "where questions do not differ, ask one question and draw many candidates")
    return max(1, round(math.sqrt(within / between * question_cost / candidate_cost)))


def _z(level: float) -> float:
    require(0 < level < 1, "level", level, "use a coverage in (0, 1)")
    return float(ndtri((1 + level) / 2))


def _first(ok: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number for which ok holds, given that it holds from some number on, and at ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if ok(middle) else (middle + 1, high)
    return low


def _paired(first: Tally, second: Tally, functional: Functional) -> tuple[float, float]:
    """The variance of a question's paired difference, and the part of it that is due to draws."""
    layouts = [Layout.of(first), Layout.of(second)]
    width = layouts[0].width

    def statistic(flat: Array) -> Array:
        return functional(layouts[0].profile(flat[..., :width])) - functional(layouts[1].profile(flat[..., width:]))

    units, times = units_of(layouts, None)
    total = float(errors_of(units, times[None], statistic)[0]) ** 2 * times.sum()
    draws = sum(
        _draw_variance(layout, tally, functional) for layout, tally in zip(layouts, (first, second), strict=True)
    )
    return total, draws


def _draw_variance(layout: Layout, tally: Tally, functional: Functional) -> float:
    """The mean over questions of the variance of their influence when their candidates are drawn again."""
    flat, step = np.bincount(layout.code, minlength=layout.width).astype(np.float64), 1e-5
    moved = (1 - step) * flat + step * flat.sum() * np.eye(layout.width)
    influence = (functional(layout.profile(moved)) - functional(layout.profile(flat))) / step
    again = layout.redraws()
    variance = again @ influence**2 - (again @ influence) ** 2  # [C]
    bias = np.where(tally.graded > 1, tally.graded / np.maximum(tally.graded - 1, 1), 1.0)  # of ν(N-ν)/N²
    return float((variance[layout.code] * bias).mean())
