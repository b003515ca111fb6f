"""Takes a simulated frame through the pipeline's steps after the extraction, with the pipeline's own code.

pipeline_steps.py FRAME PSF: exit code 77 if desispec is not installed. Where specter is, it reads the PSF, too.
"""
import os
import sys

os.environ.setdefault("DESI_LOGLEVEL", "WARNING")
try:
    import numpy as np
    from desispec import coaddition, fiberflat, io, pixgroup, sky
    from desispec.spectra import Spectra
except ImportError as error:
    print("desispec is not installed: %s" % error)
    sys.exit(77)

path, psf_path = sys.argv[1:3]
frame = io.read_frame(path)
assert np.all(frame.fibermap["FIBERSTATUS"] == 0)
assert frame.meta["FIBERMIN"] == frame.fibermap["FIBER"][0]
assert all(frame.scores_comments.values()), frame.scores_comments

flat = fiberflat.compute_fiberflat(frame)
assert flat.fiberflat.shape == frame.flux.shape and np.all(np.isfinite(flat.fiberflat))

model = sky.compute_sky(frame)
assert np.all(np.isfinite(model.flux))
sky.subtract_sky(frame, model)

band = frame.meta["CAMERA"][0]
fibermap = pixgroup.frames2spectra([pixgroup.FrameLite.read(path)]).fibermap
spectra = Spectra([band], {band: frame.wave}, {band: frame.flux}, {band: frame.ivar}, {band: frame.mask},
                  {band: frame.resolution_data}, fibermap)
coaddition.coadd(spectra)
assert spectra.num_spectra() == frame.nspec, spectra.num_spectra()
print("desispec: read_frame, compute_fiberflat, compute_sky, subtract_sky, coadd")

try:
    from specter.psf import load_psf
except ImportError as error:
    print("specter is not installed: %s" % error)
else:
    psf = load_psf(psf_path)
    for fibre in (0, psf.nspec - 1):
        rows, columns, spot = psf.xypix(fibre, 0.5 * (psf.wmin + psf.wmax))
        assert np.all(np.isfinite(spot)) and abs(spot.sum() - 1) < 1e-3, spot.sum()
    print("specter: load_psf, xypix")
