"""The decision card: what a reader has to know of a rule and its scores, printed from the values themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ramify.bank import Bank
from ramify.decide.present import FirstInGroup
from ramify.decide.support import PAIRS, Present, Rule, excluded, voters
from ramify.describe import text
from ramify.errors import require

__all__ = ["DecisionCard"]

TUNED = ("temperature", "threshold", "alpha", "beta", "keep", "p", "m", "spread", "clip", "ratio")
TRANSFORMS = {
    "SoftmaxVote": "exp((s - max s) / T)",
    "LikelihoodVote": "exp(s)",
    "LogOddsVote": "logit(s) - logit(b), or s - b",
    "CalibratedVote": "log density ratio + log q(m - 1)/(1 - q)",
    "CGES": "log s and log(1 - s)/(K - 1)",
    "RankVote": "(n - rank + 1)^p",
    "MajorityOfTheBests": "((n - t)^m - (n - t - 1)^m) / n^m of rank t",
    "AdaptiveMajorityOfTheBests": "((n - t)^m - (n - t - 1)^m) / n^m of rank t, m by Bickel and Sakov",
    "SoftBestOfN": "exp(alpha s), normalised",
}


@dataclass(frozen=True)
class DecisionCard:
    """The score semantics of a decision: nothing that changes the submitted answer is left to the reader's guess.

    ``held_out`` names, for every tuned value, the data it was fixed on; one without an entry is shown so.

    >>> from ramify.decide import SoftmaxVote
    >>> bank = Bank.of({"q": ["A", "A", None]}, scores={"p_true": [[0.2, 0.4, None]]})
    >>> card = DecisionCard(SoftmaxVote("p_true", temperature=0.5), bank, canonicaliser="exact string")
    >>> print(card)
    rule                SoftmaxVote(evidence='p_true', temperature=0.5, missing='exclude', fallback=None)
    role                deployable
    score source        p_true: p_true
    orientation         higher is better
    reductions          as the score's source says
    canonicaliser       exact string
    eligibility         drawn, with an answer: 2 of 3 candidates
    missing scores      exclude: 0 eligible candidates have none
    transforms          exp((s - max s) / T)
    tuned values        temperature = 0.5 (fixed on: not said)
    ties                to the answer that appears first
    fallback            nothing is submitted (winner -1)
    presentation        FirstInGroup()
    evaluator           none said
    evaluator prompt    none said
    """

    rule: Rule
    bank: Bank
    canonicaliser: str = "not said"
    present: Present = FirstInGroup()
    evaluator: str = "none said"
    prompt: str = "none said"
    reductions: str = "as the score's source says"
    utility: str = "not said"
    held_out: Mapping[str, str] = field(default_factory=dict)
    open_ended: bool = False

    def __post_init__(self) -> None:
        tuned = {name for name, _ in self._tuned()}
        unknown = sorted(set(self.held_out) - tuned)
        require(
            not unknown, "DecisionCard.held_out", unknown, f"the tuned values are {', '.join(sorted(tuned)) or 'none'}"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(getattr(self.rule, "needs", ()))

    def rows(self) -> dict[str, str]:
        """The card, a line a row."""
        names = [name for name in self.needs if name != PAIRS]
        seen = self.bank.candidates(evidence=names, open_ended=self.open_ended)
        eligible = seen.eligible if self.open_ended else voters(seen)
        tuned = [f"{name} = {value} (fixed on: {self.held_out.get(name, 'not said')})" for name, value in self._tuned()]
        lost = int(np.sum(excluded(seen, names)))
        return {
            "rule": text(self.rule),
            "role": self.role(),
            "score source": self._source(names),
            "orientation": "higher is better",
            "reductions": self.reductions if names else "none",
            "canonicaliser": self.canonicaliser,
            "eligibility": f"drawn{'' if self.open_ended else ', with an answer'}: "
            f"{int(eligible.sum())} of {int(self.bank.drawn.sum())} candidates",
            "missing scores": f"{getattr(self.rule, 'missing', 'exclude')}: {lost} eligible candidates have none",
            "transforms": "; ".join(t for t in (TRANSFORMS.get(type(part).__name__) for part in _parts(self.rule)) if t)
            or "none",
            "tuned values": "; ".join(tuned) or "none",
            "ties": self._ties(),
            "fallback": self._fallback(),
            "presentation": text(self.present),
            "evaluator": self.evaluator,
            "evaluator prompt": self.prompt,
        }

    def role(self) -> str:
        """Deployable, unless a score it reads was made with a reference."""
        roles = {self.bank.layers[name].role for name in self.needs if name != PAIRS}
        return "diagnostic" if "diagnostic" in roles else str(getattr(self.rule, "role", "deployable"))

    def _source(self, names: list[str]) -> str:
        layers = [(name, self.bank.layers[name]) for name in names]
        shown = [
            f"{name}: {layer.description}{f' ({layer.version})' if layer.version else ''}" for name, layer in layers
        ]
        return (
            "; ".join(shown + ([f"pairwise utility: {self.utility}"] if PAIRS in self.needs else []))
            or "none: counts only"
        )

    def _tuned(self) -> Iterator[tuple[str, Any]]:
        for part in _parts(self.rule):
            for name in TUNED:
                value = getattr(part, name, None)
                if value is not None:
                    yield name, value

    def _ties(self) -> str:
        shared = [part.ties for part in _parts(self.rule) if hasattr(part, "ties")]
        inside = {"share": "; equal scores share their ranks", "earliest": "; equal scores by position"}
        return "to the answer that appears first" + (inside[shared[0]] if shared else "")

    def _fallback(self) -> str:
        other = getattr(self.rule, "fallback", None)
        return "nothing is submitted (winner -1)" if other is None else text(other)

    def __str__(self) -> str:
        return "\n".join(f"{name:<19} {value}" for name, value in self.rows().items())


def _parts(rule: Any) -> Iterator[Any]:
    """A rule and the rules it is made of."""
    yield rule
    if dataclasses.is_dataclass(rule):
        for each in dataclasses.fields(rule):
            part = getattr(rule, each.name)
            if callable(part) and each.name != "fallback":
                yield from _parts(part)
