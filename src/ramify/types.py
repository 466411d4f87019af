"""The records the whole system speaks. Frozen, and with their shapes written where the names are born."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ramify.errors import InvalidValue, is_whole, require

if TYPE_CHECKING:
    from ramify.arrays import Array

__all__ = ["Key", "Leaf", "Model", "Prefix", "Prompt", "Question", "Request", "Sampler", "Served", "Top", "Words"]

SAMPLED, FORCED, APPENDED = (
    0,
    1,
    2,
)  # the roles of a token: drawn; a deterministic action; written by the protocol


class Key(NamedTuple):
    """The name of one random stream: nothing else decides what a candidate draws."""

    run: str
    question: str
    sample: int
    stream: str = "draw"


@dataclass(frozen=True, slots=True)
class Question:
    """What inference may see of a task item. References live behind the wall, in evaluation."""

    id: str
    prompt: str
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A partial trajectory z of one question: what search scores and expands."""

    question: Question
    tokens: tuple[int, ...]
    role: tuple[int, ...]
    log_q: float = math.nan  # of all that the proposal drew, where it is known
    logprob: float = math.nan  # of the same tokens under the raw model
    seen: int = 0  # how many of its tokens its parent had, which evaluators have looked at before


@dataclass(frozen=True, slots=True)
class Words:
    """A prompt as text, for a server that has the tokenizer and the chat template; as long as the server counts it."""

    text: str
    tokens: int  # that the server will read, the template's included: what a budget charges

    def __post_init__(self) -> None:
        require(isinstance(self.text, str), "Words.text", self.text, "use a string")
        require(is_whole(self.tokens), "Words.tokens", self.tokens, "use a number of tokens >= 0")

    def __len__(self) -> int:
        return self.tokens


Prompt: TypeAlias = tuple[int, ...] | Words
"""What a sampler reads: token ids, or the text of them for a sampler that has no tokenizer on this side."""


@dataclass(frozen=True, slots=True)
class Request:
    """One trajectory to produce, or to go on with.

    ``prefix`` tokens open the trajectory. Those with role SAMPLED (the default) or FORCED are replayed through the
    decoder, which restores its state and their log q, so that a resumed trajectory continues as the whole one did;
    those with role APPENDED are the protocol's own words and carry no log q.
    """

    key: Key
    prompt: Prompt
    cap: int  # tokens in the whole trajectory, prefix included
    prefix: tuple[int, ...] = ()
    prefix_role: tuple[int, ...] | None = None
    top: int = 0  # alternatives to record at every token, from the raw model
    until: tuple[int, ...] = ()  # tokens that end the trajectory, beside the model's own end
    stop: Callable[[Any], Any] | None = None  # a TokenStop: acts at a token index, from the first new token on

    def __post_init__(self) -> None:
        require(is_whole(self.cap), "Request.cap", self.cap, "use a number of tokens >= 0")
        require(is_whole(self.top), "Request.top", self.top, "use a number of alternatives >= 0")
        for name in ("prompt", "prefix", "until"):
            tokens = getattr(self, name)
            ok = isinstance(tokens, tuple) and all(is_whole(token) for token in tokens)
            ok = ok or (name == "prompt" and isinstance(tokens, Words))
            require(ok, f"Request.{name}", tokens, "use a tuple of token ids >= 0")
        require(len(self.prefix) <= self.cap, "Request.cap", self.cap, "let the cap cover the prefix")
        roles = self.prefix_role
        ok = roles is None or (len(roles) == len(self.prefix) and set(roles) <= {SAMPLED, FORCED, APPENDED})
        require(ok, "Request.prefix_role", roles, "give each token the role 0 (sampled), 1 (forced) or 2 (appended)")

    @property
    def ids(self) -> tuple[int, ...]:
        """The prompt's token ids: all that a model on this side can read."""
        if isinstance(self.prompt, Words):
            raise InvalidValue(
                f"Request.prompt = {self.prompt!r}: a local model reads token ids; encode the text first"
            )
        return self.prompt


class Top(NamedTuple):
    """The K most likely tokens at every position, under the raw model."""

    ids: Array  # [t, K]
    logprobs: Array  # [t, K]


@dataclass(frozen=True, slots=True)
class Served:
    """How a leaf came over a wire. Nothing of it is the leaf's content; all of it may explain why two leaves differ."""

    server: str  # the base URL that answered
    model: str  # as the server names it
    seed: int  # as it was sent
    fingerprint: str = ""
    id: str = ""  # of the response
    finish: str = ""  # the server's own word for how it ended
    attempt: int = 1  # that succeeded; a second one is a draw that some fault has selected
    failures: tuple[str, ...] = ()  # of the attempts before
    refused: int = 0  # times the server asked to come back later, before anything was drawn
    wasted: int = 0  # tokens that failed attempts had sent
    counted: str = "logprobs"  # what the number of tokens was taken from: logprobs | ids | usage | pieces
    reported: int | None = None  # completion tokens, by the server's own count
    prompt_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt: a warm cache may change the arithmetic
    beside: int = 0  # other requests of this client under way when it was sent: a batch may, too
    reasoning: str = ""  # where the server gives it apart
    first: float = math.nan  # seconds to the first token
    seconds: float = math.nan  # of the attempt that succeeded


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A completed trajectory with every signal of its generation. Truncated leaves are leaves.

    Position t was drawn from a kernel with ``log_q[t]``, under a model that gave it ``logprob[t]``. Appended tokens
    carry NaN for log_q: nothing proposed them.
    """

    key: Key
    tokens: Array  # [t]
    role: Array  # [t] SAMPLED, FORCED or APPENDED
    logprob: Array  # [t] log p of the raw model
    log_q: Array  # [t] log q̃ of the proposal
    rank: Array  # [t] 1 is the model's mode
    support: Array  # [t] tokens the kernel could have drawn
    fallback: Array  # [t] whether a gate would have left nothing
    ended: str  # eos | length | stop:<rule> (stop:until, stop:cancelled, ...) | unknown
    text: str = ""
    top: Top | None = None
    served: Served | None = None

    @property
    def sequence_log_q(self) -> float:
        """log q(y | x): the proposal's log-probability of everything it drew."""
        return float(self.log_q[self.role != APPENDED].sum())


State = TypeVar("State")


class Model(Protocol[State]):
    """An autoregressive model as pure functions of a state: batching and order cannot change a result."""

    @property
    def eos(self) -> int:
        """The token that ends a trajectory."""

    def start(self, prompts: Sequence[Sequence[int]]) -> State:
        """The state after reading each prompt, a row a prompt."""

    def logits(self, state: State) -> Array:
        """Next-token logits ``[B, V]``."""

    def advance(self, state: State, tokens: Array) -> State:
        """The state after appending ``tokens [B]``."""

    def select(self, states: Sequence[State], rows: Any) -> State:
        """The given rows of several states, counted through them: fork, prune and merge in one call."""

    def text(self, tokens: Sequence[int]) -> str:
        """The string that these tokens spell."""


Sampler: TypeAlias = Callable[[Iterable[Request]], Iterator[Leaf]]
"""The one seam to the outside world. Closing the iterator cancels what is still running.

Requests are taken as there is room for them. An iterable that has none at the moment may raise StopIteration and be
asked again; with an attribute ``cancelled``, a set of keys, it gives up requests under way, where the sampler looks.
Every request that was taken is answered: one that was given up by a leaf of what it had, because that is charged.
"""
