"""Files of every kind, whole, packed, broken and changing: what is read, and what is said."""

import gzip
import json
import os
import threading
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from assets.stores.sources import blocks, files
from assets.stores.sources.files import FileRead, find_files, number_on, read_file, read_files
from transforms.errors import SourceError
from transforms.spec import StreamSpec, load_spec

SPEC = """
name: gauges
source: {kind: files, path: 'PATH', format: FORMATMORE}
columns:
  key: site
  event_time: {column: at, unit: UNIT}
  arrival_time: {column: got, unit: UNIT}
  values: {level: float, pulses: int, charge: 'decimal(5,2)', open: bool}
  carry: [note]
arrival: {grain: day, start: 2026-05-03, zone: UTC}
events: {grain: day}
profiles:
  default: {grace: 10s, idle_timeout: 'off', capacity: 1000, future_skew: 5m}
windows: [{name: minute, every: 1m}]
"""
COLUMNS = ("site", "at", "got", "level", "pulses", "charge", "open", "note")
AT = 1_777_852_805_000_000


def spec(
    form: str = "ndjson", path: str = "landing/*", unit: str = "iso8601", more: str = ""
) -> StreamSpec:
    text = SPEC.replace("PATH", path).replace("FORMAT", form).replace("UNIT", unit)
    return load_spec(text.replace("MORE", more), file="gauges.yaml")


def row(number: int = 0, **change: Any) -> dict[str, Any]:
    second = 5 + number % 50
    plain = {
        "site": f"s{number}",
        "at": f"2026-05-04T00:00:{second:02}Z",
        "got": f"2026-05-04T00:01:{second:02}Z",
        "level": number / 4,
        "pulses": number,
        "charge": 1.5,
        "open": True,
        "note": "n",
    }
    return {**plain, **change}


def ndjson(*rows: dict[str, Any] | str) -> bytes:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in rows)
    return "".join(f"{text}\n" for text in texts).encode()


def csv(*rows: dict[str, Any], separator: str = ",") -> bytes:
    lines = [COLUMNS, *([str(r[name]) for name in COLUMNS] for r in rows)]
    return "".join(separator.join(line) + "\n" for line in lines).encode()


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


def read(landing: Path, stream: StreamSpec) -> list[FileRead]:
    names = find_files(stream, landing.parent)
    return list(read_files(stream, names, data_dir=landing.parent))


def read_one(
    landing: Path, name: str, content: bytes, stream: StreamSpec | None = None
) -> FileRead:
    (landing / name).write_bytes(content)
    return read_file(stream or spec(), f"landing/{name}", data_dir=landing.parent)


def test_files_are_found_by_glob_sorted_by_name(landing: Path) -> None:
    for name in ("b.ndjson", "a.ndjson", "2024/c.ndjson", "x.csv"):
        (landing / name).parent.mkdir(exist_ok=True)
        (landing / name).touch()
    relative = find_files(spec(path="landing/**/*.ndjson"), landing.parent)
    assert relative == ["landing/2024/c.ndjson", "landing/a.ndjson", "landing/b.ndjson"]
    absolute = find_files(spec(path=f"{landing}/*.ndjson"), Path("elsewhere"))
    assert absolute == [f"{landing}/a.ndjson", f"{landing}/b.ndjson"]


def test_a_folder_is_no_file_and_no_match_is_no_error(landing: Path) -> None:
    (landing / "x.ndjson").mkdir()
    assert find_files(spec(path="landing/*.ndjson"), landing.parent) == []


def test_files_come_in_source_order_and_are_counted_on(landing: Path) -> None:
    for number in range(7):
        rows = [row(number), "{broken", *[row(number)] * (40 if number == 0 else 1)]
        (landing / f"{number}.ndjson").write_bytes(ndjson(*rows))
    reads = read(landing, spec())
    assert [read.name for read in reads] == [f"landing/{n}.ndjson" for n in range(7)]
    assert [read.staged["seq"][0] for read in reads] == [0] * 7
    counted = list(number_on(iter(reads)))
    starts = [0, 42, 45, 48, 51, 54, 57]
    assert [read.staged["seq"][0] for read in counted] == starts
    assert [read.rejected["seq"][0] for read in counted] == [start + 1 for start in starts]


@pytest.mark.parametrize("form", ["ndjson", "csv"])
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_packing_gives_the_same_rows(landing: Path, form: str, packing: str) -> None:
    write = {"ndjson": ndjson, "csv": csv}[form]
    content = write(*(row(n) for n in range(3)))
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[packing](content)
    found = read_one(landing, f"a.{form}{packing}", packed, spec(form))
    assert found.rejected.is_empty()
    assert found.staged.rows() == [
        (
            *(n, f"s{n}", AT + n * 1_000_000, AT + (60 + n) * 1_000_000),
            *(n / 4, n, Decimal("1.50"), True, "n", None),
        )
        for n in range(3)
    ]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_members_one_after_another_are_one_file(landing: Path, compress: Any) -> None:
    suffix = "gz" if compress is gzip.compress else "zst"
    halves = (ndjson(row(1)) + b'{"site"', b': "x"}\n' + ndjson(row(2)))
    found = read_one(landing, f"a.{suffix}", b"".join(map(compress, halves)))
    assert found.staged["key"].to_list() == ["s1", "s2"]
    assert found.rejected["reason"].to_list() == ["missing_event_time"]


def many_rows() -> bytes:
    return ndjson(*(row(n, note=str(hash((n, "salt")))) for n in range(3000)))


def test_of_a_truncated_gzip_the_rows_before_the_break_are_kept(landing: Path) -> None:
    content = many_rows()
    found = read_one(landing, "a.gz", gzip.compress(content)[:-5000])
    (rest,) = found.rejected.to_dicts()
    kept = found.staged.height
    assert 0 < kept < 3000
    assert found.staged["key"].to_list() == [f"s{n}" for n in range(kept)]
    assert (rest["reason"], rest["seq"], rest["line"]) == ("malformed_record", kept, kept + 1)
    assert "the gzip data end early" in rest["detail"]
    assert content.splitlines()[kept].decode().startswith(rest["raw"])


def test_a_gzip_without_its_last_bytes_has_all_rows_and_says_so(landing: Path) -> None:
    found = read_one(landing, "a.gz", gzip.compress(ndjson(row(1), row(2)))[:-4])
    assert found.staged.height == 2
    assert found.rejected.select("line", "raw").rows() == [(3, "")]


def test_a_gzip_with_a_wrong_checksum_has_all_rows_and_says_so(landing: Path) -> None:
    packed = bytearray(gzip.compress(ndjson(row(1), row(2))))
    packed[-8] ^= 1
    found = read_one(landing, "a.gz", bytes(packed))
    assert found.staged.height == 2
    assert "the gzip data break near byte" in found.rejected["detail"][0]


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_a_gzip_that_breaks_at_its_very_beginning_keeps_what_there_is(
    landing: Path, size: int
) -> None:
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"{xy"[:size]) + packer.flush(zlib.Z_SYNC_FLUSH)
    found = read_one(landing, "a.gz", packed)
    assert found.rejected.select("line", "raw").rows() == [(1, "{xy"[:size])]


def test_packed_data_that_break_in_the_middle_lose_nothing_before(landing: Path) -> None:
    packed = bytearray(gzip.compress(many_rows()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = bytes(40)
    found = read_one(landing, "a.gz", bytes(packed))
    assert found.staged["key"].to_list()[:1000] == [f"s{n}" for n in range(1000)]
    assert found.rejected["detail"][-1].startswith("the gzip data break near byte")


def test_a_truncated_zstandard_file_says_so(landing: Path) -> None:
    found = read_one(landing, "a.zst", zstandard.compress(many_rows())[:-100])
    assert "the Zstandard data end early" in found.rejected["detail"][-1]


def test_bytes_behind_a_gzip_are_not_dropped_silently(landing: Path) -> None:
    packed = gzip.compress(ndjson(row(1)))
    assert read_one(landing, "a.gz", packed + bytes(512)).rejected.is_empty()
    found = read_one(landing, "a.gz", packed + b"plain text behind it")
    assert found.staged.height == 1
    assert found.rejected.height == 1


def test_a_truncated_csv_says_so(landing: Path) -> None:
    found = read_one(landing, "a.csv.gz", gzip.compress(csv(row(1), row(2)))[:-3], spec("csv"))
    assert found.staged.height == 2
    assert found.rejected.select("seq", "line", "reason").rows() == [(2, 4, "malformed_record")]


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_a_file_that_is_not_packed_as_its_name_says_is_a_source_error(
    landing: Path, name: str
) -> None:
    with pytest.raises(SourceError, match=rf"landing/{name}: this is not \w+ data"):
        read_one(landing, name, ndjson(row()))


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_empty_file_has_no_rows(landing: Path, form: str, suffix: str) -> None:
    found = read_one(landing, f"a{suffix}", b"", spec(form))
    assert found.parsed.height == 0


@pytest.mark.parametrize("content", [b"\n\n", b"\xef\xbb\xbf", b" \r\n\t\n"])
def test_a_file_of_blank_lines_has_no_rows(landing: Path, content: bytes) -> None:
    assert read_one(landing, "a.ndjson", content).parsed.height == 0
    assert read_one(landing, "a.csv", content, spec("csv")).parsed.height == 0


def test_a_broken_line_in_the_middle_is_one_rejected_row(landing: Path) -> None:
    broken = '{"site": "s9", "at": '
    found = read_one(landing, "a.ndjson", ndjson(row(1), broken, row(2)))
    assert found.staged["seq"].to_list() == [0, 2]
    (bad,) = found.rejected.to_dicts()
    assert (bad["seq"], bad["line"], bad["raw"]) == (1, 2, broken)
    assert (bad["source"], bad["reason"]) == ("landing/a.ndjson", "malformed_record")


def test_of_a_line_in_another_encoding_nothing_is_lost(landing: Path) -> None:
    content = ndjson(row(1)) + '{"site": "Köln"}\n'.encode("latin-1") + ndjson(row(2))
    found = read_one(landing, "a.ndjson", content)
    assert found.staged["key"].to_list() == ["s1", "s2"]
    (bad,) = found.rejected.to_dicts()
    assert bad["raw"] == '{"site": "K\\xf6ln"}'
    assert bad["detail"] == "not UTF-8 text: byte 0xf6 at byte 12 of the line"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(landing: Path) -> None:
    for name, form, write in (("a.ndjson", "ndjson", ndjson), ("a.csv", "csv", csv)):
        content = b"\xef\xbb\xbf" + write(row(1), row(2)).replace(b"\n", b"\r\n")
        found = read_one(landing, name, content, spec(form))
        assert found.rejected.is_empty()
        assert found.staged["key"].to_list() == ["s1", "s2"]
        assert found.staged["note"].to_list() == ["n", "n"]


def test_the_last_line_may_lack_its_end(landing: Path) -> None:
    assert read_one(landing, "a.ndjson", ndjson(row(1), row(2))[:-1]).staged.height == 2
    assert read_one(landing, "a.csv", csv(row(1), row(2))[:-1], spec("csv")).staged.height == 2


def test_the_size_of_a_block_changes_nothing(
    landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [row(n) if n % 7 else "{broken" if n % 2 else "" for n in range(60)]
    content = b"\xef\xbb\xbf" + ndjson(*texts)
    whole = read_one(landing, "a.ndjson", content)
    for size in (1, 100, 1000):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        monkeypatch.setattr(blocks, "CHUNK_BYTES", 37)
        again = read_one(landing, "a.ndjson", content)
        assert again.staged.equals(whole.staged)
        assert again.rejected.equals(whole.rejected)
        assert again.fingerprint == whole.fingerprint


def test_the_fingerprint_is_that_of_the_bytes(landing: Path) -> None:
    first = read_one(landing, "a.ndjson", ndjson(row(1)))
    assert first.fingerprint == read_one(landing, "b.ndjson", ndjson(row(1))).fingerprint
    assert first.fingerprint != read_one(landing, "a.ndjson", ndjson(row(2))).fingerprint
    assert first.fingerprint.endswith(f":{len(ndjson(row(1)))}")


# CSV.


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_read_off_the_header(landing: Path, separator: str) -> None:
    content = csv(row(1, note="a b"), separator=separator)
    found = read_one(landing, "a.csv", content, spec("csv"))
    assert found.staged["note"].to_list() == ["a b"]


def test_a_declared_separator_is_taken_at_its_word(landing: Path) -> None:
    stream = spec("csv", more=", separator: '|'")
    found = read_one(landing, "a.csv", csv(row(1, note="a,b;c"), separator="|"), stream)
    assert found.staged["note"].to_list() == ["a,b;c"]


def test_only_the_empty_field_is_null_unless_more_is_declared(landing: Path) -> None:
    content = csv(row(1, note="NA"), row(2, note=""), row(3, level="NA"))
    plain = read_one(landing, "a.csv", content, spec("csv"))
    assert plain.staged["note"].to_list() == ["NA", None, "n"]
    assert plain.staged["unreadable"].to_list() == [None, None, '{"level":"NA"}']
    declared = read_one(landing, "a.csv", content, spec("csv", more=", nulls: [NA]"))
    assert declared.staged["note"].to_list() == [None, None, "n"]
    assert declared.staged["unreadable"].null_count() == 3


def test_records_with_too_many_or_too_few_fields_are_rejected(landing: Path) -> None:
    lines = csv(row(1), row(2), row(3)).splitlines()
    lines[1] += b",more"
    lines[3] = lines[3].rpartition(b",")[0]
    for quote in (b"", b'"quoted"'):
        content = b"\n".join([*lines, *([b"x," + quote] if quote else [])])
        found = read_one(landing, "a.csv", content, spec("csv"))
        assert found.staged["key"].to_list() == ["s2"]
        assert found.rejected["detail"].to_list()[:2] == [
            "9 fields, where the header has 8",
            "7 fields, where the header has 8",
        ]
        assert found.rejected["line"].to_list()[:2] == [2, 4]
        assert found.rejected["raw"][0] == lines[1].decode()


def test_quoted_fields_may_hold_separators_quotes_and_line_ends(landing: Path) -> None:
    content = csv(row(1, note='"a, ""b""\nc"'), row(2), row(3, note='""'))
    found = read_one(landing, "a.csv", content, spec("csv"))
    assert found.rejected.is_empty()
    assert found.staged["note"].to_list() == ['a, "b"\nc', "n", None]
    bad = read_one(landing, "b.csv", content + b"x\n", spec("csv"))
    assert bad.rejected["line"].to_list() == [6]


def test_a_stray_quote_does_not_swallow_what_follows(landing: Path) -> None:
    content = csv(row(1, note='"open'), row(2), row(3))
    found = read_one(landing, "a.csv", content, spec("csv"))
    assert found.staged["key"].to_list() == ["s2", "s3"]
    assert found.rejected.select("seq", "line").rows() == [(0, 2)]


def test_a_csv_line_in_another_encoding_is_rejected(landing: Path) -> None:
    content = csv(row(1), row(2, note="K\xf6ln"), row(3)).decode().encode("latin-1")
    found = read_one(landing, "a.csv", content, spec("csv"))
    assert found.staged["key"].to_list() == ["s1", "s3"]
    assert "K\\xf6ln" in found.rejected["raw"][0]
    assert "0xf6" in found.rejected["detail"][0]


def test_blank_lines_of_a_csv_take_no_seq(landing: Path) -> None:
    lines = csv(row(1), row(2)).splitlines()
    content = b"\n".join([b"", lines[0], b"", lines[1], b"  ", lines[2], b""])
    found = read_one(landing, "a.csv", content, spec("csv"))
    assert found.staged["seq"].to_list() == [0, 1]
    assert found.rejected.is_empty()


def test_both_ways_through_csv_give_the_same_rows(landing: Path) -> None:
    lines = csv(row(1), row(2, note=""), row(3, level="x")).splitlines()
    plain = b"\n".join([*lines, b"a,b", b"", b",,,,,,,", b" , ,,,,,,", b"x" + b"," * 9])
    quoted = plain.replace(b"s1,", b'"s1",')
    fast = read_one(landing, "a.csv", plain, spec("csv"))
    slow = read_one(landing, "a.csv", quoted, spec("csv"))
    assert fast.staged.equals(slow.staged)
    assert fast.rejected.equals(slow.rejected)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("site,at,got,level,pulses,charge,open,notes", "no column 'note'; did you mean notes?"),
        ("site,at,got,level,pulses,charge,open,zzz", "no column 'note'"),
        ("site,at,got,level,pulses,charge,open,note,site", "names column 'site' 2 times"),
        ("caf\xe9", "the header cannot be read: not UTF-8"),
    ],
)
def test_a_header_that_lacks_a_column_is_a_source_error(
    landing: Path, header: str, words: str
) -> None:
    with pytest.raises(SourceError) as caught:
        read_one(landing, "a.csv", header.encode("latin-1") + b"\n1\n", spec("csv"))
    assert str(caught.value).startswith("landing/a.csv: ")
    assert words in str(caught.value)
    assert caught.value.exit_code == 3


# Parquet.


def parquet(landing: Path, frame: pl.DataFrame, stream: StreamSpec | None = None) -> FileRead:
    frame.write_parquet(landing / "a.parquet")
    return read_file(stream or spec("parquet"), "landing/a.parquet", data_dir=landing.parent)


def typed(**change: Any) -> pl.DataFrame:
    moment = datetime(2026, 5, 4, 0, 0, 5, tzinfo=UTC)
    columns: dict[str, Any] = {
        "site": ["a", "b"],
        "at": [moment, moment],
        "got": [moment, moment],
        "level": [1.5, -0.0],
        "pulses": [2**53 + 1, None],
        "charge": [Decimal("1.50"), None],
        "open": [True, None],
        "note": ["x", None],
    }
    return pl.DataFrame({**columns, **change})


def test_typed_columns_of_parquet_keep_their_values(landing: Path) -> None:
    found = parquet(landing, typed())
    assert found.rejected.is_empty()
    assert found.staged.rows() == [
        (0, "a", AT, AT, 1.5, 2**53 + 1, Decimal("1.50"), True, "x", None),
        (1, "b", AT, AT, 0.0, None, None, None, None, None),
    ]


def test_other_types_of_parquet_are_read_as_text_would_be(landing: Path) -> None:
    found = parquet(
        landing,
        typed(
            site=[7, 8],
            level=["1.5", "x"],
            pulses=[2.0, 2.5],
            charge=[1.25, 1000.0],
            open=[1, 2],
            note=[{"b": 1, "a": [1.5]}, None],
        ),
    )
    rows = found.staged.to_dicts()
    assert [row["key"] for row in rows] == ["7", "8"]
    assert rows[0]["note"] == '{"a":[1.5],"b":1}'
    assert (rows[0]["pulses"], rows[0]["charge"], rows[0]["open"]) == (2, Decimal("1.25"), True)
    assert json.loads(rows[1]["unreadable"]) == {
        "level": "x",
        "pulses": "2.5",
        "charge": "1000.0",
        "open": "2",
    }


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_timestamps_of_parquet_are_instants(landing: Path, unit: Any, zone: str) -> None:
    frame = typed().with_columns(
        pl.col("at").dt.cast_time_unit(unit).dt.convert_time_zone(zone), note=pl.col("at")
    )
    found = parquet(landing, frame)
    assert found.staged["event_us"].to_list() == [AT, AT]
    assert found.staged["note"].to_list() == ["2026-05-04T00:00:05.000000Z"] * 2


def test_a_parquet_timestamp_without_a_zone_needs_a_declared_one(landing: Path) -> None:
    naive = typed().with_columns(pl.col("at").dt.replace_time_zone(None))
    with pytest.raises(SourceError, match=r"column 'at' is Datetime.* declare its `zone:`"):
        parquet(landing, naive)


def test_numbers_of_parquet_are_times_in_the_declared_unit(landing: Path) -> None:
    seconds = [AT / 1e6, AT / 1e6 + 0.25]
    found = parquet(landing, typed(at=seconds, got=seconds), spec("parquet", unit="s"))
    assert found.staged["event_us"].to_list() == [AT, AT + 250_000]


def test_rejected_rows_of_parquet_have_their_fields_as_raw_text(landing: Path) -> None:
    found = parquet(landing, typed(site=["a", None]))
    (bad,) = found.rejected.to_dicts()
    assert (bad["seq"], bad["line"], bad["reason"]) == (1, 2, "missing_key")
    raw = json.loads(bad["raw"])
    assert (raw["site"], raw["at"], raw["level"]) == (None, "2026-05-04T00:00:05.000000Z", "-0.0")


def test_a_schema_that_lacks_a_column_is_a_source_error(landing: Path) -> None:
    with pytest.raises(SourceError, match=r"a.parquet: .* no column 'note'; did you mean Notes"):
        parquet(landing, typed().rename({"note": "Notes"}))


def test_a_column_of_bytes_is_a_source_error(landing: Path) -> None:
    with pytest.raises(SourceError, match="column 'note' is Binary"):
        parquet(landing, typed(note=[b"\xff", b""]))


@pytest.mark.parametrize("damage", ["cut", "text", "middle"])
def test_a_corrupt_parquet_file_is_a_source_error(landing: Path, damage: str) -> None:
    typed(note=["x" * 5000, "y" * 5000]).write_parquet(
        landing / "a.parquet", compression="uncompressed"
    )
    content = bytearray((landing / "a.parquet").read_bytes())
    middle = content[:200] + bytes(200) + content[400:]
    broken = {"cut": content[:-10], "text": b"site,at\n", "middle": middle}[damage]
    with pytest.raises(SourceError, match=r"landing/a.parquet: this is not a Parquet file"):
        read_one(landing, "a.parquet", bytes(broken), spec("parquet"))


# Files that change, are out of reach, or lie elsewhere.


def test_a_file_that_changes_while_it_is_read_is_read_again(
    landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = landing / "a.ndjson"
    path.write_bytes(ndjson(row(1)))
    changes = iter([ndjson(row(1), row(2)), ndjson(row(3))])
    once = files._read_once

    def meanwhile(*args: Any) -> FileRead:
        found = once(*args)
        if (content := next(changes, None)) is not None:
            path.write_bytes(content)
        return found

    monkeypatch.setattr(files, "_read_once", meanwhile)
    found = read_file(spec(), "landing/a.ndjson", data_dir=landing.parent)
    assert found.staged["key"].to_list() == ["s3"]


def test_a_file_that_keeps_changing_is_a_source_error(landing: Path) -> None:
    path = landing / "a.ndjson"
    path.write_bytes(ndjson(*(row(n) for n in range(20_000))))
    done = threading.Event()

    def writer() -> None:
        with path.open("ab") as file:
            while not done.is_set():
                file.write(b"\n")
                file.flush()

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        with pytest.raises(SourceError, match=r"landing/a.ndjson: the file changed while"):
            read_file(spec(), "landing/a.ndjson", data_dir=landing.parent)
    finally:
        done.set()
        thread.join()


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_noticed(landing: Path) -> None:
    path, other = landing / "a.ndjson", landing / "other"
    path.write_bytes(ndjson(row(1)))
    other.write_bytes(ndjson(row(2)))
    stamp = path.stat().st_mtime_ns
    storage = files.storage_of("landing/a.ndjson", landing.parent)
    before = storage.version("landing/a.ndjson")
    os.utime(other, ns=(stamp, stamp))
    other.replace(path)
    assert storage.version("landing/a.ndjson") != before


def test_a_file_that_is_not_there_is_a_source_error(landing: Path) -> None:
    with pytest.raises(SourceError, match=r"landing/none.ndjson: cannot be read: No such file"):
        read_file(spec(), "landing/none.ndjson", data_dir=landing.parent)


def test_an_error_of_one_file_comes_in_its_turn(landing: Path) -> None:
    (landing / "a.ndjson").write_bytes(ndjson(row(1)))
    (landing / "b.gz").write_bytes(b"no gzip")
    names = ["landing/a.ndjson", "landing/b.gz"]
    reads = read_files(spec(), names, data_dir=landing.parent)
    assert next(reads).name == "landing/a.ndjson"
    with pytest.raises(SourceError, match=r"b\.gz"):
        next(reads)


def test_object_storage_without_a_driver_is_a_clear_error() -> None:
    with pytest.raises(SourceError, match=r"nosuch://.* install fsspec and its nosuch driver"):
        find_files(spec(path="nosuch://bucket/*.ndjson"), Path())


def test_object_storage_is_read_through_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/gauges/b.ndjson", ndjson(row(2)))
    memory.pipe("/gauges/a.ndjson", ndjson(row(1)))
    stream = spec(path="memory://gauges/*.ndjson")
    names = find_files(stream, Path())
    assert names == ["memory:///gauges/a.ndjson", "memory:///gauges/b.ndjson"]
    found = list(read_files(stream, names, data_dir=Path()))
    assert [read.staged["key"][0] for read in found] == ["s1", "s2"]
