"""Every axis of the pictures has at least two labelled ticks, or none where it shares those of another.

check_ticks.py FOLDER_OF_SCRIPTS: axes whose ticks the scripts choose, for many ranges.
check_ticks.py FOLDER_OF_SCRIPTS SCRIPT ARGUMENT...: the picture that a script draws.
"""
import importlib
import sys
from types import SimpleNamespace

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import plot_common

plt = plot_common.load_pyplot()
import numpy as np


def labels(axis):
    """Texts at the ticks of an axis that are within its range."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    ticks = axis.get_major_ticks() + axis.get_minor_ticks()
    inside = [tick for tick in ticks if low - slack <= tick.get_loc() <= high + slack]
    pairs = [(label.get_visible(), label.get_text()) for tick in inside for label in (tick.label1, tick.label2)]
    return [text for visible, text in pairs if visible and text]


def axes_of(figure):
    """Axes of a figure, with secondary ones, which stand in others."""
    found = list(figure.axes)
    for axes in found:
        found += axes.child_axes
    return found


def check(figure):
    figure.canvas.draw()
    checked = 0
    for axes in axes_of(figure):
        for axis in (axes.xaxis, axes.yaxis):
            texts = labels(axis)
            assert len(texts) != 1, (axes.get_title(loc="left"), axis.axis_name, texts, axis.get_view_interval())
            checked += len(texts) > 1
    return checked


def check_choices():
    import plot_image
    import plot_pca

    for top in 10 ** np.linspace(0, 5, 200):
        assert len(plot_image.light_ticks(top)) >= 2, top
    random = np.random.default_rng(1)
    light = random.exponential(10, (400, 420))
    plain = plot_image.brightest_shown(light)
    light[:, 200:208] *= 1e5
    assert abs(plot_image.brightest_shown(light) / plain - 1) < 0.1, "one star decides about the colours"
    figure = plt.figure(figsize=(4, 3), dpi=50)
    for _ in range(40):
        figure.clf()
        count = random.integers(2, 10)
        noise = 10 ** random.uniform(-1, 1)
        variances = np.sort(noise * 10 ** random.uniform(-0.5, 2.2, count))[::-1]
        pca = SimpleNamespace(variances=variances, noise=noise)
        plot_pca.draw_variances(figure.add_subplot(), pca, 2)
        assert check(figure) == 2


def check_night():
    """Exposures are named below the panels, nothing is cut off, and failures look like no camera."""
    import plot_night

    frames = [{"image": "preproc-%s0-%08d.fits" % (arm, expid), "output": "o.fits", "expid": label, "state": "written",
               "camera": arm + "0", "seconds": 2.0, "chi2pix": chi2pix, "masked_bins": 0, "bins": 10}
              for expid, label in ((51060, "51060"), (51061, ""), (51262, "twilight"))
              for arm, chi2pix in (("b", 1.0), ("r", 900.0), ("z", 1.1))]
    frames[4] = {"image": "preproc-r0-00051061.fits", "output": "o.fits", "state": "failed"}
    assert len(plot_night.draw({"frames": frames, "seconds": 3}).axes) == len(plot_night.PANELS)
    for k, status in ((0, "ok"), (2, "weak"), (3, "ok"), (5, "relative"), (6, "ok")):
        frames[k]["trace_shifts"] = dict.fromkeys("xy", {"status": status, "mean": 0.1 * k, "min": 0.1 * k - 0.05,
                                                         "max": 0.1 * k + 0.2, "error": 0.03})
    frames[7]["trace_shifts"] = dict.fromkeys("xy", {"status": "refused", "mean": None, "min": None, "max": None,
                                                     "error": None})
    frames[8]["trace_shifts"] = dict.fromkeys("xy", {"status": "none", "mean": None, "min": None, "max": None,
                                                     "error": None})
    figure = plot_night.draw({"frames": frames, "seconds": 3})
    figure.canvas.draw()
    for axes in figure.axes[len(plot_night.PANELS):]:
        marks = axes.get_legend_handles_labels()[1]
        assert {"mean, ok", "mean, weak", "mean, relative", "refused", "smallest to largest"} <= set(marks), marks
        assert sorted(text.get_text() for text in axes.texts) == ["b0", "z0"], "series are named"
        series = next(line for line in axes.lines if line.get_color() == plot_night.ARMS["b"])
        assert np.allclose(series.get_ydata(), [0.0, 0.3, 0.6]), series.get_ydata()
        assert all(bar.get_paths()[0].get_extents().y1 < axes.get_ylim()[1] for bar in axes.collections)
    assert labels(figure.axes[-1].xaxis) == ["51060", "51061", "twilight"], labels(figure.axes[-1].xaxis)
    edge = figure.bbox
    for axes in figure.axes:
        for artist in axes.xaxis.get_ticklabels() + axes.yaxis.get_ticklabels() + [axes.xaxis.label, axes.yaxis.label]:
            if artist.get_text() and artist.get_visible():
                box = artist.get_window_extent()
                assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, artist
        low, high = axes.get_ylim()
        for line in axes.lines:
            if line.get_label() not in ("failed", "refused"):
                assert all(low < y < high for y in line.get_ydata()), (axes.get_ylabel(), line.get_ydata())
    assert plot_night.FAILED not in plot_night.ARMS.values()


def main():
    if len(sys.argv) == 2:
        check_choices()
        return check_night()
    script = importlib.import_module(sys.argv[2])
    drawn = []
    plot_common.write = lambda draw, path: drawn.append(check(draw())) or 0
    del sys.argv[1:3]
    assert script.main() == 0
    assert drawn and drawn[0] > 2, drawn
    return None


if __name__ == "__main__":
    main()
