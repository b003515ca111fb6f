"""Documents name files that exist, in links, paths in backticks and tables of files; lines are short, and the README is."""

import pytest
from documents import ROOT, Tree, broken_links, links, long_lines, missing_paths, missing_rows, slug

MAX_README_LINES = 150

TREE = Tree()
DOCUMENTS = sorted(name for name in TREE.files if name.endswith(".md"))


@pytest.mark.parametrize("check", [broken_links, missing_paths, missing_rows])
def test_what_documents_name_is_there(check):
    assert len(DOCUMENTS) > 40
    wrong = [line for name in DOCUMENTS for line in check(name, TREE)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_line_of_a_document_is_too_long():
    wrong = [f"{name}: {line}" for name in DOCUMENTS for line in long_lines((ROOT / name).read_text())]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_readme_at_the_top_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= MAX_README_LINES, f"README.md has {len(lines)} lines, at most {MAX_README_LINES}: move some to docs/"


def test_a_line_that_cannot_be_broken_may_be_long():
    long = "x" * 120
    for line in (f"| {long} |", f"![{long}](a.png)", f"- [a](https://{long}).", f"```\n{long} x\n```", "y" * 120):
        assert list(long_lines(line)) == []
    for line in (f"see [a]({long})", f"{long} x"):
        assert list(long_lines(line)) == [line]


def test_links_are_found_outside_of_code_alone():
    text = "[a](b.md#c) ![d](e.png) `[x](y)` [web](https://example.org)\n```\n[f](g)\n```\n"
    assert links(text) == ["b.md#c", "e.png"]


def test_anchors_are_those_of_the_web_page():
    assert slug("How: the `stages`, [here](x.md)") == "how-the-stages-here"
