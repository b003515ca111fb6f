#!/usr/bin/env bash
# Builds spexd's image and checks it, with docker, podman or buildah: the first that runs, or $SPEXD_CONTAINER_TOOL.
#
#   deploy/container.sh base NAME [SOURCES]   makes a base image of Debian 12 from packages (mmdebstrap), where no registry can be
#                                             reached; SOURCES: apt's file of sources, else this machine's
#   deploy/container.sh cuda-base NAME BASE [TOOLKIT]
#                                             puts a CUDA toolkit into such an image: the folder TOOLKIT, else /usr/local/cuda
#   deploy/container.sh build NAME [--base IMAGE] [--cuda IMAGE] [--ccache FOLDER]
#       --base    image of Debian 12; else debian:12-slim
#       --cuda    image of Debian 12 with the CUDA toolkit: builds the image for GPUs
#       --ccache  keeps compiled objects there (podman and buildah; docker keeps layers by itself)
#   deploy/container.sh check NAME            starts the image as its own user on a read-only root, asks its health, extracts a
#                                             simulated frame, drains it while a job runs, and shows its size and SBOM; an image
#                                             for GPUs also shows that it lacks a driver alone
#   deploy/container.sh tool                  names the tool
#
# buildah does not start services: with it, `check` starts the image's root in its own namespaces, which needs root.
set -euo pipefail
sources=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
work=$(mktemp -d)
container=  # to be removed at the end
holder=     # process that holds the namespaces
service=    # spexd, if this script started it

fail() { echo "container.sh: $*" >&2; exit 1; }

cleanup() {
  if [ -n "$holder" ]; then kill "$holder" "$service" 2>/dev/null || true; fi
  wait
  case $tool in
    buildah) [ -z "$container" ] || buildah rm "$container" >/dev/null ;;
    *) [ -z "$container" ] || "$tool" rm --force "$container" >/dev/null ;;
  esac
  rm -rf "$work"
}

find_tool() {
  local name
  for name in docker podman; do
    if "$name" info >/dev/null 2>&1; then echo "$name"; return; fi
  done
  if command -v buildah >/dev/null; then echo buildah; fi
}

make_base() {
  local name=$1 apt=${2:-/etc/apt/sources.list.d/debian.sources}
  mmdebstrap --variant=minbase --include=ca-certificates --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' bookworm "$work/base.tar" "$apt"
  if [ "$tool" != buildah ]; then "$tool" import "$work/base.tar" "$name"; return; fi
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$work/base.tar" /
  buildah commit --quiet "$container" "$name"
}

make_cuda_base() {
  local name=$1 base=${2:?names the image to put the toolkit into} toolkit
  toolkit=$(realpath "${3:-/usr/local/cuda}")
  [ -x "$toolkit/bin/nvcc" ] || fail "no CUDA toolkit: there is no $toolkit/bin/nvcc"
  printf 'FROM %s\nCOPY . /usr/local/cuda\n' "$base" >"$work/Dockerfile"
  "$tool" build --tag "$name" --file "$work/Dockerfile" "$toolkit"
}

build() {
  local name=$1 arguments=() target=programs
  shift
  while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || fail "$1 needs a value"
    case $1 in
      --base) arguments+=(--build-arg "BASE_IMAGE=$2") ;;
      --cuda) arguments+=(--build-arg "CUDA_IMAGE=$2"); target=cuda ;;
      --ccache)
        [ "$tool" != docker ] || fail "--ccache: docker build mounts no folders"
        mkdir -p "$2"
        arguments+=(--volume "$(realpath "$2"):/root/.cache/ccache") ;;
      *) fail "unknown argument $1" ;;
    esac
    shift 2
  done
  # The health check is part of docker's format only.
  if [ "$tool" != docker ]; then arguments+=(--format docker); fi
  if [ "$tool" = buildah ]; then arguments+=(--isolation chroot --layers); fi
  "$tool" build "${arguments[@]}" --target "$target" --tag "$name" \
    --build-arg "SPEXD_COMMIT=$(git -C "$sources" describe --always --dirty --abbrev=12 --exclude='*')" \
    --file "$sources/Dockerfile" "$sources"
}

# Prints the image's configuration in docker's format: a line with its user, a line that describes it, and the health check, one
# word a line.
configuration() {
  local inspect=("$tool" image inspect)
  if [ "$tool" = buildah ]; then inspect=(buildah inspect --type image); fi
  "${inspect[@]}" "$1" | python3 -c '
import json, sys
image = json.load(sys.stdin)
image = image[0] if isinstance(image, list) else image["Docker"]
config = image.get("config") or image["Config"]
check = config.get("Healthcheck") or image.get("Healthcheck") or {"Test": []}  # podman stores it outside
print(config["User"])
print("entry point", json.dumps(config["Entrypoint"]) + ", stopped by", config["StopSignal"] + ", ports", *sorted(config["ExposedPorts"]))
print(*check["Test"][1:], sep="\n")'
}

# inside COMMAND...: runs a command in the running container, as the image's user.
inside() {
  if [ "$tool" != buildah ]; then "$tool" exec "$container" "$@"; return; fi
  nsenter --target "$holder" --mount --net chroot --userspec="$user" "$root" \
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ "$@"
}

# Starts the service; /mnt is a folder of this machine, for frames.
start() {
  mkdir -m 777 "$work/frames"
  local flags=(--allow-root /mnt) read_only=(--read-only)
  if [ "$tool" = podman ]; then read_only+=(--read-only-tmpfs=false); fi  # otherwise podman adds a writable /tmp
  if [ "$tool" != buildah ]; then
    container=$("$tool" run --detach "${read_only[@]}" --cap-drop ALL --security-opt no-new-privileges \
      --volume "$work/frames:/mnt" "$1" "${flags[@]}")
    return
  fi
  container=$(buildah from "$1")
  root=$(buildah mount "$container")
  mkfifo "$work/ready"
  # shellcheck disable=SC2016  # the variables are those of the inner shell
  unshare --mount --net bash -c 'set -e
    mount --bind "$0" "$0"
    mount -o remount,bind,ro "$0"
    mount --rbind /dev "$0/dev"
    mount --rbind /proc "$0/proc"
    mount --bind "$1/frames" "$0/mnt"
    ip link set lo up
    echo ready >"$1/ready"
    exec sleep infinity' "$root" "$work" &
  holder=$!
  grep -q ready "$work/ready"
  # Not by `inside`, whose process would be a shell's: signals must reach spexd itself.
  nsenter --target "$holder" --mount --net chroot --userspec="$user" "$root" \
    env -i PATH=/usr/local/bin:/usr/bin:/bin spexd "${flags[@]}" 2>"$work/log" &
  service=$!
}

# Sends SIGTERM; puts spexd's exit code into `code`.
stop() {
  code=0
  if [ "$tool" = buildah ]; then
    kill -TERM "$service"
    wait "$service" || code=$?
  else
    "$tool" stop --time 60 "$container" >/dev/null
    code=$("$tool" wait "$container")
  fi
}

eventually() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "did not come true in a minute: $*"
    sleep 0.05
  done
}

# Checks, in an image for GPUs, that the CUDA module loads, so that only a driver is missing, and that the loader finds cuBLAS
# and its libraries.
check_cuda() {
  inside test -e /usr/local/lib/spexd/libspexd_cuda.so || return 0
  local said library
  said=$(inside spexd --device cuda 2>&1) && fail "spexd --device cuda ends with exit code 0"
  [[ $said == *"no NVIDIA driver is installed"* ]] || fail "the CUDA module lacks more than a driver: $said"
  library=$(inside sh -c 'cd /usr/local/lib && echo libcublas.so.*')
  said=$(inside env LD_BIND_NOW=1 LD_PRELOAD="$library" spexd --version 2>&1 >/dev/null) || true
  [ -z "$said" ] || fail "cuBLAS is not loaded: $said"
  echo "for GPUs: the CUDA module and $library load, a driver is missing here"
}

job_runs_or_is_done() { inside curl -s http://127.0.0.1:9464/metrics | grep -Eq '^spexd_(jobs_in_flight|spectra_total) [1-9]'; }

check() {
  local name=$1 lines
  mapfile -t lines < <(configuration "$name")
  local user=${lines[0]} health=("${lines[@]:2}")
  case ${user%%:*} in ""|0|root) fail "the image runs as root" ;; esac
  [ -n "${health[*]}" ] || fail "the image has no health check"
  echo "user $user, ${lines[1]}"
  start "$name"
  eventually inside "${health[@]}"
  echo "healthy: ${health[*]}"
  if inside touch /tmp/file 2>/dev/null; then fail "the root can be written to"; fi
  echo "the root is read-only"
  check_cuda
  inside spex simulate --fibres 50 --rows 400 --seed 1 --out-dir /mnt >/dev/null
  inside spex --server 127.0.0.1:50051 -i /mnt/preproc-r0.fits -p /mnt/psf-r0.fits -o /mnt/frame.fits -q &
  local job=$! code
  eventually job_runs_or_is_done
  stop
  wait "$job" || fail "the job that ran during the drain failed"
  [ "$code" = 0 ] || fail "the drain ended with exit code $code"
  [ -s "$work/frames/frame.fits" ] || fail "no frame was written"
  echo "drained: the job was finished, exit code 0"
  show_contents "$name"
}

show_contents() {
  if [ "$tool" = buildah ]; then
    cp "$root/usr/share/doc/spexd/sbom.spdx.json" "$work/sbom"
    echo "size $(buildah images --format '{{.Size}}' "$1")"
  else
    "$tool" cp "$container:/usr/share/doc/spexd/sbom.spdx.json" "$work/sbom"
    echo "size $(($("$tool" image inspect --format '{{.Size}}' "$1") / 1000000)) MB"
  fi
  python3 -c '
import json, sys
packages = json.load(open(sys.argv[1]))["packages"]
(spexd,) = (package["versionInfo"] for package in packages if package["name"] == "spexd")
debian = sum("externalRefs" in package for package in packages)
print(f"SBOM: spexd {spexd} with {debian} Debian packages and {len(packages) - debian - 2} others")' "$work/sbom"
}

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

tool=${SPEXD_CONTAINER_TOOL:-$(find_tool)}
[ -n "$tool" ] || fail "neither docker, podman nor buildah runs here"
trap cleanup EXIT
[ $# -ge 2 ] || [ "$*" = tool ] || usage
command=$1
shift
case $command in
  base) make_base "$@" ;;
  cuda-base) make_cuda_base "$@" ;;
  build) build "$@" ;;
  check) check "$@" ;;
  tool) echo "$tool" ;;
  *) usage ;;
esac
