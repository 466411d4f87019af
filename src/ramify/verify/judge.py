"""Asking a model about candidates: prompts in, label probabilities out; each prompt once, and never again.

A ``Judge`` is a model behind a ``Sampler``. What it said is kept in ``Replies`` under a digest of everything that
decides it, so a run that was stopped goes on where it was, and a second verifier with the same prompts pays nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from types import TracebackType

import msgspec
import numpy as np

from ramify.arrays import Array
from ramify.bank import Bank
from ramify.errors import InvalidValue, is_whole, require
from ramify.store.journal import Journal, payloads
from ramify.types import Key, Leaf, Prompt, Request, Sampler
from ramify.verify.labels import label_logprobs

__all__ = ["Judge", "Replies", "Reply", "Task", "ask", "relation", "shortened", "slots", "without_middle"]

CUT = "\n[...]\n"  # stands where the middle of a candidate was left out


@dataclasses.dataclass(frozen=True)
class Judge:
    """A model that is asked: who it is, who samples it, how words become its prompt, and how its tokens read.

    ``name`` is the model as banks name theirs (``Proposal.model``), which tells self-evaluation from cross-model
    evaluation. ``context`` bounds prompt and reply together. Label probabilities are the raw model's, whatever the
    sampler's decoder is; what it writes before a label is not, so ``how`` names the decoder and the interface: replies
    of one model that is asked in two ways are never taken for each other.
    """

    name: str
    sampler: Sampler
    encode: Callable[[str], Prompt]
    token: Callable[[int], str]  # the text of one token
    context: int | None = None
    how: str = ""  # it is asked, in words

    @property
    def identity(self) -> str:
        """Who is asked, and how."""
        return f"{self.name} ({self.how})" if self.how else self.name

    def __post_init__(self) -> None:
        require(bool(self.name), "Judge.name", self.name, "name the model: a score is nothing without who gave it")
        ok = self.context is None or is_whole(self.context, 1)
        require(ok, "Judge.context", self.context, "use a number of tokens >= 1, or None")


@dataclasses.dataclass(frozen=True)
class Task:
    """One thing to ask. A label is read at the first letter or digit after the last occurrence of each of ``after``.

    "" is the start of the reply: whatever was drawn there, the probabilities of the labels are what counts.
    """

    prompt: str
    labels: tuple[str, ...] = ()
    after: tuple[str, ...] = ("",)
    cap: int = 1
    top: int = 20
    repeat: int = 0  # a number for asking the same thing again

    def digest(self, judge: str) -> str:
        """The content that decides the reply."""
        parts = [judge, *dataclasses.astuple(self)]
        return hashlib.blake2b(json.dumps(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Reply(msgspec.Struct, frozen=True):
    """What a judge said, and the log-probabilities of the labels at each place: None for one that was not shown."""

    digest: str
    text: str
    marks: tuple[tuple[float | None, ...] | None, ...]  # [places][labels]; None: the reply does not get there
    prompt: int  # tokens read
    tokens: int  # tokens written

    def logprobs(self, labels: int) -> Array:
        """``[places, labels]``: -inf where a label was not shown, NaN throughout where the place was not reached."""
        rows = [(np.nan,) * labels if mark is None else mark for mark in self.marks]
        return np.array([[-np.inf if x is None else x for x in row] for row in rows], dtype=np.float64)

    @property
    def cost(self) -> int:
        """Tokens read and written."""
        return self.prompt + self.tokens


class Replies:
    """What judges have said, by content. With a ``folder``, durable before anybody sees it.

    >>> kept = Replies()
    >>> kept.keep([Reply("d", "A", ((0.0,),), 3, 1)])
    >>> kept["d"].text, len(kept)
    ('A', 1)
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._journal: Journal | None = None
        self._known: dict[str, Reply] = {}
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            decode = msgspec.json.Decoder(Reply).decode
            for path in sorted(self._folder.glob("*.log")):
                self._known |= {reply.digest: reply for reply in map(decode, payloads(path))}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, digest: str) -> bool:
        return digest in self._known

    def __getitem__(self, digest: str) -> Reply:
        return self._known[digest]

    def keep(self, replies: Iterable[Reply]) -> None:
        replies = list(replies)
        if self._folder is not None and replies:
            if self._journal is None:
                self._journal = Journal(self._free())
            self._journal.append(map(msgspec.json.encode, replies))
        self._known |= {reply.digest: reply for reply in replies}

    def _free(self) -> Path:
        """A name that no other writer has or will have: two that look for a free number find the same one."""
        assert self._folder is not None
        return self._folder / f"{time.time_ns():020d}-{token_hex(8)}.log"

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> Replies:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def ask(judge: Judge, tasks: Sequence[Task], replies: Replies | None = None) -> list[Reply]:
    """The replies to all tasks, in order. Each content is asked once; what is known is not asked at all."""
    kept = Replies() if replies is None else replies
    wanted = {task.digest(judge.identity): task for task in tasks}
    fresh = {digest: task for digest, task in wanted.items() if digest not in kept}
    requests = (
        Request(Key("verify", digest, task.repeat, "judge"), judge.encode(task.prompt), cap=task.cap, top=task.top)
        for digest, task in fresh.items()
    )
    for leaf in judge.sampler(requests):
        digest = leaf.key.question
        kept.keep([_read(judge, fresh[digest], leaf, digest)])
    lost = [digest for digest in fresh if digest not in kept]
    if lost:
        raise InvalidValue(f"{judge.name} left {len(lost)} of {len(fresh)} prompts unanswered: ask again")
    return [kept[task.digest(judge.identity)] for task in tasks]


def _read(judge: Judge, task: Task, leaf: Leaf, digest: str) -> Reply:
    pieces = [judge.token(int(token)) for token in leaf.tokens]
    marks = tuple(_mark(judge, task, leaf, pieces, after) for after in task.after) if task.labels else ()
    prompt = len(judge.encode(task.prompt))
    return Reply(digest, "".join(pieces), marks, prompt, len(pieces))


def _mark(judge: Judge, task: Task, leaf: Leaf, pieces: Sequence[str], after: str) -> tuple[float | None, ...] | None:
    """The labels' log-probabilities at the place where one is due; None where the reply does not get there."""
    place = _place(pieces, after)
    if place is None:
        return None
    if leaf.top is None:
        raise InvalidValue(f"{judge.name} gave no alternatives: a verifier needs a sampler that records them (top)")
    shown = zip(leaf.top.ids[place].tolist(), leaf.top.logprobs[place].tolist(), strict=True)
    spelled: dict[str, float] = {}
    for token, logprob in shown:
        if token >= 0 and logprob > -np.inf:
            name = judge.token(int(token))
            spelled[name] = float(np.logaddexp(spelled.get(name, -np.inf), logprob))
    return tuple(None if np.isneginf(x) else float(x) for x in label_logprobs(spelled, task.labels))


def _place(pieces: Sequence[str], after: str) -> int | None:
    """The first token with a letter or digit that begins behind the last ``after``; of "" the first token of all."""
    if not after:
        return 0 if pieces else None
    found = "".join(pieces).rfind(after)
    if found < 0:
        return None
    begin = 0
    for place, piece in enumerate(pieces):
        if begin >= found + len(after) and any(map(str.isalnum, piece)):
            return place
        begin += len(piece)
    return None


def shortened(judge: Judge, build: Callable[[Callable[[str], str]], str], longest: int, cap: int) -> str:
    """The prompt, with as much of the candidates' middles left out as the context demands.

    ``build(cut)`` makes the prompt with ``cut`` applied to every candidate, none of more than ``longest`` characters.
    Their beginnings and ends stay, and so does everything that is put around them.
    """
    prompt = build(str)
    room = None if judge.context is None else judge.context - cap
    if room is None or len(judge.encode(prompt)) <= room:
        return prompt
    low, high = 0, longest  # characters kept of each
    while low < high:
        middle = (low + high + 1) // 2
        fits = len(judge.encode(build(partial(without_middle, keep=middle)))) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    prompt = build(partial(without_middle, keep=low))
    fits = len(judge.encode(prompt)) <= room
    require(fits, "Judge.context", judge.context, "the question and the instructions alone need more: use a longer one")
    return prompt


def without_middle(text: str, keep: int) -> str:
    """At most ``keep`` characters of a text, from both ends.

    >>> without_middle("abcdefgh", 5)
    'abc\\n[...]\\ngh'
    """
    if len(text) <= keep:
        return text
    return text[: (keep + 1) // 2] + CUT + (text[-(keep // 2) :] if keep // 2 else "")


def relation(bank: Bank, judge: Judge) -> Array:
    """``[Q, N]`` "self" where the judge made the candidate, "cross" where another model did, "" where nobody knows."""
    kinds = ["self" if each.model == judge.name else "cross" if each.model else "" for each in bank.proposals]
    table: Array = np.array([*kinds, ""], dtype=object)[bank.source]
    return table


def slots(template: str, values: Mapping[str, str]) -> str:
    """A template with its slots filled. Text that happens to look like a slot stays as it is.

    >>> slots("Q: {question} A: {candidate}", {"question": "{candidate}?", "candidate": "4"})
    'Q: {candidate}? A: 4'
    """
    return "".join(_filled(template, values))


def _filled(template: str, values: Mapping[str, str]) -> Iterator[str]:
    rest = template
    while True:
        places = [(rest.find("{" + name + "}"), name) for name in values if "{" + name + "}" in rest]
        if not places:
            yield rest
            return
        at, name = min(places)
        yield rest[:at]
        yield values[name]
        rest = rest[at + len(name) + 2 :]
