"""Writes a copy of a frame with masked bins of every kind in fibre row 2, and with texts that contain markup.

odd_frame.py FRAME OUTPUT
"""
import sys

from astropy.io import fits

with fits.open(sys.argv[1]) as hdus:
    mask, ivar, flux = hdus["MASK"].data, hdus["IVAR"].data, hdus["FLUX"].data
    mask[2, 10:13] |= 1 << 7
    mask[2, 20:25] |= 1 << 8 | 1 << 1
    mask[2, 30] |= 1 << 20
    ivar[2, 20:25] = 0
    flux[2, 20:25] = 0
    header = hdus["FLUX"].header
    header["CAMERA"] = "</script><script>alert(1)</script>"
    header["IN_IMG"] = '"><img src=x onerror=alert(1)>'
    hdus["FIBERMAP"].data["OBJTYPE"][4] = "<b>"
    hdus["FIBERMAP"].data["TARGETID"][2] = 9223372036854775807
    hdus.writeto(sys.argv[2])
