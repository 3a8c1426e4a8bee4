"""The sections of the audits: which orders were kept, and whether the target is proved.

Here belongs what is said of the order audit and of the proofs. What they found is in the lake.
"""

import json
from typing import Any, Final

import polars as pl

from expectations.report import charts
from expectations.report.figures import Figures
from expectations.report.section import Heading, Section, section
from expectations.report.words import listed, sentence
from expectations.results import counted
from transforms.spec import StreamSpec

_CAUSES: Final = 3


def order(figures: Figures) -> Section:
    """Say whether every order was kept, and what was out of order when it came."""
    orders = figures.orders
    audited = orders.filter(pl.col("released_pairs").is_not_null())
    broken = audited.filter(~pl.col("is_kept"))["partition"].to_list()
    unknown = orders.filter(pl.col("released_pairs").is_null())["partition"].to_list()
    pairs = int(audited["released_pairs"].sum())
    finding = "Nothing has been audited yet."
    if audited.height:
        finding = f"Kept: of {pairs:,} released pairs of one key none is inverted."
        if not pairs:
            finding = "Kept: no key released two rows to compare."
    if broken:
        finding = f"Broken in {listed(broken)}: pairs of one key came the wrong way round."
    without = f"Not audited: {listed(unknown)}." if unknown and audited.height else ""
    words = sentence((_ORDERS, without))
    rows = [
        (
            row["partition"],
            "not audited" if row["released_pairs"] is None else _kept(is_kept=row["is_kept"]),
            f"{row['disorder']:.2%}",
            *(row[name] for name in ("source_inverted", "released_inverted", "landed_inverted")),
            row["released_pairs"],
        )
        for row in orders.sort("is_kept", "place", descending=[False, True]).iter_rows(named=True)
    ]
    columns = (
        *("partition", "order", "rows out of order", "inverted on arrival"),
        *("released inverted", "batches inverted", "of released pairs"),
    )
    heading = Heading("order", "Order", "Order audit", half=True)
    draw = charts.over_time(orders, "disorder", "out of order") if _any(orders) else None
    return section(heading, finding, words, draw, (columns, rows))


_ORDERS: Final = (
    "Drawn: the share of rows that came behind a newer row of their key, which reordering mended."
    " The table: pairs of rows of one key, and of batches of one lane, that are inverted; only"
    " those on arrival may be."
)


def _any(orders: pl.DataFrame) -> bool:
    return bool(orders["disorder"].sum())


def _kept(*, is_kept: bool) -> str:
    return "kept" if is_kept else "BROKEN"


def target(spec: StreamSpec, figures: Figures) -> Section:
    """Say whether the target is proved, what differs if not, and what no proof looked at."""
    proofs = figures.proofs
    rows = [_proof(row) for row in proofs.iter_rows(named=True)]
    wrong = proofs.filter(pl.col("verdict") != "EQUAL")["partition"].to_list()
    windows = int(proofs["windows"].sum())
    finding = "Nothing has been published yet."
    if proofs.height:
        finding = f"Proved bit for bit: {counted(windows, 'window')}, all equal."
    if wrong:
        finding = f"{len(wrong):,} of {proofs.height:,} event partitions are not proved equal:"
        finding += f" {listed(wrong)}. `lowwater parity {spec.name}` shows what differs."
    order = sorted(range(len(rows)), key=lambda place: (rows[place][1] == "EQUAL", -place))
    columns = ("event partition", "proof", "windows in the lake", "in the target", "what differs")
    heading = Heading("target", "Target", "The target")
    draw = charts.proofs(proofs)
    table = (columns, [rows[place] for place in order])
    return section(heading, finding, _blindness(proofs), draw, table)


def _proof(row: dict[str, Any]) -> tuple[object, ...]:
    found = json.loads(row["summary"] or "{}")
    findings = sorted(found.get("findings", ()), key=lambda finding: -finding["count"])
    said = [
        sentence((f"{f['count']:,}", f["verdict"], f["column"], f["cause"]))
        for f in findings[:_CAUSES]
    ]
    notes = [*found.get("refused", ()), *found.get("amber", ()), *said]
    if row["verdict"] == "NOT PROVED":
        notes = ["it was published to since, or never proved"]
    counts = (row["windows"], row["target_rows"])
    return row["partition"], row["verdict"], *counts, "; ".join(notes)


def _blindness(proofs: pl.DataFrame) -> str:
    """Say what the newest proof compared, and what it did not look at."""
    summaries = proofs["summary"].drop_nulls().to_list()
    blind = json.loads(summaries[-1]).get("blindness", {}) if summaries else {}
    compared = len(blind.get("declared", ()))
    left_out, unseen = (list(blind.get(name, ())) for name in ("left_out", "not_compared"))
    alike = sorted(set(blind.get("normalised", {}).values()))
    return sentence(
        (
            "Each event partition of the target against the lake, every column as bits.",
            f"Compared: {compared} columns." if compared else "",
            f"Left out: {listed(left_out)}, which say when and by which run." if left_out else "",
            f"Nobody looked at {listed(unseen)}." if unseen else "",
            f"Taken as alike: {'; '.join(alike)}." if alike else "",
        )
    )
