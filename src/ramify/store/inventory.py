"""What a bank holds, a row a run, as the tables of a paper list it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ramify.store.snapshot import Snapshot

__all__ = ["Inventory", "Row", "inventory"]

UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class Row:
    """One run. What was not recorded is "unknown", never 0."""

    run: str
    kind: str
    questions: int
    n: str  # "80", or "16 to 80" where it differs
    responses: int
    invalid: int
    capped: int | str
    tokens: int | str
    signals: str


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The rows, what is attached to the bank, and the bytes of all its files."""

    rows: tuple[Row, ...]
    questions: int
    layers: tuple[str, ...]
    outcomes: tuple[str, ...]
    bytes: int
    journal: int  # candidates that are not in a shard yet

    def __str__(self) -> str:
        heads = (
            "run",
            "proposal",
            "questions",
            "N",
            "responses",
            "invalid",
            "at the cap",
            "tokens",
            "recorded signals",
        )
        rows = [tuple(_number(value) for value in dataclasses.astuple(row)) for row in self.rows]
        widths = [max(len(line[i]) for line in (heads, *rows)) for i in range(len(heads))]
        left = (0, 1, 8)
        lines = [
            "  ".join(
                f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in (heads, *rows)
        ]
        total = sum(row.responses for row in self.rows)
        lines.append(f"{self.questions:,} questions, {total:,} responses, {self.bytes:,} bytes")
        lines.append(f"scores: {', '.join(self.layers) or 'none'}; outcomes: {', '.join(self.outcomes) or 'none'}")
        if self.journal:
            lines.append(f"{self.journal:,} responses are in journals: a writer is at work, or was interrupted")
        return "\n".join(line.rstrip() for line in lines)

    def describe(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return dataclasses.asdict(self)


def inventory(snapshot: Snapshot) -> Inventory:
    """Count what a snapshot holds."""
    bank = snapshot.bank(text=False)
    rows = []
    for source, proposal in enumerate(bank.proposals):
        mine = bank.source == source
        if not mine.any():
            continue
        counts = mine.sum(axis=1)
        counts = counts[counts > 0]
        n = f"{counts.max():,}" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
        ended = bank.ended[mine]
        known = (ended != bank.endings.index(UNKNOWN)).all()
        assert bank.length is not None
        lengths = bank.length[mine]
        rows.append(
            Row(
                run=proposal.run or "(no name)",
                kind=proposal.kind,
                questions=len(counts),
                n=n,
                responses=int(mine.sum()),
                invalid=int((bank.answers[mine] < 0).sum()),
                capped=int((ended == bank.endings.index("length")).sum()) if known else UNKNOWN,
                tokens=int(lengths.sum()) if (lengths >= 0).all() else UNKNOWN,
                signals=_signals(proposal.signals, proposal.top, proposal.stage),
            )
        )
    return Inventory(
        rows=tuple(rows),
        questions=len(bank.questions),
        layers=tuple(snapshot.layer_names),
        outcomes=tuple(snapshot.outcome_names),
        bytes=sum(file.stat().st_size for file in snapshot.path.rglob("*") if file.is_file()),
        journal=int(np.count_nonzero(snapshot.order.part == len(snapshot.shards))),
    )


def _signals(names: tuple[str, ...], top: int, stage: str) -> str:
    chosen = [name for name in names if not name.startswith("top_")]
    alternatives = [f"top {top} ({stage})"] if top else []
    return ", ".join(chosen + alternatives) or "answers only"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
