#!/usr/bin/env bash
# Makes a web site of the documents, build/docs/index.html, with Sphinx, MyST and the theme furo (Debian's packages
# python3-sphinx, python3-myst-parser and furo, or PyPI's sphinx, myst-parser and furo). A warning is an error.
# Exit code 77 if they are not installed.
#
#   scripts/docs.sh [FOLDER]    FOLDER: instead of build/docs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/docs}
python=${SPEXD_DOCS_PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import furo, myst_parser, sphinx' 2>/dev/null; then
  echo "docs: skipped: $python has no Sphinx, myst-parser or furo; scripts/install-deps.sh python3-sphinx python3-myst-parser furo" >&2
  exit 77
fi
PYTHONDONTWRITEBYTECODE=1 "$python" -m sphinx -q -W --keep-going -b html -c docs -d "$folder/.trees" . "$folder"
echo '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">' >"$folder/index.html"
echo "$folder/index.html"
