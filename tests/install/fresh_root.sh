# Sourced by tests that need a fresh machine: makes a Debian root of this machine's release, from its own package sources.
# Exit code 77, with the reason, where that cannot be done.
#
#   fresh_root FOLDER [PACKAGE...]
for tool in mmdebstrap dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }

fresh_root() {
  local root=$1 file sources=() packages=ca-certificates
  shift
  for file in "$@"; do packages+=,$file; done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $file in *.list | *.sources) [ ! -s "$file" ] || sources+=("$file") ;; esac
  done
  mmdebstrap --quiet --variant=apt --include="$packages" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "${sources[@]}"
}
