"""Folders stay small, and none depends on itself through others."""

import collections

import pytest
from sources import SUFFIXES, cycle, files, folder_of, told, uses

MAX_FILES = 20
# {folder: why it may hold more source files}
EXCEPTIONS = {}


def within(graph, parent):
    """Returns the graph of the subfolders of `parent`, each with everything below it."""
    start = f"{parent}/" if parent else ""
    child = lambda folder: folder.removeprefix(start).split("/")[0] if folder.startswith(start) else ""  # noqa: E731
    made = {}
    for folder, used in graph.items():
        for target, reasons in used.items():
            ends = child(folder), child(target)
            if all(ends) and ends[0] != ends[1]:
                made.setdefault(start + ends[0], {}).setdefault(start + ends[1], []).extend(reasons)
    return made


def test_no_folder_holds_more_than_20_source_files_unless_a_reason_is_given():
    counts = collections.Counter(folder_of(name) for name in files() if name.endswith(SUFFIXES))
    large = {folder: count for folder, count in counts.items() if count > MAX_FILES}
    surplus = [f"{folder} has {count} source files" for folder, count in large.items() if folder not in EXCEPTIONS]
    assert not surplus, f"at most {MAX_FILES} may be in a folder: {surplus}"
    assert set(EXCEPTIONS) <= set(large), "an exception that is no longer needed"


def test_folders_depend_on_each_other_in_no_cycle():
    graph = uses()
    assert len(graph) > 30
    found = cycle(graph)
    assert not found, told(graph, found)


@pytest.mark.parametrize("parent", ["", "client", "core", "core/extract", "core/fits", "cuda", "python/spexd", "server"])
def test_neither_do_the_parts_of_a_folder_each_with_all_below_it(parent):
    graph = within(uses(), parent)
    found = cycle(graph)
    assert not found, told(graph, found)


def test_a_cycle_is_told_by_its_folders_and_the_files_that_make_it():
    graph = {"a": {"b": ['a/x.cc: #include "b/y.h"']}, "b": {"c": ["b/y.h: 1"]}, "c": {"b": ["c/z.h: 2"]}, "d": {"a": ["d: 3"]}}
    assert cycle(graph) == ["b", "c"]
    message = told(graph, cycle(graph))
    assert "b uses c" in message and "c/z.h: 2" in message and "a/x.cc" not in message
    assert cycle({"a": {"b": []}, "b": {"c": []}}) is None
