"""The contract of a proof: which columns are compared, as what, in which role; its fingerprint.

Here belongs how two sides come to one contract, or why they cannot. What a row of the contract
looks like as bytes is ``canonical``.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from transforms.parity.canonical import ColumnType, Kind, text_frame
from transforms.parity.canonical_types import Declared

LOCATORS = ("_digest", "_bucket")  # they locate rows and prove nothing


class Role(StrEnum):
    """What a column is to a row."""

    KEY = "key"
    NULLABLE_KEY = "key?"
    VALUE = "value"
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class Column:
    """A column of the contract."""

    name: str
    kind: ColumnType
    role: Role


@dataclass(frozen=True)
class Contract:
    """Columns in the order of the frame: those of the key first."""

    columns: tuple[Column, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Hex sha256 over names, types and roles."""
        words = ["CF1"]
        for column in self.columns:
            words += [column.name, str(column.kind), str(column.role)]
        return hashlib.sha256(b"".join(map(text_frame, words))).hexdigest()

    @cached_property
    def proven(self) -> tuple[Column, ...]:
        """The columns of the row frame."""
        return tuple(column for column in self.columns if column.role is not Role.UNPROVEN)

    @cached_property
    def key(self) -> tuple[Column, ...]:
        """The columns of the key frame, the first ones of the row frame."""
        return tuple(c for c in self.columns if c.role in {Role.KEY, Role.NULLABLE_KEY})

    @cached_property
    def values(self) -> tuple[Column, ...]:
        """What a row says beside its key."""
        return self.proven[len(self.key) :]

    def position(self, name: str) -> int | None:
        """Where a proven column stands in a row, None where the contract has none of that name."""
        names = [column.name for column in self.proven]
        return names.index(name) if name in names else None

    def as_rows(self) -> list[list[str]]:
        """Name, type and role of each column, as evidence keeps them."""
        return [[c.name, str(c.kind), str(c.role)] for c in self.columns]


class RefusedError(Exception):
    """It cannot be judged; every reason, a line for each."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class Wish:
    """What the caller says about the columns of two tables.

    ``key`` names the key columns in order, ``nullable`` those of them that may be null;
    ``left_out`` is not compared; ``types`` settles a column that no side declares (``numeric`` on
    both).
    """

    key: Sequence[str]
    nullable: Collection[str] = ()
    left_out: Collection[str] = ()
    types: Mapping[str, ColumnType] | None = None


def agree(source: Sequence[Declared], target: Sequence[Declared], wish: Wish) -> Contract:
    """One contract for two tables: the columns of the source, which the target must have too."""
    there = {column.name: column for column in target}
    reasons = _unknown_names(source, wish) + _without_effect(source, target, wish)
    columns: list[Column] = []
    for column in _ordered(source, wish):
        kind = _common(column, there.get(column.name), wish, reasons)
        if kind is not None:
            columns.append(Column(column.name, kind, _role(column.name, wish)))
    if reasons:
        raise RefusedError(reasons)
    return Contract(tuple(columns))


def only_in_target(target: Iterable[Declared], contract: Contract, wish: Wish) -> list[str]:
    """Columns of the target that nobody compares and nobody left out on purpose."""
    known = {column.name for column in contract.columns} | set(wish.left_out) | set(LOCATORS)
    return [column.name for column in target if column.name not in known]


def _ordered(source: Sequence[Declared], wish: Wish) -> list[Declared]:
    by_name = {column.name: column for column in source}
    keys = [by_name[name] for name in wish.key if name in by_name]
    skipped = {*wish.key, *wish.left_out, *LOCATORS}
    return keys + [column for column in source if column.name not in skipped]


def _unknown_names(source: Sequence[Declared], wish: Wish) -> list[str]:
    names = {column.name for column in source}
    reasons = [f"key column {name} is not in the source" for name in wish.key if name not in names]
    odd = [name for name in wish.nullable if name not in wish.key]
    reasons += [f"column {name} may be null as a key only if it is one" for name in odd]
    return reasons if wish.key else ["a key is needed"]


def _without_effect(
    source: Sequence[Declared], target: Sequence[Declared], wish: Wish
) -> list[str]:
    """What was said of columns that are not there, or that say it themselves: a slip of the pen."""
    here = {column.name for column in (*source, *target)}
    loose = {c.name for c in (*source, *target) if c.kind is None}
    unknown = [name for name in wish.left_out if name not in here]
    reasons = [f"column {name} is left out, and is on no side" for name in unknown]
    for name in wish.types or {}:
        if name not in here:
            reasons.append(f"column {name} is given a type, and is on no side")
        elif name not in loose:
            reasons.append(f"column {name} is given a type, and has one of its own")
    return reasons


def _role(name: str, wish: Wish) -> Role:
    if name not in wish.key:
        return Role.VALUE
    return Role.NULLABLE_KEY if name in wish.nullable else Role.KEY


def _common(
    source: Declared, target: Declared | None, wish: Wish, reasons: list[str]
) -> ColumnType | None:
    """The type both sides agree on; else None, and the reason is noted."""
    name = source.name
    if target is None:
        reasons.append(f"column {name} is missing in the target")
        return None
    refused = [f"{side.declared}: {side.why}" for side in (source, target) if side.why]
    if refused:
        reasons.append(f"column {name} is {'; '.join(dict.fromkeys(refused))}")
        return None
    found = _settled(source, target, (wish.types or {}).get(name))
    if found is None:
        reasons.append(
            f"column {name} is {source.declared} in the source and {target.declared} in the target"
        )
    return found


def _settled(source: Declared, target: Declared, said: ColumnType | None) -> ColumnType | None:
    kinds = {side.kind for side in (source, target) if side.kind is not None}
    if not kinds:  # numeric on both sides: only the caller knows the digits
        return said if said is not None and said.kind is Kind.DECIMAL else None
    adopting = source.adopts or target.adopts
    kind = next(iter(kinds))
    if len(kinds) > 1 or (adopting and kind.kind is not Kind.DECIMAL):
        return None
    return kind
