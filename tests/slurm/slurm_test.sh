#!/usr/bin/env bash
# Runs a night on a real Slurm cluster: servers as jobs, an array job over the frames, a server that is pre-empted and comes
# back. Exits with 77 and the reason if skipped.
#
#   slurm_test.sh BIN_FOLDER
set -euo pipefail
# shellcheck source=cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
begin_test slurm_test "${1:?usage: slurm_test.sh BIN_FOLDER}"

# Twelve frames of two exposures.
mkdir "$folder/frames"
for seed in 1 2; do
  "$SPEXD_BIN/spex" simulate --fibres 5 --rows 120 --seed "$seed" --out-dir "$folder/sim$seed" >/dev/null
done
echo "image psf output" >"$SPEXD_NIGHT"
for k in $(seq 12); do
  sim=$folder/sim$((k % 2 + 1))
  echo "$sim/preproc-r0.fits $sim/psf-r0.fits $folder/frames/frame-$k.fits" >>"$SPEXD_NIGHT"
done
[ "$(stat -c %a "$SPEXD_SHARED/token")" = 600 ] || { echo "the token can be read by others" >&2; exit 1; }

failed_node=$SPEXD_SHARED/endpoints/0
echo "localhost:1" >"$failed_node"  # nobody listens there
echo "A task that finds no server waits for one, and then ends with exit code 3."
code=0
SPEXD_WAIT=1 submit --array=1-1 --wait "$batch/night.sbatch" >/dev/null || code=$?
[ "$code" = 3 ] || { echo "exit code $code" >&2; exit 1; }
grep -q "no spexd answers" "$folder"/logs/night-*.log
rm "$folder"/logs/night-*.log

echo "An array job that begins before the servers waits for them, and extracts each frame once."
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null &
night=$!
both_wait() { [ "$(cat "$folder"/logs/night-*.log | grep -c 'waits for a spexd')" = 2 ]; }
until_true 60 both_wait
servers=$(submit --array=1-2 "$batch/spexd.sbatch")
until_true 60 has_servers 3
wait "$night" || { echo "the array job failed" >&2; exit 1; }
rm "$failed_node"
[ "$(find "$folder/frames" -name 'frame-*.fits' | wc -l)" = 12 ]
[ "$(grep -c . "$folder/frames/spex-night.jsonl")" = 12 ]
for k in 1 2; do
  sim=$folder/sim$((k % 2 + 1))
  "$SPEXD_BIN/spex" -q --device cpu --server "" -i "$sim/preproc-r0.fits" -p "$sim/psf-r0.fits" -o "$folder/own.fits"
  cmp "$folder/own.fits" "$folder/frames/frame-$k.fits"
done

echo "A server that is pre-empted drains, takes its file away, and comes back when the node is free."
urgent=$(submit --partition=urgent --ntasks=1 --cpus-per-task=3 --wrap "until [ -e '$folder/go-on' ]; do sleep 0.2; done")
has_lost_a_server() { ! has_servers 2; }
until_true 60 has_lost_a_server
until_true 60 bash -c "squeue -h -j $urgent -o %T | grep -q RUNNING"
grep -q '"event":"draining"' "$folder"/logs/spexd-*.log
touch "$folder/go-on"
# Slurm delays a requeued job by two minutes; this ends the delay.
until_true 30 bash -c "squeue -h -r -t PENDING -o %A | xargs -rI{} scontrol update jobid={} starttime=now && squeue -h -r -t RUNNING -o %j | grep -c spexd | grep -q 2"
until_true 30 has_servers 2

echo "The same night again makes nothing anew; a frame that was removed is made again."
rm "$folder/frames/frame-7.fits"
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null
[ "$(find "$folder/frames" -name 'frame-*.fits' | wc -l)" = 12 ]
[ "$(grep -c . "$folder/frames/spex-night.jsonl")" = 13 ]

echo "A task whose frame fails ends with the exit code of spex night, and does not try again."
bad=$folder/bad-night.txt
printf 'image psf output\n%s %s %s\n' "$folder/none.fits" "$folder/none.fits" "$folder/bad.fits" >"$bad"
code=0
rm "$folder"/logs/night-*.log
SPEXD_NIGHT=$bad submit --array=1-1 --wait "$batch/night.sbatch" >/dev/null || code=$?
[ "$code" = 2 ] || { echo "exit code $code" >&2; exit 1; }
[ "$(grep -c 'of 1 frames written' "$folder"/logs/night-*.log)" = 1 ]

echo "Tasks make the products that further flags name."
export SPEXD_NIGHT_FLAGS="--products sky,sframe --quiet"
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null
unset SPEXD_NIGHT_FLAGS
[ "$(find "$folder/frames" -name 'sky-*.fits' -o -name 'sframe-*.fits' | wc -l)" = 24 ]

echo "scancel drains the servers, and nothing of theirs is left."
scancel "$servers"
until_true 60 has_ended "$servers"
has_servers 0
[ -z "$(ls "$SPEXD_SHARED/servers")" ]
echo "slurm_test: passed"
