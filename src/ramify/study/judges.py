"""Evidence that asks a model: verifiers of a study with their judges, and graders behind the wall.

Every prompt is asked once and kept by its content under the study's folder, whoever asks it again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.decode import Chain
from ramify.errors import StudyError
from ramify.kinds import kind_of
from ramify.study.source import cannot_judge, identity_of, is_server, served
from ramify.study.spec import Protocol, Study, System
from ramify.study.world import Asked
from ramify.verify import Judge, Replies, local_judge, served_judge

__all__ = ["Bound", "Judging", "judge_of"]


class Bound(NamedTuple):
    """Evidence of a protocol: the name its rule reads, what it is in words, and the map itself."""

    name: str
    label: str
    evidence: Callable[[Bank], Any]


class Judging:
    """The judges of a study, each made when it is first asked, with what they have said."""

    def __init__(self, study: Study, folder: Path, words: Callable[[Any], str]) -> None:
        self.study, self.folder, self.words = study, folder, words
        self._made: dict[str, tuple[Judge, Replies]] = {}

    def bound(self, protocol: Protocol) -> tuple[Bound, ...]:
        """The evidence of a protocol, verifiers with their judge."""
        found = []
        for name, evidence in protocol.evidence:
            if kind_of(evidence) == "verifier":
                judge, replies = self.judge(protocol.judge)
                label = f"{self.words(evidence)} by {judge.identity}"
                found.append(Bound(name, label, evidence.by(judge, replies)))
            else:
                found.append(Bound(name, self.words(evidence), evidence))
        return tuple(found)

    def graded(self, protocol: Protocol, bank: Bank, asked: Asked) -> Array:
        """[Q, N] what a reference-assisted grader says: a diagnostic, whatever is made of it."""
        judge, replies = self.judge(protocol.judge)
        pairs = zip(asked.questions, asked.references, strict=True)
        references = {question.id: str(gold) for question, gold in pairs}
        values: Array = protocol.diagnostic.__call__(bank, references, judge, replies).outcomes.on(bank)
        return values

    def judge(self, name: str) -> tuple[Judge, Replies]:
        if name not in self._made:
            system = next(each for each in (*self.study.judges, *self.study.models) if each.name == name)
            judge = judge_of(system)
            self._made[name] = judge, Replies(self.folder / "replies")
        return self._made[name]

    def close(self) -> None:
        for _, replies in self._made.values():
            replies.close()


def judge_of(system: System) -> Judge:
    """A model as a judge: a local one, a server that gives token ids, or any that says itself how (``judge()``)."""
    model = system.model
    own: Callable[[], Judge] | None = getattr(model, "judge", None)
    if own is not None:
        return own()
    if is_server(model):
        endpoint = served(system, system.decode if system.decode is not None else model.decoder)
        if why := cannot_judge(endpoint):
            raise StudyError(f"judge {system.name}: {why}")
        return served_judge(endpoint)
    return local_judge(model, system.decode or Chain(), name=identity_of(model), batch=system.batch)
