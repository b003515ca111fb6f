"""describe_script.py PACKAGE FILE: writes the command line of spexd-extract-spectra, as JSON for make_reference.

PACKAGE: the folder of the Python package's sources, which need not be built.
"""

import argparse
import importlib
import json
import pathlib
import sys
import types

NAME = "spexd-extract-spectra"
TYPES = {None: "TEXT", int: "INT", float: "FLOAT"}


def parser_of(package):
    """The script's parser. Of the package only the modules of the command line are imported."""
    sys.dont_write_bytecode = True
    for name, folder in ("spexd", package), ("spexd.desispec", package / "desispec"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = [str(folder)]
    return importlib.import_module("spexd.desispec._arguments").make_parser()


def value_of(action):
    """What the pages of spex and spexd show after the names of such a flag."""
    if action.nargs == 0:
        return ""
    default = "" if action.default is None else f"={action.default}"
    return f" {TYPES[action.type]}{default}" + (" REQUIRED" if action.required else "")


def flags_of(parser):
    for group in parser._action_groups:
        for action in group._group_actions:
            text = action.help or f"{group.title}: {group.description}"
            yield {
                "names": sorted(action.option_strings, key=len),
                "value": value_of(action),
                "takes_value": action.nargs != 0,
                "choices": list(action.choices or []),
                "help": text[0].upper() + text[1:],
            }


def main():
    parser = parser_of(pathlib.Path(sys.argv[1]))
    assert isinstance(parser, argparse.ArgumentParser)
    described = {"path": [NAME], "help": parser.description.rstrip("."), "flags": list(flags_of(parser))}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(described))


if __name__ == "__main__":
    main()
