"""The full buffer by example."""

import numpy as np
from unit.small_logs import fates, reorder, stream

from transforms.judging.overflow import keys_within_reach


def test_a_full_buffer_refuses_the_next_row_which_moves_the_watermark_all_the_same() -> None:
    outcome = reorder(stream(grace="100s", capacity=2), (30, 31), (10, 32), (20, 33), (140, 141))
    assert fates(outcome) == {
        0: "ordered",
        1: "ordered",
        2: "buffer_overflow",
        3: "buffer_overflow",
    }


def test_what_the_watermark_has_passed_makes_room() -> None:
    told = fates(reorder(stream(capacity=1), (30, 31), (45, 46), (56, 57)))
    assert told == {0: "ordered", 1: "buffer_overflow", 2: "held"}


def test_a_silence_makes_room_before_the_row_is_judged() -> None:
    told = fates(reorder(stream(capacity=1, idle_timeout="1m"), (10, 11), (95, 100)))
    assert told == {0: "ordered", 1: "held"}


def test_held_rows_of_the_partition_before_take_room() -> None:
    spec = stream(capacity=1)
    before = reorder(spec, (30, 31))
    after = reorder(spec, {"at": (31, 32), "seq": 1}, state=before.state)
    assert fates(after) == {0: "held", 1: "buffer_overflow"}


def test_more_held_rows_than_a_new_capacity_stay_held() -> None:
    before = reorder(stream(capacity=3), (30, 31), (31, 32), (32, 33))
    after = reorder(stream(capacity=1), {"at": (33, 34), "seq": 3}, state=before.state)
    assert fates(after) == {0: "held", 1: "held", 2: "held", 3: "buffer_overflow"}


def test_rows_held_under_a_longer_grace_take_room_after_it_was_cut() -> None:
    before = reorder(stream(grace="100s"), (30, 31), (100, 100))
    after = reorder(stream(grace="1s", capacity=2), {"at": (50, 101), "seq": 2}, state=before.state)
    assert fates(after) == {0: "ordered", 1: "held", 2: "buffer_overflow"}


def test_room_is_counted_by_key_and_by_the_capacity_of_the_rows_own_link() -> None:
    roomy = {"grace": "10s", "idle_timeout": "off", "capacity": 2, "future_skew": "5m"}
    spec = stream(capacity=1, profiles={"by": "link", "roomy": roomy})
    rows = [
        {"at": (30, 31), "profile": "default"},
        {"at": (31, 32), "profile": "default"},
        {"at": (32, 33), "profile": "roomy"},
        {"at": (33, 34), "profile": "default", "key": "b"},
    ]
    assert fates(reorder(spec, *rows)) == {0: "held", 1: "buffer_overflow", 2: "held", 3: "held"}


def test_a_row_that_is_behind_takes_no_room() -> None:
    told = fates(reorder(stream(capacity=2), (30, 31), (5, 32), (31, 33)))
    assert told == {0: "held", 1: "behind_watermark", 2: "held"}


def test_keys_whose_rows_lie_apart_are_cleared_without_looking_at_the_buffer() -> None:
    codes = np.array([0, 0, 0, 1, 1, 1], np.uint16)
    event = np.array([0, 10, 20, 0, 10, 11])
    assert keys_within_reach(codes, event, 2, capacity=2, reach=9).tolist() == [False, True]
    assert keys_within_reach(codes, event, 2, capacity=2, reach=10).tolist() == [True, True]
    assert keys_within_reach(codes, event, 2, capacity=7, reach=99).tolist() == [False, False]
