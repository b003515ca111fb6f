#!/usr/bin/env bash
# Makes a base image, builds spexd's image on it and checks the image, all with deploy/container.sh, which must then reject bad
# images. Needs root, mmdebstrap, Debian 12's package sources, and docker, podman or buildah. Takes half an hour to an hour on 2
# cores, or some minutes with compiled objects.
#
#   tests/deploy/container_test.sh CCACHE    the folder that keeps compiled objects between runs (not used by docker)
#
#   SPEXD_CONTAINER_TOOL=buildah    the tool, instead of the first that runs
set -euo pipefail
ccache=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
script=../../deploy/container.sh

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAIL: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || skip "needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
[ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = bookworm ] || skip "the base is made from the package sources of Debian 12"
SPEXD_CONTAINER_TOOL=$($script tool) || skip "neither docker, podman nor buildah runs here"
export SPEXD_CONTAINER_TOOL
echo "by $SPEXD_CONTAINER_TOOL"

work=$(mktemp -d)
name=localhost/spexd-test-$$
leave() {
  if [ "$SPEXD_CONTAINER_TOOL" = docker ]; then
    docker image rm --force "$name"{,-base,-root,-silent} >/dev/null || true
  else
    "$SPEXD_CONTAINER_TOOL" rmi --all --force >/dev/null || true
  fi
  rm -rf --one-file-system "$work"
}
trap leave EXIT
ccache_flags=(--ccache "$ccache")
if [ "$SPEXD_CONTAINER_TOOL" = docker ]; then
  ccache_flags=()
else
  # Keeps the images of this test in its own folder, so that they are removed with it.
  printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$work" "$work" >"$work/storage.conf"
  export CONTAINERS_STORAGE_CONF=$work/storage.conf
fi

# changed SUFFIX LINE: builds the image with one more line in its Dockerfile.
changed() {
  local format=()
  [ "$SPEXD_CONTAINER_TOOL" = docker ] || format=(--format docker)
  printf 'FROM %s\n%s\n' "$name" "$2" >"$work/Dockerfile"
  "$SPEXD_CONTAINER_TOOL" build "${format[@]}" --tag "$name-$1" --file "$work/Dockerfile" "$work/empty" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "the image $1 is not built"; }
}

# refused SUFFIX REASON: expects that the image fails its check and that container.sh gives the reason.
refused() {
  if $script check "$name-$1" >"$work/log" 2>&1; then fail "the image $1 passes"; fi
  grep -q "$2" "$work/log" || { cat "$work/log"; fail "nothing says of the image $1: $2"; }
  echo "refused: $2"
}

mkdir "$work/empty"
$script base "$name-base"
$script build "$name" --base "$name-base" "${ccache_flags[@]}"
$script check "$name" | tee "$work/said"
for line in 'user 10001:10001, entry point \["spexd"\], stopped by SIGTERM, ports 50051/tcp 9464/tcp' 'healthy: curl ' \
  'the root is read-only' 'drained: the job was finished, exit code 0' 'size [123][0-9][0-9] MB' \
  'SBOM: spexd [0-9][0-9.]*+[0-9a-f]*[a-z-]* with [1-9][0-9]* Debian packages and 2 others'; do
  grep -q "^$line" "$work/said" || fail "the check does not say: $line"
done

changed root 'USER 0'
refused root 'the image runs as root'
changed silent 'HEALTHCHECK NONE'
refused silent 'the image has no health check'
echo "PASS: the image was built, started, used, drained and inspected by $SPEXD_CONTAINER_TOOL"
