"""Arrays that stay in a GPU's memory, on an emulated GPU, whose memory is the host's, and on a real one."""

import ctypes
import gc
import pickle

import numpy as np
import pytest
from conftest import BIN, run_spex

import spexd

EMULATED = BIN / "libspexd_emulated_cuda.so"
PLANES = ("flux", "ivar", "mask", "chi2pix", "resolution")
GRID = (6636, 6652, 0.8)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    run_spex("simulate", "--fibres", 5, "--rows", 60, "--seed", 4, "--out-dir", folder)
    return folder / "preproc-r0.fits", folder / "psf-r0.fits"


class DLTensor(ctypes.Structure):
    """The beginning of DLPack's DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def tensor_in(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DLTensor.from_address(pointer(capsule, b"dltensor"))


def values_at(tensor):
    """Returns the values of a tensor in the memory of this process."""
    kinds = {(2, 32): np.float32, (1, 32): np.uint32}
    shape = tensor.shape[: tensor.ndim]
    size = int(np.prod(shape)) * 4
    raw = (ctypes.c_char * size).from_address(tensor.data + tensor.byte_offset)
    return np.frombuffer(bytes(raw), kinds[tensor.code, tensor.bits]).reshape(shape)


@pytest.fixture
def emulated(monkeypatch):
    if not EMULATED.exists():
        pytest.skip("the emulated GPU is built where CUDA's headers are")
    monkeypatch.setenv("SPEXD_CUDA_MODULE", str(EMULATED))
    return spexd.Engine("cuda")


def test_arrays_on_the_device_are_those_of_the_frame_and_outlive_it(emulated, inputs):
    frame = emulated.extract(inputs[0], psf=inputs[1], wavelength=GRID, first_fibre=1, fibre_count=4, keep_on_device=True)
    kept = frame.on_device
    assert repr(kept) == f"<spexd.DeviceSpectra: 4 fibres, {len(frame.wave)} bins on CUDA device 0>"
    expected = {name: getattr(frame, name).copy() for name in PLANES}
    capsules = {}
    for name in PLANES:
        array = getattr(kept, name)
        assert array.__dlpack_device__() == (2, 0)
        assert (array.shape, array.dtype) == (expected[name].shape, str(expected[name].dtype))
        capsules[name] = array.__dlpack__(stream=None, max_version=(1, 0))
    del frame, kept, array
    gc.collect()
    for name, capsule in capsules.items():
        tensor = tensor_in(capsule)
        assert (tensor.device_type, tensor.device_id) == (2, 0)
        np.testing.assert_array_equal(values_at(tensor), expected[name], err_msg=name)


def test_what_would_need_a_copy_is_refused(emulated, inputs):
    kept = emulated.extract(inputs[0], psf=inputs[1], wavelength=GRID, keep_on_device=True).on_device
    with pytest.raises(BufferError, match="CUDA device 0"):
        kept.flux.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        kept.flux.__dlpack__(dl_device=(1, 0))


def test_a_pickled_frame_leaves_the_device_behind(emulated, inputs):
    frame = emulated.extract(inputs[0], psf=inputs[1], wavelength=GRID, keep_on_device=True)
    copy = pickle.loads(pickle.dumps(frame))
    assert copy.on_device is None
    np.testing.assert_array_equal(copy.flux, frame.flux)


def test_the_cpu_has_no_device(engine, inputs):
    with pytest.raises(spexd.UnimplementedError, match="cannot stay on a device"):
        engine.extract(inputs[0], psf=inputs[1], wavelength=GRID, keep_on_device=True)
    assert engine.extract(inputs[0], psf=inputs[1], wavelength=GRID).on_device is None


def test_products_on_the_device_are_those_of_a_copy(emulated, inputs, tmp_path):
    frame = emulated.extract(inputs[0], psf=inputs[1], wavelength=GRID, keep_on_device=True)
    frame.to_fits(tmp_path / "frame.fits")
    copied = spexd.Frame.from_fits(tmp_path / "frame.fits")
    there, here = frame.sky(device="cuda"), copied.sky(device="cuda")
    for name in ("model", "ivar", "mask", "deconvolved"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
    np.testing.assert_array_equal(frame.redshifts(there, device="cuda"), copied.redshifts(here, device="cuda"))
    np.testing.assert_allclose(there.model, frame.sky().model, rtol=1e-4, atol=1e-3)
    frame.flux = frame.flux * 2  # replaced arrays are copied
    assert frame.sky(device="cuda").model.sum() == pytest.approx(2 * there.model.sum(), rel=1e-3)
    with pytest.raises(spexd.InvalidArgumentError, match="device is 'gpu'"):
        frame.sky(device="gpu")


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_libraries_of_gpus_share_the_arrays(library, inputs):
    module = pytest.importorskip(library)
    try:
        engine = spexd.Engine("cuda")
    except spexd.SpexdError as error:
        pytest.skip(f"no GPU: {error}")
    frame = engine.extract(inputs[0], psf=inputs[1], wavelength=GRID, keep_on_device=True)
    host = {"cupy": lambda array: array.get(), "torch": lambda array: array.cpu().numpy()}[library]
    arrays = {name: module.from_dlpack(getattr(frame.on_device, name)) for name in PLANES}
    again = module.from_dlpack(frame.on_device.flux)
    expected = {name: getattr(frame, name).copy() for name in PLANES}
    del frame, engine
    gc.collect()
    for name, array in arrays.items():
        np.testing.assert_array_equal(host(array), expected[name], err_msg=name)
    again += 1  # without a copy the other view sees it
    np.testing.assert_array_equal(host(arrays["flux"]), expected["flux"] + 1)
