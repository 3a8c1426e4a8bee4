"""The windows of an event time in SQL, worked out apart from the transforms.

A window is known by its number on its grid, ``wid``; ``wend_us`` is its end. Times are measured in
the units of the grid: microseconds from the origin, or local days, weeks, months. What is counted
per window is the business of the questions.
"""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

from expectations.stored import literal
from transforms.spec import WindowSpec

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_SECOND_US: Final = 1_000_000


def floored(number: str, by: int) -> str:
    """Return an SQL expression of floor division, right for negative numbers too."""
    return f"(({number}) - (({number}) % {by} + {by}) % {by}) // {by}"


def in_windows(source: str, window: WindowSpec, columns: str) -> str:
    """Return a query for rows and windows: ``columns``, ``wid``, ``wend_us``; a row may repeat.

    ``source`` has ``event_us``.
    """
    if window.unit == "local":
        return _on_the_local_clock(source, window, columns)
    every, length = _steps(window)
    layers = -(-length // every)
    number = f"{floored('spot', every)} - layer"
    return f"""
      select {columns}, {number} as wid, {_end(window, "wid")} as wend_us
      from (select {columns}, {position(window, "event_us")} as spot from {source})
      cross join range({layers}) as layers(layer)
      where ({number}) * {every} + {length} > spot
      """


def numbered(window: WindowSpec, start_us: str) -> str:
    """Return an SQL expression for the number of the window that starts at an instant."""
    if window.unit == "local":
        return start_us
    return floored(position(window, start_us), _steps(window)[0])


def position(window: WindowSpec, us: str) -> str:
    """Return an SQL expression for an instant in the units of the grid."""
    if window.kind == "fixed":
        return f"({us} - {window.origin_us})"
    local = _local(window, us)
    if window.unit in _MONTHS:
        months = f"((year({local}) - 1970) * 12 + month({local}) - 1)"
        return floored(months, _MONTHS[str(window.unit)])
    days = f"date_diff('day', DATE '1970-01-01', {local}::date)"
    return floored(f"{days} - 4", 7) if window.unit == "week" else days


def start_of(window: WindowSpec, number: str) -> str:
    """Return an SQL expression for the instant a numbered window starts at."""
    return (
        number if window.unit == "local" else _boundary(window, f"({number} * {_steps(window)[0]})")
    )


def _steps(window: WindowSpec) -> tuple[int, int]:
    if window.kind == "fixed":
        return window.every_us, window.length_us
    return window.every_count, window.count


def _local(window: WindowSpec, us: str) -> str:
    return f"timezone({literal(window.zone)}, make_timestamptz({us}))"


def _end(window: WindowSpec, number: str) -> str:
    every, length = _steps(window)
    return _boundary(window, f"({number} * {every} + {length})")


def _boundary(window: WindowSpec, units: str) -> str:
    """Return the instant of a number of units since the start of the grid."""
    if window.kind == "fixed":
        return f"{units} + {window.origin_us}"
    if window.unit in _MONTHS:
        passed = f"to_months(({units} * {_MONTHS[str(window.unit)]})::integer)"
    else:
        passed = f"to_days(({units}{' * 7 + 4' if window.unit == 'week' else ''})::integer)"
    return f"epoch_us(timezone({literal(window.zone)}, TIMESTAMP '1970-01-01' + {passed}))"


def _on_the_local_clock(source: str, window: WindowSpec, columns: str) -> str:
    """Windows of a part of an hour; those of an hour that comes twice differ by their instant."""
    into = f"(epoch_us({_local(window, 'event_us')}) % {window.length_us} + {window.length_us})"
    start = f"event_us - {into} % {window.length_us}"
    return (
        f"select {columns}, {start} as wid, {start} + {window.length_us} as wend_us from {source}"
    )
