"""Prints the commands that the documents tell a newcomer to type as one bash script, section by section.

    walk_commands.py WALK FIBRES    WALK: a list of WALKS; FIBRES: the fibres of simulated frames, instead of 500

A section is named by its document and heading. In its code blocks, lines that begin with "$ " are commands (a backslash
continues them), and the other lines are their output. In a block without such a line each line is a command, up to two
blanks. The Python blocks of a section of python/README.md are one program, for the environment that the documents make;
its other blocks without "$ " need more than this machine has and are left out. `echo $?` and the number shown after it
state the exit code of the command before. The script begins in the folder in which each section begins.
"""

import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "~/spexd-env/bin/python"

FIRST_USE = ("README.md", "First use", {"night/": "needs a night's frames", "sudo": "the folder is there"})
GUIDE = [("docs/guide.md", heading, {}) for heading in ("Errors", "GPUs", "On a server")]
PYTHON_PACKAGE = [("python/README.md", heading, {}) for heading in ("Install", "Use")]

# (document, heading, {text of commands that are left out: why})
WALKS = {
    # A machine with the sources, whose user has sudo.
    "sources": [
        ("docs/development.md", "From a clone to spectra", {"./test.sh": "is what runs this"}),
        ("docs/install.md", "Sources", {}),
        ("docs/install.md", "The service", {"systemctl": "no systemd runs there"}),
        ("README.md", "First use", {"night/": "needs a night's frames"}),
        *GUIDE,
        ("deploy/README.md", "Metrics and alerts", {}),
        ("README.md", "Install", {}),
        *PYTHON_PACKAGE,
    ],
    # A machine with the wheels in ~/wheels, Python and nothing else; then what can be done there.
    "install": [("docs/install.md", "Install them", {})],
    "use": [FIRST_USE, *GUIDE, *PYTHON_PACKAGE],
    "gpu": [("docs/install.md", "Use GPUs", {})],
    "uninstall": [("docs/install.md", "Uninstall", {})],
}

# Each section has its own terminal, whose servers end with it.
TERMINAL = """\
set -uo pipefail
begin=$PWD
enter() { where="$1, $2"; printf '\\n=== %s\\n' "$where"; began=$SECONDS; cd "$begin"; unset SPEXD_SERVER; }
typed() { want=$1; command=$(cat); start=$SECONDS; printf '\\n$ %s\\n' "$command"; }
ended() {
  [ "$1" = "$want" ] || { echo "FAIL: $where: exit code $1, not $want: $command"; leave; exit 1; }
  [ $((SECONDS - start)) -lt 2 ] || echo "--- $((SECONDS - start)) s"
}
leave() {
  for job in $(jobs -p); do kill "$job"; wait "$job"; done
  echo "=== $where: $((SECONDS - began)) s"
}"""


def section(document, heading):
    """Returns the text below a heading, up to the next heading of its level or above."""
    text = (SOURCES / document).read_text()
    found = re.search(rf"^(##+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{document} has no heading {heading}"
    rest = text[found.end() :]
    end = re.search(rf"^##{{1,{len(found[1]) - 1}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def blocks(text):
    """Returns (language, content) of each code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block):
    """Returns [command, exit code that the document shows] for each command."""
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


def script(walk, fibres):
    made = [TERMINAL]
    for document, heading, left_out in walk:
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
    print(script(WALKS[sys.argv[1]], int(sys.argv[2])), end="")
