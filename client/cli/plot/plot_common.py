"""Shared by all pictures and pages of spex: the choice of Python, the style, and writing files."""
import argparse
import base64
import hashlib
import importlib
import os
import re
import sys
import tempfile

SYSTEM_PYTHON = "/usr/bin/python3"

INK, SOFT, GRID = "#1f2430", "#6b7280", "#e5e7eb"
LINE, BAND, MASKED, ZOOM = "#1d4e89", "#9cc3e6", "#d1495b", "#f4a259"
TRUTH, SKY = "#e07a1f", "#2a9d8f"
ARMS = {"b": LINE, "r": MASKED, "z": ZOOM}
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
}


def arguments_of(command, description):
    """Parses the input and the output that a command passes to its script. `description`: the script's docstring."""
    parser = argparse.ArgumentParser(prog=command, description=description.split("\n")[0])
    parser.add_argument("input")
    parser.add_argument("output")
    arguments = parser.parse_args()
    return arguments.input, arguments.output


def load(*names):
    """Returns the named modules. If one is missing, the process ends with exit code 2."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        # Distributions install these packages for their own Python, which may not be the first on PATH.
        if os.path.exists(SYSTEM_PYTHON) and not os.environ.get("SPEXD_PLOT_RETRIED"):
            os.environ["SPEXD_PLOT_RETRIED"] = "1"
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
        name = error.name.split(".")[0] if error.name else str(error)
        sys.stderr.write(
            "spex: plot needs the Python package %s, which %s does not have (Debian: apt-get install python3-%s)\n"
            % (name, sys.executable, name)
        )
        sys.exit(2)


def load_pyplot():
    """Returns matplotlib.pyplot in the style of spex, drawing to files. If it is missing, the process ends with exit
    code 2."""
    # A folder for its caches that is writable even if HOME is not.
    os.environ.setdefault("MPLCONFIGDIR", os.path.join(tempfile.gettempdir(), "spexd-matplotlib-%d" % os.getuid()))
    load("matplotlib")[0].use("Agg")
    (plt,) = load("matplotlib.pyplot")
    plt.rcParams.update(STYLE)
    return plt


def write_whole(path, write):
    """Calls write(temporary path) and renames the file, so that `path` appears complete or not at all. Returns the
    exit code."""
    partial = "%s.%d.part" % (path, os.getpid())
    try:
        write(partial)
        os.replace(partial, path)
    except (OSError, ValueError) as error:
        if os.path.exists(partial):
            os.remove(partial)
        sys.stderr.write("spex: %s: %s\n" % (path, error))
        return 2
    print("Wrote %s" % path)
    return 0


def write(draw, path):
    """Writes the figure that `draw` makes, complete or not at all. Returns the exit code."""
    ending = os.path.splitext(path)[1].lstrip(".") or "png"
    return write_whole(path, lambda partial: draw().savefig(partial, format=ending, facecolor="white"))


def write_text(make, path):
    """Writes the text that `make` returns, complete or not at all. Returns the exit code."""
    def write_to(partial):
        with open(partial, "w", encoding="utf-8") as file:
            file.write(make())

    return write_whole(path, write_to)


def own_files(names):
    folder = os.path.dirname(os.path.abspath(__file__))
    texts = []
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "\n".join(texts)


def allowed(text):
    """Returns the source for a content security policy that allows only this script or style."""
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


PAGE_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="@POLICY@">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>@TITLE@</title>
<style>@STYLE@</style>
</head>
"""


def page(title, template, styles, scripts, **parts):
    """Returns a page. Its body is a template with `parts` at their places (@NAME@); styles and scripts are files."""
    script, style = own_files(scripts), own_files(styles)
    policy = "default-src 'none'; img-src data:; script-src %s; style-src %s" % (allowed(script), allowed(style))
    parts = {**parts, "TITLE": title, "POLICY": policy, "STYLE": style, "SCRIPT": script}
    return re.sub("@([A-Z]+)@", lambda place: parts[place.group(1)], PAGE_HEAD + own_files((template,)))
