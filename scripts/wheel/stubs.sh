#!/usr/bin/env bash
# Makes stubs of two libraries that spexd's libraries link for features that spexd does not use: libcurl-gnutls (CFITSIO, for
# URLs) and libgnutls (libmicrohttpd, for HTTPS). With the stubs a wheel needs neither them nor the 20 libraries that they need.
# The stubs' functions fail, except those that are called in any case, to initialise.
#
#   scripts/wheel/stubs.sh FOLDER PROGRAM    FOLDER: where the stubs go; PROGRAM: is linked with both users
set -euo pipefail
folder=$1
program=$2
mkdir -p "$folder"

# stub LIBRARY USER: defines each symbol that USER takes from LIBRARY, with its version.
stub() {
  local library=$1 user kind symbol version nodes sources symbols
  user=$(ldd "$program" | awk -v name="$2" 'index($1, name) == 1 {print $3}')
  nodes=$(readelf --wide --version-info "$user" | awk -v library="$library" '
    / File: / {ours = $5 == library} / Name: / && ours {print $3}')
  if [ -z "$nodes" ]; then
    echo "stubs: $user does not use $library: take its stub out of scripts/wheel/stubs.sh" >&2
    exit 1
  fi
  sources=
  for version in $nodes; do
    symbols=
    while read -r kind symbol; do
      symbols+=" $symbol;"
      case $kind:$symbol in
        OBJECT:*) sources+="void *$symbol;" ;;
        *_global_init | *:curl_easy_init) sources+="long $symbol(void) { return 0; } " ;;
        *) sources+="long $symbol(void) { return -1; } " ;;
      esac
    done < <(readelf --wide --dyn-syms "$user" | awk -v end="@$version" '
      $7 == "UND" && $8 ~ end "$" {sub(end, "", $8); print $4, $8}')
    echo "$version {$symbols };"
  done >"$folder/$library.map"
  cc -shared -O1 "-Wl,-soname,$library" "-Wl,--version-script=$folder/$library.map" -o "$folder/$library" -x c - <<<"$sources"
}

stub libcurl-gnutls.so.4 libcfitsio.so
stub libgnutls.so.30 libmicrohttpd.so
