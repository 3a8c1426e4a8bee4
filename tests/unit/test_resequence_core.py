import pytest

from transforms.ordering.core import (
    SKIP,
    Envelope,
    Intake,
    ItemSkippedError,
    Kind,
    Outcome,
    ReorderBuffer,
    Stage,
    returned_value,
)


def envelope(seq: int) -> Envelope[str, str]:
    return Envelope(seq, "item", Kind.VALUE, "value")


def test_envelopes_come_back_in_the_order_of_admission() -> None:
    buffer: ReorderBuffer[str, str] = ReorderBuffer(window=None)
    for _ in range(3):
        buffer.admit(now=0.0)
    for seq in (2, 0, 1):
        buffer.settle(envelope(seq))
    assert [buffer.take().seq for _ in range(3)] == [0, 1, 2]


def test_a_number_is_settled_once_and_only_if_it_was_admitted() -> None:
    buffer: ReorderBuffer[str, str] = ReorderBuffer(window=None)
    buffer.admit(now=0.0)
    buffer.settle(envelope(0))
    for seq in (0, 1):
        with pytest.raises(ValueError, match="not outstanding"):
            buffer.settle(envelope(seq))
    buffer.take()
    with pytest.raises(ValueError, match="not outstanding"):
        buffer.settle(envelope(0))


def test_the_window_counts_from_admission_to_the_consumer() -> None:
    buffer: ReorderBuffer[str, str] = ReorderBuffer(window=2)
    buffer.admit(now=0.0)
    buffer.admit(now=0.0)
    buffer.settle(envelope(0))
    assert not buffer.has_room
    buffer.take()
    assert buffer.has_room


def test_diagnostics_name_the_straggler_and_its_age() -> None:
    buffer: ReorderBuffer[str, str] = ReorderBuffer(window=None)
    for now in (1.0, 2.0, 3.0):
        buffer.admit(now)
    buffer.settle(envelope(2))
    buffer.settle(envelope(0))
    buffer.take()
    seen = buffer.diagnostics(now=10.0)
    assert (seen.awaited, seen.awaited_age, seen.buffered, seen.peak) == (1, 8.0, 1, 2)
    assert (seen.admitted, seen.emitted, seen.ended[Kind.VALUE]) == (3, 1, 2)


def test_diagnostics_await_nothing_when_nothing_is_outstanding() -> None:
    seen = ReorderBuffer[str, str](window=1).diagnostics(now=1.0)
    assert (seen.awaited, seen.awaited_age) == (None, None)


def test_none_is_a_value_and_so_is_an_exception_that_was_returned() -> None:
    error = ValueError("a value like any other")
    assert returned_value(None) == Outcome(Kind.VALUE, None)
    assert returned_value(error) == Outcome(Kind.VALUE, error)
    assert returned_value(SKIP) == Outcome(Kind.SKIPPED)
    assert Envelope(0, "item", Kind.VALUE, error).unwrap() is error
    assert Envelope(0, "item", Kind.VALUE, None).unwrap() is None


def test_unwrapping_raises_what_the_item_ended_with() -> None:
    error = ValueError("broken")
    with pytest.raises(ValueError, match="broken"):
        Envelope(0, "item", Kind.FAILED, error=error).unwrap()
    with pytest.raises(ItemSkippedError, match="filtered out by stage 0"):
        Envelope(0, "item", Kind.SKIPPED).unwrap()


def test_the_next_item_of_a_key_starts_when_the_one_before_has_ended() -> None:
    intake: Intake[str, str] = Intake(window=None, key=lambda item: item[0])
    first, second, other = (intake.admit(item, 0.0) for item in ("a1", "a2", "b1"))
    assert first is not None
    assert other is not None
    assert second is None
    following = intake.settle(first, Outcome(Kind.VALUE, "done"))
    assert following is not None
    assert following.item == "a2"


def test_an_item_whose_key_cannot_be_told_keeps_its_slot() -> None:
    intake: Intake[str, str] = Intake(window=None, key=lambda item: [item])  # not hashable
    assert intake.admit("a", 0.0) is None
    ended = intake.buffer.take()
    assert (ended.kind, type(ended.error)) == (Kind.FAILED, TypeError)


@pytest.mark.parametrize(("workers", "timeout"), [(0, None), (1, 0.0), (1, -1.0)])
def test_a_stage_that_could_never_run_is_refused(workers: int, timeout: float | None) -> None:
    with pytest.raises(ValueError, match=r"at least 1 worker|above 0 seconds"):
        Stage(str, workers, timeout)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 item"):
        ReorderBuffer(window=0)
