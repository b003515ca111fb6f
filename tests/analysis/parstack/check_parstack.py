"""Checks the values that line_stack_test.cc attributes to pyrocko by stacking the same trace with parstack again.

check_parstack.py line_stack_test.cc
"""

import pathlib
import re
import sys

import numpy as np
from pyrocko import parstack

BINS, EDGE, FIRST, STEP = 400, 8, 6000.0, 0.8  # bins, bins without weight at each end, Angstrom
REDSHIFT_STEP = 20 / 299792.458  # of ln(1 + z)
REDSHIFTS = int(np.ceil(np.log1p(1.05) / REDSHIFT_STEP))
OXYGEN = ((4960.295, 0.335), (5008.24, 1.0))  # [OIII]: Angstrom, ratio
NUMBER = r"(-?[\d.]+)"


def stack(trace, power):
    """Delays the trace to both lines at every redshift, weights by this power of their ratios, and adds."""
    shifts = np.zeros((REDSHIFTS, 2 * len(OXYGEN)), np.int32)
    weights = np.zeros(shifts.shape)
    for a, (line, ratio) in enumerate(OXYGEN):
        position = (line * np.exp(np.arange(REDSHIFTS) * REDSHIFT_STEP) - FIRST) / STEP
        inside = (position >= EDGE) & (position < BINS - EDGE - 1)
        whole, part = np.floor(position).astype(np.int32), position - np.floor(position)
        for k, weight in enumerate((1 - part, part)):
            shifts[:, 2 * a + k] = np.where(inside, -(whole + k), 0)
            weights[:, 2 * a + k] = np.where(inside, ratio**power * weight, 0)
    offsets = np.zeros(4, np.int32)
    result, _ = parstack.parstack([trace] * 4, offsets, shifts, weights, method=0, lengthout=1, offsetout=0)
    return result[:, 0]


def main():
    source = pathlib.Path(sys.argv[1]).read_text()
    k = np.arange(BINS)
    signal = stack(np.sin(0.37 * k) + 0.01 * k - 1, 1)
    information = stack(1 + 0.5 * np.cos(0.11 * k), 2)
    rows = re.findall(r"\{(\d+), " + NUMBER + ", " + NUMBER + r"\}", source)
    assert len(rows) == 7, rows
    for redshift, *values in rows:
        found = signal[int(redshift)], information[int(redshift)]
        np.testing.assert_allclose(found, np.array(values, float), rtol=0, atol=1e-10, err_msg=redshift)
    used = np.flatnonzero(information)
    bounds = re.search(r"kFirstStacked = (\d+), kLastStacked = (\d+)", source).groups()
    assert [str(used[0]), str(used[-1])] == list(bounds), (used[0], used[-1], bounds)
    sums = {"kSumOfSignal": signal.sum(), "kSumOfInformation": information.sum(), "kSumOfSquares": (signal**2).sum()}
    for name, value in sums.items():
        expected = float(re.search(name + r" = " + NUMBER, source)[1])
        assert abs(value - expected) < 1e-7, (name, value, expected)
    print(f"pyrocko's parstack: {len(used)} of {REDSHIFTS} redshifts stacked, all values are those of the test")


if __name__ == "__main__":
    main()
