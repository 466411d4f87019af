"""A study file: TOML, or a Python file that makes the same value. Everything wrong with it is said at once, by line."""

from __future__ import annotations

import dataclasses
import re
import runpy
import sys
import tomllib
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ramify.errors import StudyError
from ramify.study.fields import MODEL, NEEDED, PROTOCOL, REDUCED, STUDY, TASK, Fields, Wrong
from ramify.study.lines import Lines, index, nearest_line
from ramify.study.spec import Protocol, Reduced, Study, System, Tasked
from ramify.study.valid import Problem, nearest, problems, unranked

__all__ = ["Source", "load", "loads"]


@dataclasses.dataclass(frozen=True)
class Source:
    """A study and where it was written, so that what is found wrong later can be pointed at too."""

    study: Study
    file: str = "study"
    lines: Lines | None = None

    def refuse(self, found: Iterable[Problem]) -> None:
        """Raise with every problem at its place, unless there is none."""
        said = [f"{self.place(path)}: {message}" for path, message in sorted(found, key=self._line)]
        if said:
            raise StudyError("\n".join(dict.fromkeys(said)))

    def place(self, path: tuple[str | int, ...]) -> str:
        """file:line, or the path of the field where a study is no TOML file."""
        if self.lines is not None:
            return f"{self.file}:{nearest_line(self.lines, path)}"
        dotted = ".".join(f"{part}" for part in path)
        return f"{self.file}: {dotted}"

    def _line(self, problem: Problem) -> int:
        return 0 if self.lines is None else nearest_line(self.lines, problem[0])


def load(path: str | Path) -> Source:
    """The study in a file, checked by itself; ``StudyError`` lists every line that is wrong."""
    path = Path(path)
    if not path.is_file():
        beside = sorted(each.name for each in path.parent.glob("*.toml")) if path.parent.is_dir() else []
        raise StudyError(f"{path}: there is no such file{nearest(path.name, beside)}")
    if path.suffix == ".py":
        return _python(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors of Windows mark UTF-8 with a byte order
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: {error}; a study is a TOML file in UTF-8, or a Python file ending in .py") from None
    return loads(text, str(path))


def loads(text: str, file: str = "study.toml") -> Source:
    """The study in a TOML text.

    >>> loads('[study]\\ntitle = "x"\\n[task]\\ntask = "Countdwon(4)"')
    Traceback (most recent call last):
    ramify.errors.StudyError: study.toml:1: the study has no [[model]]: name at least one
    study.toml:1: the study has no [[protocol]]: name at least one
    study.toml:4: task = 'Countdwon(4)': Countdwon is not a name of ramify; did you mean Countdown?
    """
    try:
        form = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        raise StudyError(f"{file}:{at[1] if at else len(text.splitlines())}: {error}") from None
    lines, wrong = index(text), list[Problem]()
    study = _study(form, wrong)
    source = Source(study, file, lines)
    missing = {(section,) for section in ("task", "model", "protocol") if not form.get(section)}
    # Entries that could not be read are not in the study: what else it lacks may be what they have.
    found = [*problems(study), *unranked(study)]
    source.refuse([*wrong, *(each for each in found if not wrong or each[0] in missing)])
    return source


def _python(path: Path) -> Source:
    """A Python file is a program of the user's own: it is run, with its folder to import from, for its ``study``."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        found = runpy.run_path(str(path), run_name="study").get("study")
    except StudyError:
        raise
    except SyntaxError as error:
        raise StudyError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except Exception as error:  # whatever the user's program raises
        raise StudyError(f"{_raised_at(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    if not isinstance(found, Study):
        raise StudyError(f"{path}: a Python study sets `study = Study(...)`, and this one has {found!r}")
    source = Source(found, str(path))
    source.refuse(problems(found) or unranked(found))
    return source


def _raised_at(error: Exception, path: Path) -> str:
    """file:line of the last thing that the user's own files did: what they called is not theirs to mend."""
    frames = traceback.extract_tb(error.__traceback__)
    beside = path.resolve().parent
    mine = [frame for frame in frames if Path(frame.filename).resolve().parent == beside]
    return f"{mine[-1].filename}:{mine[-1].lineno}" if mine else str(path)


def _read(form: Any, fields: Fields, path: tuple[str | int, ...], wrong: list[Problem]) -> dict[str, Any] | None:
    """The fields of a table that can be read; None if one that is needed cannot."""
    if not isinstance(form, dict):
        wrong.append((path, f"{path[0]} = {form!r}: use a table, [{path[0]}]"))
        return None
    found: dict[str, Any] = {}
    for key, given in form.items():
        if key not in fields:
            wrong.append(((*path, key), f"{key} = {given!r}: [{path[0]}] has no such field{nearest(key, [*fields])}"))
            continue
        try:
            found[key] = fields[key](given)
        except Wrong as error:
            wrong.append(((*path, key), f"{key} = {given!r}: {error}"))
    missing = [name for name in NEEDED[str(path[0])] if name not in found]
    wrong += [(path, f"[{path[0]}] needs {name}") for name in missing if name not in form]
    return None if missing else found


def _study(form: Mapping[str, Any], wrong: list[Problem]) -> Study:
    """The study, of whatever could be read."""
    sections = ("study", "task", "model", "judge", "protocol", "reduced")
    for name, given in form.items():
        if name not in sections:
            wrong.append(((name,), f"{name} = {given!r}: a study has no such table{nearest(name, sections)}"))
    if "study" not in form:
        wrong.append(((), "the file has no [study]: give it one, with a title"))
    given = _read(form.get("study", {"title": "?"}), STUDY, ("study",), wrong) or {"title": "?"}
    less = _read(form["reduced"], REDUCED, ("reduced",), wrong) if "reduced" in form else None
    return Study(
        **given,
        tasks=tuple(Tasked(**each) for each in _entries(form, "task", TASK, wrong)),
        models=tuple(System(**each) for each in _entries(form, "model", MODEL, wrong)),
        judges=tuple(System(**each) for each in _entries(form, "judge", MODEL, wrong)),
        protocols=tuple(Protocol(**each) for each in _entries(form, "protocol", PROTOCOL, wrong)),
        reduced=None if less is None else Reduced(**less),
    )


def _entries(form: Mapping[str, Any], section: str, fields: Fields, wrong: list[Problem]) -> list[dict[str, Any]]:
    """The tables of one section; a single one may be written [task] instead of [[task]]."""
    given = form.get(section, [])
    if isinstance(given, dict):
        found = _read(given, fields, (section,), wrong)
        return [] if found is None else [found]
    read = [_read(each, fields, (section, i), wrong) for i, each in enumerate(given)]
    return [each for each in read if each is not None]
