"""Describes the command line of spexd-extract-spectra, as JSON for make_completions or as --help text for make_pages.sh.

describe_script.py PACKAGE FILE|--help

PACKAGE: the folder of the Python package's sources, which need not be built. FILE: JSON file to write.
"""

import argparse
import importlib
import json
import os
import pathlib
import sys
import types

NAME = "spexd-extract-spectra"


def parser_of(package):
    """Returns the script's parser; imports only the package's modules of the command line."""
    sys.dont_write_bytecode = True
    for name, folder in ("spexd", package), ("spexd.desispec", package / "desispec"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = [str(folder)]
    return importlib.import_module("spexd.desispec._arguments").make_parser()


def flags_of(parser):
    for group in parser._action_groups:
        for action in group._group_actions:
            text = action.help or f"{group.title}: {group.description}"
            yield {
                "names": sorted(action.option_strings, key=len),
                "takes_value": action.nargs != 0,
                "choices": list(action.choices or []),
                "help": text[0].upper() + text[1:],
            }


def help_of(parser):
    """Returns the --help text in the form that help2man expects: order, titles, and no wrapped lines."""
    os.environ["COLUMNS"] = "1000"
    summary, parser.description = parser.description.rstrip("."), None
    parser.prog, parser._optionals.title = NAME, "Options"
    return summary + "\n" + parser.format_help().replace("usage:", "Usage:", 1)


def main():
    parser = parser_of(pathlib.Path(sys.argv[1]))
    assert isinstance(parser, argparse.ArgumentParser)
    if sys.argv[2] == "--help":
        print(help_of(parser))
        return
    described = {"path": [NAME], "help": parser.description.rstrip("."), "flags": list(flags_of(parser))}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(described))


if __name__ == "__main__":
    main()
