from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from transforms.publishing.fitting import KindError, Misfit, fitted

AMOUNT = {"amount": pl.Decimal(18, 4)}


def amounts(*texts: str | None, scale: int = 5) -> pl.DataFrame:
    return pl.DataFrame({"amount": pl.Series(texts, dtype=pl.String).cast(pl.Decimal(38, scale))})


def test_more_digits_than_the_column_has_are_refused_not_rounded() -> None:
    assert fitted(amounts("1.10000", "1.00001"), AMOUNT) == Misfit("amount", "scale", "1.00001")


def test_digits_that_are_zero_fit() -> None:
    found = fitted(amounts("1.10000", None), AMOUNT)
    assert isinstance(found, pl.DataFrame)
    assert found["amount"].to_list() == [Decimal("1.1000"), None]
    assert found.schema["amount"] == pl.Decimal(18, 4)


def test_a_number_that_is_too_large_is_out_of_range() -> None:
    found = fitted(amounts("9" * 20, scale=0), AMOUNT)
    assert isinstance(found, Misfit)
    assert found.reason == "out-of-range"


@pytest.mark.parametrize(("nanoseconds", "fits"), [(123_456_789, False), (123_456_000, True)])
def test_nanoseconds_fit_when_they_are_whole_microseconds(nanoseconds: int, fits: bool) -> None:  # noqa: FBT001
    whole = int(datetime(2024, 2, 29, tzinfo=UTC).timestamp()) * 1_000_000_000
    known = pl.Series("known_at_us", [whole + nanoseconds]).cast(pl.Datetime("ns", "UTC"))
    found = fitted(known.to_frame(), {"known_at_us": pl.Int64()})
    if fits:
        assert isinstance(found, pl.DataFrame)
        assert found["known_at_us"].to_list() == [(whole + nanoseconds) // 1_000]
    else:
        assert isinstance(found, Misfit)
        assert found.reason == "precision-loss"
        assert "123456789" in found.value


def test_another_kind_of_column_is_a_mistake_not_a_bad_row() -> None:
    with pytest.raises(KindError, match="column amount is String"):
        fitted(pl.DataFrame({"amount": ["many"]}), AMOUNT)


def test_what_the_schema_does_not_name_is_left_alone() -> None:
    frame = pl.DataFrame({"amount": [1], "other": ["x"]})
    assert fitted(frame, {"amount": pl.Int64()}) is frame
