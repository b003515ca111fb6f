#!/usr/bin/env bash
# scripts/flaky.sh RUNS [PATTERN] [CTEST_ARGUMENT...]: looks for tests that pass only by luck. Runs the tests of build/dev's first tier
# whose names match and that ctest's arguments choose (-L service: those with processes or sockets) RUNS times, three on each core
# beside a busy loop, with a soft limit of 1024 open files, and prints how often each passed. Outputs of failures are kept in
# build/flaky. Exit code 1 if any run failed or no test ran.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
runs=$1
shift
case "${1:--}" in -*) ;; *) set -- -R "$@" ;; esac

ulimit -Sn 1024
trap 'kill $(jobs -p)' EXIT
for _ in $(seq "$(nproc)"); do
  while :; do :; done &
done
rm -rf build/flaky
mkdir -p build/flaky
for run in $(seq "$runs"); do
  ctest --preset dev -LE system -j $((3 * $(nproc))) --schedule-random "$@" </dev/null >"build/flaky/$run.log" 2>&1
  echo "run $run of $runs: $(grep -E 'tests passed|No tests' "build/flaky/$run.log")"
done
# Lines of ctest: "3/9 Test #7: name ....   Passed  1.23 sec".
sed -nE 's/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: ([^ ]+) [ .]*(\*\*\*)?(Passed|Failed|Timeout|Skipped|Not Run|Exception).* ([0-9.]+) sec.*/\1 \3 \4/p' build/flaky/*.log |
  awk '{ ++of[$1]; if ($2 == "Passed") ++passed[$1]; else if ($2 != "Skipped") bad = 1; if ($3 > most[$1]) most[$1] = $3 }
       END { for (name in of) printf "%s passed %d of %d, at most %.1f s\n", name, passed[name], of[name], most[name]; exit bad || !NR }' | sort
exit "${PIPESTATUS[1]}"
