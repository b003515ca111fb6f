#!/usr/bin/env bash
# Makes the files of a release from its tag into build/release-VERSION/files. It publishes nothing.
#
#   scripts/release.sh [TAG]         TAG: vVERSION; else the tag of the commit that is checked out
#   scripts/release.sh --rehearse    of that commit without a tag; CHANGELOG.md may call its version "not released"
#
# The files are the source archive, the wheels and their SBOMs, the Debian packages, the notes (NOTES.md) and SHA256SUMS.
# Wheels and packages are built from the unpacked archive, build/release-VERSION/spexd-VERSION, on Debian 12 with a CUDA toolkit.
# The same commit, packages of Debian and toolkit give the same files ("Release" in docs/development.md).
# Exit code 1 if the commit cannot be released, with the reason, or a build fails; 77 if PyPI cannot be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "release: $*" >&2; exit 1; }

[ $# -le 1 ] || fail "takes a tag at most, not: $*"
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes that the release would lack; commit or stash them (git status)"
if [ "${1:-}" = --rehearse ]; then
  commit=$(git rev-parse HEAD)
  version=$(sed -n 's/^project(spexd VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
  heading="## $version (\(not released\|[0-9-]*\))"
else
  tag=${1:-$(git describe --exact-match --tags --match 'v[0-9]*' 2>/dev/null)} ||
    fail "commit $(git rev-parse --short=12 HEAD) has no tag vVERSION; make one (git tag -a v0.1.0), or try with --rehearse"
  version=${tag#v}
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "the tag '$tag' is not v and a version such as 0.1.0"
  commit=$(git rev-parse --verify --quiet "refs/tags/$tag^{commit}") || fail "there is no tag '$tag' (git tag --list 'v*')"
  heading="## $version ([0-9]\{4\}-[0-9][0-9]-[0-9][0-9])"
fi

export LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
umask 022
folder=$PWD/build/release-$version
files=$folder/files
source=$folder/spexd-$version
rm -rf "$folder"
mkdir -p "$files"
# Commit names have a fixed length, because the archive contains one.
git -c core.abbrev=12 archive --format=tar.gz --prefix="spexd-$version/" --output="$files/spexd-$version.tar.gz" "$commit"
tar -xzf "$files/spexd-$version.tar.gz" -C "$folder"

# says FILE PATTERN: checks that a line of the file begins with the pattern, which ends the line or is followed by a space.
says() { grep -Eq "^ *${2//./\\.}( |\$)" "$source/$1" || fail "the version of the release is $version, but $1 does not say '$2'"; }
says CMakeLists.txt "project\(spexd VERSION $version"
says CITATION.cff "version: $version"
says deploy/chart/Chart.yaml "version: $version"
says deploy/chart/Chart.yaml "appVersion: $version"
says deploy/chart/values.yaml "image: spexd:$version"
says deploy/chart/values.yaml "image: spexd:$version-cuda"
# The section of the version, without its heading and the blank lines around it.
sed -n "/^${heading//./\\.}\$/,/^## /{/^## /d;p}" "$source/CHANGELOG.md" | sed '/./,$!d' >"$files/NOTES.md"
[ -s "$files/NOTES.md" ] || fail "CHANGELOG.md has no section '## $version (YYYY-MM-DD)', or nothing is in it"

SPEXD_CUDA=ON "$source/scripts/wheel.sh" "$files"
# The wheel contains auditwheel's list of the bundled libraries and their packages.
python3 - "$files"/*.whl <<'END'
import pathlib, sys, zipfile
for wheel in map(pathlib.Path, sys.argv[1:]):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/sboms/auditwheel.cdx.json"):
                wheel.with_suffix(".cdx.json").write_bytes(archive.read(name))
END
"$source/scripts/debian-packages.sh" -DSPEXD_CUDA=ON
cp "$source"/build/deb/packages/*.deb "$files"
(cd "$files" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)

ls -l "$files"
echo "release: spexd $version of commit ${commit::12} is in $files; nothing was published"
