#!/bin/sh
# Writes the manual pages of a program and of all its commands, by help2man of what --help prints, or --help-all where there is one.
#
#   make_pages.sh FOLDER SECTION VERSION DATE SEE_ALSO NAME PROGRAM [ARGUMENT...]
#
# DATE: date on the pages, such as 2026-11-23. SEE_ALSO: other pages, such as "spexd(8)". NAME: name of the program's page; pages of commands append the command.
set -eu
folder=$1 section=$2 version=$3 date=$4 see_also=$5 name=$6
shift 6
mkdir -p "$folder"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

# pages NAME SEE_ALSO COMMAND...: the page of a command, and those of the commands below it.
pages() (
  page=$1 above=$2 also=$2
  shift 2
  "$@" --help >"$work/$page.help"
  if grep -q '^  --help-all' "$work/$page.help"; then "$@" --help-all >"$work/$page.help"; fi
  for below in $(sed -n '/^Subcommands:$/,/^$/s/^  \([a-z][^ ]*\).*/\1/p' "$work/$page.help"); do
    pages "$page-$below" "$page($section), $above" "$@" "$below"
    also="$also, $page-$below($section)"
  done
  # help2man runs a program to get the text, and recognises two names of a flag by ", ".
  printf '#!/bin/sh\nsed "/^  -/s/,-/, -/g" "$0.help"\n' >"$work/$page"
  chmod +x "$work/$page"
  printf '[SEE ALSO]\n%s\n' "$also" >"$work/$page.also"
  summary=$(sed "/^Usage:/,\$d; s/^$page: //" "$work/$page.help" | tr '\n' ' ')
  help2man --no-info --section="$section" --source="spexd $version" --version-string="$version" --name="$summary" \
    --include="$work/$page.also" --output="$work/$page.page" "$work/$page"
  # Replaces the month by the day, and keeps the flags of the group Files below OPTIONS.
  sed "/^\.TH/s/\"[A-Z][a-z]* [0-9]*\"/\"$date\"/; s/^\.SH FILES\$/.SS \"Files:\"/" "$work/$page.page" >"$folder/$page.$section"
)

pages "$name" "$see_also" "$@"
