"""Documents name files that exist: links, paths in backticks, tables of files."""

import pytest
from documents import Tree, broken_links, links, missing_paths, missing_rows, slug

TREE = Tree()
DOCUMENTS = sorted(name for name in TREE.files if name.endswith(".md"))


@pytest.mark.parametrize("check", [broken_links, missing_paths, missing_rows])
def test_what_documents_name_is_there(check):
    assert len(DOCUMENTS) > 40
    wrong = [line for name in DOCUMENTS for line in check(name, TREE)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_links_are_found_outside_of_code_alone():
    text = "[a](b.md#c) ![d](e.png) `[x](y)` [web](https://example.org)\n```\n[f](g)\n```\n"
    assert links(text) == ["b.md#c", "e.png"]


def test_anchors_are_those_of_the_web_page():
    assert slug("How: the `stages`, [here](x.md)") == "how-the-stages-here"
