from functools import partial
from hashlib import md5 as md5_of

from transforms.parity.canonical_frames import rows_of
from transforms.parity.canonical_self_test import EXAMPLE_CONTRACT
from transforms.parity.canonical_vectors import EXAMPLE_ROWS
from transforms.parity.cells import (
    EMPTY,
    Cell,
    Digests,
    bad_buckets,
    bucket_of,
    cells_of,
    lanes,
    reading,
    root,
    total,
)
from transforms.parity.faults import digests_of
from transforms.parity.proof import flat, from_flat

md5 = partial(md5_of, usedforsecurity=False)
FULL = b"\xff" * 16


def rows(*pairs: tuple[str, str]) -> list[Digests]:
    return [Digests(md5(k.encode()).digest(), md5((k + v).encode()).digest()) for k, v in pairs]


def test_the_example_of_the_contract() -> None:
    encoded = rows_of(EXAMPLE_CONTRACT, EXAMPLE_ROWS)
    cells = cells_of(digests_of(EXAMPLE_CONTRACT, row) for row in encoded)
    assert list(cells) == [1570, 3558]
    assert (cells[1570].n, cells[1570].s[0], cells[1570].k[0], cells[1570].dup) == (
        2,
        1_742_667_020,
        6_504_156_228,
        1,
    )
    assert cells[3558].s[0] == 1_135_031_890
    assert root(EXAMPLE_CONTRACT.fingerprint, {"2024-02-29": cells}).startswith("f11770115a73")


def test_lanes_are_little_endian_words() -> None:
    assert lanes(bytes(range(16))) == (0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C)
    assert bucket_of(bytes([0x34, 0x12]) + bytes(14)) == 0x234


def test_sums_of_full_lanes_are_exact() -> None:
    cell = cells_of([Digests(FULL, FULL)] * 3)[4095]
    assert cell == Cell(3, (12_884_901_885,) * 4, (12_884_901_885,) * 4, 2)


def test_pairs_that_an_xor_cancels_keep_another_sum() -> None:
    p, q, z = rows(("1", "a"), ("1", "b"), ("2", "z"))
    left, right = cells_of([p, p, z]), cells_of([q, q, z])
    assert left != right
    assert bad_buckets(left, right) == [bucket_of(p.key)]


def test_the_order_of_rows_does_not_matter() -> None:
    some = rows(*((str(i), "x") for i in range(100)))
    assert cells_of(some) == cells_of(reversed(some))


def test_equal_duplicates_are_a_bad_bucket() -> None:
    cells = cells_of(rows(("1", "a"), ("1", "a")))
    assert bad_buckets(cells, cells) == list(cells)


def test_a_bucket_of_one_side_alone_is_bad() -> None:
    cells = cells_of(rows(("1", "a")))
    assert bad_buckets(cells, {}) == bad_buckets({}, cells) == list(cells)


def test_how_two_cells_are_read() -> None:
    one, other = (cells_of(rows(("1", value))) for value in "ab")
    (p,), (t,) = one.values(), other.values()
    elsewhere = next(iter(cells_of(rows(("2", "a"))).values()))
    twice = total([p, p])._replace(dup=1)
    assert reading(p, p) == "EQUAL"
    assert reading(p, t) == "CHANGED only"
    assert reading(p, EMPTY) == "MISSING, EXTRA"
    assert reading(p, elsewhere) == "as many missing as extra"
    assert reading(twice, twice) == "DUPLICATE"


def test_the_root_depends_on_contract_partition_and_every_number() -> None:
    cells = cells_of(rows(("1", "a"), ("2", "b")))
    changed = {bucket: cell._replace(dup=1) for bucket, cell in cells.items()}
    roots = {
        root("a", {"p": cells}),
        root("b", {"p": cells}),
        root("a", {"q": cells}),
        root("a", {"p": changed}),
        root("a", {}),
    }
    assert len(roots) == 5
    assert root("a", {"p": cells, "q": {}}) == root("a", {"q": {}, "p": cells})


def test_cells_survive_the_evidence() -> None:
    cells = cells_of(rows(*((str(i), "x") for i in range(50))))
    assert from_flat(flat(cells)) == cells
