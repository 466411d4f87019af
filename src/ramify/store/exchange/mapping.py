"""Which column of a file plays which part: guessed from names and values, shown, and overridden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Any

from ramify.bank.codes import is_bottom
from ramify.bank.tokens import COLUMNS
from ramify.errors import InvalidValue
from ramify.store.exchange.names import (
    ANSWER,
    ENDED,
    FILTERED,
    FIXED,
    GROUP,
    LENGTH,
    LOG_Q,
    OUTCOME,
    PREDICTED,
    PREFIXES,
    PROMPT,
    QUESTION,
    QUESTION_TOO,
    RECORD,
    REFERENCE,
    SAMPLE,
    SAMPLE_TOO,
    SCORE,
    TEXT,
    TOKEN,
    TOP,
    cell_kind,
    kind_of,
    leaves,
    place,
    plain,
)

__all__ = ["Mapping", "guess"]


@dataclass(frozen=True, slots=True)
class Mapping:
    """``parts`` names, for each part of a bank, the file's column that plays it.

    >>> print(guess({"qid": ["a", "a"], "pred": ["1", "2"], "acc": [True, False], "gold": ["1", "1"]}, {}))
    question     <- qid
    answer       <- pred
    outcome.acc  <- acc
    (ignored)       gold: a reference; gold stays out of a bank
    """

    parts: MappingType[str, str]
    ignored: MappingType[str, str] = field(default_factory=dict)  # column -> why
    given: frozenset[str] = frozenset()  # the parts that the caller chose
    nested: bool = False  # a row a question, with a list of its candidates in every column
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max((len(part) for part in [*self.parts, "(ignored)"]), default=0)
        lines = ["one row a question, candidates in lists"] if self.nested else []
        for part, column in self.parts.items():
            lines.append(f"{part:<{width}}  <- {column}{'  (given)' if part in self.given else ''}")
        return "\n".join(lines + [f"{'(ignored)':<{width}}     {name}: {why}" for name, why in self.ignored.items()])


def guess(
    columns: MappingType[str, Sequence[Any]],
    given: MappingType[str, str | None],
    nested: bool | None = None,
    kinds: MappingType[str, str] | None = None,
) -> Mapping:
    """The mapping of a file whose first rows are ``columns``. ``given`` maps parts to columns and has the last word.

    A part given as None (or "") is left out, whatever the file has. ``kinds`` is what is known of columns that are
    empty in these rows.
    """
    _check(columns, given)
    return _Guess(columns, given, nested, kinds or {}).mapping()


def _check(columns: MappingType[str, Sequence[Any]], given: MappingType[str, str | None]) -> None:
    for part, column in given.items():
        known = part in FIXED or any(part.startswith(prefix) and part != prefix for prefix in PREFIXES)
        if known and part.startswith("token."):
            known = part.removeprefix("token.") in COLUMNS
        if not known:
            parts = ", ".join([*FIXED, *(f"{prefix}<name>" for prefix in PREFIXES)])
            raise InvalidValue(f"mapping[{part!r}]: not a part of a bank; the parts are {parts}")
        if column and column not in columns:
            raise InvalidValue(f"mapping[{part!r}] = {column!r}: no such column; the file has {', '.join(columns)}")


class _Guess:
    """One guess in the making. Every column is used once, but for a prompt that names its question too."""

    def __init__(
        self,
        columns: MappingType[str, Sequence[Any]],
        given: MappingType[str, str | None],
        nested: bool | None,
        kinds: MappingType[str, str],
    ) -> None:
        self.columns, self.given = columns, given
        self.kinds = {name: kind_of(values) for name, values in columns.items()} | dict(kinds)
        self.nested = self.looks_nested() if nested is None else nested
        self.parts: dict[str, str] = {part: column for part, column in given.items() if column}
        self.ignored: dict[str, str] = {}
        self.notes: list[str] = []
        if self.nested:  # lists are candidates; what is not a list describes the question
            for name, kind in self.kinds.items():
                self.kinds[name] = kind.removeprefix("list ") if kind.startswith("list ") else f"of question {kind}"

    def looks_nested(self) -> bool:
        """Lists of answers, grades or texts are of candidates; lists of scores are if no answer stands beside them."""
        names = {*PREDICTED.split(), *ANSWER.split(), *OUTCOME.split(), *TEXT.split()}
        by_token = {name for each in TOKEN.values() for name in each.split()}
        several = {name for name, kind in self.kinds.items() if kind.startswith("list ") and not self.single(name)}
        predicted = any(plain(name) in PREDICTED.split() for name in self.kinds.keys() - several)
        lists = [plain(name) for name in self.kinds if name in several]
        lists = [name for name in lists if not predicted or name not in ANSWER.split()]  # alternatives of the gold
        alone = [plain(name) for name in self.kinds if name not in several]
        if any(name in SAMPLE.split() and self.kinds[each] == "whole" for each in self.kinds if (name := plain(each))):
            return False
        scored = any(SCORE.search(name) and name not in by_token for name in lists)
        return not names.isdisjoint(lists) or (scored and names.isdisjoint(alone))

    def single(self, column: str) -> bool:
        """Whether a column is one whose lists hold the answer of a row, not the candidates of a question."""
        return plain(column) in FILTERED.split() and all(
            not isinstance(value, list) or len(value) <= 1 for value in self.columns[column]
        )

    def take(self, part: str, column: str) -> None:
        if part not in self.given and column not in self.given.values():
            self.parts.setdefault(part, column)

    def used(self) -> set[str]:
        return {*self.parts.values()}

    def find(self, names: str, kinds: Iterable[str], besides: str = "") -> str | None:
        """The first column of these names, in their order, that is free and of one of these kinds.

        Those that begin with ``besides`` are none of them.
        """
        wanted, free = set(kinds), [name for name in self.columns if name not in self.used()]
        free = [name for name in free if not (besides and name.startswith(besides))]
        for name in names.split():
            for column in free:
                kind = self.kinds[column]
                if plain(column) == name and kind in wanted:
                    return column
        return None

    def mapping(self) -> Mapping:
        self.canonical()
        self.tokens()
        self.question()
        self.candidate()
        self.filters()
        self.grades_and_scores()
        self.groups()
        for name in self.columns:
            if name not in self.used():
                self.ignored[name] = self.why_not(name)
        parts = dict(sorted(self.parts.items(), key=lambda item: place(item[0])))
        return Mapping(
            parts, self.ignored, frozenset(p for p in self.given if p in parts), self.nested, tuple(self.notes)
        )

    def canonical(self) -> None:
        """The names that ``ramify`` itself writes are taken at their word."""
        for name in self.columns:
            fixed = name in ("proposal", "run") or (name == "candidate" and "sample" in self.columns)
            token = name.startswith("token.") and name.removeprefix("token.") not in COLUMNS
            if (fixed or name.startswith(PREFIXES)) and not token:
                self.take(name, name)

    def tokens(self) -> None:
        lists = {"list whole", "list number", "list flag"}
        for part, names in TOKEN.items():
            if column := self.find(names, lists):
                self.take(f"token.{part}", column)
        for column in self.columns:
            if (found := TOP.match(plain(column))) and self.kinds[column].startswith("list list"):
                self.take("token.top_logprobs" if "logprob" in found[1] else "token.top_ids", column)

    def question(self) -> None:
        kinds = {prefix + kind for kind in ("text", "whole", "number", "flag") for prefix in ("of question ", "")}
        kinds = {kind for kind in kinds if not self.nested or kind.startswith("of question")}
        prompt = self.find(PROMPT, kinds)
        named = self.find(QUESTION, kinds) or self.soft_question(kinds, prompt) or prompt
        if named and "question" not in self.parts:
            self.take("question", named)
        if "question" in self.parts and "prompt" not in self.parts:
            texts = [name for name in PROMPT.split() if (found := self.find(name, kinds)) and self.is_prose(found)]
            if texts:
                self.take("prompt", str(self.find(texts[0], kinds)))
            elif self.is_prose(self.parts["question"]):
                self.take("prompt", self.parts["question"])

    def soft_question(self, kinds: set[str], prompt: str | None) -> str | None:
        """An id that differs in every row, beside a prompt that does not, numbers the rows and not the questions."""
        column = self.find(QUESTION_TOO, kinds)
        if column is None or prompt is None or self.nested:
            return column
        distinct, prompts = (len({str(value) for value in self.columns[name]}) for name in (column, prompt))
        return prompt if distinct == len(self.columns[column]) > prompts else column

    def is_prose(self, column: str) -> bool:
        values = [str(value) for value in self.columns[column] if not is_bottom(value)]
        return any(len(value) > 64 or " " in value.strip() for value in values)

    def candidate(self) -> None:
        if column := self.find(SAMPLE, {"whole", "number"}) or self.soft_sample():
            self.take("sample", column)
        scalars = {"text", "whole", "number", "flag", "list text", "list whole", "list number"}
        empty = {"empty"}  # nothing but ⊥ is an answer column all the same
        if (
            column := self.find(PREDICTED, scalars, RECORD)
            or self.find(ANSWER, scalars, RECORD)
            or self.find(f"{PREDICTED} {ANSWER}", empty, RECORD)
        ):
            self.take("answer", column)
        for part, names, kinds in (
            ("text", TEXT, {"text", "whole", "number"}),
            ("ended", ENDED, {"text"}),
            ("length", LENGTH, {"whole"}),
            ("log_q", LOG_Q, {"number", "whole"}),
        ):
            if column := self.find(names, kinds):
                self.take(part, column)

    def filters(self) -> None:
        """Say where rows are one response read in several ways: they are no draws of their own."""
        names = sorted({str(value) for value in self.columns.get("filter", [])})
        if plain(self.parts.get("answer", "")) in FILTERED.split() and len(names) > 1:
            remedy = "they are one response each, and no two draws: keep the rows of one"
            self.notes.append(f"rows of the filters {', '.join(names[:3])} are taken for candidates; {remedy}")

    def soft_sample(self) -> str | None:
        question = self.parts.get("question")
        for name in SAMPLE_TOO.split():
            column = self.find(name, {"whole"})
            if column and question and not self.nested:
                pairs = list(zip(map(str, self.columns[question]), map(str, self.columns[column]), strict=True))
                if len(set(pairs)) == len(pairs) and len(set(self.columns[question])) < len(pairs):
                    return column
        return None

    def grades_and_scores(self) -> None:
        for column in self.columns:
            name, kind = plain(column), self.kinds[column]
            if column in self.used() or column.startswith(RECORD) or self.is_reference(column):
                continue
            graded, scored = name in OUTCOME.split(), bool(SCORE.search(name))
            number = kind in ("whole", "number")
            if (kind == "flag" and scored) or (graded and (number or kind in ("flag", "empty"))):
                self.take(f"outcome.{column}", column)
                if name in REFERENCE.split() and f"outcome.{column}" in self.parts.keys() - self.given.keys():
                    remedy = f"grade against it (--reference {column}) if it holds the right answer"
                    self.notes.append(f"{column} holds nothing but grades and became one; {remedy}")
            elif number and scored:
                self.take(f"layer.{column}", column)
                if {str(value) for value in leaves(self.columns[column])} <= {
                    "0",
                    "1",
                    "0.0",
                    "1.0",
                    "None",
                    "nan",
                    "",
                }:
                    remedy = f"map outcome.{column} to it if it is a grade against references: rules may read layers"
                    self.notes.append(f"{column} holds only 0 and 1 and became a layer; {remedy}")

    def is_reference(self, column: str) -> bool:
        """Whether a name that gold and grades both go by is gold: it holds what is no grade."""
        if plain(column) not in REFERENCE.split():
            return False
        numbers = [value for value in leaves(self.columns[column]) if cell_kind(value) in ("whole", "number")]
        return any(not 0 <= float(value) <= 1 for value in numbers)

    def groups(self) -> None:
        question = self.parts.get("question")
        for column in self.columns:
            kind = self.kinds[column].removeprefix("of question ")
            if plain(column) in GROUP.split() and column not in self.used() and kind in ("text", "whole"):
                pairs = {
                    (str(q), str(v))
                    for q, v in zip(self.columns[question or column], self.columns[column], strict=True)
                }
                if self.nested or (question and len(pairs) == len({q for q, _ in pairs})):
                    self.take(f"group.{column}", column)

    def why_not(self, column: str) -> str:
        name, kind = plain(column), self.kinds[column]
        if column in self.given.values() or any(plain(p) == name for p, c in self.given.items() if not c):
            return "left out, as asked"
        if kind in ("empty", "of question empty", "list empty"):
            return "no values in the first rows"
        if column.startswith(RECORD):
            return "of the question's record, where gold may be; map a part to it if you know it"
        if name in REFERENCE.split() or name in ANSWER.split():
            return "a reference; gold stays out of a bank"
        if name in PROMPT.split() or name in TEXT.split() or name in (QUESTION + QUESTION_TOO).split():
            return "another column plays its part"
        if kind in ("whole", "number"):
            return f"nothing is known by this name; map layer.{column} to it to keep it"
        return "nothing is known by this name"
