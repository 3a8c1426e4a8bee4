"""The self-test of CF1 as relations and checks: a path that differs in one byte must not judge.

A store runs the production queries over ``vectors`` and ``example`` and hands the answers back.
Here belong what is asked and what must come out; who asks is the store.
"""

from collections.abc import Sequence

from transforms.parity.canonical import ColumnType, Kind, encode, frame
from transforms.parity.canonical_frames import rows_of
from transforms.parity.canonical_vectors import (
    EXAMPLE_CELLS,
    EXAMPLE_FINGERPRINT,
    EXAMPLE_PARTITION,
    EXAMPLE_ROOT,
    EXAMPLE_ROWS,
    SEPARATOR_ROWS,
    VECTORS,
)
from transforms.parity.cells import Cells, Print, cells_of, root
from transforms.parity.contract import Column, Contract, RefusedError, Role
from transforms.parity.faults import digests_of
from transforms.parity.sql import Relation

_TEXT = ColumnType(Kind.TEXT)

# Every vector is a column of one row.
VECTOR_CONTRACT = Contract(
    tuple(
        Column(f"x{i}", vector.kind, Role.VALUE if i else Role.NULLABLE_KEY)
        for i, vector in enumerate(VECTORS)
    )
)
EXAMPLE_CONTRACT = Contract(
    (Column("k", ColumnType(Kind.INT), Role.KEY), Column("note", _TEXT, Role.VALUE))
)
EXAMPLE = Relation(
    "(values (1::bigint, 'a'::varchar), (2, null::varchar), (2, null::varchar)) v(k, note)"
)


def vectors(engine: str) -> Relation:
    """The row of all vectors, for ``postgres`` or ``duckdb``."""
    literals = ", ".join(f"{getattr(v, engine)} as x{i}" for i, v in enumerate(VECTORS))
    return Relation(f"(select {literals}) v")


def check_vectors(path: str, columns: Sequence[bytes]) -> None:
    """The frame columns a path computed; ``RefusedError`` names those that differ."""
    wrong = [
        f"self-test of {path}: {v.kind} {v.value!r} is {column.hex()}, must be {v.frame}"
        for v, column in zip(VECTORS, columns, strict=True)
        if column.hex() != v.frame
    ]
    if wrong:
        raise RefusedError(wrong)


def check_example(path: str, cells: Cells) -> None:
    """The cells a path computed of the example."""
    found = {b: (cell.n, cell.s[0], cell.k[0], cell.dup) for b, cell in cells.items()}
    fingerprint = EXAMPLE_CONTRACT.fingerprint
    whole = root(fingerprint, {EXAMPLE_PARTITION: cells})
    right = found == EXAMPLE_CELLS and fingerprint.startswith(EXAMPLE_FINGERPRINT)
    if not (right and whole.startswith(EXAMPLE_ROOT)):
        raise RefusedError([f"self-test of {path}: the example has cells {found}, root {whole}"])


def check_prints(source: Print, target: Print) -> None:
    """The prints of the row of all vectors, by the path of each side."""
    if source != target:
        raise RefusedError([f"self-test of hashing: the vectors are {source} and {target}"])


def check_oracle() -> str:
    """The oracle itself; gives the name of the path."""
    check_vectors("oracle", [encode(v.kind, v.value) for v in VECTORS])
    for texts, expected in SEPARATOR_ROWS:
        found = frame([_TEXT, _TEXT], texts).hex()
        if found != expected:
            raise RefusedError([f"self-test of oracle: {texts} is {found}, must be {expected}"])
    rows = rows_of(EXAMPLE_CONTRACT, EXAMPLE_ROWS)
    check_example("oracle", cells_of(digests_of(EXAMPLE_CONTRACT, row) for row in rows))
    return "oracle"
