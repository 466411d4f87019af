"""The bank: the product of generation and the input of every analysis."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ramify.arrays import Array
from ramify.bank.candidates import Candidates, Utility
from ramify.bank.codes import encode
from ramify.bank.layers import Layer
from ramify.bank.proposal import KINDS, Proposal, is_independent, need_independence
from ramify.bank.tokens import COLUMNS, TokenTable
from ramify.errors import InvalidValue, is_whole, require
from ramify.keys import permutation
from ramify.types import Key, Leaf, Question

__all__ = ["ENDINGS", "Bank"]

ENDINGS = ("unknown", "eos", "length")
IID = Proposal()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """Candidates of Q questions as aligned ``[Q, N]`` arrays. Unequal N is the ``drawn`` mask: nothing is padded.

    What was not recorded is unknown, never 0: ending 0 is "unknown", a length of -1 and a log q of NaN are not known.

    >>> bank = Bank.of({"q1": ["A", "A", "B", None], "q2": ["7", "7"]})
    >>> bank.shape, bank.answers.tolist(), bank.drawn.sum(1).tolist()
    ((2, 4), [[0, 0, 1, -1], [0, 0, -1, -1]], [4, 2])
    >>> bank.first(2).answer(0, 1)
    'A'
    >>> bank
    <Bank 2 x 4: 6 drawn, iid, run ''>
    """

    questions: tuple[Question, ...]
    answer_text: tuple[tuple[Any, ...], ...]  # by question, by code
    answers: Array  # [Q, N] int32, -1 is ⊥
    drawn: Array  # [Q, N] bool
    ended: Array  # [Q, N] uint8 into endings
    source: Array  # [Q, N] int16 into proposals, -1 where not drawn
    samples: Array  # [Q, N] int64, the sample of the Key
    proposals: tuple[Proposal, ...] = (IID,)
    endings: tuple[str, ...] = ENDINGS
    log_q: Array | None = None  # [Q, N], NaN unknown
    length: Array | None = None  # [Q, N] tokens, -1 unknown
    text: Array | None = None  # [Q, N] of str or None
    tokens: TokenTable | None = None
    layers: Mapping[str, Layer] = dataclasses.field(default_factory=dict)
    assumed: str = ""  # why the candidates may be treated as independent draws although the proposals do not say so

    def __post_init__(self) -> None:
        shape = self.answers.shape
        require(len(shape) == 2 and shape[0] == len(self.questions), "Bank.answers", shape, "use [Q, N]")
        for name, array in self._aligned():
            require(array.shape[:2] == shape, f"Bank.{name}", array.shape, f"use the shape {shape}")
        names = [question.id for question in self.questions]
        twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        require(not twice, "Bank.questions", sorted(twice), "give every question an id of its own")
        counts = np.array([len(texts) for texts in self.answer_text], dtype=np.int64)[:, None]
        ok = (self.answers >= -1).all() and (self.answers < counts).all() and (self.drawn | (self.answers == -1)).all()
        require(ok, "Bank.answers", "a code", "use -1 for ⊥, else an index into answer_text; undrawn candidates are -1")
        require((self.ended < len(self.endings)).all(), "Bank.ended", int(self.ended.max(initial=0)), "index endings")
        ok = ((self.source >= 0) == self.drawn).all() and (self.source < len(self.proposals)).all()
        require(ok, "Bank.source", "an index", "use -1 where not drawn, else an index into proposals")

    def __repr__(self) -> str:
        runs = ", ".join(repr(each.run) for each in self.proposals)
        beside = f"; {', '.join(self.layers)}" if self.layers else ""
        return (
            f"<Bank {self.shape[0]} x {self.shape[1]}: {int(self.drawn.sum())} drawn, {self.kind}, run {runs}{beside}>"
        )

    # ---------------------------------------------------------------------------------------------------- construction

    @classmethod
    def of(
        cls,
        answers: Mapping[str, Iterable[Any]] | Sequence[Iterable[Any]],
        *,
        proposal: Proposal = IID,
        scores: Mapping[str, Any] | None = None,
        groups: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Bank:
        """A bank of answers and nothing else: a mapping from question ids to their answers, or rows of answers."""
        if not isinstance(answers, Mapping):
            answers = {f"q{i}": row for i, row in enumerate(answers)}
        codes, drawn, texts = encode(list(answers.values()))
        questions = tuple(Question(name, "", (groups or {}).get(name, {})) for name in answers)
        bank = cls(
            questions=questions,
            answer_text=tuple(texts),
            answers=codes,
            drawn=drawn,
            ended=np.zeros(codes.shape, dtype=np.uint8),
            source=np.where(drawn, 0, -1).astype(np.int16),
            samples=np.broadcast_to(np.arange(codes.shape[1]), codes.shape).astype(np.int64),
            proposals=(proposal,),
        )
        for name, values in (scores or {}).items():
            bank = bank.attach(name, Layer(_padded(values, codes.shape), description=name))
        return bank

    @classmethod
    def of_leaves(
        cls,
        questions: Sequence[Question],
        leaves: Iterable[Leaf],
        parse: Callable[[str, Question], Any],
        *,
        proposal: Proposal = IID,
    ) -> Bank:
        """The bank of generated leaves, in order of sample. ``parse(text, question)`` gives an answer, None for ⊥."""
        rows: dict[str, dict[int, Leaf]] = {question.id: {} for question in questions}
        for leaf in leaves:
            require(leaf.key.question in rows, "leaf.key.question", leaf.key.question, "hand its question in too")
            twice = leaf.key.sample in rows[leaf.key.question]
            require(not twice, "leaf.key", leaf.key, "hand in each leaf once")
            rows[leaf.key.question][leaf.key.sample] = leaf
        ordered = [[row[sample] for sample in sorted(row)] for row in rows.values()]
        codes, drawn, texts = encode(
            [[parse(leaf.text, q) for leaf in row] for q, row in zip(questions, ordered, strict=True)]
        )
        flat = [leaf for row in ordered for leaf in row]
        endings = tuple(dict.fromkeys([*ENDINGS, *(leaf.ended for leaf in flat)]))

        def spread(values: Iterable[Any], fill: Any, dtype: Any) -> np.ndarray:
            table = np.full(codes.shape, fill, dtype=dtype)
            table[drawn] = np.fromiter(values, dtype=dtype, count=len(flat))
            return table

        length = spread((len(leaf.tokens) for leaf in flat), 0, np.int64)
        return cls(
            questions=tuple(questions),
            answer_text=tuple(texts),
            answers=codes,
            drawn=drawn,
            ended=spread((endings.index(leaf.ended) for leaf in flat), 0, np.uint8),
            source=np.where(drawn, 0, -1).astype(np.int16),
            samples=spread((leaf.key.sample for leaf in flat), 0, np.int64),
            proposals=(proposal,),
            endings=endings,
            log_q=spread((leaf.sequence_log_q for leaf in flat), np.nan, np.float64),
            length=np.where(drawn, length, -1),
            text=spread((leaf.text for leaf in flat), None, object),
            tokens=_table(flat, drawn, length),
        )

    # ------------------------------------------------------------------------------------------------------- questions

    @property
    def shape(self) -> tuple[int, int]:
        """(Q, N), N the width of the arrays; ``drawn.sum(1)`` counts the candidates of each question."""
        return self.answers.shape  # type: ignore[no-any-return]

    def answer(self, question: int, candidate: int) -> Any:
        """The canonical answer of a candidate, None for ⊥."""
        code = int(self.answers[question, candidate])
        return None if code < 0 else self.answer_text[question][code]

    def key(self, question: int, candidate: int, stream: str = "draw") -> Key:
        """The key that a candidate was drawn with."""
        source = int(self.source[question, candidate])
        require(source >= 0, f"candidate ({question}, {candidate})", None, "it was not drawn")
        return Key(
            self.proposals[source].run, self.questions[question].id, int(self.samples[question, candidate]), stream
        )

    @property
    def kind(self) -> str:
        """One of ``KINDS``: the weakest claim of the proposals that the candidates come from."""
        used = [self.proposals[i] for i in np.unique(self.source[self.drawn])]
        weakest = min((KINDS.index(each.kind) for each in used), default=KINDS.index("iid"))
        return KINDS[weakest if len(used) <= 1 else min(weakest, KINDS.index("heterogeneous"))]

    @property
    def independent(self) -> bool:
        """Whether candidates are independent draws of one protocol, by provenance or by a recorded assumption."""
        return is_independent(self.kind, self.assumed)

    def need_independence(self, what: str) -> None:
        """Refuse, in the name of an estimator that needs independent draws."""
        need_independence(what, self.kind, self.assumed)

    def assuming_independence(self, reason: str) -> Bank:
        """The same bank, with the reason why its candidates may be treated as independent draws on record."""
        require(reason.strip(), "reason", reason, "say why, because the report will")
        return dataclasses.replace(self, assumed=reason)

    # --------------------------------------------------------------------------------------------------------- slicing

    def first(self, n: int) -> Bank:
        """The first n candidates of every question."""
        require(is_whole(n), "n", n, "use a number of candidates >= 0")
        return self.take(np.arange(min(n, self.shape[1])))

    def take(self, order: Array) -> Bank:
        """The candidates at ``order [n]`` or ``[Q, n]``; -1 leaves a place undrawn."""
        order = np.asarray(order)
        ok = order.dtype.kind in "iu" and (order >= -1).all() and (order < self.shape[1]).all()
        require(ok, "order", order, f"use indices in [-1, {self.shape[1]})")
        return self.gather(
            np.arange(len(self.questions)), np.broadcast_to(order, (len(self.questions), order.shape[-1]))
        )

    def permuted(self, run: str, replicate: int = 0) -> Bank:
        """Each question's drawn candidates in the order of its own keyed stream; the undrawn stay last."""
        order = np.full(self.shape, -1)
        for q, question in enumerate(self.questions):
            mine = np.flatnonzero(self.drawn[q])
            order[q, : mine.size] = mine[permutation(Key(run, question.id, replicate, "replay"), mine.size)]
        return self.take(order)

    def only(self, questions: Callable[[Question], bool] | Iterable[str] | Array) -> Bank:
        """Some of the questions: a predicate, their ids, or a mask or indices ``[Q]``."""
        if callable(questions):
            rows = np.flatnonzero([questions(question) for question in self.questions])
        elif isinstance(questions, np.ndarray):
            rows = np.flatnonzero(questions) if questions.dtype == bool else questions
        else:
            place = {question.id: i for i, question in enumerate(self.questions)}
            wanted = list(questions)
            missing = [name for name in wanted if name not in place]
            require(not missing, "questions", missing[:3], "ask for questions of this bank")
            rows = np.array([place[name] for name in wanted], dtype=np.int64)
        return self.gather(rows, np.broadcast_to(np.arange(self.shape[1]), (len(rows), self.shape[1])))

    def by(self, group: str) -> dict[str, Bank]:
        """The bank split by a group of its questions, such as a field or a level."""
        missing = [question.id for question in self.questions if group not in question.groups]
        require(not missing, f"groups[{group!r}]", missing[:3], "these questions do not have it")
        names = [question.groups[group] for question in self.questions]
        return {name: self.only(np.array([each == name for each in names])) for name in dict.fromkeys(names)}

    def gather(self, rows: Array, columns: Array, questions: tuple[Question, ...] | None = None) -> Bank:
        """The one slicing: candidates ``columns [Q', N']`` of questions ``rows [Q']``, everything aligned.

        -1 in ``columns`` leaves a place undrawn; a row of -1 is a question that only ``questions`` has.
        """
        at, fills = (
            rows[:, None],
            {"answers": -1, "drawn": False, "source": -1, "log_q": np.nan, "length": -1, "text": None},
        )

        def taken(array: Array, fill: Any) -> Array:
            if not array.shape[1]:  # a bank without candidates has nothing to point at, but places to leave undrawn
                return np.full((*columns.shape, *array.shape[2:]), fill, array.dtype)
            found = array[at, columns]
            absent = columns < 0
            if absent.any():
                found = found.copy()
                found[absent] = fill
            return found

        layers = {
            name: dataclasses.replace(
                layer,
                values=taken(layer.values, np.nan),
                cost=None if layer.cost is None else taken(layer.cost, 0),
            )
            for name, layer in self.layers.items()
        }
        kept = {
            name: taken(array, fills.get(name, 0)) for name, array in self._aligned() if not name.startswith("layers")
        }
        return dataclasses.replace(
            self,
            questions=questions or tuple(self.questions[row] for row in rows),
            answer_text=tuple(self.answer_text[row] if row >= 0 else () for row in rows),
            tokens=None if self.tokens is None else self.tokens.gather(at, columns),
            layers=layers,
            **kept,
        )

    def _aligned(self) -> list[tuple[str, Array]]:
        """Every ``[Q, N]`` array of the bank itself, and of its layers, by name."""
        names = ("answers", "drawn", "ended", "source", "samples", "log_q", "length", "text")
        own = [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
        return own + [(f"layers[{name!r}]", layer.values) for name, layer in self.layers.items()]

    def need_distinct_keys(self) -> None:
        """Every candidate has a key of its own: two of one run and sample would be one candidate counted twice.

        Grades and layers on disk are found by run and sample, so two proposals of one run name would share them.
        """
        runs = [proposal.run for proposal in self.proposals]
        name = np.array([runs.index(run) for run in runs], dtype=self.source.dtype)
        for q, question in enumerate(self.questions):
            names = np.stack([name[self.source[q]], self.samples[q]])[:, self.drawn[q]]
            found, counts = np.unique(names, axis=1, return_counts=True)
            if (counts > 1).any():
                source, sample = found[:, counts.argmax()]
                raise InvalidValue(
                    f"question {question.id!r}, sample {sample} is there twice under one run name "
                    f"({self.proposals[source].run!r}): give the runs different names, or drop one"
                )

    # ---------------------------------------------------------------------------------------------------------- layers

    def attach(self, name: str, layer: Layer) -> Bank:
        """The bank with one more layer. A name is given once: a new version is a new name."""
        require(name not in self.layers, "layer", name, "it is attached already: give the new one another name")
        return dataclasses.replace(self, layers={**self.layers, name: layer})

    def candidates(
        self, *, evidence: Iterable[str] = (), utility: Utility | None = None, open_ended: bool = False
    ) -> Candidates:
        """What a rule may see of this bank, with the layers it asks for as evidence."""
        wanted = list(evidence)
        missing = [name for name in wanted if name not in self.layers]
        require(
            not missing, "evidence", missing, f"attach it first; the bank has {', '.join(self.layers) or 'no layers'}"
        )
        return Candidates(
            self.answers,
            self.drawn,
            self.drawn if open_ended else None,
            {name: self.layers[name].values for name in wanted},
            utility,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The drawn candidates as an Arrow stream, so that pyarrow, polars, pandas and DuckDB take a bank as it is."""
        from ramify.bank.arrow import to_arrow

        return to_arrow(self).__arrow_c_stream__(requested_schema)


def _padded(values: Any, shape: tuple[int, int]) -> np.ndarray:
    """Scores as a full ``[Q, N]`` table: ragged rows are filled with NaN."""
    table = np.full(shape, np.nan)
    rows = list(values)
    require(len(rows) == shape[0], "scores", len(rows), f"give a row for each of the {shape[0]} questions")
    for q, row in enumerate(rows):
        listed = [np.nan if each is None else float(each) for each in row]
        require(
            len(listed) <= shape[1], f"scores of question {q}", len(listed), f"it has {shape[1]} candidates at most"
        )
        table[q, : len(listed)] = listed
    return table


def _table(leaves: Sequence[Leaf], drawn: Array, length: Array) -> TokenTable:
    """The token columns of leaves that lie in ``[Q, N]`` order."""
    fields = {"token": "tokens", **{name: name for name in ("role", "logprob", "log_q", "rank", "support", "fallback")}}
    columns: dict[str, Array] = {}
    for name, field in fields.items():
        parts = [np.asarray(getattr(leaf, field)) for leaf in leaves] or [np.empty(0)]
        columns[name] = np.concatenate(parts).astype(COLUMNS[name])
    widths = {None if leaf.top is None else leaf.top.ids.shape[1] for leaf in leaves}
    if len(widths) == 1 and None not in widths:
        columns["top_ids"] = np.concatenate([leaf.top.ids for leaf in leaves if leaf.top]).astype(COLUMNS["top_ids"])
        columns["top_logprobs"] = np.concatenate([leaf.top.logprobs for leaf in leaves if leaf.top])
    start = np.cumsum(length.reshape(-1)).reshape(length.shape) - length
    return TokenTable(np.where(drawn, start, -1), length, columns)
