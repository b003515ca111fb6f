"""Documents name files that exist, in links, paths in backticks and tables of files, and no commits. Their lines are
short, and some of them are short as a whole."""

import pytest
from documents import (
    MAX_LINES,
    NAMES_COMMITS,
    ROOT,
    Tree,
    broken_links,
    commit_names,
    links,
    long_lines,
    missing_paths,
    missing_rows,
    slug,
    too_many_lines,
)

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


@pytest.mark.parametrize("name", MAX_LINES)
def test_documents_that_are_read_as_a_whole_are_short(name):
    assert list(too_many_lines(name, (ROOT / name).read_text())) == []


def test_no_document_names_a_commit():
    documents = {name: (ROOT / name).read_text() for name in DOCUMENTS if not name.startswith(NAMES_COMMITS)}
    wrong = [f"{name}: {commit}" for name, text in documents.items() for commit in commit_names(text)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_line_that_cannot_be_broken_may_be_long():
    long = "x" * 120
    for line in (f"| {long} |", f"![{long}](a.png)", f"- [a](https://{long}).", f"```\n{long} x\n```", "y" * 120):
        assert list(long_lines(line)) == []
    for line in (f"see [a]({long})", f"{long} x"):
        assert list(long_lines(line)) == [line]


def test_only_documents_with_a_limit_can_have_too_many_lines():
    assert list(too_many_lines("README.md", "a\n" * 151)) == ["README.md has 151 lines, at most 150"]
    assert list(too_many_lines("README.md", "a\n" * 150)) == list(too_many_lines("docs/guide.md", "a\n" * 999)) == []


def test_commits_have_letters_and_digits():
    for text in ("since 40c14c0", "(`1d26250c`).", "| 839c16b7a942-dirty |"):
        assert len(commit_names(text)) == 1
    for text in ("`0.1.0+e87ffdf12ab3`", "12345678", "defaced", "2.5e-10", "h100-cuda", "abc123", "```\n40c14c0\n```"):
        assert commit_names(text) == []


def test_links_are_found_outside_of_code_alone():
    text = "[a](b.md#c) ![d](e.png) `[x](y)` [web](https://example.org)\n```\n[f](g)\n```\n"
    assert links(text) == ["b.md#c", "e.png"]


def test_anchors_are_those_of_the_web_page():
    assert slug("How: the `stages`, [here](x.md)") == "how-the-stages-here"
