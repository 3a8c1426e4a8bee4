import pytest

from transforms.publishing.breaker import Answer, Breaker, BreakerOpenError, BreakerState


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock)


def call(breaker: Breaker, *answers: Answer) -> None:
    for answer in answers:
        breaker.settle(breaker.admit(), answer)


DOWN, UP = Answer.OUTAGE, Answer.ANSWERED


def test_it_opens_when_half_of_at_least_five_calls_failed(breaker: Breaker) -> None:
    call(breaker, DOWN, UP, DOWN, UP)
    assert breaker.state is BreakerState.CLOSED
    call(breaker, DOWN)
    assert breaker.state is BreakerState.OPEN
    with pytest.raises(BreakerOpenError, match="30"):
        breaker.admit()


def test_failures_of_long_ago_are_forgotten(breaker: Breaker, clock: Clock) -> None:
    call(breaker, *[DOWN] * 4)
    clock.now = 31
    call(breaker, DOWN)
    assert breaker.state is BreakerState.CLOSED


def test_after_the_reset_period_one_probe_is_let_through(breaker: Breaker, clock: Clock) -> None:
    call(breaker, *[DOWN] * 5)
    clock.now = 30
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.admit().is_probe
    with pytest.raises(BreakerOpenError):
        breaker.admit()


def test_one_that_was_down_before_a_restart_starts_half_open(clock: Clock) -> None:
    breaker = Breaker(clock, was_down=True)
    assert breaker.state is BreakerState.HALF_OPEN
    probe = breaker.admit()
    assert probe.is_probe
    with pytest.raises(BreakerOpenError):
        breaker.admit()
    breaker.settle(probe, DOWN)
    assert breaker.state is BreakerState.OPEN


def test_an_answer_to_the_probe_closes_it(breaker: Breaker, clock: Clock) -> None:
    call(breaker, *[DOWN] * 5)
    clock.now = 42
    call(breaker, UP)
    assert breaker.state is BreakerState.CLOSED
    assert breaker.longest_down_s() == 42
    call(breaker, DOWN, DOWN, DOWN, DOWN)
    assert breaker.state is BreakerState.CLOSED


def test_an_outage_met_by_the_probe_opens_it_for_another_period(
    breaker: Breaker, clock: Clock
) -> None:
    call(breaker, *[DOWN] * 5)
    clock.now = 30
    call(breaker, DOWN)
    assert breaker.opens_in() == 30
    assert breaker.longest_down_s() == 30


def test_a_probe_that_was_cancelled_gives_its_place_back(breaker: Breaker, clock: Clock) -> None:
    call(breaker, *[DOWN] * 5)
    clock.now = 30
    call(breaker, Answer.NOTHING)
    assert breaker.admit().is_probe


def test_calls_that_began_before_it_opened_do_not_move_it(breaker: Breaker) -> None:
    early = breaker.admit()
    call(breaker, *[DOWN] * 5)
    breaker.settle(early, UP)
    assert breaker.state is BreakerState.OPEN


def test_two_writers_in_each_others_way_are_not_seen(breaker: Breaker) -> None:
    call(breaker, *[Answer.NOTHING] * 9)
    call(breaker, *[DOWN] * 4)
    assert breaker.state is BreakerState.CLOSED
