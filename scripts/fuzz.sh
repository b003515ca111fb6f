#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS [TARGET...]]: builds the fuzz targets and runs each for so long (20 s), two at a time. Installs Clang
# where it is missing. Seeds are made again; what a run learns is kept in build/fuzz/corpus/TARGET, and what it finds in
# build/fuzz/findings/TARGET. Exit code 1 if anything was found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-20}
targets=("${@:2}")
[ "${#targets[@]}" -gt 0 ] || targets=(psf image header product events record job request text config)

./scripts/install-test-deps.sh clang libclang-rt-dev llvm
cmake --preset fuzz
cmake --build --preset fuzz
folder=$PWD/build/fuzz
"$folder/bin/make_seeds" "$folder/seeds"

export TMPDIR # of the targets that write files
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$TMPDIR"' EXIT
export UBSAN_OPTIONS=print_stacktrace=1
export folder seconds

# A single allocation of more than 256 MB, 2 GB in all or 10 s for one input are findings too.
run() {
  mkdir -p "$folder/corpus/$1" "$folder/findings/$1"
  if ! "$folder/bin/$1_fuzz" -max_total_time="$seconds" -max_len=65536 -timeout=10 -malloc_limit_mb=256 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$folder/findings/$1/" "$folder/corpus/$1" "$folder/seeds/$1" \
    >"$folder/$1.log" 2>&1; then
    echo "fuzz: $1: found"
    tail -n 60 "$folder/$1.log"
    return 1
  fi
  grep -E 'number_of_executed_units|peak_rss_mb' "$folder/$1.log" | sed "s/^stat::/fuzz: $1: /"
}
export -f run
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'run {}'
