"""Before the first token: is the server there, and does it do what a run will ask of it?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ramify.decode import Chain, Greedy
from ramify.errors import EndpointError, RamifyError
from ramify.models.endpoint.ask import asking
from ramify.models.endpoint.endpoint import Endpoint
from ramify.types import Key, Leaf, Request, Words

__all__ = ["Check", "Preflight", "preflight"]

TRIAL = 8  # tokens of a trial request
CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


class Check(NamedTuple):
    """One thing that was looked at. A grave one would spoil the run; the others are worth knowing."""

    name: str
    ok: bool
    detail: str
    grave: bool = True


@dataclasses.dataclass(frozen=True)
class Preflight:
    """What was found. ``str`` shows it, a line a check."""

    checks: tuple[Check, ...]
    context: int | None = None  # tokens, of the prompt and the answer together
    speed: float = math.nan  # tokens a second of one request alone
    model: str = ""  # as the server names itself
    fingerprint: str = ""

    @property
    def ok(self) -> bool:
        """Whether a run may start."""
        return all(check.ok or not check.grave for check in self.checks)

    def __str__(self) -> str:
        marks = {(True, True): "ok", (True, False): "ok", (False, True): "FAILED", (False, False): "note"}
        return "\n".join(f"{marks[check.ok, check.grave]:6}  {check.name}: {check.detail}" for check in self.checks)


def preflight(
    endpoint: Endpoint,
    *,
    question: str = "What is 17 + 25?",
    top: int = 0,
    cap: int = 16,
    prompts: Sequence[int] = (),
    rehearse: Callable[[], str] | None = None,
) -> Preflight:
    """Ask a server, with a few short requests, whether a run of this kind will work.

    ``cap`` and ``prompts`` (tokens of each) are those of the run: they must fit the context. ``rehearse`` is a dry run
    of everything that comes after generation, on gold answers; it returns what to show, and raises if a step fails. A
    run that dies in its report after a night of generation is the reason for it.
    """
    checks: list[Check] = []
    if rehearse is not None:
        checks.append(_rehearsed(rehearse))
    assert not isinstance(endpoint.urls, str)
    context: int | None = None
    for url, _ in endpoint.urls:
        try:
            with asking(endpoint) as ask:
                listed = [dict(each) for each in ask(f"{url}/models")["data"]]
        except EndpointError as error:
            return Preflight((*checks, Check("reachable", False, str(error))))
        except (KeyError, TypeError, ValueError):
            said = f"{url}/models does not list models as OpenAI's does: is it an OpenAI-compatible server?"
            return Preflight((*checks, Check("reachable", False, said)))
        checks.append(Check("reachable", True, url))
        names = [str(each.get("id")) for each in listed]
        checks.append(Check("model", endpoint.model in names, f"{endpoint.model}; there are: {', '.join(names[:8])}"))
        held = next((_context(each) for each in listed if each.get("id") == endpoint.model), None)
        context = held if context is None else min(context, held or context)
    if not all(check.ok for check in checks if check.name == "model"):
        return Preflight(tuple(checks), context)
    checks.append(_fits(context, max(prompts, default=0), cap))
    try:
        first, second, *others = _trial(endpoint, question, top)
    except RamifyError as error:
        return Preflight((*checks, Check("answers", False, str(error))), context)
    checks += [_numbers(endpoint, first, top), _seeds(endpoint, first, second, others)]
    served = first.served
    assert served is not None
    speed = len(first.tokens) / served.seconds if served.seconds else math.nan
    return Preflight(tuple(checks), context, speed, served.model, served.fingerprint)


def _rehearsed(rehearse: Callable[[], str]) -> Check:
    try:
        return Check("dry run", True, rehearse())
    except Exception as error:  # whatever the caller's parse, grade, metrics or report raise
        return Check("dry run", False, f"{type(error).__name__}: {error}")


def _context(model: dict[str, Any]) -> int | None:
    """The context length, by whichever name a server has for it."""
    places = (model, model.get("meta") or {})
    return next((int(place[name]) for name in CONTEXT for place in places if place.get(name)), None)


def _fits(context: int | None, longest: int, cap: int) -> Check:
    if context is None:
        return Check("context", False, "the server does not say how long it is", grave=False)
    said = f"{longest:,} tokens of prompt and {cap:,} of answer in {context:,}"
    return Check("context", longest + cap <= context, said)


def _trial(endpoint: Endpoint, question: str, top: int) -> list[Leaf]:
    """The same request twice, one after the other, and three others."""
    made = []
    for sample in (0, 0, 1, 2, 3):
        request = Request(Key("preflight", "trial", sample), Words(question, 0), TRIAL, top=top)
        made += list(endpoint([request]))
    return made


def _numbers(endpoint: Endpoint, leaf: Leaf, top: int) -> Check:
    if not (endpoint.logprobs or top):
        return Check("log-probabilities", True, "none are asked for")
    given = leaf.top.ids.shape[1] if leaf.top is not None else 0
    ids = "with token ids" if (leaf.tokens >= 0).all() else "without token ids"
    ok = bool(len(leaf.tokens)) and bool(np.isfinite(leaf.logprob).all()) and given == top
    said = f"{len(leaf.tokens)} tokens, {given} alternatives each, {ids}, {endpoint.dialect.stage}"
    return Check("log-probabilities", ok, said)


def _seeds(endpoint: Endpoint, first: Leaf, second: Leaf, others: Sequence[Leaf]) -> Check:
    """Whether reruns repeat and repeats differ. A server that does not may still be worth asking: it is recorded."""
    same = first.text == second.text and np.array_equal(first.tokens, second.tokens)
    exact = same and np.array_equal(first.logprob, second.logprob, equal_nan=True)
    greedy = endpoint.decoder in (Greedy(), Chain(Greedy()))
    varied = greedy or any(leaf.text != first.text for leaf in others)
    if not same:
        return Check("seeds", False, "one seed gave two texts: a rerun will not repeat this run", grave=False)
    if not varied:
        return Check("seeds", False, "four seeds gave one text: are they ignored, or is it that sure?", grave=False)
    how = "to the bit" if exact else "though its log-probabilities differ in the last digits"
    return Check("seeds", True, f"the same text twice, {how}; another seed, another text", grave=False)
