#!/usr/bin/env python3
"""Makes a night of many small simulated frames, and checks that each was extracted once.

many_frames.py make BIN FOLDER COUNT       writes FOLDER/images, and FOLDER/night.txt with outputs in FOLDER/frames
many_frames.py bare BIN FOLDER [FLAG...]   extracts the images into FOLDER/bare by one `spex extract`; prints its seconds
many_frames.py check BIN FOLDER            fails unless each frame of the list exists, as `extract` writes it, and was
                                           recorded once
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

CAMERAS = ("b", "r", "z")
FIBRES, ROWS = 25, 400
PRODUCTS = ("sky", "sframe", "redshifts", "exposure-redshifts")
# Prefixes of the names of a frame's files.
OF_FRAME = ("frame", "sky", "sframe", "zlines")


class Night:
    """The files of a night in its own folder: exposures of three cameras of one spectrograph."""

    def __init__(self, programs, folder):
        self.spex = str(pathlib.Path(programs, "spex").resolve())
        self.folder = pathlib.Path(folder).resolve()
        self.list = self.folder / "night.txt"
        self.images = self.folder / "images"
        self.outputs = self.folder / "frames"
        self.record = self.outputs / "spex-night.jsonl"
        self.bare_outputs = self.folder / "bare"
        self.products = ()  # flags

    def make(self, count, fibres=FIBRES, rows=ROWS, products=False):
        """Makes `count` frames, a multiple of three."""
        size = ["--fibres", str(fibres), "--rows", str(rows), "--exposures", str(count // len(CAMERAS))]
        for camera in CAMERAS:
            self.run("simulate", "--camera", camera, *size, "--sky-fibres", "3", "--out-dir", str(self.images))
        for path in [*self.images.glob("truth-*"), *self.images.glob("sources-*")]:
            path.unlink()
        lines = ["image psf output"]
        for image in sorted(self.images.glob("preproc-*"), key=lambda path: (path.stem.split("-")[2], path.stem)):
            output = self.outputs / image.name.replace("preproc-", "frame-")
            lines.append(f"{image} {self.psf_of(image)} {output}")
        self.list.write_text("\n".join(lines) + "\n")
        if products:
            self.products = ("--products", ",".join(PRODUCTS))

    def psf_of(self, image):
        return self.images / f"psf-{image.stem.split('-')[1]}.fits"

    def run(self, *arguments):
        subprocess.run([self.spex, *arguments], check=True, stdout=subprocess.DEVNULL)

    def frames(self):
        return [pathlib.Path(line.split()[2]) for line in self.list.read_text().splitlines()[1:]]

    def records(self):
        """Returns the names of the recorded outputs, each as often as it was recorded. A line torn by a kill does
        not count."""
        names = []
        for line in self.record.read_text().splitlines() if self.record.exists() else []:
            try:
                names.append(json.loads(line)["output"])
            except ValueError:
                continue
        return names

    def state(self):
        """Identifies the files of the outputs recorded so far: a frame that is extracted again is another file."""
        status = {name: (self.outputs / name).stat() for name in self.records()}
        return {name: (one.st_ino, one.st_mtime_ns) for name, one in status.items()}

    def forget(self):
        """Removes all outputs."""
        shutil.rmtree(self.outputs, ignore_errors=True)

    def bare(self, *flags):
        """Extracts all images with one `spex extract`, which keeps no record, into the folder `bare`; returns the
        seconds."""
        shutil.rmtree(self.bare_outputs, ignore_errors=True)
        images = [path for path in sorted(self.images.iterdir()) if path.name.startswith("preproc-")]
        inputs = ["-i", *map(str, images), "-p", *(str(self.psf_of(image)) for image in images)]
        start = time.monotonic()
        self.run("extract", "-q", *inputs, "--output-dir", str(self.bare_outputs), *self.products, *flags)
        return time.monotonic() - start

    def names(self):
        """Returns the files that must exist, in two lists: those that records name, and the others."""
        frames = [frame.name for frame in self.frames()]
        if not self.products:
            return frames, []
        exposures = sorted({"zlines-0-" + name.split("-")[2] for name in frames})
        others = [name.replace("frame-", f"{prefix}-") for name in frames for prefix in OF_FRAME[1:]]
        return frames + exposures, others

    def check(self):
        named, others = self.names()
        recorded = self.records()
        assert sorted(recorded) == sorted(named), f"{len(recorded)} records of {len(set(recorded))} results, must be {len(named)}"
        found = sorted(path.name for path in self.outputs.iterdir())
        more = sorted(set(found) - {*named, *others, self.record.name})
        assert not more, f"{len(more)} files more than results in {self.outputs}, such as {more[0]}"
        if not self.bare_outputs.exists():
            self.bare("--device", "cpu", "--server", "")
        wrong = [name for name in named + others if digest(self.outputs / name) != digest(self.bare_outputs / name)]
        assert not wrong, f"{len(wrong)} files have other bytes than those of spex extract, such as {wrong[0]}"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    command, programs, folder, *more = sys.argv[1:]
    night = Night(programs, folder)
    if command == "make":
        night.make(int(more[0]))
    elif command == "bare":
        print(f"{night.bare(*more):.3f}")
    elif command == "check":
        night.check()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
