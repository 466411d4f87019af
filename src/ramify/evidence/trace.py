"""Evidence from tokens: a statistic of each token, a reduction over the trace, and one chunked pass over flat columns.

A statistic maps columns ``[t]`` (or ``[t, K]``) to ``[t]`` token by token; a reduction maps flat values and offsets to
one number a candidate. Everything runs on chunks of whole candidates, and what a candidate gets depends on its own
tokens alone, to the bit: in memory, memory-mapped, or streamed from a store in any chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ramify.arrays import ROWS, Array, segments
from ramify.bank import Bank, Layer, Signal, TokenTable
from ramify.describe import method
from ramify.errors import InvalidValue, require
from ramify.evidence.declare import Evidence, Needs, check, name_of
from ramify.evidence.reduce import Mean, Reduction
from ramify.types import APPENDED, SAMPLED

__all__ = ["Chunk", "TokenEvidence", "annotate", "evaluate", "several"]

TOKENS = 1 << 16  # in a chunk, unless one candidate alone has more
COUNTED = ("proposed", "sampled", "all")

Statistic = Callable[[Mapping[str, Array]], Array]


class Streamed(Protocol):
    """Evidence that can be had chunk by chunk."""

    @property
    def needs(self) -> Needs: ...

    def of_chunk(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        """``[C]`` from offsets ``[C + 1]``, token columns ``[T]`` and layers ``[C]``."""


class Chunk(dict[str, Array]):
    """The columns of some whole candidates, their layers, and what was already computed from them."""

    def __init__(self, columns: Mapping[str, Array], layers: tuple[str, ...]) -> None:
        super().__init__(columns)
        self.layers = layers
        self.memo: dict[Any, Array] = {}


@method
class TokenEvidence:
    """``reduction`` of ``statistic`` over the tokens of a trace; missing where there are none.

    ``tokens`` says which count as the model's: "proposed" (all but those that the protocol appended itself, as in the
    sequence's log q), "sampled" (forced ones left out too), or "all". A bank that recorded no roles has none
    to leave out; windows run over the tokens that count, as if the others were not there.

    >>> from ramify.evidence import LogProb, Mean
    >>> evidence = TokenEvidence(LogProb(), Mean())
    >>> evidence.of_tokens(np.array([0, 2, 3]), {"logprob": np.array([-1.0, -3.0, -0.5])}).tolist()
    [-2.0, -0.5]
    """

    statistic: Statistic
    reduction: Reduction = Mean()
    tokens: str = "proposed"

    def __post_init__(self) -> None:
        require(self.tokens in COUNTED, "TokenEvidence.tokens", self.tokens, f"use one of {', '.join(COUNTED)}")

    @property
    def needs(self) -> Needs:
        """What the statistic needs; the roles too where forced tokens have to be told apart."""
        own: Needs = getattr(self.statistic, "needs", Needs(every=True))
        return own.union(Needs(("role",))) if self.tokens == "sampled" else own

    @property
    def role(self) -> str:
        return "deployable"

    def __call__(self, bank: Bank) -> Signal:
        return several({"": self}, bank)[""]

    def of_tokens(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        """``[C]`` from flat columns of any size."""
        return evaluate([self], offsets, columns)[0]

    def of_chunk(self, offsets: Array, columns: Mapping[str, Array]) -> Array:
        values = per_token(self.statistic, columns)
        keep = counted(columns, self.tokens)
        if keep is None:
            return self.reduction(values, offsets)
        return self.reduction(values[keep], np.concatenate([[0], np.cumsum(keep)])[offsets])


def counted(columns: Mapping[str, Array], tokens: str) -> Array | None:
    """[T] the tokens that count as the model's own; None where all of them do."""
    if tokens == "all" or "role" not in columns:
        return None
    keep: Array = columns["role"] == SAMPLED if tokens == "sampled" else columns["role"] != APPENDED
    return None if keep.all() else keep


def per_token(statistic: Statistic, columns: Mapping[str, Array]) -> Array:
    """``[T]`` in double precision, a few rows at a time, so that what is ``[T, K]`` on the way stays in the cache."""
    memo = getattr(columns, "memo", {})
    if statistic not in memo:
        flat = tuple(name for name in columns if name not in getattr(columns, "layers", ()))
        needed = getattr(statistic, "needs", Needs(flat)).columns
        size = len(columns[needed[0]]) if needed else 0
        out = np.empty(size)
        for i in range(0, size, ROWS):
            out[i : i + ROWS] = statistic({name: columns[name][i : i + ROWS] for name in needed})
        memo[statistic] = out
    found: Array = memo[statistic]
    return found


# -------------------------------------------------------------------------------------------------------- the one pass


def evaluate(evidences: Sequence[Streamed], offsets: Array, columns: Mapping[str, Array]) -> list[Array]:
    """``[C]`` for each evidence from flat token columns ``[T]`` and layers ``[C]``, in one pass of whole candidates."""
    offsets = np.asarray(offsets)
    needs = needs_of(evidences)
    for name in (*needs.columns, *needs.layers):
        if name not in columns:
            raise InvalidValue(f"the evidence needs {name!r}, and these columns are: {', '.join(columns) or 'none'}")
    names = columns_of(needs, [name for name in columns if name not in needs.layers])
    found = [np.full(len(offsets) - 1, np.nan) for _ in evidences]
    for a, b in chunks(np.diff(offsets)):
        part = {name: columns[name][offsets[a] : offsets[b]] for name in names}
        part |= {name: columns[name][a:b] for name in needs.layers}
        fill(found, evidences, slice(a, b), offsets[a : b + 1] - offsets[a], Chunk(part, needs.layers))
    return found


def several(evidences: Mapping[str, Evidence], bank: Bank) -> dict[str, Signal]:
    """Several evidence maps of one bank in one pass over its tokens; those that share a statistic compute it once.

    >>> from ramify.bank import Bank
    >>> from ramify.evidence import Score
    >>> bank = Bank.of({"q": ["A", "B"]}, scores={"judge": [[0.2, 0.9]]})
    >>> several({"j": Score("judge")}, bank)["j"].values.tolist()
    [[0.2, 0.9]]
    """
    streamed: dict[str, Any] = {name: each for name, each in evidences.items() if streams(each)}
    for each in streamed.values():
        check(bank, each.needs, each)
        refuse_fitted(each, bank)
    signals = {name: each(bank) for name, each in evidences.items() if name not in streamed}
    if streamed:
        signals |= dict(zip(streamed, _of_bank(list(streamed.values()), bank), strict=True))
    return {name: signals[name] for name in evidences}


def _of_bank(evidences: Sequence[Streamed], bank: Bank) -> list[Signal]:
    table, needs = bank.tokens, needs_of(evidences)
    assert table is not None, "checked"
    start, length = table.start.reshape(-1), table.length.reshape(-1)
    names = columns_of(needs, table.columns)
    found = [np.full(length.shape, np.nan) for _ in evidences]
    for a, b in chunks(length):  # slices of the table, so that a permuted or memory-mapped bank is never copied whole
        offsets, part = TokenTable(start[None, a:b], length[None, a:b], table.columns).packed(*names)
        part |= {name: bank.layers[name].values.reshape(-1)[a:b] for name in needs.layers}
        fill(found, evidences, slice(a, b), offsets, Chunk(part, needs.layers))
    return [Signal(values.reshape(bank.shape), np.zeros(bank.shape)) for values in found]


def streams(evidence: object) -> bool:
    """Whether evidence comes from tokens alone, chunk by chunk; a transform does if what it transforms does."""
    return streams(evidence.evidence) if hasattr(evidence, "evidence") else hasattr(evidence, "of_chunk")


def needs_of(evidences: Sequence[Streamed]) -> Needs:
    """What all of them need together."""
    needs = Needs()
    for each in evidences:
        needs = needs.union(each.needs)
    return needs


def columns_of(needs: Needs, recorded: Iterable[str]) -> tuple[str, ...]:
    """The token columns to read: those needed, and the roles where they are known."""
    return tuple(name for name in recorded if needs.every or name in (*needs.columns, "role"))


def fill(found: list[Array], evidences: Sequence[Streamed], rows: slice, offsets: Array, chunk: Chunk) -> None:
    for values, evidence in zip(found, evidences, strict=True):
        values[rows] = evidence.of_chunk(offsets, chunk)


def chunks(length: Array) -> Iterator[tuple[int, int]]:
    """Runs of whole candidates with at most ``TOKENS`` tokens, or a single longer one."""
    end, a = np.cumsum(length, dtype=np.int64), 0
    while a < len(length):
        reach = (end[a - 1] if a else 0) + TOKENS
        b = max(a + 1, int(np.searchsorted(end, reach, side="right")))
        yield a, b
        a = b


def refuse_fitted(evidence: object, bank: Bank) -> None:
    """A fitted transform anywhere inside refuses the questions it was fitted on."""
    fitted = getattr(getattr(evidence, "by", None), "fitted_on", None)
    if fitted is not None:
        fitted.refuse(bank)
    if hasattr(evidence, "evidence"):
        refuse_fitted(evidence.evidence, bank)


def annotate(bank: Bank, **evidences: Evidence) -> Bank:
    """The bank with the evidence attached as layers, each described by the text of what made it."""
    for name, signal in several(evidences, bank).items():
        role = getattr(evidences[name], "role", "deployable")
        kind = "deployable" if role == "deployable" else "diagnostic"
        bank = bank.attach(name, Layer(signal.values, name_of(evidences[name]), cost=signal.cost, role=kind))
    return bank


def spans(values: Array, offsets: Array, cut: Array) -> tuple[Array, Array]:
    """Σ over the tokens before ``cut [C]`` and from it on; an empty part adds nothing."""
    middle = offsets[:-1] + cut
    both = (segments(np.add, values, offsets[:-1], middle), segments(np.add, values, middle, offsets[1:]))
    return tuple(np.where(size > 0, part, 0.0) for part, size in zip(both, (cut, offsets[1:] - middle), strict=True))  # type: ignore[return-value]
