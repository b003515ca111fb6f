"""Prints the versions of Python and of the packages that draw the pictures of spex, for spex doctor."""
import sys

import plot_common

modules = plot_common.load("numpy", "astropy", "matplotlib")
packages = ", ".join("%s %s" % (module.__name__, module.__version__) for module in modules)
print("Python %s (%s), %s" % (sys.version.split()[0], sys.executable, packages))
