"""Arrays that stay in a GPU's memory."""

from __future__ import annotations

from typing import Any

from spexd._processes import process

RESOLUTION_DIAGONALS = 11
_DLPACK_CUDA = 2  # kDLCUDA of DLPack's device types


class DeviceArray:
    """An array in a GPU's memory, for libraries that compute there: ``cupy.from_dlpack(array)`` and
    ``torch.from_dlpack(array)`` access it without a copy.

    The resulting arrays keep the memory as long as they need it, independently of the frame and the engine. The values
    are complete, so no stream has to wait for them. All arrays that share the memory see changes in place.
    """

    def __init__(self, spectra: Any, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self._spectra = spectra
        self._name = name
        #: name of the type, such as "float32"
        self.dtype = dtype
        self.shape = shape

    @property
    def device(self) -> int:
        """CUDA index of the GPU."""
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
        process.check_device("cuda")  # a parent process's GPU memory cannot be used here
        return self._spectra.dlpack(self._name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CUDA, self.device

    def __repr__(self) -> str:
        return f"<spexd.DeviceArray {self._name}: {self.dtype} {list(self.shape)} on CUDA device {self.device}>"


class DeviceSpectra:
    """The arrays of a frame in a GPU's memory, with the names, types and shapes of the frame's own arrays."""

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
        """CUDA index of the GPU."""
        return int(self._native.device)

    def __repr__(self) -> str:
        fibres, bins = self.flux.shape
        return f"<spexd.DeviceSpectra: {fibres} fibres, {bins} bins on CUDA device {self.device}>"
