"""Prompt interfaces as data: what stands around a question, and how a model is told to think."""

from __future__ import annotations

from typing import Any

from ramify.describe import method
from ramify.errors import require

__all__ = ["BOXED", "Interface"]

BOXED = "{question}\n\nPlease reason step by step, and put your final answer within \\boxed{{}}."
EFFORTS = ("", "low", "medium", "high")
Json = tuple[tuple[str, Any], ...]


@method
class Interface:
    """A question becomes messages (chat), or one text (completions).

    ``template`` holds the question and the answer instruction. ``effort`` is a reasoning effort that the server takes
    as a parameter; ``switches`` are arguments of the chat template, such as ``(("enable_thinking", False),)``. On a
    completions route the server applies no chat template, so ``raw`` is the whole of it, with ``{system}`` and
    ``{user}``. ``think`` are the marks of the reasoning segment: where a server gives it apart, a leaf's text has it
    back between them.

    >>> Interface("plain", system="Be brief.", template="Q: {question}").messages("1 + 1?")
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Q: 1 + 1?'}]
    >>> Interface("few", raw="{user}\\nA:").written("1 + 1?")
    '1 + 1?\\nA:'
    """

    name: str = "plain"
    system: str = ""
    template: str = "{question}"
    effort: str = ""
    switches: tuple[tuple[str, Any], ...] = ()
    raw: str = "{user}"
    think: tuple[str, str] = ("<think>\n", "\n</think>\n\n")

    def __post_init__(self) -> None:
        require(self.name, "Interface.name", self.name, "name it: a bank records by which interface it was asked")
        require(_fills(self.template, "question"), "Interface.template", self.template, "hold {question}, once")
        require(_fills(self.raw, "user", "system"), "Interface.raw", self.raw, "hold {user}, and {system} at most once")
        ok = isinstance(self.effort, str) and self.effort in EFFORTS
        require(ok, "Interface.effort", self.effort, "use 'low', 'medium', 'high', or '' for none")
        ok = len(self.think) == 2 and all(isinstance(mark, str) for mark in self.think)
        require(ok, "Interface.think", self.think, "give the opening and the closing mark")

    def messages(self, question: str) -> list[dict[str, str]]:
        """The messages of a chat."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.template.format(question=question)}]

    def written(self, question: str) -> str:
        """The one text of a completion."""
        return self.raw.format(user=self.template.format(question=question), system=self.system)

    def parameters(self) -> dict[str, Any]:
        """What a chat request says beside its messages."""
        effort = {"reasoning_effort": self.effort} if self.effort else {}
        return effort | ({"chat_template_kwargs": dict(self.switches)} if self.switches else {})

    def joined(self, reasoning: str, text: str) -> str:
        """The whole of what a model wrote, with the reasoning between its marks where it came apart."""
        return f"{self.think[0]}{reasoning}{self.think[1]}{text}" if reasoning else text


def _fills(template: str, needed: str, *others: str) -> bool:
    """Whether a template formats with these names alone, and has the needed one."""
    marks = {name: f"\0{name}\0" for name in (needed, *others)}
    try:
        filled = template.format(**marks)
    except (KeyError, IndexError, ValueError, AttributeError):
        return False
    return filled.count(marks[needed]) == 1
