#!/usr/bin/env bash
# Gathers the files for GPU tests and benchmarks into one folder, to be copied to a machine with a GPU and no build:
#
#   pack.sh BUILD_DIR OUT_DIR [--data PATH]... [--without-module] [--archive]
#
#   bin/        spex, spexd, the programs of tests/cuda, tests/cuda_products and tests/cuda_traces, the CUDA module and the plot
#               scripts, stripped
#   lib/        the shared libraries they need, except those of the C and C++ runtimes and of the NVIDIA driver and toolkit
#   data/       files and contents of folders given with --data
#   check.sh    runs them there
#
# OUT_DIR must be empty, missing, or an earlier pack, which is replaced. --archive also writes OUT_DIR.tar.gz, of a third of
# the size.
set -euo pipefail

die() {
  echo "pack.sh: $*" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=() places=() module=yes archive=no
while [ $# -gt 0 ]; do
  case $1 in
    --data)
      [ $# -ge 2 ] || die "--data needs a path"
      data+=("$2")
      shift 2
      ;;
    --without-module) module=no; shift ;;
    --archive) archive=yes; shift ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) die "unknown option $1" ;;
    *) places+=("$1"); shift ;;
  esac
done
[ "${#places[@]}" -eq 2 ] || die "usage: pack.sh BUILD_DIR OUT_DIR [--data PATH]... [--without-module] [--archive]"
build=${places[0]} out=${places[1]%/}
[ -x "$build/bin/spex" ] || die "$build/bin/spex is not there: build first"
for path in ${data[@]+"${data[@]}"}; do [ -e "$path" ] || die "--data $path is not there"; done
if [ -e "$out" ] && [ -n "$(ls -A "$out")" ] && [ ! -e "$out/check.sh" ]; then die "$out is neither empty nor a pack"; fi

programs=("$build/bin/spex" "$build/bin/spexd")
for name in engine_test parity_test golden_test whole_frame_test products_test products_benchmark traces_test traces_benchmark; do
  program=$build/bin/cuda_$name
  [ -x "$program" ] && programs+=("$program")
done
if [ "$module" = yes ]; then
  found=$(find "$build" -name libspexd_cuda.so -print -quit)
  [ -n "$found" ] || die "no libspexd_cuda.so below $build: build it, or pass --without-module"
  programs+=("$found")
fi

# The C runtime must match the loader that starts the programs, libstdc++ the machine's own libraries, and the driver the GPU.
# The module looks cuBLAS up by itself: it is large, and installed wherever NVIDIA's toolkit is.
not_packed='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|stdc\+\+|gcc_s|cuda|nvidia-.*)\.so.*)$'
missing=$(for program in "${programs[@]}"; do ldd "$program" | awk '/not found/ {print $1}'; done | sort -u |
  grep -vE "$not_packed" || true)
[ -z "$missing" ] || die "libraries not found here: $missing"

rm -rf "${out:?}/bin" "${out:?}/lib" "${out:?}/data"
mkdir -p "$out/bin" "$out/lib"
cp "$here/check.sh" "$out/check.sh"
for program in "${programs[@]}"; do strip -s -o "$out/bin/$(basename "$program")" "$program"; done
for script in "$build"/bin/plot_*.*; do [ -e "$script" ] && cp "$script" "$out/bin/"; done

for program in "${programs[@]}"; do ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'; done | sort -u |
  while read -r library; do
    name=$(basename "$library")
    [[ $name =~ $not_packed ]] || strip -s -o "$out/lib/$name" "$(readlink -f "$library")"
  done

for path in ${data[@]+"${data[@]}"}; do
  mkdir -p "$out/data"
  if [ -d "$path" ]; then cp -RL "$path/." "$out/data/"; else cp -L "$path" "$out/data/"; fi
done
if [ -d "$out/data" ]; then chmod -R u+w "$out/data"; fi

for part in bin lib data; do
  [ -d "$out/$part" ] && printf '%-6s %4d files  %6.1f MB\n' "$part" "$(find "$out/$part" -type f | wc -l)" \
    "$(du -sb "$out/$part" | awk '{print $1 / 1e6}')"
done
printf '%-6s %4d files  %6.1f MB   %s\n' all "$(find "$out" -type f | wc -l)" "$(du -sb "$out" | awk '{print $1 / 1e6}')" "$out"
if [ "$archive" = yes ]; then
  tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
  printf '%-6s %4d file   %6.1f MB   %s\n' packed 1 "$(stat -c %s "$out.tar.gz" | awk '{print $1 / 1e6}')" "$out.tar.gz"
fi
