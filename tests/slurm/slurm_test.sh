#!/usr/bin/env bash
# A night on a real Slurm: servers as jobs, an array job over the frames, a server that is pre-empted and comes back.
# Exit code 77: skipped, with the reason.
#
#   slurm_test.sh BIN_FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
batch=$here/../../deploy/slurm
export PATH=$PATH:/usr/sbin SPEXD_BIN=${1:?usage: slurm_test.sh BIN_FOLDER} SPEXD_HOST=localhost
# shellcheck source=cluster.sh
source "$here/cluster.sh"
skip_without_slurm slurm_test

folder=$(mktemp -d /tmp/spexd-slurm-XXXXXX)
leave() {
  local code=$?
  if [ "$code" -ne 0 ]; then show_cluster "$folder" >&2; fi
  stop_cluster
  rm -rf "$folder"
}
trap leave EXIT
mkdir "$folder/logs" "$folder/frames"
start_cluster "$folder"

# Twelve frames of two exposures.
export SPEXD_SHARED=$folder/shared SPEXD_ROOT=$folder SPEXD_NIGHT=$folder/night.txt
for seed in 1 2; do
  "$SPEXD_BIN/spex" simulate --fibres 5 --rows 120 --seed "$seed" --out-dir "$folder/sim$seed" >/dev/null
done
echo "image psf output" >"$SPEXD_NIGHT"
for k in $(seq 12); do
  sim=$folder/sim$((k % 2 + 1))
  echo "$sim/preproc-r0.fits $sim/psf-r0.fits $folder/frames/frame-$k.fits" >>"$SPEXD_NIGHT"
done
"$batch/prepare.sh" "$SPEXD_SHARED"
[ "$(stat -c %a "$SPEXD_SHARED/token")" = 600 ] || { echo "the token can be read by others" >&2; exit 1; }

submit() { sbatch --parsable --output="$folder/logs/%x-%j.log" "$@"; }
endpoints() { find "$SPEXD_SHARED/endpoints" -type f | wc -l; }

echo "Two servers start, each with a file that names its address."
export SPEXD_FLAGS="--device cpu --threads 1"
servers=$(submit --array=1-2 "$batch/spexd.sbatch")
until_true 60 bash -c "[ \$(find '$SPEXD_SHARED/endpoints' -type f | wc -l) = 2 ]"

echo "An array job extracts each frame once."
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null || { echo "the array job failed" >&2; exit 1; }
[ "$(find "$folder/frames" -name 'frame-*.fits' | wc -l)" = 12 ]
[ "$(grep -c . "$folder/frames/spex-night.jsonl")" = 12 ]
for k in 1 2; do
  sim=$folder/sim$((k % 2 + 1))
  "$SPEXD_BIN/spex" -q --device cpu --server "" -i "$sim/preproc-r0.fits" -p "$sim/psf-r0.fits" -o "$folder/own.fits"
  cmp "$folder/own.fits" "$folder/frames/frame-$k.fits"
done

echo "A server that is pre-empted drains, takes its file away, and comes back when the node is free."
urgent=$(submit --partition=urgent --ntasks=1 --cpus-per-task=3 --wrap "until [ -e '$folder/go-on' ]; do sleep 0.2; done")
until_true 60 bash -c "[ \$(find '$SPEXD_SHARED/endpoints' -type f | wc -l) -lt 2 ]"
until_true 60 bash -c "squeue -h -j $urgent -o %T | grep -q RUNNING"
grep -q '"event":"draining"' "$folder"/logs/spexd-*.log
touch "$folder/go-on"
# Slurm lets what it put back wait for two minutes.
until_true 30 bash -c "squeue -h -r -t PENDING -o %A | xargs -rI{} scontrol update jobid={} starttime=now && squeue -h -r -t RUNNING -o %j | grep -c spexd | grep -q 2"
until_true 30 bash -c "[ \$(find '$SPEXD_SHARED/endpoints' -type f | wc -l) = 2 ]"

echo "The same night again makes nothing anew; a frame that was removed is made again."
rm "$folder/frames/frame-7.fits"
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null
[ "$(find "$folder/frames" -name 'frame-*.fits' | wc -l)" = 12 ]
[ "$(grep -c . "$folder/frames/spex-night.jsonl")" = 13 ]

echo "scancel drains the servers, and nothing of theirs is left."
scancel "$servers"
until_true 60 bash -c "! squeue -h -j $servers | grep -q ."
[ "$(endpoints)" = 0 ]
[ -z "$(ls "$SPEXD_SHARED/servers")" ]
echo "slurm_test: passed"
