#!/usr/bin/env python3
"""A night of many small simulated frames, and the check that each was extracted once.

many_frames.py make BIN FOLDER COUNT    writes FOLDER/images, and the list FOLDER/night.txt with outputs in FOLDER/frames
many_frames.py bare BIN FOLDER [FLAG...]   extracts the images into FOLDER/bare by one `spex extract`, and prints its seconds
many_frames.py check BIN FOLDER         fails unless every frame of the list is there, as `extract` writes it, and recorded once
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

IMAGES = 8  # that differ; the others are links to them
FIBRES, ROWS = 25, 400


class Night:
    """The files of a night in a folder of its own."""

    def __init__(self, programs, folder):
        self.spex = str(pathlib.Path(programs, "spex").resolve())
        self.folder = pathlib.Path(folder).resolve()
        self.list = self.folder / "night.txt"
        self.outputs = self.folder / "frames"
        self.record = self.outputs / "spex-night.jsonl"
        self.bare_outputs = self.folder / "bare"
        self.psf = self.folder / "sim0" / "psf-r0.fits"

    def make(self, count, fibres=FIBRES, rows=ROWS):
        (self.folder / "images").mkdir(parents=True)
        for seed in range(IMAGES):
            size = ["--fibres", str(fibres), "--rows", str(rows), "--seed", str(seed + 1)]
            self.run("simulate", *size, "--out-dir", str(self.folder / f"sim{seed}"))
        lines = ["image psf output"]
        for k in range(count):
            image = self.folder / "images" / f"preproc-{k:04}.fits"
            os.link(self.folder / f"sim{k % IMAGES}" / "preproc-r0.fits", image)
            lines.append(f"{image} {self.psf} {self.outputs / f'frame-{k:04}.fits'}")
        self.list.write_text("\n".join(lines) + "\n")

    def run(self, *arguments):
        subprocess.run([self.spex, *arguments], check=True, stdout=subprocess.DEVNULL)

    def frames(self):
        return [pathlib.Path(line.split()[2]) for line in self.list.read_text().splitlines()[1:]]

    def records(self):
        """The names of the outputs, as often as they were recorded. A line that a kill tore is no record."""
        names = []
        for line in self.record.read_text().splitlines() if self.record.exists() else []:
            try:
                names.append(json.loads(line)["output"])
            except ValueError:
                continue
        return names

    def state(self):
        """Which files stand under the names that are recorded by now: a frame that is extracted again is another file."""
        status = {name: (self.outputs / name).stat() for name in self.records()}
        return {name: (one.st_ino, one.st_mtime_ns) for name, one in status.items()}

    def forget(self):
        """Removes all outputs."""
        shutil.rmtree(self.outputs, ignore_errors=True)

    def bare(self, *flags):
        """Extracts all images by one `spex extract`, which keeps no record, into a folder `bare`; its seconds."""
        shutil.rmtree(self.bare_outputs, ignore_errors=True)
        images = sorted(map(str, (self.folder / "images").iterdir()))
        start = time.monotonic()
        self.run("extract", "-q", "-i", *images, "-p", str(self.psf), "--output-dir", str(self.bare_outputs), *flags)
        return time.monotonic() - start

    def check(self):
        names = [frame.name for frame in self.frames()]
        recorded = self.records()
        assert sorted(recorded) == names, f"{len(recorded)} records of {len(set(recorded))} frames, must be {len(names)}"
        found = sorted(path.name for path in self.outputs.iterdir())
        more = sorted(set(found) - {*names, self.record.name})
        assert not more, f"{len(more)} files more than frames in {self.outputs}, such as {more[0]}"
        if not self.bare_outputs.exists():
            self.bare("--device", "cpu", "--server", "")
        wrong = [name for name in names if digest(self.outputs / name) != digest(self.bare_outputs / name)]
        assert not wrong, f"{len(wrong)} frames have other bytes than those of spex extract, such as {wrong[0]}"


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
