# shellcheck shell=bash
# A Slurm cluster of one machine in a folder of its own, for tests that source this and call
#
#   begin_test NAME BIN_FOLDER
#
# Then `folder` is the test's own, `batch` has the scripts under test, and the environment is that of their users. All daemons
# and the folder go with the test. Needs root, as slurmd does.

begin_test() {
  export PATH=$PATH:/usr/sbin SPEXD_BIN=$2 SPEXD_HOST=localhost SPEXD_FLAGS="--device cpu --threads 1" PYTHONDONTWRITEBYTECODE=1
  skip_without_slurm "$1"
  batch=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../deploy/slurm")
  folder=$(mktemp -d /tmp/spexd-slurm-XXXXXX)
  trap end_test EXIT
  mkdir "$folder/logs"
  start_cluster "$folder"
  export SPEXD_SHARED=$folder/shared SPEXD_ROOT=$folder SPEXD_NIGHT=$folder/night.txt
  "$batch/prepare.sh" "$SPEXD_SHARED"
}

end_test() {
  local code=$?
  if [ "$code" -ne 0 ]; then show_cluster "$folder" >&2; fi
  stop_cluster
  rm -rf "$folder"
}

submit() { sbatch --parsable --output="$folder/logs/%x-%j.log" "$@"; }
has_servers() { [ "$(find "$SPEXD_SHARED/endpoints" -type f | wc -l)" -eq "$1" ]; }
has_ended() { ! squeue -h -j "$1" 2>/dev/null | grep -q .; }

# skip_without_slurm TEST: ends the test with 77 where no cluster can be started.
skip_without_slurm() {
  local program
  for program in slurmctld slurmd sbatch munged openssl; do
    command -v "$program" >/dev/null || { echo "$1: skipped: $program is not installed"; exit 77; }
  done
  [ "$(id -u)" -eq 0 ] || { echo "$1: skipped: slurmd needs root"; exit 77; }
}

# free_ports COUNT: prints ports that are not in use.
free_ports() {
  python3 -c 'import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))' "$1"
}

# show_cluster FOLDER: prints the states of its jobs and the ends of all logs.
show_cluster() {
  [ "${#daemons[@]}" -lt 2 ] || squeue -o "%i %j %T %r" || true
  tail -n 20 "$1"/*.out "$1"/slurm*.log "$1"/logs/* || true
}

daemons=()
stop_cluster() {
  # Once slurmctld was started, SLURM_CONF names this cluster, never another one that this machine belongs to. Jobs survive
  # slurmd.
  if [ "${#daemons[@]}" -ge 2 ]; then
    scancel -u root 2>/dev/null || true
    until_true 60 no_jobs || true
  fi
  # Ends daemons in the reverse order of their start.
  for ((k = ${#daemons[@]} - 1; k >= 0; --k)); do
    kill -TERM "${daemons[k]}" 2>/dev/null || true
    wait "${daemons[k]}" 2>/dev/null || true
  done
}

# until_true SECONDS COMMAND...: waits until the command succeeds; otherwise names the command and fails.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not within its time: $*" >&2
      return 1
    fi
    sleep 0.2
  done
}

no_jobs() { [ -z "$(squeue -h -t RUNNING,COMPLETING)" ]; }

start_cluster() {
  local folder=$1 controller node signal=SlurmctldParameters=preempt_send_user_signal
  case $(slurmctld -V) in *\ 2[3-9].*) signal=PreemptParameters=send_user_signal ;; esac
  read -r controller node <<<"$(free_ports 2)"
  mkdir -p "$folder/state" "$folder/spool"
  chmod 755 "$folder"
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 400 "$folder/munge.key"
  munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" >"$folder/munged.out" 2>&1 &
  daemons+=($!)
  until_true 20 test -S "$folder/munge.socket"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$node
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
$signal
KillWait=30
MpiDefault=none
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=idle Nodes=$(hostname -s) Default=YES PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=$(hostname -s) PriorityTier=9
CONF
  export SLURM_CONF=$folder/slurm.conf
  slurmctld -D -i >"$folder/slurmctld.out" 2>&1 &
  daemons+=($!)
  slurmd -D >"$folder/slurmd.out" 2>&1 &
  daemons+=($!)
  until_true 30 bash -c 'sinfo -h -o %T | grep -q idle'
}
