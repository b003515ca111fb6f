"""Arrays that stay in a GPU's memory."""

from __future__ import annotations

from typing import Any

from spexd._processes import process

RESOLUTION_DIAGONALS = 11
_DLPACK_CUDA = 2  # kDLCUDA of DLPack's device types


class DeviceArray:
    """An array in a GPU's memory, for libraries that compute there: ``cupy.from_dlpack(array)`` and
    ``torch.from_dlpack(array)`` see it without a copy.

    What they make of it keeps the memory, however long: neither the frame nor the engine needs to live as long. The
    values are complete; no stream has to wait for them. Changes in place are seen by all who share the array.
    """

    def __init__(self, spectra: Any, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self._spectra = spectra
        self._name = name
        #: such as "float32"
        self.dtype = dtype
        self.shape = shape

    @property
    def device(self) -> int:
        """The GPU, as CUDA counts."""
        return int(self._spectra.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"{self._name} is shared where it is, on CUDA device {self.device}: copy it there")
        process.check_device("cuda")  # of a parent, its memory is not to be had here
        return self._spectra.dlpack(self._name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CUDA, self.device

    def __repr__(self) -> str:
        return f"<spexd.DeviceArray {self._name}: {self.dtype} {list(self.shape)} on CUDA device {self.device}>"


class DeviceSpectra:
    """The arrays of a frame in a GPU's memory, with the names, types and shapes that they have in the frame."""

    def __init__(self, native: Any) -> None:
        fibres, bins = native.fibres, native.bins
        self._native = native
        self.flux = DeviceArray(native, "flux", "float32", (fibres, bins))
        self.ivar = DeviceArray(native, "ivar", "float32", (fibres, bins))
        self.mask = DeviceArray(native, "mask", "uint32", (fibres, bins))
        self.chi2pix = DeviceArray(native, "chi2pix", "float32", (fibres, bins))
        self.resolution = DeviceArray(native, "resolution", "float32", (fibres, RESOLUTION_DIAGONALS, bins))

    @property
    def device(self) -> int:
        """The GPU, as CUDA counts."""
        return int(self._native.device)

    def __repr__(self) -> str:
        fibres, bins = self.flux.shape
        return f"<spexd.DeviceSpectra: {fibres} fibres, {bins} bins on CUDA device {self.device}>"
