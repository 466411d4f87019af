"""Reports: figures and tables made from arrays and results, and one self-contained page that holds them."""

from ramify.report.bankpage import finding_of, profile_page
from ramify.report.case import Case
from ramify.report.studypage import finding, page_of
from ramify.report.values import Column, Explorer, Figure, Page, Picture, Remark, Section, Table

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
