"""Reports: figures and tables made from arrays and results, and one self-contained page that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ramify.report.bankpage import finding_of, profile_page
from ramify.report.case import Case
from ramify.report.values import Column, Explorer, Figure, Page, Picture, Remark, Section, Table

if TYPE_CHECKING:
    from ramify.report.studypage import finding, page_of

__all__ = [
    "Case",
    "Column",
    "Explorer",
    "Figure",
    "Page",
    "Picture",
    "Remark",
    "Section",
    "Table",
    "finding",
    "finding_of",
    "page_of",
    "profile_page",
]


def __getattr__(name: str) -> Any:
    """The page of a study, when it is asked for: the page of a bank needs no study, and nothing that runs one."""
    if name in ("finding", "page_of"):
        from ramify.report import studypage

        return getattr(studypage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
