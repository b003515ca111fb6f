"""Compares what pictures and pages show of a frame with independent calculations.

check_plot_data.py FOLDER_OF_SCRIPTS FRAME PSF MODEL
"""
import sys

import numpy as np
from astropy.io import fits

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import plot_data
import plot_page

path, psf, model = sys.argv[2:]
frame = plot_data.Frame(path)

# A resolution with Gaussian rows has their width, whatever the bins outside of the grid.
half, sigma = 5, 1.3
rows = np.zeros_like(frame.resolution[0])
for d in range(-half, half + 1):
    rows[d + half] = np.exp(-0.5 * (d / sigma) ** 2)
frame.resolution[0] = rows
widths = frame.fwhm()
expected = plot_data.FWHM_PER_SIGMA * sigma * frame.step
assert np.allclose(widths[0, 1:-1], expected) and np.isnan(widths[0, [0, -1]]).all(), (widths[0], expected)
offsets, values = frame.resolution_row(0, 20)
assert np.allclose(values, np.exp(-0.5 * (offsets / frame.step / sigma) ** 2))
assert len(frame.resolution_row(0, 0)[0]) == half + 1  # there are no bins before the first

# The brightest line of a fibre is in the model where the traces say, within a spot's width.
traces, image = plot_data.Traces(psf), fits.getdata(model)
for row in (0, 12, len(frame.flux) - 1):
    wave = frame.wave[np.argmax(np.where(frame.good[row], frame.flux[row], 0))]
    y, x = int(round(float(traces.row(row, wave)))), int(round(float(traces.column(row, wave))))
    low, left = max(y - 8, 0), max(x - 3, 0)
    part = image[low:y + 9, left:x + 4]
    top = np.array(np.unravel_index(np.argmax(part), part.shape)) + (low, left)
    assert np.abs(top - (y, x)).max() <= 1, (row, wave, top, y, x)

# The masked bins of a page, restored, equal the original, whatever stretches they are in.
for mask in (np.zeros((2, 5), int), np.ones((2, 5), int), np.array([[1, 0, 0, 2, 2], [2, 1, 0, 0, 256]])):
    again = np.zeros(mask.size, int)
    for first, end, value in plot_page.masked_bins(mask):
        again[first:end] = value
    assert np.array_equal(again, mask.ravel()), mask
