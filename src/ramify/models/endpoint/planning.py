"""What a run will take, said before it starts, and the question that a large one has to pass."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from ramify.errors import require
from ramify.ledger import Cost, Tokens, Work, amount

__all__ = ["Plan", "confirm", "plan"]

# Bytes a token in a bank (docs/schema.md): the chosen token's columns with its text, and each recorded alternative.
TOKEN, ALTERNATIVE = 14.0, 3.2
GENERATED = Tokens()


@dataclasses.dataclass(frozen=True)
class Plan:
    """Requests, tokens, cost, time and disk of a run, at most; ``str`` is the summary."""

    requests: int
    prompt_tokens: int  # read, over all requests
    tokens: int  # generated, at most
    cost: float
    unit: str
    seconds: float  # NaN: nothing is known of the speed
    bytes: float

    def __str__(self) -> str:
        took = "unknown" if math.isnan(self.seconds) else _time(self.seconds)
        lines = (
            ("requests", f"{self.requests:,}"),
            ("tokens read", f"{self.prompt_tokens:,}"),
            ("tokens made", f"at most {self.tokens:,}"),
            ("cost", f"at most {amount(self.cost)} {self.unit}"),
            ("time", f"at most {took}"),
            ("disk", f"about {_size(self.bytes)}"),
        )
        return "\n".join(f"{name:12}{said}" for name, said in lines)


def plan(
    prompts: Sequence[int],
    n: int,
    cap: int,
    *,
    top: int = 0,
    cost: Cost = GENERATED,
    unit: str = "tokens",
    speed: float = math.nan,
    width: int = 1,
) -> Plan:
    """The plan of ``n`` leaves of at most ``cap`` tokens for each prompt (its length in tokens).

    ``speed`` is that of one request alone, in tokens a second (a preflight measures it), and ``width`` how many run at
    once; a server that slows down under load takes longer.

    >>> print(plan([100, 200], n=8, cap=1000, top=20, speed=50.0, width=4))
    requests    16
    tokens read 2,400
    tokens made at most 16,000
    cost        at most 16,000 tokens
    time        at most 1 min 20 s
    disk        about 1.25 MB
    """
    require(n >= 0 and cap >= 0 and width >= 1, "plan", (n, cap, width), "use numbers >= 0, and a width >= 1")
    works = [Work(generated=cap, prompt=length) for length in prompts]
    tokens = len(prompts) * n * cap
    return Plan(
        requests=len(prompts) * n,
        prompt_tokens=sum(prompts) * n,
        tokens=tokens,
        cost=float(sum(cost(work) for work in works) * n),
        unit=unit,
        seconds=tokens / (speed * width) if speed > 0 else math.nan,
        bytes=tokens * (TOKEN + ALTERNATIVE * top),
    )


def confirm(made: Plan, limit: float, ask: Callable[[str], bool]) -> bool:
    """Whether to start: without a question up to a ``limit`` of the plan's unit, beyond it if ``ask`` says so."""
    return made.cost <= limit or ask(f"{made}\nThis may cost more than {amount(limit)} {made.unit}. Start?")


def _time(seconds: float) -> str:
    hours, rest = divmod(math.ceil(seconds), 3600)
    if hours:
        return f"{hours:,} h {rest // 60} min"
    return f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{rest} s"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
