"""Docstrings as the site shows them: doctests in fences, and the fields of a method as its signature."""

from __future__ import annotations

from typing import Any

from griffe import Class, Extension, Function, Object, Parameter, ParameterKind, Parameters

__all__ = ["Shown", "fenced"]


class Shown(Extension):
    """What the reference pages change in what they read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """``@method`` makes a dataclass, which reading alone cannot tell: give it the constructor it will have."""
        if any(str(decorator.value) == "method" for decorator in cls.decorators) and "__init__" not in cls.members:
            fields = [member for member in cls.members.values() if member.is_attribute and member.annotation]
            either = ParameterKind.positional_or_keyword
            taken = [Parameter(f.name, annotation=f.annotation, kind=either, default=f.value) for f in fields]
            cls.set_member(
                "__init__", Function("__init__", parameters=Parameters(Parameter("self", kind=either), *taken))
            )


def fenced(text: str) -> str:
    """``text`` with each doctest, up to the next empty line, between fences: Markdown would read a quotation.

    >>> fenced("What.\\n\\n>>> 1 + 1\\n2\\n\\nMore.")
    'What.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n\\nMore.'
    """
    blocks = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{block}\n```" if block.startswith(">>>") else block for block in blocks)
