"""The commands that the documents tell a newcomer to type, as one script for bash, section by section.

    walk_commands.py FIBRES FOLDER    writes FOLDER/walk.sh; FIBRES in place of the 500 of simulated frames

A section is named by its document and heading. Of its code blocks, lines that begin with "$ " are commands (a backslash
continues them), and the rest is what they print. In a block without such a line each line is a command up to two blanks.
The Python blocks of a section of python/README.md are one program for the environment that its section Install makes;
its other blocks without "$ " are Python that needs more than this machine has, and are left out.
`echo $?` and the number that the document shows after it say which exit code the command before has.
"""

import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "~/spexd-env/bin/python"

# (document, heading, text that a command must not contain: why it is left out)
WALK = [
    ("README.md", "Two commands", {"./test.sh": "is what runs this"}),
    ("docs/install.md", "From the sources", {}),
    ("README.md", "First use", {"night/": "needs a night's frames", "--sky": "needs a simulated sky"}),
    ("docs/guide.md", "Errors", {}),
    ("docs/guide.md", "GPUs", {}),
    ("docs/guide.md", "On a server", {}),
    ("python/README.md", "Install", {}),
    ("python/README.md", "Use", {}),
    ("deploy/README.md", "Metrics and alerts", {}),
]


def section(document, heading):
    """The text below a heading, up to the next one of its level."""
    text = (SOURCES / document).read_text()
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{document} has no heading {heading}"
    return found[1]


def blocks(text):
    """(language, content) of each code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block):
    """[command, exit code that the document shows]."""
    lines = block.replace("\\\n", " ").splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return [[re.split(r"\s{2,}", line)[0], 0] for line in lines]
    found = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line == "$ echo $?":
            found[-1][1] = int(after)
        elif line.startswith("$ "):
            found.append([line[2:], 0])
    return found


def script(fibres):
    made = ["set -uo pipefail", "cd ~/spexd"]
    for document, heading, left_out in WALK:
        made += [f"enter {document!r} {heading!r}"]
        program = []
        for language, block in blocks(section(document, heading)):
            if language == "python":
                program.append(block)
                continue
            if language or document.startswith("python/") and "$ " not in block:
                continue
            for command, code in commands(block):
                if any(text in command for text in left_out):
                    continue
                command = command.replace("--fibres 500", f"--fibres {fibres}")
                made += [f"typed {code} <<'END'", command, "END", 'eval "$command"', "ended $?"]
        if program and document.startswith("python/"):
            made += ["typed 0 <<'END'", f"{PYTHON} -c '...'", "END", f"{PYTHON} - <<'END'", *program, "END", "ended $?"]
        made += ["leave"]
    return "\n".join([*made, "echo 'PASS: the walk'", ""])


if __name__ == "__main__":
    pathlib.Path(sys.argv[2], "walk.sh").write_text(script(int(sys.argv[1])))
