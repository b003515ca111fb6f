#!/usr/bin/env bash
# Extracts a night of many small frames on a real Slurm cluster whose servers and tasks are killed, and compares its speed with
# that of the same servers without Slurm and without a list. Exits with 77 and the reason if skipped.
#
#   slurm_night_test.sh BIN_FOLDER FRAMES
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
frames=${2:?usage: slurm_night_test.sh BIN_FOLDER FRAMES}
# shellcheck source=cluster.sh
source "$here/cluster.sh"
begin_test slurm_night_test "$1"

many() { python3 "$here/../night/many_frames.py" "$1" "$SPEXD_BIN" "$folder" "${@:2}"; }
many make "$frames"
record=$folder/frames/spex-night.jsonl
has_recorded() { [ -e "$record" ] && [ "$(wc -l <"$record")" -ge "$1" ]; }

start_server() { submit "$batch/spexd.sbatch"; }
first=$(start_server)
second=$(start_server)
until_true 60 has_servers 2

echo "Servers give an array job at least 85 % of the frames a second that they give one spex extract."
bare=() listed=()
for _ in 1 2; do
  servers=$(cat "$SPEXD_SHARED"/endpoints/* | paste -sd, -)
  bare+=("$(many bare --server "$servers" --tls-ca "$SPEXD_SHARED/authority.pem" --token-file "$SPEXD_SHARED/token" --in-flight 16)")
  rm -rf "$folder/frames"
  start=$(date +%s.%N)
  night=$(submit --array=1-2 "$batch/night.sbatch")
  until_true 600 has_recorded "$frames"
  # Uses the time of the last record, not the time at which this script sees it.
  listed+=("$(echo "$(stat -c %.9Y "$record") - $start" | bc)")
  until_true 60 has_ended "$night"
done
python3 -c 'import sys
frames, *seconds = map(float, sys.argv[1:])
bare, listed = min(seconds[:2]), min(seconds[2:])
print(f"{frames:.0f} frames: extract {bare:.2f} s, array job {listed:.2f} s, share {bare / listed:.3f}; all {seconds}")
sys.exit(bare / listed < 0.85)' "$frames" "${bare[@]}" "${listed[@]}"
many check

echo "Servers and tasks are killed; every frame is extracted once."
rm -rf "$folder/frames"
night=$(submit --array=1-2 "$batch/night.sbatch")
for k in $(seq 8); do
  until_true 600 has_recorded $((k * frames / 9))
  case $((k % 4)) in
  1) # A server without time to drain; another takes its place.
    scancel --signal=KILL "$first"
    until_true 60 has_ended "$first"
    first=$second
    second=$(start_server)
    ;;
  2) # A node fails, and nobody removes the file that names its server.
    scontrol listpids "$first" | awk 'NR > 1 && $1 > 0 {print $1}' | xargs kill -KILL
    until_true 60 has_ended "$first"
    [ -e "$SPEXD_SHARED/endpoints/$first" ]
    first=$second
    second=$(start_server)
    ;;
  3) # A task, which is then submitted again with the same part.
    scancel --signal=KILL "${night}_1" 2>/dev/null || true  # it may have ended
    night=$(submit --array=1-2 "$batch/night.sbatch")
    ;;
  0) # A task goes back to the queue.
    scontrol requeue "${night}_2" 2>/dev/null || true
    ;;
  esac
done
release() { squeue -h -r -t PENDING -o %A | xargs -rI{} scontrol update jobid={} starttime=now; }
all_nights_ended() { release; ! squeue -h -n night 2>/dev/null | grep -q .; }
until_true 600 all_nights_ended
many check

echo "The same night again makes nothing anew."
before=$(find "$folder/frames" -type f -printf '%f %i %T@\n' | sort)
submit --array=1-2 --wait "$batch/night.sbatch" >/dev/null
[ "$(find "$folder/frames" -type f -printf '%f %i %T@\n' | sort)" = "$before" ]
many check
echo "slurm_night_test: passed"
