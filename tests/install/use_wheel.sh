#!/usr/bin/env bash
# Runs in a root where a wheel is installed, with the environment's programs on PATH. Extracts in each possible way and compares
# the bytes. Exits with 1 at the first check that fails.
#
#   use_wheel.sh FOLDER    the folder to work in
set -euo pipefail
cd "$1"
fail() { echo "FAIL: $*" >&2; exit 1; }
check() { echo "check: $*"; "$@" || fail "$*"; }

spex simulate --fibres 50 --rows 400 --out-dir frames >/dev/null
image=$PWD/frames/preproc-r0.fits psf=$PWD/frames/psf-r0.fits

echo "== the same bytes in this process, by a server, in Python, by a client in Python"
spexd --listen 127.0.0.1:0 --http none --port-file ports --allow-root "$PWD/frames" 2>server.log &
server=$!
for ((k = 0; k < 600; ++k)); do
  [ ! -s ports ] || break
  kill -0 "$server" || { cat server.log; fail "spexd ended"; }
  sleep 0.1
done
SPEXD_SERVER=127.0.0.1:$(sed 's/.*"grpc_port": *\([0-9]*\).*/\1/' ports)
check spex status --server "$SPEXD_SERVER"
check spex -i "$image" -p "$psf" -q -o local.fits -m model.fits
check spex --server "$SPEXD_SERVER" -i "$image" -p "$psf" -q -o server.fits
check python - <<END
import spexd
spexd.extract("$image", psf="$psf").to_fits("module.fits")
with spexd.Client("$SPEXD_SERVER") as client:
    client.extract("$image", psf="$psf").to_fits("client.fits")
END
for file in server module client; do check cmp local.fits $file.fits; done

echo "== SIGTERM ends the server"
kill -TERM "$server"
code=0
wait "$server" || code=$?
check test "$code" = 0

echo "== truth and a picture"
check spex compare local.fits --truth frames/truth-r0.fits
check spex plot local.fits -o frame.png --image "$image" --model model.fits
check cmp <(head -c 8 frame.png) <(printf '\x89PNG\r\n\x1a\n')

echo "== the pipeline's command line: the bytes of the same job in Python"
check spexd-extract-spectra -i "$image" -p "$psf" -o pipeline/frame.fits -m pipeline/model.fits --no-gpu --psferr 0.02 --bundlesize 10
check python - <<END
import spexd
frame = spexd.Engine("cpu").extract("$image", psf="$psf", model=True, psferr=0.02, bundle_size=10)
frame.to_fits("frame.fits", model="model.fits")
END
for file in frame model; do check cmp pipeline/$file.fits $file.fits; done

echo "== OPENBLAS_NUM_THREADS rules the pools of the wheel and of numpy"
check env OPENBLAS_NUM_THREADS=1 python -c 'import os, spexd; assert len(os.listdir("/proc/self/task")) == 1'
