# Sourced by tests that need a fresh machine: makes Debian roots from this machine's own package sources, and prepares them for
# running programs. Exits with 77 and the reason where that is impossible.
#
#   fresh_root FOLDER SUITE [PACKAGE...]    makes a root of this release of Debian: apt, what is essential, and the packages
#   open_root FOLDER                        mounts /proc, /sys and /dev there, and copies this network's settings: names,
#                                           authorities, pip's configuration. The array root_env has variables of this kind
#   close_root FOLDER                       ends the root's processes and unmounts
for tool in mmdebstrap dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }

fresh_root() {
  local root=$1 suite=$2 here file sources=() packages
  here=$(. /etc/os-release && echo "$VERSION_CODENAME")
  packages=$(IFS=, && echo "${*:3}")
  mkdir "$root.sources"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $file in *.list | *.sources) ;; *) continue ;; esac
    [ -s "$file" ] || continue
    sed "s/\b$here\b/$suite/g" "$file" >"$root.sources/${file##*/}"
    sources+=("$root.sources/${file##*/}")
  done
  mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io ${packages:+"--include=$packages"} "$suite" "$root" "${sources[@]}"
}

mapfile -d '' -t root_env < <(env -0 | grep -zE '^(PIP_[A-Z_]+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|[A-Za-z]+_(proxy|PROXY))=')

open_root() {
  local root=$1 pair file
  mount -t proc proc "$root/proc"
  # Without /sys, counting processors sets errno in the C library, and gRPC takes that for the error of a connection.
  mount --bind /sys "$root/sys"
  mount --bind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/dev/shm"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf $(for pair in "${root_env[@]}"; do echo "${pair#*=}"; done); do
    [[ $file == /* && -e $file ]] || continue
    mkdir -p "$root$(dirname "$file")"
    cp -rLT "$file" "$root$file"
  done
}

close_root() {
  local root=$1 process place
  for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/root")" = "$root" ]; then kill -9 "${process#/proc/}" || true; fi
  done
  for place in dev/shm dev sys proc; do
    ! mountpoint -q "$root/$place" || umount "$root/$place"
  done
}
