"""PSFs made by psf_from_spots: the contents of their files, refused arguments, and spectra extracted with them."""

import numpy as np
import pytest
from numpy.polynomial import legendre

import spexd

fits = pytest.importorskip("astropy.io.fits")

FIBRES, ROWS, COLUMNS, OVERSAMPLING = 6, 120, 70, 3
WAVES = np.linspace(15400, 15520, 25)  # of the traces, Angstrom
POSITIONS, SPOT_WAVES = np.array([-1.0, 0.5, 1.0]), np.array([15400.0, 15520.0])
SLIT = np.array([-1, -0.8, -0.6, 0.6, 0.8, 1])  # two groups of three fibres
GROUP = 3


def spot(tilt, width):
    """Returns an asymmetric image of 9.3 x 9.3 pixels as samples [row, column]."""
    at = (np.arange(28) - 13.5) / OVERSAMPLING
    column, row = np.meshgrid(at, at)
    core = np.exp(-0.5 * (column**2 + (row - tilt * column) ** 2) / width**2)
    return core + 0.2 * np.exp(-0.5 * ((column - 1.2) ** 2 + (row - 0.7) ** 2))


@pytest.fixture
def instrument():
    """Returns arguments for an instrument whose wavelength decreases with the row."""
    t = (WAVES - 15460) / 60
    spots = [[spot(0.2 * position + 0.1 * k, 0.9 + 0.1 * k) for k in range(2)] for position in POSITIONS]
    return {
        "wavelengths": WAVES,
        "x": COLUMNS / 2 + 26.3 * SLIT[:, None] + 0.8 * SLIT[:, None] * t,
        "y": 60 - 42.7 * t + 1.5 * t**2 + 0.6 * SLIT[:, None] ** 2,
        "spots": np.array(spots, np.float32) * np.arange(1, 4, dtype=np.float32)[:, None, None, None],
        "spot_positions": POSITIONS,
        "spot_wavelengths": SPOT_WAVES,
        "fibre_positions": SLIT,
        "oversampling": OVERSAMPLING,
        "image_shape": (ROWS, COLUMNS),
    }


def made(path, instrument, **changes):
    return spexd.psf_from_spots(path, **{**instrument, **changes})


# ---- The file


def test_a_file_holds_what_the_format_says(instrument, tmp_path):
    path = tmp_path / "own.fits"
    made(path, instrument, centre=(13, 12.5), psferr=0.02, fibre_min=500, camera="h1")
    assert [entry.name for entry in tmp_path.iterdir()] == ["own.fits"]
    assert path.stat().st_size % 2880 == 0
    with fits.open(path) as hdus:
        hdus.verify("exception")
        primary = {"PSFTYPE": "SAMPLED-SPOTS", "PSFVER": 1, "NPIX_X": COLUMNS, "NPIX_Y": ROWS}
        primary |= {"FIBERMIN": 500, "PSFERR": 0.02, "CAMERA": "h1"}
        assert {key: hdus[0].header[key] for key in primary} == primary and hdus[0].data is None
        assert {hdu.name for hdu in hdus[1:]} == {"XTRACE", "YTRACE", "SPOTS", "SPOTPOS", "SPOTWAVE", "FIBERPOS"}
        for name in ("XTRACE", "YTRACE"):
            assert hdus[name].data.dtype == ">f8"
            assert (hdus[name].header["WAVEMIN"], hdus[name].header["WAVEMAX"]) == (15400, 15520)
        spots = hdus["SPOTS"]
        assert spots.data.dtype == ">f4" and spots.data.shape == (3, 2, 28, 28)
        assert [spots.header[key] for key in ("OVERSAMP", "XCENTER", "YCENTER")] == [OVERSAMPLING, 13, 12.5]
        sums = instrument["spots"].sum(axis=(2, 3), keepdims=True)
        np.testing.assert_allclose(spots.data, instrument["spots"] / sums, rtol=1e-6)
        for name, values in ("SPOTPOS", POSITIONS), ("SPOTWAVE", SPOT_WAVES), ("FIBERPOS", SLIT):
            assert hdus[name].data.dtype == ">f8"
            np.testing.assert_array_equal(hdus[name].data, values)


def test_the_psf_that_is_returned_is_the_files(instrument, tmp_path):
    psf = made(tmp_path / "own.fits", instrument)
    assert (psf.fibres, psf.shape, psf.wavelength) == (FIBRES, (ROWS, COLUMNS), (15400, 15520))
    assert psf.name == str(tmp_path / "own.fits")


def test_traces_are_the_samples_again_with_the_lowest_degree_that_suffices(instrument, tmp_path):
    made(tmp_path / "own.fits", instrument)
    t = np.linspace(-1, 1, len(WAVES))
    with fits.open(tmp_path / "own.fits") as hdus:
        assert hdus["XTRACE"].data.shape == (FIBRES, 2) and hdus["YTRACE"].data.shape == (FIBRES, 3)
        for name, values in ("XTRACE", instrument["x"]), ("YTRACE", instrument["y"]):
            np.testing.assert_allclose(legendre.legval(t, hdus[name].data.T), values, atol=1e-10)


def test_a_degree_that_is_given_smooths_noise(instrument, tmp_path):
    noise = np.random.default_rng(3).normal(scale=0.02, size=(FIBRES, len(WAVES)))
    with pytest.raises(spexd.InvalidArgumentError, match=r"y of fibre \d is 0.0\d+ pixels from .* degree 12 .* 0.001: give"):
        made(tmp_path / "own.fits", instrument, y=instrument["y"] + noise)
    made(tmp_path / "own.fits", instrument, y=instrument["y"] + noise, degree=3)
    with fits.open(tmp_path / "own.fits") as hdus:
        assert hdus["XTRACE"].data.shape == hdus["YTRACE"].data.shape == (FIBRES, 4)
        fitted = legendre.legval(np.linspace(-1, 1, len(WAVES)), hdus["YTRACE"].data.T)
    assert np.std(fitted - instrument["y"]) < 0.5 * 0.02


def test_what_is_left_out_has_its_default(instrument, tmp_path):
    for name in ("spot_positions", "spot_wavelengths", "fibre_positions"):
        del instrument[name]
    spots = instrument["spots"].astype(np.float64)
    made(tmp_path / "one.fits", instrument, spots=spots[:1, :1])
    with fits.open(tmp_path / "one.fits") as hdus:
        assert "CAMERA" not in hdus[0].header and hdus[0].header["FIBERMIN"] == 0 and hdus[0].header["PSFERR"] == 0.01
        assert hdus["SPOTS"].data.dtype == ">f8" and hdus["SPOTS"].header["XCENTER"] == 13.5
        np.testing.assert_array_equal(hdus["FIBERPOS"].data, np.zeros(FIBRES))
    made(tmp_path / "each.fits", instrument, spots=np.repeat(spots[:, :1], 2, axis=0))
    with fits.open(tmp_path / "each.fits") as hdus:
        for name in ("SPOTPOS", "FIBERPOS"):
            np.testing.assert_array_equal(hdus[name].data, np.arange(FIBRES))


def test_a_fibre_without_traces_has_no_finite_coefficients(instrument, tmp_path):
    for name in ("x", "y"):
        instrument[name][2] = np.nan
    made(tmp_path / "own.fits", instrument)
    with fits.open(tmp_path / "own.fits") as hdus:
        for name in ("XTRACE", "YTRACE"):
            np.testing.assert_array_equal(np.isfinite(hdus[name].data).all(axis=1), np.arange(FIBRES) != 2)
            assert np.isnan(hdus[name].data[2]).all()


def test_a_file_is_replaced_only_if_that_is_asked_for(instrument, tmp_path):
    path = tmp_path / "own.fits"
    path.write_text("mine")
    with pytest.raises(spexd.AlreadyExistsError, match="own.fits is there already; see overwrite"):
        made(path, instrument)
    assert path.read_text() == "mine"
    made(path, instrument, overwrite=True)
    assert fits.getheader(path)["PSFTYPE"] == "SAMPLED-SPOTS"


# ---- Refused arguments


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wavelengths": WAVES[::-1]}, r"wavelengths\[1\] is 15515, must be ascending"),
        ({"wavelengths": WAVES[:1]}, "wavelengths has 1 numbers, must have 2 or more"),
        ({"wavelengths": "H"}, r"wavelengths has shape \(\) and type <U1, must be numbers"),
        ({"x": np.zeros(25)}, r"x has shape \(25,\) and type float64, must be numbers \[fibre, wavelength\]"),
        ({"x": np.zeros((6, 24))}, r"x has shape \(6, 24\), must be \(fibres, 25\) with 1 to 20000 fibres"),
        ({"y": np.zeros((5, 25))}, r"y has shape \(5, 25\), must be .* the same number in x and y"),
        ({"y": np.full((6, 25), np.inf)}, "y of fibre 0 at 15400 Angstrom is inf, must be finite, unless"),
        ({"x": np.full((6, 25), np.nan)}, "x of fibre 0 at 15400 Angstrom is nan, must be finite, unless"),
        ({"x": np.full((6, 25), np.nan), "y": np.full((6, 25), np.nan)}, "x and y are NaN for all fibres"),
        ({"degree": 25}, "degree is 25, must be a whole number of 0 to 24"),
        ({"degree": 1.5}, "degree is 1.5, must be a whole number of 0 to 24"),
        ({"spots": np.ones((28, 28))}, r"spots has shape \(28, 28\) .* must be numbers \[position, wavelength, row, column\]"),
        ({"spots": np.ones((1, 5000, 3, 3))}, r"spots has shape \(1, 5000, 3, 3\), must have 1 to 4096 images"),
        ({"spots": np.ones((3, 2, 3, 187))}, "spots has images of 3 rows and 187 columns, must be 1 to 186: .* at most 63 pixels"),
        ({"spots": np.ones((3, 2, 0, 3))}, "spots has images of 0 rows"),
        ({"spots": np.zeros((3, 2, 3, 3))}, r"spots\[0, 0\] adds up to 0, must be finite and more than 0"),
        ({"spots": np.full((3, 2, 3, 3), np.nan)}, r"spots\[0, 0\] adds up to nan"),
        ({"oversampling": 0}, "oversampling is 0, must be a whole number of 1 to 64"),
        ({"oversampling": 65}, "oversampling is 65"),
        ({"oversampling": 2.5}, "oversampling is 2.5"),
        ({"spot_positions": POSITIONS[:2]}, "spot_positions has 2 numbers, must have 3, as spots"),
        ({"spot_positions": None}, "spot_positions is missing: spots has 3 of them"),
        ({"spot_positions": [0, 0, 1]}, r"spot_positions\[1\] is 0, must be ascending"),
        ({"spot_wavelengths": None}, "spot_wavelengths is missing: spots has 2 of them"),
        ({"spot_wavelengths": [15400, np.nan]}, r"spot_wavelengths\[1\] is nan, must be ascending and within 1e\+09"),
        ({"fibre_positions": SLIT[:5]}, "fibre_positions has 5 numbers, must have 6, one for each fibre"),
        ({"fibre_positions": 2 * SLIT}, r"fibre_positions\[0\] is -2, must be within spot_positions, -1 to 1"),
        ({"fibre_positions": None}, r"fibre_positions\[2\] is 2, must be within spot_positions"),
        ({"image_shape": 120}, "image_shape is 120, must be rows and columns"),
        ({"image_shape": (120, 0)}, "image_shape is 0, must be a whole number of 1 to 32768"),
        ({"centre": 13}, "centre is 13, must be column and row"),
        ({"centre": (13, 28)}, "centre is 28, must be 0 to 27"),
        ({"psferr": -1}, "psferr is -1, must be 1e-09 to 1000"),
        ({"psferr": None}, "psferr is None"),
        ({"fibre_min": -1}, "fibre_min is -1, must be a whole number of 0 to 1073741823"),
        ({"camera": "h\n"}, "camera is 'h.n', must be at most 60 printable ASCII characters"),
        ({"camera": 61 * "h"}, "camera is 'hhh"),
        ({"camera": None}, "camera is None"),
    ],
)
def test_wrong_arguments_are_an_error_that_names_argument_value_and_limit(instrument, tmp_path, changes, message):
    with pytest.raises(spexd.InvalidArgumentError, match=message):
        made(tmp_path / "own.fits", instrument, **changes)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(instrument, tmp_path):
    with pytest.raises(spexd.NotFoundError, match="missing/own.fits: No such file"):
        made(tmp_path / "missing" / "own.fits", instrument)
    (tmp_path / "folder").mkdir()
    with pytest.raises(spexd.InvalidArgumentError, match="folder: "):
        made(tmp_path / "folder", instrument, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


# ---- Spectra


def overlaps(trace, samples, centre, pixels):
    """Returns the part of each sample [pixel, sample] on each pixel, for an image whose `centre` is at `trace`."""
    left = trace + (np.arange(samples) - centre - 0.5) / OVERSAMPLING + 0.5
    edges = np.arange(pixels)[:, None]
    return np.clip(np.minimum(left + 1 / OVERSAMPLING, edges + 1) - np.maximum(left, edges), 0, None) * OVERSAMPLING


def drawn(instrument, wave, light):
    """Returns the noiseless image of spectra [fibre, bin] in electron: the spot of each bin, drawn sample by sample."""
    pixels = np.zeros((ROWS, COLUMNS))
    spots = instrument["spots"] / instrument["spots"].sum(axis=(2, 3), keepdims=True)
    for fibre, row in enumerate(light):
        at = np.clip(np.searchsorted(POSITIONS, SLIT[fibre]) - 1, 0, 1)
        part = (SLIT[fibre] - POSITIONS[at]) / (POSITIONS[at + 1] - POSITIONS[at])
        for bin_wave, value in zip(wave, row, strict=True):
            late = (bin_wave - SPOT_WAVES[0]) / (SPOT_WAVES[1] - SPOT_WAVES[0])
            near, far = ((1 - late) * spots[k, 0] + late * spots[k, 1] for k in (at, at + 1))
            x, y = (np.interp(bin_wave, WAVES, instrument[name][fibre]) for name in ("x", "y"))
            image = (1 - part) * near + part * far
            pixels += value * overlaps(y, 28, 13.5, ROWS) @ image @ overlaps(x, 28, 13.5, COLUMNS).T
    return pixels.astype(np.float32)


GRID = (15420, 15500, 1)


@pytest.fixture
def scene(instrument, tmp_path):
    """Returns (psf, image, ivar, light [fibre, bin]) on the grid GRID."""
    for name in ("x", "y"):  # linear, so that interpolation between samples is exact
        instrument[name] = np.array([np.interp(WAVES, WAVES[[0, -1]], row[[0, -1]]) for row in instrument[name]])
    wave = np.arange(15420, 15500.5, 1)
    phase = np.arange(FIBRES)[:, None]
    light = 400 + 300 * np.sin(wave / 7 + phase)
    image = drawn(instrument, wave, light)
    return made(tmp_path / "own.fits", instrument), image, np.full_like(image, 0.1), light


@pytest.mark.parametrize("bundle_size", [GROUP, FIBRES])
def test_spectra_of_a_drawn_image_are_those_it_was_drawn_of(scene, engine, bundle_size):
    psf, image, ivar, light = scene
    frame = engine.extract(image, ivar, psf=psf, wavelength=GRID, bundle_size=bundle_size, model=True)
    assert np.abs(frame.model - image).max() < 1e-6 * image.max()
    half = frame.resolution.shape[1] // 2
    seen = np.zeros_like(light)
    for d in range(-half, half + 1):  # resolution[:, d + half, j] is R[j + d, j]
        for j in range(max(0, -d), light.shape[1] - max(0, d)):
            seen[:, j + d] += frame.resolution[:, d + half, j] * light[:, j]
    np.testing.assert_allclose(frame.flux, seen, atol=1e-3 * light.max())  # R has more diagonals than the frame
    assert not (frame.mask & ~np.uint32(spexd.BAD2DFIT)).any()  # without noise, chi2pix is rounding


def test_an_instrument_seen_in_a_mirror_has_the_same_spectra(scene, instrument, engine, tmp_path):
    psf, image, ivar, _ = scene
    frame = engine.extract(image, ivar, psf=psf, wavelength=GRID, bundle_size=GROUP)
    mirrored = made(tmp_path / "mirror.fits", instrument, y=ROWS - 1 - instrument["y"], spots=instrument["spots"][:, :, ::-1])
    again = engine.extract(image[::-1].copy(), ivar, psf=mirrored, wavelength=GRID, bundle_size=GROUP)
    np.testing.assert_allclose(again.flux, frame.flux, rtol=1e-4)
    np.testing.assert_allclose(again.ivar, frame.ivar, rtol=1e-4)


def test_a_fibre_without_traces_has_no_data(scene, instrument, engine, tmp_path):
    _, image, ivar, _ = scene
    for name in ("x", "y"):
        instrument[name][2] = np.nan
    psf = made(tmp_path / "lost.fits", instrument)
    frame = engine.extract(image, ivar, psf=psf, wavelength=GRID, bundle_size=GROUP)
    assert (frame.mask[2] & spexd.NODATA).all() and not (frame.mask[3:] & spexd.NODATA).any()


def test_a_frame_of_another_camera_is_refused(scene, instrument, engine, tmp_path):
    _, image, ivar, _ = scene
    psf = made(tmp_path / "h1.fits", instrument, camera="h1")
    with pytest.raises(spexd.SpexdError, match="(?i)camera"):
        engine.extract(image, ivar, psf=psf, wavelength=GRID, header={"CAMERA": "h2"})
