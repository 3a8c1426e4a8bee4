"""``lowwater audit-order``: which orders a log of work kept, in any CSV, NDJSON or Parquet file.

The rows of the file stand in the order that should have been kept, or are brought into it by
``--by``. Exit code 1 says that a check failed, and the check is on pairs of one key alone: a keyed
system is out of order globally, and right. So any inverted same-key pair makes it 1, whatever the
global count; ``--report`` only reports, for columns that are expected to be out of order.

Here belong reading the file and showing the audit; the counting is ``transforms.order_audit``.
"""

import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from orchestration.commands.result import AsJson, show
from transforms.errors import SourceError, UsageError
from transforms.order_audit import (
    ColumnOrder,
    KeyOrder,
    KeySkew,
    OrderAudit,
    audit_order,
    in_order_of,
)
from transforms.reading.csv_lines import SEPARATORS

File = Annotated[Path, typer.Argument(help="CSV, TSV, NDJSON (also .gz and .zst) or Parquet.")]
Key = Annotated[list[str], typer.Option("--key", help="The column, or columns, of the key.")]
Order = Annotated[list[str], typer.Option("--order", help="The columns that stamp an order.")]
By = Annotated[str | None, typer.Option("--by", help="The column of the order to keep.")]
Weight = Annotated[str | None, typer.Option("--weight", help="A column of work per row.")]
Nulls = Annotated[list[str] | None, typer.Option("--null", help="Text that is no value, as NA.")]
Report = Annotated[bool, typer.Option("--report", help="Exit with 0 whatever is inverted.")]

Reader = Callable[[Path, Sequence[str]], pl.LazyFrame]


def scan_csv(file: Path, columns: Sequence[str]) -> pl.LazyFrame:
    """Scan a file whose separator is read off its header: the one that parts most of the columns.

    Text stays text: the audit reads numbers and times itself, and a key 007 is not 7.
    """
    scans = [
        pl.scan_csv(file, infer_schema=False, separator=sign, glob=False) for sign in SEPARATORS
    ]

    def fit(scan: pl.LazyFrame) -> tuple[int, int]:
        names = scan.collect_schema().names()
        return len({*columns} & {*names}), len(names)

    return max(scans, key=fit)


def scan_ndjson(file: Path, _: Sequence[str]) -> pl.LazyFrame:
    """Scan the one file, whatever is in its name."""
    return pl.scan_ndjson(glob.escape(str(file)), infer_schema_length=None)


READERS: dict[str, Reader] = {
    ".csv": scan_csv,
    ".tsv": scan_csv,
    ".ndjson": scan_ndjson,
    ".jsonl": scan_ndjson,
    ".parquet": lambda file, _: pl.scan_parquet(file, glob=False),
}
COMPRESSED = {".gz", ".zst"}
HEADER = ("order", "inverted", "of pairs", "tied", "same-key", "of pairs", "keys")


def command(
    file: File,
    key: Key,
    order: Order,
    by: By = None,
    weight: Weight = None,
    *,
    null: Nulls = None,
    report: Report = False,
    as_json: AsJson = False,
) -> int:
    """Count inverted pairs for each order column, globally and for pairs of one key.

    Exits with 1 if a same-key pair is inverted; global inversions are reported, never judged.
    """
    named = [*key, *order, *([by] if by else []), *([weight] if weight else [])]
    rows = without(read_rows(file, named), null or [])
    if by is not None:
        rows = in_order_of(rows, by)
    audit = audited(rows, key, order, weight)
    show(audit.as_record(), lines(audit), as_json=as_json)
    return 0 if report else int(audit.same_key_inverted > 0)


def read_rows(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Read columns of a file, known by its ending; raises SourceError and UsageError."""
    endings = [ending for ending in file.suffixes if ending not in COMPRESSED]
    scan = READERS.get(endings[-1].lower()) if endings else None
    if scan is None:
        raise UsageError(f"{file}: the name must end in {', '.join(READERS)} (then .gz or .zst)")
    try:
        rows = scan(file, columns)
        require_columns(rows.collect_schema().names(), columns, file)
        return rows.select(list(dict.fromkeys(columns))).collect()
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise SourceError(f"{file}: cannot be read: {reason}") from error
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{file}: is no well-formed {endings[-1]} file: {reason}") from error


def without(rows: pl.DataFrame, nulls: Sequence[str]) -> pl.DataFrame:
    """Take texts that stand for no value out."""
    texts = pl.col(pl.String)
    return rows.with_columns(pl.when(~texts.is_in(nulls)).then(texts)) if nulls else rows


def require_columns(known: Sequence[str], names: Sequence[str], file: Path) -> None:
    """Refuse a call that names columns that the file does not have (UsageError)."""
    missing = [name for name in names if name not in known]
    if missing:
        there = ", ".join(known)
        raise UsageError(f"{file}: no column {', '.join(missing)}; there are {there}")


def audited(
    rows: pl.DataFrame, key: Sequence[str], order: Sequence[str], weight: str | None
) -> OrderAudit:
    """Audit; a weight that is no number is a mistake of the call (UsageError)."""
    try:
        return audit_order(rows, key=key, order=order, weight=weight)
    except pl.exceptions.InvalidOperationError as error:
        raise UsageError(f"--weight {weight}: the column must hold numbers") from error


def lines(audit: OrderAudit) -> Iterator[str]:
    """Show an audit to people."""
    yield from skew_lines(audit)
    yield ""
    yield from table(audit)
    for column in audit.columns:
        if column.missing:
            yield f"{column.column}: {column.missing} rows without a value form no pair"
        if column.as_text:
            yield f"{column.column}: ordered as text, for not all of it is numbers or times"
        yield from (worst_line(column, key) for key in column.worst_keys)
    yield ""
    yield verdict(audit)


def skew_lines(audit: OrderAudit) -> Iterator[str]:
    """Say how the rows are spread over keys and what it costs."""
    skew: KeySkew = audit.skew
    yield f"{audit.rows} rows, {skew.keys} keys, as uneven as {skew.effective_keys:.1f} equal ones"
    if skew.heaviest_key is not None:
        share = f"{skew.heaviest_share:.1%} of the work ({skew.heaviest_rows} rows)"
        ceiling = f"at most {1 / skew.heaviest_share:.1f} times as fast as one worker"
        yield f"heaviest key {skew.heaviest_key}: {share}; with keys serialized {ceiling}"
    if audit.keyless:
        yield f"{audit.keyless} rows without a key form no same-key pair"


def table(audit: OrderAudit) -> Iterator[str]:
    """Line the counts up, a line for each order column."""
    cells = [HEADER, *(column_cells(column) for column in audit.columns)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        aligned = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *aligned])


def column_cells(column: ColumnOrder) -> tuple[str, ...]:
    """Give one line of the table."""
    overall, same_key = column.overall, column.same_key
    counts = (overall.inverted, overall.pairs, overall.tied, same_key.inverted, same_key.pairs)
    return (column.column, *(f"{count:,}" for count in counts), f"{column.keys_inverted:,}")


def worst_line(column: ColumnOrder, key: KeyOrder) -> str:
    """Name a key and its first pair that came the wrong way round; rows count from 1."""
    pair = key.example
    rows = f"row {pair.earlier_row + 1} has {pair.earlier_value}"
    rows += f", row {pair.later_row + 1} has {pair.later_value}"
    return f"{column.column}: key {key.key}: {key.inverted} of {key.pairs} pairs, e.g. {rows}"


def verdict(audit: OrderAudit) -> str:
    """Sum up what the exit code says."""
    if audit.same_key_inverted:
        names = ", ".join(c.column for c in audit.columns if c.same_key.inverted)
        return f"out of order: {audit.same_key_inverted} same-key pairs are inverted ({names})"
    return "in order: no same-key pair is inverted"
