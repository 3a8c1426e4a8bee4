"""The rows that windows count, from whatever partitions they are in.

Here belongs the view ``counted``: released rows and the dead letters that count, of one time range,
read from no more files than may hold it.
"""
# ruff: noqa: S608 (identifiers are quoted)

from expectations.evidence.tables import COUNTED, columns
from expectations.stored import Opened, Partition, StoredFile
from transforms.schemas import (
    DEAD_LETTERS,
    IS_DEAD_LETTER,
    ORDERED_EVENTS,
    REFUSED_AT_US,
    row_columns,
)


def counted_view(store: Opened, last: Partition | None, low_us: int, high_us: int) -> None:
    """Make a view ``counted`` of the rows of a closed time range, up to a partition or of all.

    It has the columns of rows, ``refused_at_us`` (the watermark that refused a dead letter; null of
    others, or where there was none) and ``is_dead_letter``.
    """
    for name, table in (("ordered_within", ORDERED_EVENTS), ("dead_within", DEAD_LETTERS)):
        files = store.stored.files.get(table, ())
        chosen = [file for file in files if _is_due(file, last) and file.may_hold(low_us, high_us)]
        store.view(name, table, chosen)
    rows = columns(row_columns(store.spec))
    within = f"event_us between {low_us} and {high_us}"
    store.connection.execute(f"""
        create or replace temp view counted as
        select partition, {rows}, null::bigint as {REFUSED_AT_US}, false as {IS_DEAD_LETTER}
        from ordered_within where {within}
        union all
        select partition, {rows}, watermark_us, true
        from dead_within where {within} and {COUNTED}
        """)


def _is_due(file: StoredFile, last: Partition | None) -> bool:
    # Names of partitions are dates and times: they sort as they follow one another.
    return last is None or file.partition <= last.key
