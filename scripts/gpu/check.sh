#!/usr/bin/env bash
# Tests and measures the CUDA engine on a machine with a GPU, from the folder that pack.sh made:
#
#   check.sh [STAGE]... [OPTION]...
#
#   tests        every GPU test; a missing GPU is a failure                                     (the default)
#   sanitizers   compute-sanitizer's memcheck, racecheck, initcheck and synccheck on the smallest tests, and memcheck and
#                racecheck on those of products
#   bench        spex bench; its JSON goes to the logs
#   repeat       random jobs in one spexd, then each again in a spex of its own: the same bits
#   server       spexd under many clients (spex load), how busy its devices are by its metrics and by nvidia-smi; killed while
#                it works, started again, and ended by SIGTERM
#   detached     detached jobs submitted, scraped and cancelled at random; spexd killed meanwhile and started again: all end
#   profile      ncu on some launches of some kernels of spex bench
#   all          all of them
#
#   --logs DIR        where whole outputs go                               (default: logs beside this script)
#   --filter GLOBS    GoogleTest filter of stage tests                     (default: *)
#   --tools NAMES     of stage sanitizers, comma-separated                 (default: memcheck,racecheck,initcheck,synccheck)
#   --bench-args ARGS more arguments of spex bench                         (default: none)
#   --frames FILES    frames of stage server, and of repeat and detached, which take the first (default: a simulated one: plain, Rice and .gz)
#   --psf FILE        their PSF
#   --domain A,B      what stages repeat and detached may ask for          (default: 5551,7739, which suits a simulated one)
#   --jobs N, --seed N  of stages repeat and detached                      (default: 200; a new seed, which it prints)
#   --load-args ARGS, --server-args ARGS  more arguments of spex load and of spexd (default: none; --device cuda)
#   --kernels REGEX   of stage profile, matched to kernel names            (default: .*)
#   --skip N, --count N  launches left out and profiled, of matching ones  (default: 0, 24)
#   --sections NAMES  of ncu (default: SpeedOfLight,Occupancy,WarpStateStats,LaunchStats,MemoryWorkloadAnalysis)
#   --timeout S       of each program                                      (default: 540)
#
# The last lines are a table of what ran; the exit code is 0 if all of it passed. Environment: CUDA_VISIBLE_DEVICES as
# usual; SPEXD_GOLDENS names the folder of golden files (default: data beside this script, if it has them).
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
logs=$here/logs filter='*' tools=memcheck,racecheck,initcheck,synccheck bench_args='' load_args='' server_args='--device cuda' frames='' psf='' kernels='.*' skip=0 count=24 limit=540
domain=5551,7739 jobs=200 seed=''
sections=SpeedOfLight,Occupancy,WarpStateStats,LaunchStats,MemoryWorkloadAnalysis
stages=()
while [ $# -gt 0 ]; do
  case $1 in
    tests | sanitizers | bench | repeat | server | detached | profile) stages+=("$1"); shift; continue ;;
    all) stages+=(tests sanitizers bench repeat server detached profile); shift; continue ;;
    -h | --help) sed -n '2,36s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "check.sh: unknown stage, or no value for: $1" >&2; exit 2; }
  case $1 in
    --logs) logs=$2 ;;
    --filter) filter=$2 ;;
    --tools) tools=$2 ;;
    --bench-args) bench_args=$2 ;;
    --frames) frames=$2 ;;
    --psf) psf=$2 ;;
    --domain) domain=$2 ;;
    --jobs) jobs=$2 ;;
    --seed) seed=$2 ;;
    --load-args) load_args=$2 ;;
    --server-args) server_args=$2 ;;
    --kernels) kernels=$2 ;;
    --skip) skip=$2 ;;
    --count) count=$2 ;;
    --sections) sections=$2 ;;
    --timeout) limit=$2 ;;
    *) echo "check.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ "${#stages[@]}" -gt 0 ] || stages=(tests)

mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 2
export SPEXD_BIN=$here/bin SPEXD_CUDA_MODULE=$here/bin/libspexd_cuda.so SPEXD_REQUIRE_GPU=1
[ -z "${SPEXD_GOLDENS:-}" ] && [ -d "$here/data" ] && export SPEXD_GOLDENS=$here/data
# Set only for the programs of spexd: the machine's tools have their own libraries.
libraries=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Products need cuBLAS, which is wherever NVIDIA's packages put it.
for library in /usr/local/cuda*/lib64/libcublas.so.* /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcublas.so.*; do
  [ -e "$library" ] && libraries=$libraries:$(dirname "$library")
done
ours() { timeout "$limit" env LD_LIBRARY_PATH="$libraries" "$@"; }

# tool NAME: prints the tool's path, wherever NVIDIA's packages put it.
tool() {
  command -v "$1" && return
  local path
  for path in /usr/local/cuda*/bin/"$1" /usr/local/cuda*/compute-sanitizer/"$1" /opt/nvidia/nsight-compute/*/"$1"; do
    [ -x "$path" ] && echo "$path" && return
  done
  return 1
}

table=() failed=0
# record NAME CODE SECONDS NOTE: adds a line to the table of what ran.
record() {
  local result=ok
  if [ "$2" -ne 0 ]; then
    result=FAILED
    [ "$2" -eq 124 ] && result=TIMEOUT
    failed=1
  fi
  table+=("$(printf '%-34s %-8s %6d s  %s' "$1" "$result" "$3" "$4")")
}

# line PATTERN LOG: prints the first line of a log that matches, without colour or margin.
line() { grep -m1 -aE "$1" "$2" | sed 's/^[= ]*//; s/  */ /g' | cut -c1-100; }

# Prints the measurements in a test log, and the first message of each failed test.
digest() {
  awk '
    function cut(text) { return substr(text, 1, 200) }
    /^\[ RUN/ { kept = 0; name = $4; sub(/.*[.\/]/, "", name); next }
    /^\[       OK \]/ {
      for (k = 0; k < kept; ++k) if (lines[k] ~ /^  [^ ]/) print cut("  " name ":" substr(lines[k], 2))
      kept = 0; name = ""; next
    }
    /^\[  SKIPPED \].*ms\)$/ { print cut($0); kept = 0; name = ""; next }
    /^\[  FAILED  \].*ms\)$/ {
      print cut($0)
      if (++failures <= 10) for (k = 0; k < kept && k < 12; ++k) print cut("    " lines[k])
      kept = 0; name = ""; next
    }
    { lines[kept++] = $0 }
    END {
      if (name == "") exit
      print "did not end: " name
      for (k = kept > 12 ? kept - 12 : 0; k < kept; ++k) print cut("    " lines[k])
    }
  ' "$1"
}

run_tests() {
  local program name code start log passed skipped broken
  for program in "$here"/bin/cuda_*_test; do
    name=$(basename "$program") log=$logs/$(basename "$program").log start=$SECONDS
    echo "== $name"
    ours "$program" --gtest_filter="$filter" --gtest_color=no >"$log" 2>&1
    code=$?
    digest "$log"
    passed=$(grep -acE '^\[       OK \] .*ms\)$' "$log") skipped=$(grep -acE '^\[  SKIPPED \] .*ms\)$' "$log")
    broken=$(grep -acE '^\[  FAILED  \] .*ms\)$' "$log")
    # A program in which no test ran proves nothing, unless a filter was given.
    if [ "$code" -eq 0 ] && [ "$passed" -eq 0 ] && [ "$filter" = '*' ]; then code=1; fi
    if [ "$code" -ne 0 ] && [ $((passed + broken)) -eq 0 ]; then tail -n 5 "$log"; fi
    record "$name" "$code" $((SECONDS - start)) "$passed passed, $broken failed, $skipped skipped"
  done
}

# sanitize TOOL PROGRAM FILTER: runs the program's tests that match under the tool.
sanitize() {
  local code start=$SECONDS name=$1-${2%_test} log
  log=$logs/$name.log
  echo "== compute-sanitizer $1 $2"
  ours "$sanitizer" --tool "$1" --error-exitcode 9 --print-limit 50 "$here/bin/$2" --gtest_filter="$3" --gtest_color=no >"$log" 2>&1
  code=$?
  grep -aE '^=========|FAILED' "$log" | head -60
  # A run in which no test ran proves nothing.
  if [ "$code" -eq 0 ] && ! grep -qaE '^\[  PASSED  \] [1-9]' "$log"; then code=1; fi
  record "$name" "$code" $((SECONDS - start)) "$(line 'SUMMARY' "$log")"
}

run_sanitizers() {
  local sanitizer name
  if ! sanitizer=$(tool compute-sanitizer); then
    record sanitizers 1 0 "compute-sanitizer is not installed"
    return
  fi
  for name in ${tools//,/ }; do
    sanitize "$name" cuda_parity_test 'Small*'
    case $name in memcheck | racecheck) sanitize "$name" cuda_products_test '-*Golden*' ;; esac
  done
}

run_bench() {
  local code start=$SECONDS log=$logs/bench.log
  echo "== spex bench"
  # shellcheck disable=SC2086
  ours "$here/bin/spex" bench --device cuda --json "$logs/bench.json" $bench_args >"$log" 2>&1
  code=$?
  cat "$log"
  record bench "$code" $((SECONDS - start)) "$logs/bench.json"
}

# start_server: starts spexd on ports that the kernel chooses; puts its address into $address.
start_server() {
  rm -f "$work/ports.json"
  # shellcheck disable=SC2086
  env LD_LIBRARY_PATH="$libraries" "$here/bin/spexd" --listen 127.0.0.1:0 --http 127.0.0.1:0 --port-file "$work/ports.json" \
    --allow-root "$work" --allow-root "$here" $server_args 2>>"$logs/spexd.log" &
  server=$!
  local tries=0
  while [ ! -s "$work/ports.json" ]; do
    if [ $((tries++)) -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
      kill -KILL "$server" 2>/dev/null
      tail -n 5 "$logs/spexd.log"
      return 1
    fi
    sleep 0.1
  done
  address=$(sed -n 's/.*"grpc":"\([^"]*\)".*/\1/p' "$work/ports.json")
}

# load NAME ARGUMENT...: runs spex load once and shows its tables.
load() {
  local name=$1 code start=$SECONDS log=$logs/$1.log
  shift
  # shellcheck disable=SC2086
  ours "$here/bin/spex" load --server "$address" --folder "$work" -p "$psf" -i $frames --quiet --json "$logs/$name.json" "$@" >"$log" 2>&1
  code=$?
  cat "$log"
  record "$name" "$code" $((SECONDS - start)) "$logs/$name.json"
}

# scrape: prints the metrics of the server, without a program that the machine may lack.
scrape() {
  # shellcheck disable=SC2016
  timeout 10 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' \
    "$(sed -n 's/.*"http_port": *\([0-9]*\).*/\1/p' "$work/ports.json")" 2>/dev/null
}

# watch_busy: prints twice a second, until it is killed: the number of jobs that compute, how busy the busiest device is by
# spexd ("-": not reported; a value outside of 0 to 1 takes precedence), and by nvidia-smi in percent ("-": not installed,
# "n/a": not reported).
watch_busy() {
  local theirs
  while true; do
    theirs=-
    if command -v nvidia-smi >/dev/null; then
      theirs=$(nvidia-smi ${CUDA_VISIBLE_DEVICES:+-i "$CUDA_VISIBLE_DEVICES"} --query-gpu=utilization.gpu --format=csv,noheader,nounits |
        awk '/^ *[0-9]+ *$/ { if (most == "" || $1 > most) most = $1 + 0 } END { print most == "" ? "n/a" : most }')
    fi
    scrape | awk -v theirs="$theirs" '
      /^spexd_device_running_jobs[{]/ { running += $NF }
      /^spexd_device_utilization_ratio[{]/ {
        if (!($NF >= 0 && $NF <= 1)) wrong = $NF
        if (most == "" || $NF + 0 > most) most = $NF + 0
      }
      END { print running + 0, wrong != "" ? wrong : most != "" ? most : "-", theirs }'
    sleep 0.5
  done
}

# judge_busy FILE: checks that watch_busy saw busy devices while jobs computed, with values of 0 to 1, on average at most twice
# and at least half of nvidia-smi's (or within a tenth). If nvidia-smi does not report, spexd need not.
judge_busy() {
  awk '
    $1 > 0 {
      ++samples
      if ($3 == "n/a") ++unknown
      if ($2 == "-") next
      ++seen
      ours += $2
      if (!($2 >= 0 && $2 <= 1)) { ++wrong; value = $2 }
      if ($3 ~ /^[0-9]/) { ++both; mine += $2; theirs += $3 / 100 }
    }
    END {
      if (samples == 0) { print "no job computed at any sample"; exit 1 }
      if (seen == 0 && unknown == samples) { print "neither spexd nor nvidia-smi says how busy"; exit 0 }
      if (seen == 0) { print "no spexd_device_utilization_ratio in " samples " samples"; exit 1 }
      if (wrong) { print "spexd_device_utilization_ratio is " value; exit 1 }
      printf "busy %.2f by spexd", ours / seen
      if (both) printf ", of these %.2f (nvidia-smi %.2f)", mine / both, theirs / both
      printf ", %d samples\n", seen
      slack = 0.1 * both
      exit !(ours > 0 && mine <= 2 * theirs + slack && theirs <= 2 * mine + slack)
    }' "$1"
}

# random_job: prints wavelengths, fibres and prior of a job, as flags of spex extract.
random_job() {
  local first=${domain%,*} last=${domain#*,} steps=(0.8 0.8 0.8 0.5 0.4) from to
  local fibres=('-s 0 -n 1' '-s 0 -n 25' '-s 0 -n 50' '-s 25 -n 5' '-s 25 -n 25')
  from=$first to=$last
  case $((RANDOM % 4)) in
    0) ;;                                           # all wavelengths, beyond both ends of the CCD
    1) to=$((first + 50 + RANDOM % 300)) ;;         # one end
    2) from=$((last - 50 - RANDOM % 300)) ;;        # the other end
    3) from=$((first + RANDOM % (last - first - 200))) to=$((from + 5 + RANDOM % (last - from - 5))) ;;
  esac
  echo "-w $from,$to,${steps[RANDOM % ${#steps[@]}]} ${fibres[RANDOM % ${#fibres[@]}]} --regularize $((RANDOM % 4 / 3))e-2"
}

# sums FILE: prints the checksums of its HDUs' data, which distinguish two results. A FITS file is cards of 80 bytes and whole
# blocks.
sums() {
  LC_ALL=C tr '\n\0' '  ' <"$1" | LC_ALL=C fold -b -w 80 |
    LC_ALL=C awk -F "'" '/^EXTNAME = / { name = $2; gsub(" ", "", name) } /^DATASUM = / { print name, $2 }' |
    grep -aE '^(FLUX|IVAR|MASK|RESOLUTION|CHI2PIX) '
}

# run_jobs NAME WORKERS ARGUMENT...: runs all jobs of $work/jobs, several at a time; writes the checksums of job K to
# $work/NAME-K.
run_jobs() {
  local name=$1 workers=$2 worker k pids=()
  shift 2
  for ((worker = 0; worker < workers; ++worker)); do
    for ((k = worker; k < jobs; k += workers)); do
      # shellcheck disable=SC2046
      ours "$here/bin/spex" extract --quiet "$@" -i "${frames%% *}" -p "$psf" -o "$work/$name-$k.fits" $(sed -n $((k + 1))p "$work/jobs") \
        >>"$logs/$name-$worker.log" 2>&1
      sums "$work/$name-$k.fits" >"$work/$name-$k" 2>>"$logs/$name-$worker.log"
      rm -f "$work/$name-$k.fits"
    done &
    pids+=($!)
  done
  wait "${pids[@]}"
}

run_repeat() {
  local start=$SECONDS work k address server same=0
  # Otherwise first launches wait for their code, so kernels that run at once later do not do so in a fresh process.
  local -x CUDA_MODULE_LOADING=EAGER
  echo "== $jobs random jobs in one spexd and in fresh processes"
  work=$(mktemp -d) || return
  if [ -z "$frames" ]; then
    ours "$here/bin/spex" simulate --out-dir "$work" --fibres 50 >>"$logs/simulate.log" 2>&1
    local frames psf
    frames=$(echo "$work"/preproc-*) psf=$(echo "$work"/psf-*)
  fi
  [ -n "$seed" ] || seed=$((RANDOM * 32768 + RANDOM))
  echo "seed $seed"
  RANDOM=$seed
  for ((k = 0; k < jobs; ++k)); do random_job; done >"$work/jobs"
  if start_server; then
    run_jobs repeated 3 --server "$address"
    kill -TERM "$server"
    wait "$server"
  fi
  run_jobs fresh 8 --device cuda
  for ((k = 0; k < jobs; ++k)); do
    if [ -s "$work/fresh-$k" ] && cmp -s "$work/fresh-$k" "$work/repeated-$k"; then
      same=$((same + 1))
    else
      echo "differs, or failed: $(sed -n $((k + 1))p "$work/jobs")"
    fi
  done
  record repeat $((same == jobs ? 0 : 1)) $((SECONDS - start)) "$same of $jobs jobs have the same bits, seed $seed"
  rm -rf "$work"
}

run_server() {
  local start code client server address work form watcher note
  echo "== spexd and spex load"
  work=$(mktemp -d) || return
  if [ -z "$frames" ]; then
    for form in plain rice gz; do
      mkdir "$work/$form"
      # shellcheck disable=SC2046
      ours "$here/bin/spex" simulate --out-dir "$work/$form" $([ "$form" = plain ] || echo "--$form") >>"$logs/simulate.log" 2>&1 ||
        tail -n 3 "$logs/simulate.log"
    done
    mv "$work"/plain/preproc-*.fits "$work/plain.fits"
    mv "$work"/rice/preproc-*.fits "$work/rice.fits"
    mv "$work"/gz/preproc-*.fits.gz "$work/gz.fits.gz"
    local frames="$work/plain.fits $work/rice.fits $work/gz.fits.gz" psf
    psf=$(echo "$work"/plain/psf-*)
  fi
  if ! start_server; then
    record server 1 0 "spexd did not start: $logs/spexd.log"
    rm -rf "$work"
    return
  fi
  start=$SECONDS
  watch_busy >"$logs/busy.log" 2>&1 &
  watcher=$!
  # shellcheck disable=SC2086
  load load $load_args
  kill "$watcher"
  wait "$watcher" 2>/dev/null
  note=$(judge_busy "$logs/busy.log")
  record busy $? $((SECONDS - start)) "$note"

  # The server is killed under load, which the client must report; started again, it serves.
  start=$SECONDS
  # shellcheck disable=SC2086
  ours "$here/bin/spex" load --server "$address" --folder "$work" -p "$psf" -i $frames --quiet --no-ceiling --by path --clients 4 --frames 64 \
    >"$logs/killed.log" 2>&1 &
  client=$!
  until [ "$(ours "$here/bin/spex" status --json --server "$address" 2>/dev/null | grep -cE '"jobs_running": *[1-9]')" -gt 0 ]; do
    kill -0 "$client" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$server"
  wait "$client"
  code=$?
  wait "$server" 2>/dev/null
  tail -n 2 "$logs/killed.log"
  # If all jobs were done before the kill, the exit code is 0: nothing was proved, but nothing is wrong.
  record killed $((code == 3 || code == 0 ? 0 : 1)) $((SECONDS - start)) "spex load: exit $code"
  if start_server; then
    load load-after --no-ceiling --by path --clients 2
    kill -TERM "$server"
    wait "$server"
    code=$?
    record terminated "$code" 0 "spexd: exit $code"
  else
    record load-after 1 0 "spexd did not start again"
  fi
  rm -rf "$work"
}

# submit_and_cancel LAST: submits jobs 0 to LAST of $work/list that have no id yet, and cancels some earlier ones. Ends early if
# the server is gone.
submit_and_cancel() {
  local k j
  for ((k = 0; k <= $1; ++k)); do
    [ -z "${ids[k]:-}" ] || continue
    # shellcheck disable=SC2046
    ids[k]=$(ours "$here/bin/spex" submit -q --server "$address" --timeout 30 --request-id "job-$k" -i "${frames%% *}" \
      -p "$psf" $(sed -n $((k + 1))p "$work/list") 2>>"$logs/detached.log") || return
    j=$((k - RANDOM % 3))  # most likely one that waits or runs
    if [ $((RANDOM % 4)) -eq 0 ] && [ "$j" -ge 0 ] && [ -n "${ids[j]:-}" ]; then
      ours "$here/bin/spex" cancel --server "$address" "${ids[j]}" >>"$logs/detached.log" 2>&1
    fi
    [ $((k % 5)) -ne 0 ] || scrape | grep -a '^spexd_detached_jobs{' >/dev/null || return  # not -q, so that scrape can finish
  done
}

run_detached() {
  local start=$SECONDS work k round rounds=6 address server delay killer left done_jobs=0 cancelled=0 damaged ids=()
  echo "== $jobs detached jobs, and spexd killed $((rounds - 1)) times"
  work=$(mktemp -d) || return
  if [ -z "$frames" ]; then
    ours "$here/bin/spex" simulate --out-dir "$work" >>"$logs/simulate.log" 2>&1
    local frames psf
    frames=$(echo "$work"/preproc-*) psf=$(echo "$work"/psf-*)
  fi
  local server_args="$server_args --jobs-dir $work/jobs"
  [ -n "$seed" ] || seed=$((RANDOM * 32768 + RANDOM))
  echo "seed $seed"
  RANDOM=$seed
  # The jobs are whole frames, so that some wait in the queue.
  for ((k = 0; k < jobs; ++k)); do random_job; done >"$work/list"
  sed -i 's/ -s .*//' "$work/list"
  for ((round = 1; round <= rounds; ++round)); do
    if ! start_server; then
      record detached 1 $((SECONDS - start)) "spexd did not start: $logs/spexd.log, seed $seed"
      rm -rf "$work"
      return
    fi
    if [ "$round" -lt "$rounds" ]; then
      delay=$((RANDOM % 8)).$((RANDOM % 10))
      { sleep "$delay" && kill -KILL "$server"; } &
      killer=$!
      submit_and_cancel $((jobs * round / rounds))
      wait "$killer"
      wait "$server" 2>/dev/null
    fi
  done
  submit_and_cancel $((jobs - 1))
  for ((k = 0; k < jobs; ++k)); do
    if ours "$here/bin/spex" watch -q --server "$address" "${ids[k]:-none}" -o "$work/frame.fits" >"$work/watch" 2>&1 &&
      sums "$work/frame.fits" | grep -qa '^FLUX '; then
      done_jobs=$((done_jobs + 1))
    elif grep -qa 'cancelled by' "$work/watch"; then
      cancelled=$((cancelled + 1))
    else
      echo "did not end well: job $k, $(sed -n $((k + 1))p "$work/list"), ${ids[k]:-not accepted}: $(tail -n 1 "$work/watch")"
    fi
    rm -f "$work/frame.fits"
  done
  left=$(ours "$here/bin/spex" jobs --server "$address" --json --state queued,running 2>>"$logs/detached.log" | grep -c '"job_id"')
  damaged=$(scrape | sed -n 's/^spexd_detached_quarantined_total //p' | tr -d '\r')
  kill -TERM "$server"
  wait "$server"
  record detached $((done_jobs + cancelled == jobs && left == 0 && ${damaged:-1} == 0 ? 0 : 1)) $((SECONDS - start)) \
    "$done_jobs done and $cancelled cancelled of $jobs jobs, seed $seed"
  rm -rf "$work"
}

run_profile() {
  local ncu code start=$SECONDS log=$logs/profile.log section arguments=()
  if ! ncu=$(tool ncu); then
    record profile 1 0 "ncu is not installed"
    return
  fi
  for section in ${sections//,/ }; do arguments+=(--section "$section"); done
  echo "== ncu"
  # shellcheck disable=SC2086
  ours "$ncu" --clock-control none --kernel-name-base function --kernel-name "regex:$kernels" --launch-skip "$skip" \
    --launch-count "$count" "${arguments[@]}" "$here/bin/spex" bench --device cuda --no-check --parts frame --warmup 0 \
    --repeats 1 $bench_args >"$log" 2>&1
  code=$?
  if ! grep -qa 'Duration\|Elapsed Cycles' "$log"; then
    tail -n 20 "$log"
    [ "$code" -eq 0 ] && code=1
  fi
  grep -aE '^  [a-zA-Z_].*\(|Duration|Compute \(SM\) Throughput|DRAM Throughput|Memory Throughput +%|Registers Per|Achieved Occupancy|Theoretical Occupancy|Dynamic Shared|Issue Slots|L1/TEX Hit|L2 Hit|OPT +|INF +' \
    "$log" | head -400
  record profile "$code" $((SECONDS - start)) "$(grep -acE 'Duration' "$log") launches, $log"
}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=index,name,driver_version,memory.total,memory.used --format=csv,noheader
fi
for stage in "${stages[@]}"; do
  case $stage in
    tests) run_tests ;;
    sanitizers) run_sanitizers ;;
    bench) run_bench ;;
    repeat) run_repeat ;;
    server) run_server ;;
    detached) run_detached ;;
    profile) run_profile ;;
  esac
done
echo
printf '%s\n' "${table[@]}"
exit "$failed"
