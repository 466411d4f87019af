"""OpenAI-compatible servers as samplers: chat and completions, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ramify.models.endpoint.endpoint import Endpoint, Timeouts
from ramify.models.endpoint.flow import Aimd, Retry
from ramify.models.endpoint.interface import BOXED, Interface
from ramify.models.endpoint.planning import Plan, confirm, plan

if TYPE_CHECKING:
    from ramify.models.endpoint.ask import counted
    from ramify.models.endpoint.checks import Preflight, preflight

__all__ = [
    "BOXED",
    "Aimd",
    "Endpoint",
    "Interface",
    "Plan",
    "Preflight",
    "Retry",
    "Timeouts",
    "confirm",
    "counted",
    "plan",
    "preflight",
]

LATE = {"counted": "ask", "Preflight": "checks", "preflight": "checks"}  # they need an HTTP client


def __getattr__(name: str) -> Any:
    if name not in LATE:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{LATE[name]}"), name)
