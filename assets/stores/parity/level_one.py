"""Level one: every row of both sides is read, both sides at once, and partitions become cells.

Where both are read into this process, their rows are hashed there first; the cells of partitions
that are equal by that are made of the source alone, for they are those of the target, too. Only
where something differs, or where the server makes the cells, are they made of the target. Here
belongs what is read at a time, and what a resumed proof need not read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from assets.stores.counting import Passed, unheard
from assets.stores.parity.descent import Descent
from assets.stores.parity.options import CellLedger, Options
from assets.stores.parity.side import NO_ROWS, Prints, Scans, Side
from transforms.parity.canonical import Kind
from transforms.parity.cells import Print
from transforms.parity.contract import RefusedError
from transforms.parity.grid import Cut, Grid
from transforms.parity.proof import Partition
from transforms.resequence import side_by_side

WHOLE = "all"
# Partitions of a grid that are read at once.
AT_ONCE = 128
# Only what both engines write as the same text can name a partition.
_PARTITION_KINDS = frozenset({Kind.TEXT, Kind.INT, Kind.DATE})


@dataclass(frozen=True)
class Share:
    """What is read at once: empty partitions by number; ``grid`` is what they lie on, if on any."""

    partitions: Mapping[int, Partition]
    grid: Grid | None = None

    @property
    def cut(self) -> Cut | None:
        """How its rows fall apart."""
        return None if self.grid is None else self.grid.cut

    def where(self, descent: Descent, side: Side) -> str:
        """Return what picks its rows on a side."""
        if self.grid is not None:
            return self.grid.condition(self.partitions)
        [partition] = self.partitions.values()
        return descent.where(side, partition)

    def only(self, numbers: Iterable[int]) -> "Share":
        """Return the share of some of its partitions."""
        return replace(self, partitions={number: self.partitions[number] for number in numbers})


def read(descent: Descent, options: Options) -> list[Partition]:
    """Return every partition with the cells of both sides; kept ones are not read again."""
    return [
        partition
        for share in _shares(descent, options)
        for partition in _taken(descent, options, share)
    ]


def _taken(descent: Descent, options: Options, share: Share) -> Iterable[Partition]:
    ledger = options.ledger
    if ledger is None:
        return _read(descent, options.told, share).values()
    kept = _recalled(descent, ledger, share)
    rest = share.only(number for number in share.partitions if number not in kept)
    new = _read(descent, options.told, rest) if rest.partitions else {}
    for partition in new.values():
        ledger.keep(descent.contract, partition)
    return [(kept | new)[number] for number in share.partitions]


def _recalled(descent: Descent, ledger: CellLedger, share: Share) -> dict[int, Partition]:
    known = {n: ledger.recall(descent.contract, p.name) for n, p in share.partitions.items()}
    return {
        number: replace(share.partitions[number], source=cells[0], target=cells[1], resumed=True)
        for number, cells in known.items()
        if cells is not None
    }


def _shares(descent: Descent, options: Options) -> Iterator[Share]:
    grid = options.grid
    if grid is None:
        for name in _names(descent, options.partition):
            yield Share({0: Partition(name, {}, {}, options.partition)})
        return
    for numbers in grid.shares(AT_ONCE):
        partitions = {
            number: Partition(grid.names[number], {}, {}, condition=grid.condition([number]))
            for number in numbers
        }
        yield Share(partitions, grid)
    if grid.rest:
        yield Share({0: Partition(grid.rest, {}, {}, condition=grid.elsewhere())})


def _names(descent: Descent, column: str | None) -> Sequence[str]:
    if column is None:
        return [WHOLE]
    place = descent.contract.position(column)
    kind = None if place is None else descent.contract.proven[place].kind.kind
    if kind not in _PARTITION_KINDS:
        allowed = ", ".join(sorted(_PARTITION_KINDS))
        raise RefusedError([f"partition column {column} is {kind}; allowed: {allowed}"])
    sides = (descent.source, descent.target)
    return sorted({value for side in sides for value in side.partitions(column)})


def _read(descent: Descent, told: Passed, share: Share) -> dict[int, Partition]:
    sides = (descent.source, descent.target)
    prints: list[Prints] = [{}, {}]
    if all(side.in_process for side in sides):
        scans, prints = _hashed(descent, told, share)
    else:
        read_one = partial(_cells, descent, share=share, told=told)
        scans = list(side_by_side(read_one, sides, workers=2))
    _refuse_null_keys(sides, scans)
    return {
        number: replace(
            partition,
            source=scans[0].get(number, NO_ROWS).cells,
            target=scans[1].get(number, NO_ROWS).cells,
            alike=_alike(number, *prints),
        )
        for number, partition in share.partitions.items()
    }


def _hashed(descent: Descent, told: Passed, share: Share) -> tuple[list[Scans], list[Prints]]:
    def source() -> tuple[Prints, Scans]:
        prints = _prints(descent, descent.source, share, told)
        return prints, _cells(descent, descent.source, share)

    def target() -> tuple[Prints, Scans]:
        return _prints(descent, descent.target, share, told), {}

    both = side_by_side(lambda read_side: read_side(), (source, target), workers=2)
    (of_source, cells), (of_target, _) = both
    differing = [n for n in share.partitions if of_source.get(n) != of_target.get(n)]
    scans = {number: scan for number, scan in cells.items() if number not in differing}
    if differing:
        scans |= _cells(descent, descent.target, share.only(differing))
    return [cells, scans], [of_source, of_target]


def _alike(number: int, source: Prints, target: Prints) -> Print | None:
    found = source.get(number)
    return found if found is not None and found == target.get(number) else None


def _cells(descent: Descent, side: Side, share: Share, told: Passed = unheard) -> Scans:
    return side.cells(descent.contract, share.where(descent, side), share.cut, told)


def _prints(descent: Descent, side: Side, share: Share, told: Passed) -> Prints:
    return side.prints(descent.contract, share.where(descent, side), share.cut, told)


def _refuse_null_keys(sides: Sequence[Side], scans: Sequence[Scans]) -> None:
    counts = [sum(scan.null_keys for scan in each.values()) for each in scans]
    nulls = [
        f"{side.label}: {count} rows have a null in their key"
        for side, count in zip(sides, counts, strict=True)
        if count
    ]
    if nulls:
        raise RefusedError(nulls)
