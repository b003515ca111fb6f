"""The part of a frame's picture that shows its trace shifts over the CCD: arrows, and maps of both axes."""
import textwrap

import plot_common
from plot_common import INK, LINE, SOFT

plt = plot_common.load_pyplot()
(np,) = plot_common.load("numpy")

ARROWS = 10  # number of arrows across the CCD
LONGEST = 0.45  # inches; the longest arrow
FREE = 0.8  # fraction of the distance to the next arrow that an arrow may reach
MARKS = 6  # number of fibres that are named below a panel
LEAST_RANGE = 0.004  # pixels; the least range of a map's colours


def round_below(value):
    """Returns the largest of 1, 2 and 5 times a power of ten that is at most `value`."""
    power = 10.0 ** np.floor(np.log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))


def evenly(u, count):
    """Returns rows of at most `count` fibres that are spread evenly over the CCD."""
    places = np.linspace(u.min(), u.max(), min(count, len(u)))
    return list(dict.fromkeys(int(np.argmin(np.abs(u - place))) for place in places))


def limits(values, least, before, after, inches):
    """Returns limits of an axis of `inches`: at least `least`, with `before` and `after` inches around the values."""
    low, high = values.min(), values.max()
    if high - low < least:
        low, high = 0.5 * (low + high - least), 0.5 * (low + high + least)
    per_inch = (high - low) / (inches - before - after - 0.2)
    return low - (before + 0.1) * per_inch, high + (after + 0.1) * per_inch


def draw_arrows(axis, shifts, inches):
    """Draws shifts as arrows. `inches`: width and height of the panel."""
    rows = evenly(shifts.u, ARROWS)
    wave, u = np.meshgrid(shifts.wave, shifts.u[rows])
    dx, dy = (np.zeros(u.shape) if one.values is None else one.values[rows] for one in (shifts.x, shifts.y))
    longest = np.hypot(dx, dy).max()
    # Pixels per inch.
    scale = max(longest / LONGEST, np.abs(dx).max() * (len(rows) + 1) / (FREE * inches[0]),
                np.abs(dy).max() * (len(shifts.wave) + 1) / (FREE * inches[1])) or 1
    axis.plot(u.ravel(), wave.ravel(), ".", color=SOFT, markersize=3)
    if longest > 0:
        arrows = axis.quiver(u, wave, dx, dy, angles="uv", scale_units="inches", scale=scale, color=LINE,
                             width=0.0035, headwidth=4, headlength=4.5, headaxislength=4)
        key = round_below(longest)
        axis.quiverkey(arrows, 0.88, 1.06, key, "%g pixels" % key, labelpos="W", labelcolor=INK,
                       fontproperties={"size": 8.5})
    axis.set_title("trace shifts%s" % (", " + shifts.fate if shifts.fate else ""), pad=8)
    axis.set_ylabel("wavelength (Å)")
    for set_range, values, d, size in ((axis.set_xlim, u, dx, inches[0]), (axis.set_ylim, wave, dy, inches[1])):
        set_range(limits(values, 0.04, max(-d.min(), 0) / scale, max(d.max(), 0) / scale, size))


def draw_map(figure, axis, shifts, name, one):
    axis.set_title("%s: %s" % (name, one.said("\n")), pad=4)
    axis.set_xlim(limits(shifts.u, 0.04, 0, 0, np.inf))
    if not one.measured:
        said = textwrap.fill(shifts.reason, 38) if one.status == "refused" else ""
        axis.text(0.5, 0.5, said, transform=axis.transAxes, ha="center", va="center", color=SOFT)
        return
    order = np.argsort(shifts.u)
    u, values = shifts.u[order], one.values[order]
    if len(u) == 1:
        u, values = u + [-0.02, 0.02], np.repeat(values, 2, axis=0)
    middle, half = 0.5 * (values.max() + values.min()), 0.5 * (values.max() - values.min())
    half = max(half, one.error, 0.5 * LEAST_RANGE)
    levels = plt.MaxNLocator(9, steps=[1, 2, 2.5, 5, 10]).tick_values(middle - half, middle + half)
    drawn = axis.contourf(u, shifts.wave, values.T, levels=levels, cmap="viridis")
    between = levels[(levels > values.min()) & (levels < values.max())]
    if len(between):
        axis.contour(u, shifts.wave, values.T, levels=between, colors="white", linewidths=0.4)
    bar = figure.colorbar(drawn, ax=axis, fraction=0.06, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, length=2)


def draw_shifts(figure, spec, shifts):
    """Draws arrows and maps. `spec`: their place in the figure; `shifts`: a plot_data.TraceShifts."""
    axes = spec.subgridspec(1, 3, width_ratios=[1.25, 1, 1], wspace=0.2).subplots(sharey=True)
    place = axes[0].get_position()
    draw_arrows(axes[0], shifts, (place.width * figure.get_figwidth(), place.height * figure.get_figheight()))
    draw_map(figure, axes[1], shifts, "dx", shifts.x)
    draw_map(figure, axes[2], shifts, "dy", shifts.y)
    named = evenly(shifts.u, MARKS)
    for axis in axes:
        axis.set_xticks(shifts.u[named], ["%d" % shifts.fibres[row] for row in named])
        axis.set_xlabel("fibre")
        if len(named) == 1:
            axis.set(xticks=[], xlabel="fibre %d" % shifts.fibres[0])
        axis.tick_params(labelsize=8)
