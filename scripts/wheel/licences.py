#!/usr/bin/env python3
"""Writes the licences of all software that a wheel contains into its metadata, from the copyright files of Debian's packages.

scripts/wheel/licences.py TREE COMPONENT...

TREE is the unpacked wheel, whose libraries are in *.libs. COMPONENT is what was compiled into its programs or modules: a
Debian package, or NAME=FILE with the text of its licence. Fails if a library is of no package, or if a licence is not
among those below.
"""

import pathlib
import re
import subprocess
import sys

# Licences that a wheel may contain, by their names in copyright files. The licence for all files of a source package
# counts; files that are listed separately are mostly tests, documents and packaging, which are not in the libraries.
ALLOWED = {
    "Apache-2.0", "BSD-3-Clause", "BSD-3-Clause~Google", "BSD-3-clause", "BSD-3-google", "BSD-variant", "BSL-1.0", "CFITSIO",
    "Expat", "GPL-3+ with GCC-exception-3.1", "LGPL-2.1+", "NVIDIA-CUDA",
}
# Licences of packages whose copyright file is prose or missing.
READ = {
    "c-ares": "Expat", "cfitsio": "CFITSIO", "gcc-12": "GPL-3+ with GCC-exception-3.1", "nanobind": "BSD-3-Clause",
    "NVIDIA CUDA runtime": "NVIDIA-CUDA",
}
OURS = {"libcurl-gnutls.so.4", "libgnutls.so.30"}  # scripts/wheel/stubs.sh
RULE = "=" * 100


class Missing(Exception):
    pass


def dpkg_query(*arguments):
    return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False).stdout.strip()


def packages_of(libraries):
    """Returns {Debian package: the libraries of a wheel that are from it}. auditwheel has added a hash to their
    names."""
    names = {library: re.sub(r"-[0-9a-f]{8}(?=\.)", "", library, count=1) for library in libraries}
    owners, packages = {}, {}
    for line in dpkg_query("--search", *(f"*/{name}" for name in names.values())).splitlines():
        package, path = line.split(": ")
        owners.setdefault(pathlib.PurePath(path).name, set()).add(package.partition(":")[0])
    for library, name in sorted(names.items()):
        if name in OURS:
            continue
        found = sorted(owners.get(name, []))
        if len(found) != 1:
            raise Missing(f"{library}: {name} is in {len(found)} Debian packages {found}, must be in one")
        packages.setdefault(found[0], []).append(library)
    return packages


def licence_of(source, text):
    """Returns the licence of a source package, from the paragraph of its copyright file about all files."""
    paragraphs = re.findall(r"^Files:\s+\*\s*\n(?:.*\n)*?License:\s*(.*)", text, re.MULTILINE)
    licence = READ.get(source) or (paragraphs[0].strip() if paragraphs else "")
    if licence not in ALLOWED:
        raise Missing(f"{source}: its licence is {licence or 'not known'}: read its copyright file, and add the licence in {__file__}"
                      " if it lets a wheel contain the software")
    return licence


def sections(tree, components):
    """Returns (heading, text) for everything that the wheel contains."""
    texts = {}
    libraries = [path.name for path in tree.glob("*.libs/*")]
    bundled = packages_of(libraries) if libraries else {}
    for component in components:
        name, named, file = component.partition("=")
        if named:
            text = pathlib.Path(file).read_text(encoding="utf-8", errors="replace")
            texts[name] = [f"licence {licence_of(name, text)}; compiled in"], text
        else:
            bundled.setdefault(name, []).append("compiled in")
    for package, libraries in sorted(bundled.items()):
        version, source, source_version = dpkg_query(
            "--show", "--showformat=${Version}\t${source:Package}\t${source:Version}", package
        ).split("\t")
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace")
        lines, _ = texts.setdefault(source, ([f"Debian source package {source} {source_version}, licence {licence_of(source, text)}"], text))
        lines.append(f"package {package} {version}: {', '.join(libraries)}")
    return sorted(("\n".join([name, *lines]), text) for name, (lines, text) in texts.items())


def main():
    tree, components = pathlib.Path(sys.argv[1]), sys.argv[2:]
    made = sections(tree, components)
    common = {match for _, text in made for match in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text)}
    for name in sorted(common):
        path = pathlib.Path("/usr/share/common-licenses", name)
        made.append((f"{path}, which the texts above name", path.read_text(encoding="utf-8")))
    (folder,) = tree.glob("*.dist-info")
    (folder / "licenses").mkdir(exist_ok=True)
    with open(folder / "licenses" / "BUNDLED.txt", "w", encoding="utf-8") as file:
        file.write("Software that this wheel contains beside spexd itself, with its licences.\n")
        for heading, text in made:
            file.write(f"\n{RULE}\n{heading}\n{RULE}\n\n{text.strip()}\n")


if __name__ == "__main__":
    try:
        main()
    except (Missing, OSError) as error:
        sys.exit(f"licences: {error}")
