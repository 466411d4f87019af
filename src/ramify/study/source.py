"""Where candidates come from: a local model under its decoder, or a server that samples by itself.

A server (a value with ``urls``) is a sampler already. Its decoder is a field of it, it is asked in words, and it can be
asked beforehand whether it would answer; it is only imported where a study names one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ramify.bank import Proposal
from ramify.decode import Ban, Chain, Operator
from ramify.describe import text
from ramify.errors import InvalidValue, StudyError
from ramify.models import Pocket, decode_with
from ramify.run import Arm
from ramify.study.spec import System
from ramify.types import Question, Sampler
from ramify.verify.of_model import SPELLS

__all__ = [
    "answers",
    "arm_of",
    "cannot_judge",
    "held_of",
    "identity_of",
    "interface_of",
    "is_server",
    "proposal_of",
    "served",
]

SERVING = ("urls", "concurrency", "retry", "timeouts", "key", "stream")  # how a server is reached, not what it says


def is_server(model: Any) -> bool:
    return hasattr(model, "urls")


def cannot_judge(model: Any) -> str:
    """Why a model cannot be asked for label probabilities; nothing if it can."""
    if hasattr(model, "judge"):
        return ""
    if not is_server(model):
        return _cannot_spell(model)
    if model.server in SPELLS:
        return ""
    return f"{model.server} does not say how its token ids read; {' and '.join(SPELLS)} do"


def _cannot_spell(model: Any) -> str:
    """The vocabulary of an embedded model knows neither the words of a prompt nor the labels of a verdict."""
    if not isinstance(model, Pocket):  # the tokenizer of a large model spells everything, and may not be here yet
        return ""
    try:
        model.encode("Assess this attempt. Verdict: A")
    except InvalidValue:
        return f"{text(model)} has no letters to read a prompt with; name a model of language"
    return ""


def identity_of(model: Any) -> str:
    """What decides the leaves of a model, as text: a server that moves to another port is still the same."""
    if not is_server(model):
        return text(model)
    kept = [(each.name, getattr(model, each.name)) for each in dataclasses.fields(model) if each.name not in SERVING]
    return ", ".join(f"{name}={text(value)}" for name, value in kept if name != "decoder")


def interface_of(model: System) -> str:
    """How a configuration is asked: what its entry says, or its model, or the kind of model and the effort."""
    said = model.interface or getattr(getattr(model.model, "interface", ""), "name", "")
    effort = model.effort or getattr(getattr(model.model, "interface", ""), "effort", "")
    return "/".join(part for part in (str(said) or type(model.model).__name__.lower(), effort) if part)


def served(model: System, decode: Operator) -> Any:
    """The server with this decoder: one that it cannot express is refused by name, before anything is asked."""
    return dataclasses.replace(model.model, decoder=decode)


def proposal_of(model: System, decode: Operator, run: str, top: int) -> Proposal:
    """What the leaves of a configuration are drawn from."""
    if is_server(model.model):
        made: Proposal = served(model, decode).proposal(run, top)
        return made
    stage = "raw" if top else "unknown"
    interface = interface_of(dataclasses.replace(model, interface=""))  # a study's label for it may change
    return Proposal(run=run, protocol=text(decode), model=text(model.model), interface=interface, top=top, stage=stage)


def arm_of(model: System, decode: Operator, proposal: Proposal, questions: Sequence[Question]) -> Arm:
    """The source of candidates of a configuration for these questions."""
    if is_server(model.model):
        endpoint = served(model, decode)
        encode: Callable[[Question], Any] = import_module("ramify.models.endpoint").counted(endpoint, questions)
        return Arm(proposal, endpoint, encode)
    sampler = decode_with(model.model, decode, batch=model.batch, workers=model.workers)
    return Arm(proposal, sampler, lambda question: tuple(model.model.encode(question.prompt)))


def held_of(model: System, decode: Operator) -> Sampler:
    """The same with the end suppressed, for directors that forbid it."""
    eos = getattr(model.model, "eos", None)
    if eos is None:
        raise StudyError(f"{model.name} does not say which token ends a text: a director needs a local model")
    return decode_with(model.model, Chain(decode, Ban((eos,))), batch=model.batch)


def answers(model: System, decode: Operator, cap: int, top: int) -> str:
    """Why a model would not answer; nothing if it would, or cannot be asked beforehand."""
    own: Callable[[], Any] | None = getattr(model.model, "preflight", None)
    if own is not None:
        own()
    elif is_server(model.model):
        found = import_module("ramify.models.endpoint").preflight(served(model, decode), top=top, cap=cap)
        return "" if found.ok else "; ".join(f"{each.name}: {each.detail}" for each in found.checks if not each.ok)
    return ""
