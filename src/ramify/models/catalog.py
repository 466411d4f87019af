"""The models of the paper as data: what they are, how they were asked, and how they were sampled.

One file in the package, and any number of a user's own in the same form. Nothing here is looked up anywhere else: what
the paper does not say is ``"unknown"``.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from ramify.decode import Chain, presets
from ramify.errors import InvalidValue
from ramify.models.endpoint import BOXED, Endpoint, Interface

__all__ = ["Archetype", "Block", "Catalog", "Configuration", "Family", "Verifier", "load"]

UNKNOWN = "unknown"
OPTION = "{question}\n\nReason step by step, and end with the letter of your final option."
TEMPLATES = {"signal-rich": BOXED, "repeated": BOXED, "supergpqa": OPTION}


@dataclasses.dataclass(frozen=True)
class Archetype:
    """A post-training archetype, or a class of mechanisms."""

    name: str
    about: str
    examples: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of experiments: its questions, its samples, and how they were drawn unless a model says otherwise."""

    name: str
    about: str = UNKNOWN
    questions: int = 0
    n: int = 1
    cap: int = 0
    top: int = 0
    instruction: str = UNKNOWN
    seed: str = UNKNOWN
    decoding: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Family:
    """A family of models, by how it was made."""

    name: str
    paradigm: str = UNKNOWN
    data: str = UNKNOWN
    base: str = UNKNOWN
    remarks: str = UNKNOWN
    in_roster: bool = False
    archetypes: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A model at one effort. ``decoding`` says by block how it was sampled, in the arguments of the vLLM preset."""

    name: str
    model: str = ""
    family: str = UNKNOWN
    blocks: tuple[str, ...] = ()
    effort: str = ""
    base: str = UNKNOWN
    parameters: str = UNKNOWN
    control: str = UNKNOWN  # the model's own, of how much it thinks
    context: str = UNKNOWN
    licence: str = UNKNOWN
    recommended: str = UNKNOWN  # decoding, by its makers
    decoding: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    switches: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # arguments of its chat template

    def decoder(self, block: str) -> Chain:
        """The chain that the block was sampled with, as vLLM runs it.

        >>> load().configuration("Qwen3.6-35B-A3B").decoder("supergpqa").operators[0]
        Presence(alpha=1.5, scope='generated', last=None)
        """
        if block not in self.decoding:
            raise InvalidValue(f"{self.name} has no block {block!r}: it is in {', '.join(self.decoding) or 'none'}")
        return presets.vllm(**self.decoding[block])

    def interface(self, block: str = "repeated") -> Interface:
        """How it is asked. The paper describes its instructions; the wording is ours."""
        switches = tuple(sorted(self.switches.items()))
        return Interface(f"{self.name}/{block}", "", TEMPLATES.get(block, "{question}"), self.effort, switches)

    def endpoint(self, urls: str | tuple[tuple[str, float], ...], block: str, **fields: Any) -> Endpoint:
        """An endpoint that samples it as the block did, on vLLM; ``model=`` for another name on the server."""
        given = {"model": self.model or self.name, "server": "vllm"}
        return Endpoint(urls=urls, decoder=self.decoder(block), interface=self.interface(block), **given | fields)


@dataclasses.dataclass(frozen=True)
class Verifier:
    """A model that scores candidates. One that reads the reference is a diagnostic, never evidence."""

    name: str
    blocks: tuple[str, ...] = ()
    reads: str = UNKNOWN
    score: str = UNKNOWN
    reference_assisted: bool = True
    licence: str = UNKNOWN


@dataclasses.dataclass(frozen=True)
class Catalog:
    """All of it. Entries of later files replace those of the same name."""

    blocks: Mapping[str, Block]
    archetypes: Mapping[str, Archetype]
    mechanisms: Mapping[str, Archetype]
    families: Mapping[str, Family]
    configurations: Mapping[str, Configuration]
    verifiers: Mapping[str, Verifier]

    def configuration(self, name: str) -> Configuration:
        """The configuration of a name; a near miss is pointed out."""
        if name not in self.configurations:
            close = difflib.get_close_matches(name, self.configurations, n=1, cutoff=0.4)
            raise InvalidValue(f"{name!r} is not in the catalog{f'; did you mean {close[0]!r}?' if close else ''}")
        return self.configurations[name]

    def of_block(self, block: str) -> tuple[Configuration, ...]:
        """The configurations of a block, in the catalog's order.

        >>> len(load().of_block("broad")), len(load().of_block("repeated"))
        (27, 20)
        """
        return tuple(each for each in self.configurations.values() if block in each.blocks)


Entry = TypeVar("Entry", Archetype, Block, Family, Configuration, Verifier)


def load(*extra: str | Path) -> Catalog:
    """The catalog of the package, with the entries of further TOML files after it."""
    read = [_read(files("ramify").joinpath("data/catalog.toml").read_text("utf-8"), "ramify's own catalog.toml")]
    read += [_read(Path(file).read_text("utf-8"), str(file)) for file in extra]
    blocks = _named(Block, read, "blocks")
    found = Catalog(
        blocks=blocks,
        archetypes=_named(Archetype, read, "archetypes"),
        mechanisms=_named(Archetype, read, "mechanisms"),
        families=_named(Family, read, "families"),
        configurations={
            name: _decoded(each, blocks) for name, each in _named(Configuration, read, "configurations").items()
        },
        verifiers=_named(Verifier, read, "verifiers"),
    )
    _check(found)
    return found


def _read(text: str, where: str) -> tuple[str, dict[str, Any]]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(f"{where}: not TOML: {error}") from None
    known = [field.name for field in dataclasses.fields(Catalog)]
    for name in found:
        if name not in known:
            raise InvalidValue(f"{where}: no section {name!r}: a catalog has {', '.join(known)}")
    return where, found


def _named(cls: type[Entry], read: list[tuple[str, dict[str, Any]]], section: str) -> dict[str, Entry]:
    """The entries of a section by name, from tables ``[section.NAME]`` or lists ``[[section]]``."""
    found: dict[str, Entry] = {}
    for where, tables in read:
        part = tables.get(section, {})
        listed = [{"name": name, **fields} for name, fields in part.items()] if isinstance(part, dict) else part
        names = [each.get("name") for each in listed]
        if len(set(names)) != len(names) or None in names:
            raise InvalidValue(f"{where}: {section}: every entry needs a name of its own")
        found |= {each["name"]: _entry(cls, each, f"{where}: {section} {each['name']!r}") for each in listed}
    return found


def _entry(cls: type[Entry], fields: Mapping[str, Any], where: str) -> Entry:
    known = [field.name for field in dataclasses.fields(cls)]
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidValue(f"{where} has no field {name!r}{hint}")
    given: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in fields.items()}
    return cls(**given)


def _decoded(each: Configuration, blocks: Mapping[str, Block]) -> Configuration:
    """The configuration with the decoding of every block it is in: its own, or the block's."""
    held = {name: each.decoding.get(name, blocks[name].decoding) for name in each.blocks if name in blocks}
    return dataclasses.replace(each, decoding={**each.decoding, **held}, model=each.model or each.name)


def _check(catalog: Catalog) -> None:
    """Names that point at other entries point at some."""
    for name, each in catalog.configurations.items():
        for block in each.blocks:
            if block not in catalog.blocks:
                raise InvalidValue(f"configuration {name!r}: there is no block {block!r}")
        if each.family not in (UNKNOWN, *catalog.families):
            raise InvalidValue(f"configuration {name!r}: there is no family {each.family!r}")
        for block in each.decoding:
            try:
                each.decoder(block)
            except TypeError as error:
                raise InvalidValue(f"configuration {name!r}: decoding of {block!r}: {error}") from None
    for family in catalog.families.values():
        wrong = [name for name in family.archetypes if name not in catalog.archetypes]
        wrong += [name for name in family.mechanisms if name not in catalog.mechanisms]
        if wrong:
            raise InvalidValue(f"family {family.name!r}: there is no {wrong[0]!r} among archetypes and mechanisms")
