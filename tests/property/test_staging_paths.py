"""The fast way through NDJSON and the line-wise one give the same rows, whatever stands there."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.reading import ndjson_twins
from transforms.reading.ndjson import ndjson_rows
from transforms.reading.ndjson_lines import BLANK, read_line
from transforms.reading.ndjson_scalars import plain_integers
from transforms.reading.text_lines import split_lines

COLUMNS = ("k", "t", "v", "w")

NUMBERS = (
    *("0", "-0", "-0.0", "1.10", "1e3", "1E-400", "1714780800.1234569999", "-1.5"),
    *("123456789012345678901234567890", "9007199254740993.0", "NaN", "Infinity", "-Infinity"),
    *(
        "01",
        ".5",
        "1.",
        "+1",
        "nan",
        "1_0",
        "0x1",
        "1e",
        "--1",
        "tru",
        "-",
        "\N{ARABIC-INDIC DIGIT ONE}",
    ),
)
WORDS = ("null", "true", "false")
STRINGS = (
    *('""', '"a"', '"thirteen bytes"', '"twelve bytes"', '"exactly 4"', '"1.10"', '"null"'),
    *('"é"', '"日本語の長い文字列"', '"\u2028"', '"a\\u00e9b"', '"\\ud83d"', '"\\ud83d\\ude00"'),
    *('"\\""', '"\\\\"', '"\\x"', '"a\tb"', '"2026-05-04T00:00:00.123456789Z"', '"{"', '"[,]:"'),
    '"' + "long " * 30 + '"',
)
NESTED = ('{"b":1.10,"a":[1,"x"]}', "[]", "{}", "[1, 2.50]", '["k"]', '{"k":{"k":1}}', "[NaN]")

KINDS = (NUMBERS + WORDS, STRINGS, STRINGS, NESTED)
JUNK = (b"", b"\xff", b'"', b",", b"\\", b"\n", b"1")

names = st.sampled_from(('"k"', '"t"', '"v"', '"w"', '"other"', '"\\u006b"', '"k "'))
spaces = st.sampled_from(("", "", " ", "\t"))
ends = st.sampled_from(("\n", "\n", "\n", "\r\n", " \n", "\n\n", "\n \t\n"))


class Program(NamedTuple):
    """How one program writes a line: its names in their order, and what it has for each."""

    members: list[tuple[str, tuple[str, ...]]]
    space: str


programs = st.builds(
    Program, st.lists(st.tuples(names, st.sampled_from(KINDS)), max_size=4), spaces
)


@st.composite
def lines(draw: st.DrawFn, program: Program) -> bytes:
    """A line as the program writes it, now and then with another value, or broken somewhere."""
    texts = []
    for name, usual in program.members:
        kind = draw(st.sampled_from((*[usual] * 9, *KINDS)))
        texts.append(f"{name}:{program.space}{draw(st.sampled_from(kind))}")
    line = (f"{{{f',{program.space}'.join(texts)}}}" + draw(ends)).encode()
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 0, 0, 1, 2)))):
        place, cut = draw(st.integers(0, len(line))), draw(st.integers(0, 3))
        line = line[:place] + draw(st.sampled_from(JUNK)) + line[place + cut :]
    return line


@st.composite
def files(draw: st.DrawFn) -> bytes:
    written = draw(st.lists(programs, min_size=1, max_size=2))
    content = draw(st.lists(st.sampled_from(written).flatmap(lines), min_size=1, max_size=15))
    return b"".join(content).removesuffix(draw(st.sampled_from((b"", b"\n"))))


@pytest.fixture(autouse=True)
def _even_few_lines_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson_twins, "FEWEST_LINES", 1)


def line_by_line(data: bytes) -> Iterator[tuple[int, list[str | None] | str | None]]:
    """Line number, and the fields, a fault, or None where the line is no text."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            yield number, None
            continue
        if text.strip(BLANK):
            yield number, read_line(text, COLUMNS)


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of whole numbers as they are written, which is what they stand for."""
    return frame.with_columns(pl.col("^field:.*$").cast(pl.String))


def as_records(frame: pl.DataFrame) -> list[tuple[int, list[str | None] | str | None]]:
    return [
        (line, None if fault and fault.startswith("not UTF-8") else fault or fields)
        for _, line, _, fault, *fields in as_text(frame).iter_rows()
    ]


@given(files())
@settings(max_examples=400)
def test_both_ways_give_the_same_rows(data: bytes) -> None:
    rows = ndjson_rows(split_lines(data), COLUMNS)
    assert as_records(rows) == list(line_by_line(data))
    assert rows["seq"].to_list() == list(range(rows.height))


@given(files())
@settings(max_examples=200)
def test_nothing_of_a_line_is_lost(data: bytes) -> None:
    rows = ndjson_rows(split_lines(data), COLUMNS)
    lines = [line.decode(errors="backslashreplace") for line in data.split(b"\n")]
    assert [raw.removesuffix("\n") for raw in rows["raw"]] == [
        lines[number - 1] for number in rows["line"]
    ]


@given(st.lists(st.fixed_dictionaries({"k": st.text(), "v": st.floats(), "t": st.integers()})))
@settings(max_examples=100)
def test_what_json_writes_is_read_back_as_it_was_written(records: list[dict[str, object]]) -> None:
    data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    rows = as_text(ndjson_rows(split_lines(data), COLUMNS))
    assert rows["field:k"].to_list() == [record["k"] for record in records]
    assert rows["field:v"].to_list() == [json.dumps(record["v"]) for record in records]
    assert rows["field:t"].to_list() == [str(record["t"]) for record in records]
    assert rows["field:w"].null_count() == len(records)


@given(st.lists(st.one_of(st.integers(0, 99), st.integers(10**15, 10**19)), min_size=1))
def test_columns_of_whole_numbers_are_numbers_at_once_where_nothing_is_lost(
    values: list[int],
) -> None:
    data = "".join(json.dumps({"k": "a", "t": value}) + "\n" for value in values).encode()
    column = ndjson_rows(split_lines(data), COLUMNS)["field:t"]
    assert column.dtype == (pl.Int64 if max(values) < 10**17 else pl.String)
    assert column.cast(pl.String).to_list() == list(map(str, values))


@pytest.mark.parametrize(
    "text", ["007", "+5", "-5", "-0", "1e2", " 12", "1_0", "0x1", "٣", "", "00"]
)
def test_what_is_no_plain_integer_stays_as_it_is_written(text: str) -> None:
    texts = pl.Series(["12", text])
    assert plain_integers(texts, np.array([2, len(text.encode())])) is None


def test_lines_of_one_program_do_take_the_fast_way() -> None:
    data = b"".join(b'{"k": "a%d", "v": %d.50, "n": {"x": [1, 2]}}\n' % (i, i) for i in range(9))
    found = list(ndjson_twins.find_twins(split_lines(data), np.arange(9), COLUMNS))
    assert [twins.lines.tolist() for twins in found] == [list(range(9))]


@pytest.mark.parametrize("usual", ["1.5", '"plain"', "null", '[1, {"x": "y"}]'])
@pytest.mark.parametrize("column", ["k", "other"])
def test_any_value_may_stand_where_another_usually_does(usual: str, column: str) -> None:
    usual_line = f'{{"{column}": {usual}, "t": "x"}}\n'
    for value in (*NUMBERS, *WORDS, *STRINGS, *NESTED):
        data = (usual_line + usual_line.replace(usual, value) + usual_line).encode()
        rows = ndjson_rows(split_lines(data), COLUMNS)
        assert as_records(rows) == list(line_by_line(data)), value
