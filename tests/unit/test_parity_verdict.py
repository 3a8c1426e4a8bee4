import pytest

from transforms.parity.canonical import ColumnType, Value
from transforms.parity.canonical_frames import rows_of
from transforms.parity.contract import Column, Contract, Role
from transforms.parity.faults import compared, plant
from transforms.parity.plan import Planner
from transforms.parity.verdict import Difference, Row, Tally, Verdict


def column(name: str, kind: str, role: Role = Role.VALUE) -> Column:
    return Column(name, ColumnType.parse(kind), role)


CONTRACT = Contract((column("k", "int", Role.KEY), column("v", "text")))
WIDE = Contract(
    (
        column("k", "int", Role.KEY),
        column("f", "float"),
        column("t", "text"),
        column("at", "instant"),
        column("revision", "int"),
    )
)


def tally(
    contract: Contract, source: list[list[Value | None]], target: list[list[Value | None]]
) -> Tally:
    return compared(contract, rows_of(contract, source), rows_of(contract, target))


def said(found: Tally) -> dict[str, int]:
    return {str(verdict): count for verdict, count in found.keys.items() if count}


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ([[1, "a"]], [[1, "a"]], {}),
        ([[1, "a"]], [[1, "b"]], {"CHANGED": 1}),
        ([[1, "a"]], [], {"MISSING": 1}),
        ([], [[1, "a"]], {"EXTRA": 1}),
        ([[1, "a"]], [[2, "a"]], {"MISSING": 1, "EXTRA": 1}),
        ([[1, "a"], [1, "a"]], [[1, "a"], [1, "a"]], {"DUPLICATE": 1}),
        ([[1, "a"], [1, "b"]], [[1, "a"]], {"DUPLICATE": 1}),
        ([[1, "a"], [1, "a"]], [[1, "b"], [1, "b"]], {"DUPLICATE": 1, "CHANGED": 1}),
        ([[1, "a"], [1, "a"]], [], {"DUPLICATE": 1, "MISSING": 1}),
        ([], [[1, "a"], [1, "a"]], {"DUPLICATE": 1, "EXTRA": 1}),
        ([[1, "a"], [2, "b"]], [[1, "b"], [2, "a"]], {"CHANGED": 2}),
    ],
)
def test_the_verdict_of_two_multisets(
    source: list[list[Value | None]],
    target: list[list[Value | None]],
    expected: dict[str, int],
) -> None:
    assert said(tally(CONTRACT, source, target)) == expected


def test_an_older_or_newer_revision_explains_the_whole_row() -> None:
    found = tally(WIDE, [[1, 1.0, "a", 0, 2]], [[1, 2.0, "b", 5, 1]])
    assert [(m.column, m.cause) for m in found.findings] == [("revision", "revision-behind")]
    found = tally(WIDE, [[1, 1.0, "a", 0, 2]], [[1, 1.0, "a", 0, 3]])
    assert [(m.column, m.cause) for m in found.findings] == [("revision", "revision-ahead")]


def test_each_column_has_its_own_cause_and_samples_are_few() -> None:
    source: list[list[Value | None]] = [[k, 0.5, "a", 0, 0] for k in range(30)]
    target: list[list[Value | None]] = [[k, None, "A", 1_000, 0] for k in range(30)]
    found = tally(WIDE, source, target)
    assert {(m.column, str(m.cause)): f.count for m, f in found.findings.items()} == {
        ("f", "other"): 30,
        ("t", "case"): 30,
        ("at", "fraction-cut"): 30,
    }
    samples = [finding.samples for finding in found.findings.values()]
    assert all(len(each) == 10 for each in samples)
    assert {s["source"] for s in samples[0]} == {"f=0.5"}


def test_a_missing_row_that_the_target_refused_says_so() -> None:
    (row,) = rows_of(CONTRACT, [[1, "a"]])
    found = Tally(CONTRACT, refused_by_target=lambda refused: refused == row)
    found.add(Difference(b"k", (row,), ()))
    assert [str(mark.cause) for mark in found.findings] == ["refused-by-target"]


ROWS: list[list[Value | None]] = [[k, k / 7, f"n{k}", k, 0] for k in range(5)]


def test_every_planted_fault_is_seen_and_rightly_named() -> None:
    planted = plant(WIDE, rows_of(WIDE, ROWS))
    assert [fault.name for fault in planted if fault.seen is not True] == []
    assert len(planted) == 8


def test_a_fault_that_has_no_place_is_not_claimed() -> None:
    planted = {fault.name: fault.seen for fault in plant(CONTRACT, rows_of(CONTRACT, [[1, "a"]]))}
    assert planted["float bit"] is planted["one microsecond"] is None
    assert planted["values swapped"] is planted["p,p for q,q"] is None
    assert planted["row dropped"] is planted["null for ''"] is True


def test_a_blind_comparison_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.parity.faults.bad_buckets", lambda *_: [])
    assert all(fault.seen is False for fault in plant(WIDE, rows_of(WIDE, ROWS)))


def decided(source: list[list[Value | None]], target: list[list[Value | None]]) -> dict[str, int]:
    planner = Planner(WIDE, takes_nul=False)
    action = planner.decide(
        Difference(b"k", tuple(rows_of(WIDE, source)), tuple(rows_of(WIDE, target)))
    )
    assert (action.upsert is not None) == bool(planner.plan.upserts)
    return {name: count for name, count in planner.plan.as_counts().items() if count}


OLD: list[Value | None] = [1, 1.0, "a", 0, 1]
NEW: list[Value | None] = [1, 2.0, "b", 0, 2]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ([NEW], [], {"upserts": 1}),
        ([NEW], [OLD], {"upserts": 1}),
        ([OLD], [NEW], {"newer": 1}),
        ([OLD], [OLD, NEW], {"newer": 1}),
        ([], [OLD], {"removals": 1}),
        ([], [OLD, OLD, NEW], {"removals": 3}),
        ([NEW], [NEW, NEW], {"removals": 1}),
        ([NEW], [OLD, OLD], {"upserts": 1, "removals": 1}),
        ([OLD, NEW], [OLD], {"unrepairable": 1}),
        ([[1, 1.0, "a\x00", 0, 1]], [], {"unwritable": 1}),
    ],
)
def test_what_a_repair_would_do(
    source: list[list[Value | None]],
    target: list[list[Value | None]],
    expected: dict[str, int],
) -> None:
    assert decided(source, target) == expected


def test_rows_are_tuples_of_frame_columns() -> None:
    rows: list[Row] = rows_of(CONTRACT, [[1, None]])
    assert rows == [(bytes.fromhex("010000000000000001"), b"\x00")]
    assert Verdict.EQUAL == "EQUAL"
