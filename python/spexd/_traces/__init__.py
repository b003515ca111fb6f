"""Trace shifts of a frame, as values."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.polynomial import legendre


@dataclasses.dataclass(frozen=True, eq=False)
class AxisShifts:
    """Shifts along one axis of the CCD, in pixels: the sum over a, b of ``coefficients[a, b]`` L_a(u) L_b(t), with
    Legendre polynomials L. u is the fibre's column at the middle of its wavelengths, scaled to [-1, 1] over the CCD. t
    is the wavelength, scaled to [-1, 1] over ``TraceShifts.wavelength``."""

    #: outcome of the measurement, one of "ok", "weak" (the error at a corner of the CCD exceeds 0.1 pixels),
    #: "relative" (without a reference, only differences between fibres were measured), "refused" (it could not be
    #: measured, and nothing is moved), "none" (it was not to be measured)
    status: str
    #: float64 [a, b], pixels, to be added to the PSF's traces; shape [0, 0] if refused or not measured
    coefficients: np.ndarray
    #: float64 [a, b, a, b], pixels squared
    covariance: np.ndarray
    #: largest standard error at the corners of the CCD, pixels
    error: float
    #: mean over all fibres and 5 wavelengths from end to end of their domain, pixels
    mean: float
    #: smallest shift among these, pixels
    min: float
    #: largest shift among these, pixels
    max: float
    #: number of measurements in the fit of the series
    used: int
    #: number of outliers that the fit left out
    clipped: int

    def at(self, u: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Returns the shift in pixels at positions (u, t), which are broadcast against each other."""
        u, t = np.broadcast_arrays(u, t)
        return legendre.legval2d(u, t, self.coefficients) if self.coefficients.size else np.zeros(u.shape)

    @classmethod
    def _from_native(cls, native: Any) -> AxisShifts:
        series = np.zeros((0, 0)) if native.series is None else native.series
        covariance = np.zeros((0, 0)) if native.covariance is None else native.covariance
        return cls(
            status=native.status,
            coefficients=series,
            covariance=covariance.reshape(series.shape * 2),
            error=native.corner_error,
            mean=native.mean,
            min=native.min,
            max=native.max,
            used=native.used,
            clipped=native.clipped,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class TraceShifts:
    """The displacement of a frame's traces from those of its PSF, measured in the frame itself; see
    docs/trace-shifts.md."""

    #: shifts of columns (XTRACE), across the spectra
    x: AxisShifts
    #: shifts of rows (YTRACE), along the spectra
    y: AxisShifts
    #: why an axis was refused; "" if none was
    reason: str
    #: whether to extract the frame with moved traces; not if both axes were refused or the shifts are too small
    moved: bool
    #: name of the reference spectrum, "" if there was none
    reference: str
    #: first and last wavelength of the domain of t, Angstrom
    wavelength: tuple[float, float]
    #: index in the PSF of the first fibre
    first_fibre: int
    #: float64 [fibre]: u of each fibre
    u: np.ndarray
    #: number of passes over the image
    passes: int
    #: number of lines of the reference that were seen
    lines: int
    _native: Any = dataclasses.field(repr=False)

    @property
    def status_x(self) -> str:
        """``x.status``"""
        return self.x.status

    @property
    def status_y(self) -> str:
        """``y.status``"""
        return self.y.status

    @property
    def cx(self) -> np.ndarray:
        """``x.coefficients``, as :meth:`spexd.Psf.shifted` takes them."""
        return self.x.coefficients

    @property
    def cy(self) -> np.ndarray:
        """``y.coefficients``, as :meth:`spexd.Psf.shifted` takes them."""
        return self.y.coefficients

    def dx(self, fibre: int | np.ndarray, wave: float | np.ndarray) -> np.ndarray:
        """Returns the shift in columns, in pixels, of a fibre (index in the PSF) at a wavelength (Angstrom). Arrays
        are broadcast against each other. IndexError: the frame does not have the fibre."""
        return self.x.at(*self._position(fibre, wave))

    def dy(self, fibre: int | np.ndarray, wave: float | np.ndarray) -> np.ndarray:
        """Returns the shift in rows, in pixels; arguments and errors as for :meth:`dx`."""
        return self.y.at(*self._position(fibre, wave))

    def _position(self, fibre: int | np.ndarray, wave: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        index = np.asarray(fibre) - self.first_fibre
        if np.any((index < 0) | (index >= len(self.u))):
            end = self.first_fibre + len(self.u)
            raise IndexError(f"fibre {fibre}: the shifts are of fibres {self.first_fibre} to {end - 1}")
        first, last = self.wavelength
        return self.u[index], 2 * (np.asarray(wave, np.float64) - first) / (last - first) - 1

    def __repr__(self) -> str:
        axes = ", ".join(
            f"{name} {axis.status}" + (f" {axis.mean:+.3f} ({axis.min:+.3f} to {axis.max:+.3f})" if axis.coefficients.size else "")
            for name, axis in (("x", self.x), ("y", self.y))
        )
        return f"<spexd.TraceShifts: {axes}>"

    @classmethod
    def _from_native(cls, native: Any, first_fibre: int) -> TraceShifts:
        return cls(
            x=AxisShifts._from_native(native.x),
            y=AxisShifts._from_native(native.y),
            reason=native.reason,
            moved=native.moved,
            reference=native.reference,
            wavelength=(native.wave_min, native.wave_max),
            first_fibre=first_fibre,
            u=np.array(native.u),
            passes=native.passes,
            lines=native.lines,
            _native=native,
        )
