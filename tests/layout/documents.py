"""What the Markdown documents name (links, headings, paths in backticks, commits), and what of them is too long."""

import pathlib
import posixpath
import re

from sources import ROOT, files, folder_of

# Matches text in backticks that looks like a file of the repository and not like a user's file.
OURS = re.compile(r"[\w./-]*[\w-]+\.(?:cc|h|cu|cuh|py|md|proto|sh|cmake|in|yml|ipynb|supp)")
# First cells of the header of a table that lists files.
LISTS_FILES = {"file", "folder", "source"}
LONGEST_LINE = 120
# Most lines of the documents that are read as a whole.
MAX_LINES = {"README.md": 150, "CHANGELOG.md": 40, "docs/performance.md": 200}
# The measurements there name the commit that they were made with.
NAMES_COMMITS = "docs/benchmarks/"


class Tree:
    """The repository's files and the folders that hold them."""

    def __init__(self):
        self.files = set(files())
        self.folders = {""}
        for name in self.files:
            while name := posixpath.dirname(name):
                self.folders.add(name)
        self.top = {folder.split("/")[0] for folder in self.folders} - {""}
        self.stems = {name[: len(name) - len("".join(pathlib.PurePosixPath(name).suffixes))] for name in self.files}
        self.ends = {name[at:] for name in self.files for at in _parts(name)}

    def has(self, path):
        """Returns whether the path is a file, a folder, or a file without its suffix."""
        path = posixpath.normpath(path)
        return path in self.files or path in self.folders or path in self.stems or path == "."


def _parts(name):
    """Returns the positions at which the folders and the file of a path begin."""
    return [0, *(match.end() for match in re.finditer("/", name))]


def prose(text):
    """Returns the text without code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def long_lines(text):
    """Yields lines that are too long and could be broken: not code, table rows, pictures or lines of one link."""
    for line in prose(text).split("\n"):
        if len(line) > LONGEST_LINE and not re.match(r"\s*(\||!\[)|\s*(- )?\[[^]]*\]\([^)]*\)\W*$", line):
            yield line


def too_many_lines(name, text):
    """What is wrong with the length of a document that has a limit."""
    lines = len(text.splitlines())
    if lines > MAX_LINES.get(name, lines):
        yield f"{name} has {lines} lines, at most {MAX_LINES[name]}"


def commit_names(text):
    """Words that look like names of commits, outside of code blocks. The commit in a version (0.1.0+…) is none."""
    words = re.findall(r"(?<![\w+])[0-9a-f]{7,40}(?!\w)", prose(text))
    return [word for word in words if re.search("[a-f]", word) and re.search("[0-9]", word)]


def slug(heading):
    """A heading's anchor, as GitHub makes it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(name):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose((ROOT / name).read_text()), re.MULTILINE)}


def links(text):
    """Returns the targets of links and pictures that lead into the repository."""
    without_code = re.sub(r"`[^`]*`", "", prose(text))
    targets = re.findall(r"\]\(<?([^)>\s]+)>?\)", without_code)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def broken_links(name, tree):
    for target in links((ROOT / name).read_text()):
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(folder_of(name), path)) if path else name
        if not tree.has(file) or (file not in tree.files and file not in tree.folders | {"."}):
            yield f"{name}: there is no {target}"
        elif anchor and (not file.endswith(".md") or anchor not in anchors(file)):
            yield f"{name}: {file} has no heading #{anchor}"


def missing_paths(name, tree):
    """Yields messages about paths in backticks that do not exist: those in a top folder, or with a source's suffix."""
    for code in re.findall(r"`([^`\n]+)`", prose((ROOT / name).read_text())):
        path = posixpath.normpath(code)
        if not re.fullmatch(r"[\w./-]+", path) or "NAME" in path:
            continue
        beside = posixpath.normpath(posixpath.join(folder_of(name), path))
        if path.split("/")[0] in tree.top and "/" in path:
            known = tree.has(path) or tree.has(beside)
        elif OURS.fullmatch(path) and not path.startswith("/"):
            known = tree.has(beside) or path in tree.ends or f"{path}.in" in tree.ends
        else:
            continue
        if not known and not path.startswith("build/"):
            yield f"{name}: there is no `{code}`"


def missing_rows(name, tree):
    """Yields messages about entries in tables of files that do not exist in the document's folder, with or without
    suffix."""
    listing = None
    for line in prose((ROOT / name).read_text()).split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            listing = None
        elif listing is None:
            # "file" or "file of `folder/`"; the rows then name files of that folder.
            words = re.fullmatch(r"(\w+)(?: (?:in|of) `([\w./-]+)`)?", cells[0])
            listing = (words[2] or "") if words and words[1] in LISTS_FILES else False
        elif listing is not False:
            within = listing
            for path, colon in re.findall(r"`([^`]+)`(:?)", cells[0]):
                if not tree.has(posixpath.join(folder_of(name), within, path)):
                    yield f"{name}: a table names `{posixpath.join(within, path)}`, which is not there"
                if colon:  # "`folder/`: `file`, `file`"
                    within = posixpath.join(listing, path)
