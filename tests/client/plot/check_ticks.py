"""Checks that every axis of the pictures has at least two labelled ticks, or none if it shares those of another axis.

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


def shown_labels(axis):
    """Returns the texts at the ticks of an axis that are within its range, as matplotlib's objects."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    ticks = axis.get_major_ticks() + axis.get_minor_ticks()
    inside = [tick for tick in ticks if low - slack <= tick.get_loc() <= high + slack]
    found = [label for tick in inside for label in (tick.label1, tick.label2)]
    return [label for label in found if label.get_visible() and label.get_text()]


def labels(axis):
    return [label.get_text() for label in shown_labels(axis)]


def axes_of(figure):
    """Returns the axes of a figure, including secondary ones, which are inside others."""
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
    """Checks that exposures are named, that no text is cut off or covers another, and that all values are in their
    panels."""
    import night_findings
    import plot_night

    frames = [{"image": "preproc-%s0-%08d.fits" % (arm, expid), "output": "o.fits", "expid": label, "state": "written",
               "camera": arm + "0", "seconds": 2.0, "chi2pix": chi2pix, "bad_fit": chi2pix > 1.2, "masked_bins": 0, "bins": 10}
              for expid, label in ((51060, "51060"), (51061, ""), (51262, "twilight"))
              for arm, chi2pix in (("b", 1.0), ("r", 900.0), ("z", 1.1))]
    frames[4] = {"image": "preproc-r0-00051061.fits", "output": "o.fits", "state": "failed"}
    for k, status in ((0, "ok"), (2, "weak"), (3, "ok"), (5, "relative"), (6, "ok"), (7, "refused")):
        mean = 0.1 * k if status != "refused" else None
        frames[k]["trace_shifts"] = dict.fromkeys("xy", {"status": status, "mean": mean, "min": mean, "max": mean and mean + 0.2,
                                                         "error": 0.03})
    night = night_findings.Night({"frames": frames, "exposures": [], "seconds": 3})
    figure = plot_night.draw(night)
    matrix, panels = figure.axes[1], [axes for axes in figure.axes if axes.lines]
    titles = {axes.get_title(loc="left").split(":")[0] for axes in panels}
    assert titles == {"Fit", "Masked bins (%)", "Trace shift dx", "Trace shift dy",
                      "Time of a frame, in the queue too (seconds)"}, titles
    assert check(figure) > 2
    assert labels(matrix.yaxis) == ["51060", "51061", "twilight"], labels(matrix.yaxis)
    assert labels(matrix.xaxis) == ["b0", "r0", "z0"], labels(matrix.xaxis)
    assert [text.get_text() for text in matrix.texts] == ["1.00", "900.00", "1.10", "1.00", "\u00d7", "1.10", "1.00", "900.00", "1.10"]
    shifts = next(axes for axes in panels if "dx" in axes.get_title(loc="left"))
    series = next(line for line in shifts.lines if line.get_color() == plot_night.ARMS["b"])
    assert np.allclose(series.get_ydata(), [0.0, 0.3, 0.6]), series.get_ydata()
    assert all(bars.get_paths()[0].get_extents().y1 < shifts.get_ylim()[1] for bars in shifts.collections)
    edge = figure.bbox
    for axes in figure.axes:
        ticks = shown_labels(axes.xaxis) + shown_labels(axes.yaxis) if axes.axison else []
        texts = ticks + [axes.xaxis.label, axes.yaxis.label] + axes.texts
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        for k, box in enumerate(boxes):
            assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, k
            assert not any(box.expanded(0.9, 0.9).overlaps(other) for other in boxes[k + 1:]), (axes.get_title(loc="left"), k)
    for axes in panels:
        low, high = axes.get_ylim()
        for line in axes.lines:
            if line.get_label() != "failed frame":
                assert all(low < y < high for y in line.get_ydata()), (axes.get_title(loc="left"), line.get_ydata())
    assert plot_night.PURPLE not in plot_night.ARMS.values()


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
