"""Two small tables to compare, in any store, made of one SQL text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path

import duckdb
from postgres_server import Server

from assets.stores.parity.engine import prove
from assets.stores.parity.options import Options
from assets.stores.parity.places import side_at
from assets.stores.parity.repair import repair
from assets.stores.parity.side import Reading
from transforms.parity.canonical import ColumnType
from transforms.parity.contract import Wish
from transforms.parity.proof import Proof
from transforms.parity.verdict import Verdict

TODAY = date(2024, 5, 1)
STORES = (("duckdb", "duckdb"), ("duckdb", "postgres"))
_NUMBERS = count()


@dataclass
class Tables:
    """Makes tables named uniquely; a place is what the command line takes."""

    folder: Path
    server: Server

    def make(self, store: str, columns: str, rows: str = "") -> str:
        """``columns`` as in CREATE TABLE, ``rows`` as in VALUES or a SELECT; its place."""
        name = f"t{next(_NUMBERS)}"
        self.run(store, f"create table {name} ({columns})")
        if rows:
            select = rows if rows.startswith("select") else f"values {rows}"
            self.run(store, f"insert into {name} {select}")
        return self.place(store, name)

    def place(self, store: str, name: str) -> str:
        if store == "duckdb":
            return f"{self.folder}/tables.duckdb/{name}"
        base, options = self.server.dsn.split("?")
        return f"{base}/{name}?{options}"

    def run(self, store: str, *statements: str) -> list[tuple]:
        """Statements of either store; ``bytea`` is spelled as the store spells it."""
        if store == "postgres":
            return self.server.execute(*statements)
        rows: list[tuple] = []
        with duckdb.connect(f"{self.folder}/tables.duckdb") as connection:
            connection.execute("set TimeZone = 'UTC'")
            for statement in statements:
                rows = connection.execute(statement.replace("bytea", "blob")).fetchall()
        return rows

    def change(self, place: str, *statements: str) -> list[tuple]:
        """Statements about ``{t}``, the table of a place."""
        store = "postgres" if place.startswith("postgresql") else "duckdb"
        name = place.partition("?")[0].rpartition("/")[2]
        return self.run(store, *(statement.format(t=name) for statement in statements))


def compared(
    source: str,
    target: str,
    key: Sequence[str] = ("k",),
    *,
    nullable: Sequence[str] = (),
    left_out: Sequence[str] = (),
    types: Mapping[str, ColumnType] | None = None,
    pushdown: bool = False,
    mend: bool = False,
    approved: int | None = None,
    options: Options | None = None,
) -> Proof:
    """The proof of two places."""
    wish = Wish(key, nullable, left_out, types)
    chosen, how = options or Options(TODAY), Reading(pushdown, 128)
    with (
        side_at(source, {}, how) as left,
        side_at(target, {}, how) as right,
    ):
        proof = prove(left, right, wish, chosen)
        return repair(left, right, proof, chosen, approved) if mend else proof


def counts(proof: Proof) -> dict[str, int]:
    """Keys by verdict, without zeros."""
    return {str(verdict): number for verdict, number in proof.counts().items() if number}


def causes(proof: Proof) -> set[tuple[str, str]]:
    """Columns and causes of what changed."""
    findings = proof.findings()
    return {(f["column"], f["cause"]) for f in findings if f["verdict"] == Verdict.CHANGED}
