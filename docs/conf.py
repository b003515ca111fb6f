"""Sphinx makes the documents of the whole repository into one site: scripts/docs.sh."""

import pathlib
import re
import sys

import sphinx.util.nodes

SOURCES = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCES / "python"))

project = "spexd"
author = "the spexd maintainers"
release = re.search(r"project\(spexd VERSION ([0-9.]+)", (SOURCES / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["*.md", "docs/*.md"] + [
    f"{top}/{below}README.md"
    for top in ("client", "core", "cuda", "deploy", "docs", "python", "server", "tests")
    for below in ("", "**/")
]
root_doc = "docs/index"
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"spexd {release}"

# The API is documented without the native module and without packages that its users bring.
autodoc_mock_imports = ["spexd._native", "spexd.v1", "numpy", "grpc", "google", "distributed", "desispec"]
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def link_of_folder(app, env, node, contnode):
    """A link to a folder leads to its README; without one it is text."""
    folder = (pathlib.Path(app.srcdir) / node["refdoc"]).parent / node["reftarget"]
    if not folder.is_dir():
        return None
    readme = (folder / "README").resolve().relative_to(app.srcdir).as_posix()
    if readme not in env.all_docs:
        return contnode
    return sphinx.util.nodes.make_refnode(app.builder, node["refdoc"], readme, "", contnode)


def setup(app):
    app.connect("missing-reference", link_of_folder)
