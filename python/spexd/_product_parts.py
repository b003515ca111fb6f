"""Assembles the parts of products and files that a server sends, and checks all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from spexd import _native
from spexd._products import Products, structured
from spexd.errors import DataLossError
from spexd.frame import Source
from spexd.v1 import extraction_pb2 as pb

_PRODUCTS = _native.products()  # as core/products/analyse.h defines them
#: names of products in this package, by number
NAMES: dict[int, str] = {product.number: product.keyword for product in _PRODUCTS}
#: names of an analysis's files in this package, by number
FILES: dict[int, str] = {
    pb.ANALYSIS_FILE_VELOCITIES: "velocities",
    pb.ANALYSIS_FILE_MODELS: "models",
    pb.ANALYSIS_FILE_REDSHIFTS: "redshifts",
}

_SKY = ("model", "model_ivar", "statistical_ivar", "mask", "flux", "ivar")
_STAR = ("velocity", "error", "conditional_error", "vsini", "chi2", "continuum_chi2", "dchi2", "second_velocity")
_GALAXY = ("redshift", "dchi2", "gap", "second_redshift", "error")
_MAX_PARAMETERS = 64
_MAX_CODE = 16
_MAX_FILE_BYTES = 4 << 30


def asked_of(request: pb.ProductRequest) -> set[int]:
    """Returns the products that a request asks for."""
    given = {field.name for field, _ in request.ListFields()}  # switches that are off are not listed
    return {product.number for product in _PRODUCTS if product.request in given}


def _wrong(what: str) -> DataLossError:
    return DataLossError(f"the server's answer is damaged: {what}")


def _checksum(part: Any) -> int:
    """Returns the checksum of the fields of type ``bytes``, in the order of their numbers."""
    crc = 0
    for field in sorted(part.DESCRIPTOR.fields, key=lambda field: field.number):
        if field.type == field.TYPE_BYTES:
            crc = _native.crc32c(getattr(part, field.name), crc)
    return crc


def _array(part: Any, name: str, dtype: str, *shape: int) -> np.ndarray:
    content, size = getattr(part, name), int(np.prod(shape)) * np.dtype(dtype).itemsize
    if len(content) != size:
        raise _wrong(f"{name} of {len(content)} bytes, expected {size}")
    return np.frombuffer(content, dtype).reshape(shape)


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class FileParts:
    """Assembles the parts of an analysis's files, taken in order."""

    def __init__(self, asked: Iterable[int]) -> None:
        """``asked``: numbers of the files that were asked for."""
        self._left = {number: FILES[number] for number in asked}  # files of which nothing has arrived
        self._open: tuple[int, ...] | None = None  # the facts that all parts of the current file repeat
        self._pieces: list[bytes] = []
        self._size = 0  # of the pieces
        self.files: dict[str, bytes] = {}
        self.failed: dict[str, tuple[int, str]] = {}

    def add(self, part: pb.FilePart) -> None:
        """Takes a part. DataLossError: it is damaged or out of order."""
        name = FILES.get(part.file, str(part.file))
        facts = (part.file, part.bytes, part.targets, part.good)
        if self._open is None:
            if self._left.pop(part.file, None) is None:
                raise _wrong(f"the file of {name}, which was not asked for or came before")
            self._open = facts
            if part.bytes > _MAX_FILE_BYTES or part.good > part.targets:
                sizes = f"{part.bytes} bytes, of which {_MAX_FILE_BYTES} are allowed"
                raise _wrong(f"the file of {name}: {sizes}, {part.good} of {part.targets} targets")
        if facts != self._open:
            raise _wrong(f"a part of the file of {name} out of order")
        if part.code != 0:
            self._fail(name, part)
        else:
            self._take(name, part)

    def finish(self) -> None:
        """DataLossError: something is missing."""
        if self._open is not None:
            raise _wrong(f"it ended after {self._size} of {self._open[1]} bytes of the file of {FILES[self._open[0]]}")
        if self._left:
            raise _wrong(f"it ended without the file of {min(self._left.values())}, which was asked for")

    def _fail(self, name: str, part: pb.FilePart) -> None:
        if self._pieces or part.payload or not 0 < part.code <= _MAX_CODE:
            raise _wrong(f"the file of {name}: status {part.code} after {self._size + len(part.payload)} bytes")
        self.failed[name] = (part.code, part.error)
        self._open = None

    def _take(self, name: str, part: pb.FilePart) -> None:
        end = part.offset + len(part.payload)
        if part.offset != self._size or not part.offset < end <= part.bytes:
            expected = f"expected from {self._size} to at most {part.bytes}"
            raise _wrong(f"the file of {name}: bytes {part.offset} to {end}, {expected}")
        if (crc := _native.crc32c(part.payload)) != part.crc32c:
            raise _wrong(f"the file of {name}: checksum {crc:08x}, expected {part.crc32c:08x}")
        if part.last != (end == part.bytes):
            raise _wrong(f"the file of {name}: last is {part.last} after {end} of {part.bytes} bytes")
        self._pieces.append(part.payload)
        self._size = end
        if part.last:
            self.files[name] = b"".join(self._pieces)
            self._open, self._pieces, self._size = None, [], 0


class ProductParts:
    """Assembles the parts of one frame's products, taken in order."""

    def __init__(self, first_fibre: int, fibres: int, bins: int) -> None:
        self._first, self._fibres, self._bins = first_fibre, fibres, bins
        self._open: int | None = None  # the product whose parts are arriving
        self._done: set[int] = set()
        self._failed: dict[str, tuple[int, str]] = {}
        self._parts: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in NAMES.values()}
        self._parameters: list[str] = []
        self._facts: dict[str, Any] = {}  # about the sky

    def add(self, part: pb.ProductPart) -> None:
        """Takes a part. DataLossError: it is damaged or out of order."""
        product = part.product
        if product != self._open if self._open is not None else product in self._done:
            raise _wrong(f"parts of product {product} out of order")
        self._open = product
        kind = part.WhichOneof("part")
        if part.code != 0:
            self._fail(part)
        elif kind is not None:
            content = getattr(part, kind)
            if (crc := _checksum(content)) != part.crc32c:
                raise _wrong(f"product {product}: checksum {crc:08x}, expected {part.crc32c:08x}")
            adders: dict[str, Callable[[Any, bool], None]] = {
                "sky": self._add_sky,
                "velocity": self._add_stars,
                "lines": self._add_lines,
            }
            adders[kind](content, part.last)
        if part.last:
            self._done.add(product)
            self._open = None

    def finish(self, source: Source, asked: set[int] | None) -> Products | None:
        """Returns the products, None if there are none. ``asked``: those that must have arrived; None: any."""
        if self._open is not None or not (asked or set()) <= self._done:
            raise _wrong("it ended without a product that was asked for")
        if not self._done:
            return None
        frame = source.native()
        stars, galaxies = self._parts["velocities"], self._parts["redshifts"]
        return Products(
            source=source,
            sky={**_joined(self._parts["sky"]), **self._facts} if self._parts["sky"] else None,
            velocities=self._stars(frame, _joined(stars)) if stars else None,
            redshifts=structured(_native.redshift_table(frame, _joined(galaxies))) if galaxies else None,
            failed=self._failed,
        )

    def _fail(self, part: pb.ProductPart) -> None:
        if not part.last or not 0 < part.code <= _MAX_CODE:
            raise _wrong(f"product {part.product}: status {part.code}")
        if part.product in NAMES:
            self._failed[NAMES[part.product]] = (part.code, part.error)

    def _add_sky(self, part: pb.SkyPart, last: bool) -> None:
        sky, count, bins = self._parts["sky"], part.fibre_count, self._bins
        seen = sum(len(known["model"]) for known in sky)
        if part.bins != bins or count < 1 or part.first_fibre != self._first + seen or seen + count > self._fibres:
            raise _wrong("sky: fibres or bins that are not the frame's")
        arrays = {name: _array(part, name, "<u4" if name == "mask" else "<f4", count, bins) for name in _SKY}
        sky.append({**arrays, "throughput": _array(part, "throughput", "<f8", count)})
        if not last:
            return
        if seen + count != self._fibres:
            raise _wrong(f"sky: it ended after {seen + count} of {self._fibres} fibres")
        self._facts = {"deconvolved": _array(part, "deconvolved", "<f8", bins), "rows": self._rows(part.sky_rows, -1)}
        self._facts |= {"rounds": part.rounds, "rejected": part.rejected}

    def _add_stars(self, part: pb.VelocityPart, last: bool) -> None:
        stars, names = self._parts["velocities"], list(part.parameters)
        if part.bins != self._bins or len(names) > _MAX_PARAMETERS or (stars and names != self._parameters):
            raise _wrong("velocity: bins or parameters that are not the frame's or the library's")
        self._parameters = names
        after = stars[-1]["rows"][-1] if stars and len(stars[-1]["rows"]) else -1
        rows = self._rows(part.rows, after)
        count, scanned = len(rows), len(_native.AnalysisRequest(1).scanned_velocities())
        arrays = {name: _array(part, name, "<f8", count) for name in _STAR}
        for name in ("parameter_values", "parameter_errors"):
            arrays[name] = _array(part, name, "<f8", count, len(names))
        for name in ("bins_used", "flag"):
            arrays[name] = _array(part, name, "<u4", count)
        for name, size in (("model", self._bins), ("continuum", self._bins), ("scan", scanned)):
            arrays[name] = _array(part, name, "<f4", count, size)
        stars.append({"rows": rows, **arrays})

    def _add_lines(self, part: pb.LinePart, last: bool) -> None:
        rows = self._rows(part.rows, -1)
        arrays = {name: _array(part, name, "<f8", len(rows)) for name in _GALAXY}
        numbers = {name: _array(part, name, "<u4", len(rows)) for name in ("lines", "warning")}
        self._parts["redshifts"].append({"rows": rows, **arrays, **numbers})

    def _rows(self, content: bytes, after: int) -> np.ndarray:
        if len(content) % 4 != 0:
            raise _wrong("rows that are not whole numbers")
        rows = np.frombuffer(content, "<u4").astype(np.int64)
        if (np.diff(rows, prepend=after) < 1).any() or (rows >= self._fibres).any():
            raise _wrong(f"rows that are not those of a frame of {self._fibres} fibres, or out of order")
        return rows

    def _stars(self, frame: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
        columns = _native.velocity_table(frame, arrays, self._parameters)
        columns += [("MODEL", arrays["model"]), ("CONTINUUM", arrays["continuum"]), ("CHI2", arrays["scan"])]
        return structured(columns)
