"""The repository's files, and which folder uses which."""

import ast
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = (".cc", ".h", ".cu", ".cuh", ".py")
PYTHON = "python"  # this folder is on Python's path
NO_SOURCES = {"build", "out"}


def files():
    """Returns the paths of all files relative to the repository: what git tracks or would add; without git, all
    files outside of build folders."""
    if (ROOT / ".git").exists():
        command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        return sorted(name for name in set(listed) if name and (ROOT / name).exists())
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] not in NO_SOURCES and "__pycache__" not in path.parts)


def folder_of(name):
    return str(pathlib.PurePosixPath(name).parent)


def included(text):
    """Returns the files that a C++ source includes in quotation marks."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)


def imported(text, package):
    """Yields the full names of modules that a Python source imports; a name imported from a module counts as a
    module too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from [module, *(f"{module}.{name.name}" for name in node.names)]


def uses():
    """Returns {folder: {folder that it uses: [sentences that name file and line]}} without a folder's use of itself."""
    names = files()
    # A header that CMake makes, such as core/base/version.h, counts for its folder.
    headers = {name.removesuffix(".in") for name in names}
    modules = {}
    for name in names:
        if name.startswith(f"{PYTHON}/") and name.endswith(".py"):
            modules[name.removeprefix(f"{PYTHON}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = name
    graph = {}

    def add(name, target, text):
        if folder_of(target) != folder_of(name):
            graph.setdefault(folder_of(name), {}).setdefault(folder_of(target), []).append(f"{name}: {text}")

    for name in names:
        if not name.endswith(SUFFIXES):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        if not name.endswith(".py"):
            for path in included(text):
                if path in headers:
                    add(name, path, f'#include "{path}"')
        elif name.startswith(f"{PYTHON}/"):
            package = folder_of(name).split("/")[1:]
            for module in imported(text, package):
                if module in modules:
                    add(name, modules[module], f"import {module}")
    return graph


def cycle(graph):
    """Returns folders that each use the next one, the last the first; None without a cycle."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder) :]
        if folder in done:
            return None
        path.append(folder)
        for used in sorted(graph.get(folder, {})):
            found = visit(used)
            if found:
                return found
        path.pop()
        done.add(folder)
        return None

    for folder in sorted(graph):
        found = visit(folder)
        if found:
            return found
    return None


def told(graph, folders):
    """Returns a message about a cycle, with some of the files that cause each step."""
    lines = ["these folders depend on each other in a cycle:"]
    for folder, used in zip(folders, [*folders[1:], folders[0]], strict=True):
        reasons = sorted(set(graph[folder][used]))
        lines.append(f"  {folder} uses {used}, in {len(reasons)} places:")
        lines += [f"    {reason}" for reason in reasons[:3]]
    return "\n".join(lines)
