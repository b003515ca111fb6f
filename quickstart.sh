#!/usr/bin/env bash
# Makes extracted spectra from nothing: installs what is missing, builds, simulates a frame, starts spexd, extracts the frame
# through gRPC, compares the spectra with the simulated truth and draws them. The results are in ./out.
#
#   SPEXD_QUICKSTART_FIBRES=100 ./quickstart.sh    a smaller frame than the 500 fibres of a real one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fibres=${SPEXD_QUICKSTART_FIBRES:-500}
build=build/release
out=$PWD/out
work=$(mktemp -d)
server=

stop() {
  local code=$?
  if [ -n "$server" ] && kill -TERM "$server" 2>/dev/null; then wait "$server" || true; fi
  rm -rf "$work"
  exit "$code"
}
trap stop EXIT
trap 'exit 130' INT TERM

step() { printf '\n%s==> %s%s\n' "$bold" "$*" "$plain"; }
bold= plain=
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

step "Installing what is missing"
scripts/install-deps.sh
echo "All packages are there."

step "Building (the first time takes 5 minutes on two cores)"
[ -f "$build/build.ninja" ] || cmake --preset release >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
targets=(spex spexd)
# Also builds the CUDA engine if that is possible and there is a device for it.
if [ -e /dev/nvidiactl ] && grep -q '^build spexd_cuda:' "$build/build.ninja"; then targets+=(spexd_cuda); fi
ninja -C "$build" "${targets[@]}"
spex=$build/bin/spex

mkdir -p "$out"
step "Simulating an r-camera frame of $fibres fibres"
"$spex" simulate --camera r --fibres "$fibres" --seed 1 --rice --out-dir "$out"

step "Starting spexd on loopback"
"$build/bin/spexd" --listen 127.0.0.1:0 --http 127.0.0.1:0 --port-file "$work/ports.json" --allow-root "$out" \
  2>"$out/spexd.log" &
server=$!
for ((tries = 0; ; tries++)); do
  [ -s "$work/ports.json" ] && break
  if [ "$tries" -ge 300 ] || ! kill -0 "$server" 2>/dev/null; then
    echo "spexd did not start:" >&2
    cat "$out/spexd.log" >&2
    exit 1
  fi
  sleep 0.1
done
grpc_port=$(sed -E 's/.*"grpc_port": *([0-9]+).*/\1/' "$work/ports.json")
http_port=$(sed -E 's/.*"http_port": *([0-9]+).*/\1/' "$work/ports.json")
address=127.0.0.1:$grpc_port
"$spex" status --server "$address"

step "Extracting the frame on the server"
"$spex" --server "$address" -i "$out/preproc-r0.fits" -p "$out/psf-r0.fits" -w 5760,7620,0.8 \
  -o "$out/frame.fits" -m "$out/model.fits"

step "Comparing the spectra with the simulated truth"
"$spex" compare "$out/frame.fits" --truth "$out/truth-r0.fits" --truth-sigma-range 0.95,1.05

step "Drawing them"
"$spex" plot "$out/frame.fits" -o "$out/frame.png" --image "$out/preproc-r0.fits" --model "$out/model.fits"

step "Some of the server's metrics (http://127.0.0.1:$http_port/metrics)"
curl --silent --show-error --fail --noproxy '*' "http://127.0.0.1:$http_port/metrics" >"$work/metrics"
grep -E '^spexd_(jobs_total\{outcome="ok"|bundles_total|spectra_total|sent_bytes_total|psf_cache_bytes|(stage_duration|time_to_first_bundle)_seconds_sum)' \
  "$work/metrics"

step "Stopping the server"
kill -TERM "$server"
wait "$server"
server=
echo "It drained and ended with exit code 0."

cat <<END

${bold}Done.${plain} In $out: frame.fits, model.fits, frame.png

What to try next (in $PWD):
  $spex -i out/preproc-r0.fits -p out/psf-r0.fits -w 5760,7620,0.8 -o out/local.fits     the same without a server
  $spex compare out/local.fits out/frame.fits --max-pull 0                               the same spectra
  $spex -i out/preproc-r0.fits -p out/psf-r0.fits -w 6500,6600,0.4 -s 13 -n 19 -o out/cut.fits
  $spex --help                                                                           all commands
  sudo cmake --install build/release --component spex                                    puts spex on the PATH (docs/install.md)
  ./test.sh                                                                              the tests
END
