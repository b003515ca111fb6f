"""Writes a frame as a file of spectra: its first bins as arm R, its last as arm Z, with some bins in both.

arm_spectra.py FRAME OUTPUT [NUMBER]: adds the number to each TARGETID.
"""
import sys

from astropy.io import fits

with fits.open(sys.argv[1]) as hdus:
    bins = len(hdus["WAVELENGTH"].data)
    fibermap = hdus["FIBERMAP"].copy()
    fibermap.data["TARGETID"] += int(sys.argv[3]) if len(sys.argv) > 3 else 0
    written = fits.HDUList([fits.PrimaryHDU(), fibermap])
    for arm, part in (("R", slice(0, bins // 2 + 4)), ("Z", slice(bins // 2 - 4, bins))):
        for name in ("WAVELENGTH", "FLUX", "IVAR", "MASK", "RESOLUTION"):
            data = hdus[name].data[..., part]
            written.append(fits.ImageHDU(data.astype("i4") if name == "MASK" else data, name="%s_%s" % (arm, name)))
        written[arm + "_FLUX"].header["BUNIT"] = "10**-17 erg/(s cm2 Angstrom)"
    written.writeto(sys.argv[2])
