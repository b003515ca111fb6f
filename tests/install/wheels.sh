#!/usr/bin/env bash
# Installs the wheels of scripts/wheel.sh in bare roots, which have Python and nothing else, by the commands of the documents;
# uses them; uninstalls them. Tests the wheel in Python 3.10 and 3.12 too, if this machine has them. Prints times and sizes,
# which docs/install.md repeats. Needs root, mmdebstrap, the machine's package sources and PyPI; takes some minutes for each
# root.
#
#   tests/install/wheels.sh WHEELS [SUITE...]    WHEELS: the folder of the wheels; SUITE: releases of Debian, by default
#                                                bookworm and trixie
#
#   SPEXD_WALK_FIBRES=500    fibres of simulated frames, instead of 50
#
# Exit codes: 0 all is well, 1 a command or a check failed, 77 skipped, with the reason.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
wheels=$(realpath -m "${1:?usage: wheels.sh WHEELS [SUITE...]}")
shift
[ $# -gt 0 ] || set -- bookworm trixie
compgen -G "$wheels/spexd-*.whl" >/dev/null || { echo "skipped: there is no wheel in $wheels; scripts/wheel.sh $wheels makes it"; exit 77; }
. "$here/fresh_root.sh"

work=$(mktemp -d)
root=
trap '[ -z "$root" ] || close_root "$root"; rm -rf --one-file-system "$work"' EXIT
fibres=${SPEXD_WALK_FIBRES:-50}
home=/home/newcomer
env=("HOME=$home" USER=newcomer LC_ALL=C.UTF-8 PIP_PROGRESS_BAR=off "${root_env[@]}")
system_path=/usr/local/bin:/usr/bin:/bin

# Run commands of the newcomer, in a terminal without the virtual environment and in one with it.
bare() { chroot --userspec=1000:1000 "$root" env -i -C "$home/work" "${env[@]}" "PATH=$system_path" "$@"; }
run() { bare env "PATH=$home/spexd-env/bin:$system_path" "$@"; }
fail() { echo "FAIL: $suite: $*" >&2; exit 1; }
measured() { measurements+=("$suite: $*"); }

# walk NAME TERMINAL: runs the commands of the documents.
walk() {
  python3 "$here/walk_commands.py" "$1" "$fibres" >"$root$home/walk.sh"
  "$2" bash "$home/walk.sh" 2>&1 || fail "walk $1"
}

# refused TEXT COMMAND...: expects that the command exits with 2 and prints the text.
refused() {
  local text=$1 code=0 said
  shift
  said=$(run "$@" 2>&1) || code=$?
  [ "$code" = 2 ] || fail "exit code $code, not 2: $*: $said"
  [[ $said == *"$text"* ]] || fail "does not say '$text': $*: $said"
}

megabytes() { (cd "$root$packages" && du -cm --apparent-size "$@" | tail -1 | cut -f1); }

# Prints the shortest time of five, in seconds.
seconds() {
  local TIMEFORMAT=%R
  for _ in 1 2 3 4 5; do { time run "$@" >/dev/null; } 2>&1; done | sort -n | head -1
}

libraries_are_found() {
  local missing
  missing=$(run find "$packages" \( -path '*/spexd/*' -o -path '*/spexd.libs/*' \) -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec ldd {} + |
    grep 'not found' || true)
  [ -z "$missing" ] || fail "libraries are missing: $missing"
}

# Checks that each library is named with its licence or is one of our stubs.
licences_are_there() {
  local library name licences=("$root$packages"/spexd-*.dist-info/licenses/BUNDLED.txt)
  [ -s "${licences[0]}" ] || fail "the wheel has no licences: there is no ${licences[0]#"$root"}"
  for library in "$root$packages"/spexd.libs/*; do
    library=${library##*/}
    name=$(sed -E 's/-[0-9a-f]{8}\././' <<<"$library")  # removes auditwheel's hash
    grep -qF "$library" "${licences[0]}" || grep -q "^stub $name " "$here/../../scripts/wheel/stubs.sh" ||
      fail "the licences do not name $library"
  done
}

try_root() {
  root=$work/$suite
  echo "===== $suite: a bare root"
  fresh_root "$root" "$suite" python3 python3-venv
  open_root "$root"
  echo "newcomer:x:1000:1000::$home:/bin/bash" >>"$root/etc/passwd"
  mkdir -p "$root$home/work" "$root/srv/frames"
  cp -r "$wheels" "$root$home/wheels"
  cp "$here/use_wheel.sh" "$root$home/"
  chown -R 1000:1000 "$root$home" "$root/srv/frames"
  ! bare sh -c 'command -v cc gcc c++ spex' || fail "the root is not bare"
  bare python3 --version

  began=$SECONDS
  walk install bare
  measured "environment and installation $((SECONDS - began)) s"
  packages=$(run python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  [ -n "$(run find "$packages/spexd/_tree/bin" -name spex)" ] || fail "there is no spex in $packages"
  libraries_are_found
  licences_are_there
  measured "wheel $(du -m --apparent-size "$wheels"/spexd-*.whl | cut -f1) MB, installed $(megabytes spexd spexd.libs) MB," \
    "with all packages of the extras $(megabytes .) MB"
  walk use run
  run bash "$home/use_wheel.sh" "$home/work" || fail "use_wheel.sh"

  frame=(-i /srv/frames/preproc-r0.fits -p /srv/frames/psf-r0.fits -o x.fits --device cuda)
  refused "spexd-cuda" spex "${frame[@]}"
  if compgen -G "$wheels/spexd_cuda-*.whl" >/dev/null; then
    walk gpu run
    libraries_are_found
    refused "driver" spex "${frame[@]}"
    said=$(run python -c 'import spexd; spexd.Engine("cuda")' 2>&1 || true)
    [[ $said == *"driver"* ]] || fail "spexd.Engine does not say that the driver is missing: $said"
    measured "spexd-cuda $(megabytes spexd/_tree/lib) MB, NVIDIA's packages $(megabytes nvidia) MB"
  else
    echo "without spexd-cuda, which is not among the wheels"
  fi

  measured "spex --version $(seconds spex --version) s, the program alone $(seconds "$packages/spexd/_tree/bin/spex" --version) s"
  measured "import spexd $(seconds python -c 'import spexd') s, numpy $(seconds python -c 'import numpy') s"

  walk uninstall run
  left=$(run find "$home/spexd-env" -mindepth 1 -iname '*spex*')
  [ -z "$left" ] || fail "left by the uninstallation: $left"
  close_root "$root"
  rm -rf --one-file-system "$root"
  root=
}

# try_python VERSION: tests the wheel in a Python that no root has, if this machine has it (also in pyenv).
try_python() {
  local python environment=$work/$1
  for python in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python3; do
    if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
      echo "===== $("$python" --version) of this machine"
      "$python" -m venv "$environment"
      mkdir "$environment/work"
      "$environment/bin/pip" --quiet install "$(ls "$wheels"/spexd-*.whl)[grpc,plot]"
      PATH=$environment/bin:$PATH bash "$here/use_wheel.sh" "$environment/work"
      return
    fi
  done
  echo "without Python $1, which this machine does not have"
}

measurements=()
try_python 3.10
try_python 3.12
for suite in "$@"; do try_root; done
printf '%s\n' "${measurements[@]}"
echo "PASS: the wheels install, run and go in $*"
