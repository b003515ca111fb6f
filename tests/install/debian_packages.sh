#!/usr/bin/env bash
# Installs the Debian packages in a fresh root of the same release, uses, reinstalls, removes and purges them.
# Needs root, mmdebstrap and the machine's own package sources; takes some minutes.
#
#   tests/install/debian_packages.sh FOLDER    the folder of the packages (scripts/debian-packages.sh makes it)
set -euo pipefail

packages=$(realpath "$1")
. "$(dirname "${BASH_SOURCE[0]}")/fresh_root.sh"

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; umount -q "$work/root/proc" || true; rm -rf "$work"' EXIT
root=$work/root
. /etc/os-release

fresh_root "$root" "$VERSION_CODENAME" ca-certificates

run() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
fail() { echo "FAIL: $*" >&2; exit 1; }
check() { echo "check: $*"; "$@" || fail "$*"; }
apt() { run apt-get -y -qq --no-install-recommends "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "apt-get $*"; }; }
files() { (cd "$root" && find etc usr var -path var/lib/dpkg -prune -o -path var/lib/apt -prune -o -path var/cache -prune \
  -o -path var/log -prune -o -path var/lib/systemd -prune -o -print | sort); }

# Provides /proc, which programs read, and the folder of the packages.
mount -t proc proc "$root/proc"
mkdir -p "$root/packages" && cp "$packages"/*.deb "$root/packages/"
debs=$(cd "$root" && printf '/%s ' packages/*.deb)
run apt-get -qq update
# Installs the packages' dependencies and what the tests use first, so that only the packages themselves come and go below.
depends=$(for deb in "$packages"/*.deb; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g' | grep -v '^spex' | sort -u)
apt install $depends cmake g++ make python3-grpcio python3-protobuf
files >"$work/before"
python=$(compgen -G "$packages/python3-spexd_*.deb") || echo "without python3-spexd, which is not among the packages"

echo "== install"
apt install $debs
check run spexd --version
check run spex --version
check run spexd-extract --version
check run getent passwd spexd
check test "$(run dpkg-query -W -f='${Conffiles}' spexd | grep -c /etc/spexd/spexd.conf)" = 1
check run setpriv --reuid spexd --regid spexd --clear-groups spexd --config /etc/spexd/spexd.conf --check-config
check grep -q '^ExecStart=/usr/bin/spexd --config' "$root/usr/lib/systemd/system/spexd.service"
check test ! -e "$root/etc/systemd/system/multi-user.target.wants/spexd.service"
if [ -e "$root/usr/share/man/man1" ]; then check test -s "$root/usr/share/man/man1/spex-extract.1.gz"; fi

echo "== use: a job by the service as its user, the same frame in this process"
run spex simulate --fibres 5 --rows 120 --out-dir /srv/frames >/dev/null
chroot "$root" setpriv --reuid spexd --regid spexd --clear-groups spexd --config /etc/spexd/spexd.conf --device cpu --listen 127.0.0.1:0 --http none \
  --allow-root /srv/frames --port-file /tmp/spexd-ports >"$work/server.log" 2>&1 &
server=$!
for ((k = 0; k < 600; ++k)); do
  [ -s "$root/tmp/spexd-ports" ] && break
  kill -0 "$server" || { cat "$work/server.log"; fail "spexd ended"; }
  sleep 0.1
done
port=$(sed 's/.*"grpc_port": *\([0-9]*\).*/\1/' "$root/tmp/spexd-ports")
for where in "--server 127.0.0.1:$port" "--device cpu"; do
  check run spex -i /srv/frames/preproc-r0.fits -p /srv/frames/psf-r0.fits $where -q -o "/tmp/frame-${where%% *}.fits"
done
check cmp "$root/tmp/frame---server.fits" "$root/tmp/frame---device.fits"
if [ -n "$python" ]; then
  echo "== use: the same frame in Python, by the module, by a server, by the pipeline's command line"
  version=$(dpkg-deb -f "$python" Version)
  check run python3 -c "import importlib.metadata, spexd; assert f'{importlib.metadata.version(\"spexd\")}-1' == '$version', spexd.__version__"
  check run python3 - <<END
import spexd
names = "/srv/frames/preproc-r0.fits", "/srv/frames/psf-r0.fits"
spexd.extract(names[0], psf=names[1], engine=spexd.Engine("cpu")).to_fits("/tmp/module.fits")
with spexd.Client("127.0.0.1:$port") as client:
    client.extract(names[0], psf=names[1]).to_fits("/tmp/client.fits")
END
  check cmp "$root/tmp/frame---server.fits" "$root/tmp/module.fits"
  check cmp "$root/tmp/frame---server.fits" "$root/tmp/client.fits"
  check run spexd-extract-spectra --help >"$work/log"
  for file in bash-completion/completions/ zsh/site-functions/_; do check test -s "$root/usr/share/${file}spexd-extract-spectra"; done
  if [ -e "$root/usr/share/man/man1" ]; then check test -s "$root/usr/share/man/man1/spexd-extract-spectra.1.gz"; fi
fi
kill "$server"
wait "$server" || { server=; cat "$work/server.log"; fail "spexd ended with an error"; }
server=
rm -rf "$root"/srv/frames "$root"/tmp/*

echo "== a project that uses the C++ library, with what libspexd-dev depends on"
cp -r "$(dirname "$0")/consumer" "$root/tmp/consumer"
check run cmake -S /tmp/consumer -B /tmp/consumer/build >"$work/log" || { cat "$work/log"; exit 1; }
check run cmake --build /tmp/consumer/build >"$work/log" || { cat "$work/log"; exit 1; }
rm -rf "$root/tmp/consumer"

echo "== a changed configuration survives a new installation and a removal, and goes with a purge"
echo "# mine" >>"$root/etc/spexd/spexd.conf"
apt install --reinstall $debs
check grep -q "# mine" "$root/etc/spexd/spexd.conf"
ours=$(for deb in "$packages"/*.deb; do dpkg-deb -f "$deb" Package; done)
apt remove $ours
check grep -q "# mine" "$root/etc/spexd/spexd.conf"
check test ! -e "$root/usr/bin/spexd"
mkdir -p "$root/var/lib/spexd/jobs"
run dpkg --purge $ours 2>/dev/null
check test ! -e "$root/etc/spexd"
check test ! -e "$root/var/lib/spexd"
if run getent passwd spexd; then fail "the user stays after the purge"; fi
files >"$work/after"
# The backup files of accounts change with each account.
differing=$(diff "$work/before" "$work/after" | grep '^[<>]' | grep -v -E '^. etc/(passwd|group|shadow|gshadow|subuid|subgid)-$' || true)
[ -z "$differing" ] || { echo "$differing"; fail "the purge leaves or removes files"; }
echo "PASS: packages install, run, are installed again and purged in $PRETTY_NAME"
