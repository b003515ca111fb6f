"""The lower part of the picture of a frame: a window of the image beside its model and the residual."""
import plot_common
from plot_common import SOFT
from plot_data import BAD_FILE, two_pairs, why

plt = plot_common.load_pyplot()
np, fits = plot_common.load("numpy", "astropy.io.fits")

UNUSABLE_BITS = 767  # of MASK: the pixels that core/model/mask_rule.h excludes from the fit
SATURATED, COSMIC = 8, 16
# Reasons why pixels take no part in the fit; the first that holds counts. The legend uses these words.
REASONS = (("cosmic ray", "#2ec4b6"), ("saturated", "#c6e03a"), ("bad pixel", "#5b8e7d"),
           ("no weight (IVAR ≤ 0)", "#c9ccd1"))
WINDOW = 420  # pixels on a side, by default
BESIDE = 30  # pixels around spectra that --window-spectra names


class Image:
    """The pixels, their model, and why some are left out."""

    def __init__(self, image_path, model_path):
        try:
            with fits.open(image_path) as hdus:
                names = [hdu.name for hdu in hdus]
                self.pixels = np.asarray((hdus["IMAGE"] if "IMAGE" in names else hdus[0]).data, float)
                shape = self.pixels.shape
                self.ivar = np.asarray(hdus["IVAR"].data, float) if "IVAR" in names else np.ones(shape)
                mask = np.asarray(hdus["MASK"].data) if "MASK" in names else np.zeros(shape, int)
            if len(shape) != 2 or self.ivar.shape != shape or mask.shape != shape:
                raise TypeError("IMAGE, IVAR and MASK do not have one shape")
        except BAD_FILE as error:
            raise ValueError("%s: not a preprocessed frame: %s" % (image_path, why(error)))
        try:
            with fits.open(model_path) as hdus:
                self.model = np.asarray(next(hdu.data for hdu in hdus if hdu.data is not None), float)
        except BAD_FILE + (StopIteration,) as error:
            raise ValueError("%s: not a model image: %s" % (model_path, why(error)))
        if self.model.shape != shape:
            raise ValueError("the image has %d x %d pixels, the model %s" % (
                shape + (" x ".join(map(str, self.model.shape)),)))
        weightless = ~((self.ivar > 0) & np.isfinite(self.pixels))
        flagged = [(mask & bits) != 0 for bits in (COSMIC, SATURATED, UNUSABLE_BITS)]
        self.reason = np.select(flagged + [weightless], [1, 2, 3, 4], 0)


def default_window(model):
    """Returns a bright part of the CCD, as wide as a few bundles: (rows, columns)."""
    rows, columns = model.shape
    height, width = min(rows, WINDOW), min(columns, WINDOW)
    profile = np.convolve(np.abs(model).sum(axis=0), np.ones(width), "valid")
    left = int(np.argmax(profile))
    bright = np.convolve(np.abs(model[:, left:left + width]).sum(axis=1), np.ones(height), "valid")
    bottom = int(np.argmax(bright))
    return slice(bottom, bottom + height), slice(left, left + width)


def pixel_window(text, shape):
    """Returns (rows, columns) of --window COLUMNS,ROWS."""
    columns, rows = two_pairs("--window", text, int)
    for name, (low, high), size in (("columns", columns, shape[1]), ("rows", rows, shape[0])):
        if low < 0 or high > size:
            raise ValueError("--window %s: %s %d:%d are not within 0:%d of the image" % (text, name, low, high, size))
    return slice(*rows), slice(*columns)


def spectral_window(text, shape, frame, traces):
    """Returns (rows, columns) of --window-spectra FIBRES,WAVELENGTHS, with some pixels around them."""
    flag = "--window-spectra"
    fibres, waves = two_pairs(flag, text, float)
    rows = [row for row, fibre in enumerate(frame.fibres) if fibres[0] <= fibre < fibres[1]]
    if not rows:
        raise ValueError("%s %s: the frame has none of these fibres, but %d to %d" % (
            flag, text, min(frame.fibres), max(frame.fibres)))
    if waves[0] < traces.y[0] or waves[1] > traces.y[1]:
        raise ValueError("%s %s: the PSF has traces from %g to %g Angstrom" % (flag, text, traces.y[0], traces.y[1]))
    along = np.linspace(*waves, 50)
    places = [(traces.row(frame.first + row, along), traces.column(frame.first + row, along)) for row in rows]
    window = []
    for axis in (0, 1):
        low = max(min(place[axis].min() for place in places) - BESIDE, 0)
        high = min(max(place[axis].max() for place in places) + BESIDE, shape[axis])
        if not high - low >= 1:
            raise ValueError("%s %s: these spectra lie beside the image" % (flag, text))
        window.append(slice(int(low), int(np.ceil(high))))
    return tuple(window)


def window_of(arguments, image, frame, traces):
    if arguments.window:
        return pixel_window(arguments.window, image.model.shape)
    if arguments.window_spectra:
        return spectral_window(arguments.window_spectra, image.model.shape, frame, traces)
    return default_window(image.model)


def middle_fibre(frame, traces, rows, columns):
    """Returns the row of the spectrum that is nearest to the middle of the window."""
    along = np.linspace(traces.y[0], traces.y[1], 500)
    middle = 0.5 * (rows.start + rows.stop)

    def distance(row):
        wave = np.interp(middle, traces.row(frame.first + row, along), along)
        return abs(traces.column(frame.first + row, wave) - 0.5 * (columns.start + columns.stop))

    return min(range(len(frame.flux)), key=distance)


def wavelengths_beside(axis, frame, traces, rows, columns):
    """Draws wavelengths of the window's middle fibre as ticks of `axis`, at their rows."""
    row = middle_fibre(frame, traces, rows, columns)
    along = np.linspace(traces.y[0], traces.y[1], 2000)
    at = traces.row(frame.first + row, along) + 0.5  # a pixel's centre is half a pixel above its lower edge
    inside = along[(at >= rows.start) & (at <= rows.stop)]
    if len(inside) < 2:
        return
    waves = [w for w in plt.MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]).tick_values(inside[0], inside[-1])
             if inside[0] <= w <= inside[-1]]
    places = axis.secondary_yaxis("left")
    places.set_yticks([np.interp(w, along, at) for w in waves], ["%g" % w for w in waves])
    places.set_ylabel("wavelength of fibre %d (Å)" % frame.fibres[row], labelpad=3)
    places.spines["left"].set_visible(False)
    places.tick_params(labelsize=8)


def masked_overlay(axis, reason, extent):
    """Colours the pixels that are left out."""
    colours = np.zeros(reason.shape + (4,))
    for k, (_, colour) in enumerate(REASONS, 1):
        colours[reason == k] = plt.matplotlib.colors.to_rgba(colour)
    axis.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def masked_legend(figure, reason, x, y):
    """Explains the colours of masked pixels, with their numbers."""
    counts = [int((reason == k).sum()) for k in range(1, len(REASONS) + 1)]
    handles = [plt.matplotlib.patches.Patch(color=colour, label="%s: %d" % (name, count))
               for (name, colour), count in zip(REASONS, counts) if count]
    text = "masked pixels in this window:" if handles else "no masked pixels in this window"
    figure.text(x, y, text, color=SOFT, fontsize=8.5, va="center")
    if handles:
        figure.legend(handles=handles, loc="center left", bbox_to_anchor=(x + 0.175, y), ncol=len(handles),
                      frameon=False, fontsize=8.5, handlelength=1.2, handleheight=0.9, columnspacing=1.4, borderpad=0)


def brightest_shown(model):
    """Returns the electrons at the end of the colour bar, at least 1. The 99.3rd percentile of each column ignores
    cosmic rays; the 80th percentile over columns lets a few bright stars exceed the bar."""
    return max(np.percentile(np.percentile(model, 99.3, axis=0), 80), 1.0)


def light_ticks(top):
    """Returns the electrons at the ticks of a colour bar that ends at `top`, which is at least 1."""
    decades = 10.0 ** np.arange(np.floor(np.log10(top)) - 1, np.floor(np.log10(top)) + 1)
    return [0.0] + [tick for decade in decades for tick in (decade, 3 * decade) if 1 <= tick <= top]


def draw_images(figure, spec, image, window, frame, traces):
    rows, columns = window
    reason = image.reason[window]
    good = reason == 0
    sketch = image.model[window]
    noise = np.sqrt(np.where(good, image.ivar[window], 0))
    residual = np.where(good, (image.pixels[window] - sketch) * noise, np.nan)
    top = brightest_shown(sketch)
    scale = max(top / 60, 1.0)
    extent = (columns.start, columns.stop, rows.start, rows.stop)
    light, pull = plt.get_cmap("magma"), plt.get_cmap("RdBu_r")
    title = "residual (image − model) / σ"
    if good.any():
        low, high = np.percentile(residual[good], [15.87, 84.13])
        title += "    robust σ %.2f" % (0.5 * (high - low))
    panels = [
        ("image", np.arcsinh(np.where(good, image.pixels[window], np.nan) / scale), light, 0, np.arcsinh(top / scale)),
        ("model", np.arcsinh(sketch / scale), light, 0, np.arcsinh(top / scale)),
        (title, residual, pull, -4, 4),
    ]
    axes = spec.subgridspec(1, 3, wspace=0.34 if traces else 0.12).subplots(sharey=True)
    for axis, (title, data, colours, low, high) in zip(axes, panels):
        drawn = axis.imshow(data, origin="lower", cmap=colours, vmin=low, vmax=high, extent=extent, aspect="auto",
                            interpolation="nearest")
        if axis is not axes[1]:
            masked_overlay(axis, reason, extent)
        axis.set_title(title, pad=3)
        axis.set_xlabel("CCD column")
        for side in axis.spines.values():
            side.set_visible(False)
        beyond = "max" if colours is light and sketch.max() > top else "neither"
        bar = figure.colorbar(drawn, ax=axis, fraction=0.046, pad=0.02, extend=beyond, extendfrac=0.03)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=2)
        if colours is light:
            ticks = light_ticks(top)
            bar.set_ticks([np.arcsinh(t / scale) for t in ticks])
            bar.set_ticklabels(["%d" % t for t in ticks])
    axes[0].set_ylabel("CCD row")
    if traces:
        wavelengths_beside(axes[1], frame, traces, rows, columns)
    return reason
