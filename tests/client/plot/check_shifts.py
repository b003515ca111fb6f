"""Compares a picture of trace shifts with the frame's table, and checks pictures of axes that were not measured.

check_shifts.py FOLDER_OF_SCRIPTS FRAME: a frame with shifts in x and y that were applied.
"""
import sys
from types import SimpleNamespace

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import plot_common

plt = plot_common.load_pyplot()
import numpy as np
from astropy.io import fits
from matplotlib.quiver import Quiver

import plot_data
import plot_shifts

with fits.open(sys.argv[2]) as hdus:
    cards, table = hdus["FLUX"].header, np.asarray(hdus["TRACESHIFT"].data)
shifts = plot_data.Frame(sys.argv[2]).shifts


def drawn(shown):
    """Draws the panels of the shifts; returns their axes and texts."""
    figure = plt.figure(figsize=(11, 4))
    plot_shifts.draw_shifts(figure, figure.add_gridspec(1, 1, top=0.8, bottom=0.2)[0], shown)
    figure.canvas.draw()
    return figure.axes, [text.get_text() for axis in figure.axes for text in axis.texts + [axis._left_title]]


def changed(**attributes):
    return SimpleNamespace(**{"fate": "", "measured": True, **vars(shifts), **attributes})


def not_measured(status):
    return SimpleNamespace(measured=False, values=None, status=status, said=lambda between="": status)


# An arrow has the direction and, with the scale, the length of its shift, and is inside its panel.
axes, texts = drawn(shifts)
arrows = next(child for child in axes[0].get_children() if isinstance(child, Quiver))
at = [int(np.argmin(np.abs(table["U"] - u))) for u in arrows.X]
waves = [int(np.argmin(np.abs(shifts.wave - wave))) for wave in arrows.Y]
assert set(waves) == set(range(5)) and min(at) == 0 and max(at) == len(table) - 1, (waves, at)
assert np.allclose(arrows.U, table["DX"][at, waves]) and np.allclose(arrows.V, table["DY"][at, waves])
dpi, room = axes[0].figure.dpi, axes[0].get_window_extent()
ends = axes[0].transData.transform(np.stack([arrows.X, arrows.Y], 1)) + dpi / arrows.scale * np.stack([arrows.U, arrows.V], 1)
assert all(room.contains(*end) for end in ends), ends
assert arrows.angles == "uv" and arrows.scale_units == "inches"

# Titles agree with the cards.
mean = ("%+.3f" % cards["MEANDX"]).replace("-", "−")
assert "dx: ok, mean %s pixels\nerror at most %.3f" % (mean, cards["ERRDX"]) in texts, texts

# A scale is round and not longer than the longest arrow.
for longest, key in ((0.31, 0.2), (0.5, 0.5), (0.099, 0.05), (3.4, 2), (0.001, 0.001)):
    assert abs(plot_shifts.round_below(longest) / key - 1) < 1e-9, longest

# An axis that was not measured is reported with its reason, and has no map.
axes, texts = drawn(changed(y=not_measured("refused"), reason="y: only 1 line of the reference is seen"))
assert "dy: refused" in texts and any("only 1 line" in text for text in texts), texts
assert len(axes) == 4, "panels and one scale of colours"
axes, texts = drawn(changed(x=not_measured("refused"), y=not_measured("refused"), reason="x: there is no light"))
assert len(axes) == 3 and not any(isinstance(child, Quiver) for child in axes[0].get_children())
assert any("too small to be applied" in text for text in drawn(changed(fate="too small to be applied"))[1])

# One fibre, and shifts that are equal everywhere.
few = SimpleNamespace(**{**vars(shifts.x), "said": shifts.x.said, "values": np.full((1, 5), 0.3)})
axes, texts = drawn(changed(u=shifts.u[:1], fibres=[7], x=few, y=few))
assert axes[0].get_xlabel() == "fibre 7"
