"""Sums of floats that lose next to nothing: Neumaier's, for many groups at once.

Here belongs the summation alone; what is summed, and in which order, is up to the caller. The
result is to the bit that of the plain loop over each group,

    total = total + x, and the rounding error of each step is summed beside it,

whatever groups stand beside it. Groups advance in step, one row of each at a time; where few
groups are left, each is finished alone by running sums, which add in the same order.

A running total that leaves the range of float64 stays infinite: the sum is infinite, never NaN.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def group_sums(values: Floats, first: Ints, size: Ints) -> Floats:
    """Return the compensated sum of each group of consecutive values.

    ``first`` is the position of the first value of each group, ``size`` their number, at least 1.
    """
    order = np.argsort(-size, kind="stable")
    start, left = first[order], size[order]
    total, error = np.zeros(len(order)), np.zeros(len(order))
    with np.errstate(over="ignore", invalid="ignore"):
        active, done, longest = len(order), 0, int(left.max(initial=0))
        while active > longest - done:
            _step(values[start[:active] + done], total[:active], error[:active])
            done += 1
            active = int(np.searchsorted(-left, -done, side="left"))
        for group in range(active):
            rest = values[start[group] + done : start[group] + left[group]]
            total[group], error[group] = _finish(rest, total[group], error[group])
        sums = np.where(np.isfinite(total), total + error, total)
    result = np.empty_like(sums)
    result[order] = sums
    return result


def _step(values: Floats, total: Floats, error: Floats) -> None:
    """Add one value to each total, and the exact rounding error of that to each error."""
    before = total.copy()
    np.add(before, values, out=total)
    error += _rounding_errors(before, values, total)


def _rounding_errors(left: Floats, right: Floats, total: Floats) -> Floats:
    """Return exactly what ``total = left + right`` lost, whichever of the two is greater."""
    taken: Floats = total - left
    return (left - (total - taken)) + (right - taken)


def _finish(values: Floats, total: float, error: float) -> tuple[float, float]:
    """Add all values, one after another, to a total and its error."""
    totals = np.cumsum(np.concatenate([[total], values]))
    lost = _rounding_errors(totals[:-1], values, totals[1:])
    return totals[-1], np.cumsum(np.concatenate([[error], lost]))[-1]
