"""Frames go from process to process (pickle): how the extension's values do."""

from __future__ import annotations

import copyreg
from typing import Any

from spexd import _native

_FIELDS: dict[type, tuple[str, ...]] = {
    _native.RawTable: ("cards", "rows", "row_bytes", "data"),
    _native.Scores: ("band", "sum_counts", "median_counts", "median_snr", "median_chi2pix", "outliers_chi2pix"),
    _native.Origin: (
        "image_cards",
        "original_psf",
        "input_image",
        "input_psf",
        "heliocentric_factor",
        "psferr",
        "flux_residual",
        "root_error",
        "chi2pix_median",
        "chi2pix_outliers",
        "fine_grid_prior",
        "version",
        "fibermap",
    ),
}


def _made(kind: type, fields: dict[str, Any]) -> Any:
    value = kind()
    for name, field in fields.items():
        setattr(value, name, field)
    return value


def _fields_of(value: Any) -> tuple[Any, ...]:
    fields = {name: getattr(value, name) for name in _FIELDS[type(value)]}
    return _made, (type(value), {name: field for name, field in fields.items() if field is not None})


def register() -> None:
    """Tells pickle of the extension's classes. RawTable, Scores and Origin become their fields; unset ones are left
    out, as they are unset in a new value."""
    copyreg.pickle(_native.Grid, lambda grid: (_native.Grid, (grid.first, grid.step, grid.count)))
    for kind in _FIELDS:
        copyreg.pickle(kind, _fields_of)
