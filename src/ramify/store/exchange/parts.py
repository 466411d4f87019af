"""The parts of a bank as they grow, block by block: each reads its own kind of cell and says which it could not."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ramify.bank.codes import either, is_bottom
from ramify.bank.tokens import COLUMNS
from ramify.store.exchange.block import Block
from ramify.store.exchange.names import ABSENT, FALSE, TRUE
from ramify.store.exchange.report import Collector

__all__ = ["Ended", "Part", "ending", "part_for", "question_name", "text_of"]

EOS = {"eos", "stop", "end_turn", "eos_token", "end_of_text", "end", "stop_sequence", "complete", "completed"}
CAP = {"length", "max_tokens", "max_length", "max_new_tokens", "max_output_tokens", "truncated"}
SHORT = 64  # characters of a prompt that can name its question; a longer one is named by its digest


class Part(Protocol):
    """Something that takes blocks and ends as one Arrow column."""

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        """Read the column of a block; returns which rows cannot be used at all."""

    def keep(self, rows: np.ndarray) -> None:
        """Of the block that was read last, keep these rows only."""

    def column(self) -> Any:
        """Everything read so far."""


def text_of(value: Any) -> str | None:
    """A cell as text: one spelling for each value, whichever format it came from; None where there is nothing.

    >>> [text_of(value) for value in (7, 7.0, 7.5, True, "7", "", None, [1, "a"])]
    ['7', '7', '7.5', 'true', '7', None, None, '[1, "a"]']
    """
    if is_bottom(value):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def question_name(prompt: str) -> str:
    """The id of a question that the file only asks: the prompt itself if it is short, else its digest."""
    short = len(prompt) <= SHORT and prompt.isprintable()
    return prompt if short else hashlib.blake2b(prompt.encode("utf-8", "replace"), digest_size=8).hexdigest()


def ending(reason: str) -> str:
    """The ending that a finish reason stands for; a reason nobody knows is "unknown".

    >>> [ending(reason) for reason in ("stop", "max_tokens", "stop:confidence", "content_filter")]
    ['eos', 'length', 'stop:confidence', 'unknown']
    """
    word = reason.strip().lower()
    return "eos" if word in EOS else "length" if word in CAP else reason if word.startswith("stop:") else "unknown"


class Coded:
    """Text that repeats, as codes into the values seen so far."""

    def __init__(self, read: Callable[[str], str | None], needed: bool, name: str) -> None:
        self.read, self.needed, self.name = read, needed, name
        self.values: dict[str, int] = {}
        self.codes: list[np.ndarray] = []

    def code(self, value: Any) -> int:
        text = text_of(value)
        text = None if text is None else self.read(text)
        return -1 if text is None else self.values.setdefault(text, len(self.values))

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        values = block.columns[column]
        if isinstance(values, list):
            codes = np.fromiter(map(self.code, values), dtype=np.int32, count=len(values))
        else:
            encoded = values if hasattr(values, "indices") else values.dictionary_encode()
            table = np.array([*map(self.code, encoded.dictionary.to_pylist()), -1], dtype=np.int32)
            codes = table[encoded.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)]
        self.codes.append(codes)
        absent = codes < 0
        if self.needed:
            for row in np.flatnonzero(absent).tolist():
                found.broken(block.where(row), column, None, f"no {self.name}")
        elif absent.any():
            found.absent(self.name, int(absent.sum()), block.where(int(absent.argmax())))
        return absent & self.needed

    def keep(self, rows: np.ndarray) -> None:
        self.codes[-1] = self.codes[-1][rows]

    def column(self) -> Any:
        import pyarrow as pa

        known = pa.array([_clean(value) for value in self.values], type=pa.large_string())
        chunks = []
        while self.codes:
            codes = self.codes.pop(0)
            chunks.append(pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), known))
        return pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), pa.large_string()))


class Answers(Coded):
    """Answers, which may come in lists of one."""

    def code(self, value: Any) -> int:
        return super().code(_unwrapped(value))


class Gold(Coded):
    """What is right; a list holds alternatives. It is read apart, and never into a bank that rules see."""

    def code(self, value: Any) -> int:
        if isinstance(value, list):
            value = either(text for text in map(text_of, value) if text is not None)
        return super().code(value)

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        values = block.columns[column]
        if (
            not isinstance(values, list) and getattr(values.type, "value_field", None) is not None
        ):  # lists have no codes
            block = dataclasses.replace(block, columns={column: block.listed(column)})
        return super().add(block, column, found)


class Ended(Coded):
    """Finish reasons; those that nobody knows are remembered."""

    def __init__(self) -> None:
        super().__init__(self.reason, False, "ended")
        self.strange: set[str] = set()

    def reason(self, text: str) -> str:
        known = ending(text)
        if known == "unknown" and text.strip().lower() != known:
            self.strange.add(text)
        return known


class Number:
    """Numbers or whole numbers. ``read`` makes one of a single cell, for the blocks Arrow cannot cast as they are."""

    def __init__(self, read: Callable[[Any], Any], dtype: Any, what: str, name: str, needed: bool = False) -> None:
        self.read, self.dtype, self.what, self.name, self.needed = read, np.dtype(dtype), what, name, needed
        self.blocks: list[tuple[np.ndarray, np.ndarray | None]] = []

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        values, absent, wrong = self.fast(block.columns[column]) or self.slow(block, column, found)
        gone = absent & ~wrong
        if self.needed:
            for row in np.flatnonzero(gone).tolist():
                found.broken(block.where(row), column, None, f"no {self.name}")
        elif gone.any():
            found.absent(self.name, int(gone.sum()), block.where(int(gone.argmax())))
        self.blocks.append((values, absent if absent.any() else None))
        return absent & self.needed

    def fast(self, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """The whole block at once, if every cell is of the right kind."""
        import pyarrow as pa

        kind = pa.from_numpy_dtype(self.dtype)
        try:
            if isinstance(values, list):
                odd = (bool, float) if self.dtype.kind == "i" else (bool,)  # Arrow would cut 1.5 to 1 without a word
                if any(isinstance(value, odd) for value in values):
                    return None
                values = pa.array(values, type=kind)
            elif pa.types.is_boolean(values.type):
                values = values.cast(pa.int8())
            values = values.cast(kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
        absent = values.is_null().to_numpy(zero_copy_only=False)
        plain = values.fill_null(0).to_numpy(zero_copy_only=False)
        absent = absent | np.isnan(plain) if self.dtype.kind == "f" else absent
        return (plain, absent, np.zeros(len(plain), dtype=bool)) if self.fits(plain[~absent]) else None

    def fits(self, values: np.ndarray) -> bool:
        return bool((values >= 0).all()) if self.dtype.kind == "i" else True

    def slow(self, block: Block, column: str, found: Collector) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cell by cell, so that the one that is wrong has a name."""
        listed = block.listed(column)
        values, (absent, wrong) = np.zeros(len(listed), dtype=self.dtype), np.zeros((2, len(listed)), dtype=bool)
        for row, cell in enumerate(listed):
            try:
                read = self.read(cell)
            except (ValueError, TypeError, OverflowError):
                found.broken(block.where(row), column, cell, self.what, self.remedy)
                read, wrong[row] = None, True
            absent[row] = read is None
            values[row] = 0 if read is None else read
        return values, absent, wrong

    @property
    def remedy(self) -> str:
        """What to do about a cell that is none, where the file does not need the column."""
        family, _, name = self.name.partition(".")
        if family == "outcome":
            gold = f"--reference {name} if it is the right answer, mapping['layer.{name}'] = '{name}' if it is a score"
            return f"; empty the cell if it is missing; {gold}, or leave it out: mapping[{self.name!r}] = None"
        spare = family in ("layer", "cost")
        return (
            f"; empty the cell if it is missing, or leave the column out: mapping[{self.name!r}] = None"
            if spare
            else ""
        )

    def keep(self, rows: np.ndarray) -> None:
        values, absent = self.blocks[-1]
        self.blocks[-1] = (values[rows], None if absent is None else absent[rows])

    def column(self) -> Any:
        import pyarrow as pa

        chunks = []
        while self.blocks:
            values, absent = self.blocks.pop(0)
            chunks.append(pa.array(values, mask=absent))
        return pa.chunked_array(chunks, type=pa.from_numpy_dtype(self.dtype))


class Grade(Number):
    """Grades in [0, 1]: flags, numbers, or words for right and wrong."""

    def fits(self, values: np.ndarray) -> bool:
        return bool(((values >= 0) & (values <= 1)).all())


class Text:
    """The words of a candidate, kept as they are."""

    def __init__(self) -> None:
        self.chunks: list[Any] = []

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        import pyarrow as pa

        values = block.columns[column]
        if isinstance(values, list) or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            words = [value if isinstance(value, str) else text_of(value) for value in block.listed(column)]
            values = pa.array([None if word is None else _clean(word) for word in words], type=pa.large_string())
        self.chunks.append(values.cast(pa.large_string()))
        if values.null_count:
            first = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
            found.absent("text", values.null_count, block.where(first))
        return np.zeros(len(values), dtype=bool)

    def keep(self, rows: np.ndarray) -> None:
        import pyarrow as pa

        self.chunks[-1] = self.chunks[-1].filter(pa.array(rows))

    def column(self) -> Any:
        import pyarrow as pa

        return pa.chunked_array(self.chunks, type=pa.large_string())


class Lists(Text):
    """Token columns: a list a candidate, of numbers or of K alternatives."""

    def __init__(self, name: str) -> None:
        import pyarrow as pa

        super().__init__()
        self.name, item = name, pa.from_numpy_dtype(COLUMNS[name])
        self.kind = pa.large_list(pa.large_list(item) if name.startswith("top_") else item)

    def add(self, block: Block, column: str, found: Collector) -> np.ndarray:
        import pyarrow as pa

        values = block.columns[column]
        try:
            values = (pa.array(values) if isinstance(values, list) else values).cast(self.kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            cells = [self.cell(block, column, row, cell, found) for row, cell in enumerate(block.listed(column))]
            values = pa.array(cells).cast(self.kind)
        self.chunks.append(values)
        if values.null_count:
            first = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
            found.absent(f"token.{self.name}", values.null_count, block.where(first))
        return np.zeros(len(values), dtype=bool)

    def cell(self, block: Block, column: str, row: int, cell: Any, found: Collector) -> Any:
        import pyarrow as pa

        try:
            return pa.array([cell]).cast(self.kind)[0].as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            found.broken(block.where(row), column, cell, f"not a list for token.{self.name}")
            return None

    def column(self) -> Any:
        import pyarrow as pa

        return pa.chunked_array(self.chunks, type=self.kind)


def _clean(text: str) -> str:
    """Half of a surrogate pair has no UTF-8 form: it becomes "?"."""
    return text.encode("utf-8", "replace").decode() if any("\ud800" <= c <= "\udfff" for c in text) else text


def _unwrapped(cell: Any) -> Any:
    """A score may come in a list of one."""
    return cell[0] if isinstance(cell, list) and len(cell) == 1 else cell


def _number(cell: Any) -> float | None:
    cell = _unwrapped(cell)
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in ABSENT):
        return None
    number = float(cell)
    return None if math.isnan(number) else number


def _grade(cell: Any) -> float | None:
    word = str(cell).strip().lower() if isinstance(cell, str) else None
    if word in TRUE or word in FALSE:
        return float(word in TRUE)
    number = _number(cell)
    if number is not None and not 0 <= number <= 1:
        raise ValueError(cell)
    return number


def _whole(cell: Any) -> int | None:
    cell = _unwrapped(cell)
    if is_bottom(cell) or (isinstance(cell, str) and cell.strip().lower() in ABSENT):
        return None
    exact = float(cell).is_integer() and not isinstance(cell, bool)
    number = int(cell) if not isinstance(cell, str) or cell.strip().lstrip("+-").isdigit() else int(float(cell))
    if not exact or not 0 <= number < 2**63:
        raise ValueError(cell)
    return number


def part_for(part: str, bottom: frozenset[str], names_itself: bool) -> Part:
    """What reads a part. ``bottom`` are texts that mean ⊥; ``names_itself``: the question's column is its prompt."""
    family, _, name = part.partition(".")
    match family:
        case "question":
            return Coded(question_name if names_itself else str, True, part)
        case "answer":
            return Answers(lambda text: None if text in bottom else text, False, part)
        case "ended":
            return Ended()
        case "group" if name == "reference":
            return Gold(str, False, part)
        case "prompt" | "run" | "proposal" | "group":
            return Coded(str, False, part)
        case "sample" | "candidate":
            return Number(_whole, np.int64, "not a whole number from 0 to 2**63 - 1", part, needed=True)
        case "length":
            return Number(_whole, np.int64, "not a number of tokens", part)
        case "outcome":
            return Grade(_grade, np.float64, "not a grade in [0, 1]", part)
        case "text":
            return Text()
        case "token":
            return Lists(name)
        case _:
            return Number(_number, np.float64, "not a number", part)
