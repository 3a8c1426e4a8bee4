from transforms.publishing.batch_size import CEILING, FLOOR, BatchSize

MIB = 1 << 20


def told(size: BatchSize, *, seconds: float = 0.1, rss: float = 0.1, times: int = 1) -> int:
    for _ in range(times):
        size.learn(seconds=seconds, rss_bytes=int(rss * 100 * MIB))
    return size.rows


def test_a_batch_is_halved_when_the_memory_of_now_passes_its_share() -> None:
    assert told(BatchSize(100 * MIB, rows=20_000), rss=0.81) == 10_000


def test_it_grows_back_by_a_tenth_when_memory_falls() -> None:
    size = BatchSize(100 * MIB, rows=20_000)
    told(size, rss=0.9)
    assert told(size, rss=0.5) == 11_001


def test_between_the_bounds_it_holds() -> None:
    assert told(BatchSize(100 * MIB, rows=20_000), rss=0.7) == 20_000
    assert told(BatchSize(100 * MIB, rows=20_000), seconds=0.7) == 20_000


def test_slow_batches_are_halved_one_slow_batch_among_fast_ones_is_not() -> None:
    size = BatchSize(100 * MIB, rows=20_000)
    assert told(size, seconds=1.5) == 10_000
    fast = BatchSize(100 * MIB, rows=20_000)
    told(fast, seconds=0.1, times=3)
    before = fast.rows
    assert told(fast, seconds=1.4) >= before
    assert fast.smoothed_s < 0.5


def test_it_never_leaves_floor_and_ceiling() -> None:
    assert told(BatchSize(100 * MIB), rss=2.0, times=40) == FLOOR
    assert told(BatchSize(100 * MIB), times=40) == CEILING
