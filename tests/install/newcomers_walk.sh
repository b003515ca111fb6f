#!/usr/bin/env bash
# Follows the documents on a fresh machine, with only their commands: quickstart, installation, first use, guide, the Python
# package from its wheel, the dashboard's queries on a Prometheus. The machine is a fresh Debian root, the newcomer a user with
# sudo in it, the sources a clone of the last commit. Needs root, mmdebstrap, the machine's package sources and PyPI. Takes an
# hour on 2 cores, and some minutes with a filled ccache folder and small frames.
#
#   tests/install/newcomers_walk.sh [LOG]
#
#   SPEXD_WALK_FIBRES=50       fibres of simulated frames, instead of 500
#   SPEXD_WALK_CCACHE=FOLDER   a compiler cache to start with, which a newcomer does not have. The newcomer uses a copy;
#                              its new objects are added to FOLDER at the end
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
log=$(realpath -m "${1:-/dev/null}")
. "$here/fresh_root.sh"

fibres=${SPEXD_WALK_FIBRES:-500}
ccache=${SPEXD_WALK_CCACHE:+$(realpath "$SPEXD_WALK_CCACHE")}
work=$(mktemp -d)
root=$work/root
leave() {
  close_root "$root"
  [ -z "$ccache" ] || cp -rn "$root/home/newcomer/.ccache/." "$ccache/" || true
  rm -rf --one-file-system "$work"
}
trap leave EXIT

fresh_root "$root" "$(. /etc/os-release && echo "$VERSION_CODENAME")" ca-certificates git passwd sudo ${ccache:+ccache}
open_root "$root"
# Keeps packages from starting services.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
chroot "$root" useradd --create-home --shell /bin/bash newcomer
echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
git clone --quiet "$here/../.." "$root/home/newcomer/spexd"
python3 "$here/walk_commands.py" sources "$fibres" >"$root/home/newcomer/walk.sh"
[ -z "$ccache" ] || cp -r "$ccache" "$root/home/newcomer/.ccache"
chroot "$root" chown -R newcomer: /home/newcomer

env=(HOME=/home/newcomer USER=newcomer LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  "SPEXD_QUICKSTART_FIBRES=$fibres" DEBIAN_FRONTEND=noninteractive "${root_env[@]}")
# Makes objects independent of the folder of the clone.
[ -z "$ccache" ] || env+=(CCACHE_DIR=/home/newcomer/.ccache CCACHE_BASEDIR=/home/newcomer/spexd CCACHE_NOHASHDIR=1)
chroot --userspec=newcomer "$root" env -i -C /home/newcomer/spexd "${env[@]}" bash /home/newcomer/walk.sh 2>&1 | tee "$log"
