"""scripts/release.sh: what it refuses, and the files that it makes of a tag. Wheels and packages are replaced by
fakes."""

import pathlib
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FILES = [".gitattributes", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "cmake/archive_commit.txt",
         "deploy/chart/Chart.yaml", "deploy/chart/values.yaml", "scripts/release.sh"]
CHANGELOG = "# Changes\n\n## 1.2.3 (2026-12-01)\n\n- This is new.\n\n## 1.2.2 (2026-11-01)\n\n- This was.\n"
WHEEL = "spexd-1.2.3-py3-none-any"
STAND_INS = {
    "scripts/wheel.sh": f'#!/bin/sh\ncp "$(dirname "$0")/../{WHEEL}.whl" "$1"\n',
    "scripts/debian-packages.sh":
        '#!/bin/sh\nmkdir -p "$(dirname "$0")/../build/deb/packages"\n'
        'echo "$@" >"$(dirname "$0")/../build/deb/packages/spex_1.2.3-1_amd64.deb"\n',
}


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Change")


def release(folder, *arguments):
    return subprocess.run(["scripts/release.sh", *arguments], cwd=folder, capture_output=True, text=True)


def replace(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def tree(tmp_path):
    """Returns a repository with the project's own files that a release reads, at version 1.2.3, without a tag."""
    version = re.search(r"project\(spexd VERSION (\S+)", (SOURCES / "CMakeLists.txt").read_text())[1]
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCES / name, tmp_path / name)
        if name in ["CITATION.cff", "CMakeLists.txt"] or name.startswith("deploy"):
            replace(tmp_path / name, version, "1.2.3")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".gitignore").write_text("/build/\n")
    with zipfile.ZipFile(tmp_path / f"{WHEEL}.whl", "w") as archive:
        archive.writestr("spexd-1.2.3.dist-info/sboms/auditwheel.cdx.json", "{}")
    for name, text in STAND_INS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def test_a_tag_gives_the_same_files_each_time(tree):
    git(tree, "tag", "v1.2.3")
    made = release(tree)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1].endswith("build/release-1.2.3/files; nothing was published")
    files = tree / "build" / "release-1.2.3" / "files"
    expected = {"NOTES.md", "SHA256SUMS", f"{WHEEL}.cdx.json", f"{WHEEL}.whl", "spex_1.2.3-1_amd64.deb",
                "spexd-1.2.3.tar.gz"}
    assert {file.name for file in files.iterdir()} == expected
    assert (files / "NOTES.md").read_text().strip() == "- This is new."
    sums = (files / "SHA256SUMS").read_text()
    assert len(sums.splitlines()) == len(expected) - 1
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=files, check=True)
    with tarfile.open(files / "spexd-1.2.3.tar.gz") as archive:
        named = archive.extractfile("spexd-1.2.3/cmake/archive_commit.txt").read().decode().strip()
    assert named == git(tree, "rev-parse", "--short=12", "HEAD").strip()
    # Releases again later, by the tag's name, and with another umask.
    (tree / "later").touch()
    commit(tree)
    command = ["bash", "-c", "umask 077 && scripts/release.sh v1.2.3"]
    again = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert (files / "SHA256SUMS").read_text() == sums


def test_a_commit_without_a_tag_is_rehearsed_only(tree):
    replace(tree / "CHANGELOG.md", "(2026-12-01)", "(not released)")
    commit(tree)
    refused = release(tree)
    assert refused.returncode == 1 and "has no tag vVERSION" in refused.stderr
    assert release(tree, "--rehearse").returncode == 0
    git(tree, "tag", "v1.2.3")
    refused = release(tree)
    assert refused.returncode == 1 and "no section '## 1.2.3 (YYYY-MM-DD)'" in refused.stderr


@pytest.mark.parametrize("name, old, new, reason", [
    ("CMakeLists.txt", "1.2.3", "1.2.4", "CMakeLists.txt does not say"),
    ("CITATION.cff", "1.2.3", "1.2.30", "CITATION.cff does not say 'version: 1.2.3'"),
    ("deploy/chart/Chart.yaml", "appVersion: 1.2.3", "appVersion: 1.2.2", "does not say 'appVersion: 1.2.3'"),
    ("deploy/chart/values.yaml", "spexd:1.2.3-cuda", "spexd:1-cuda", "does not say 'image: spexd:1.2.3-cuda'"),
    ("CHANGELOG.md", "- This is new.\n", "", "or nothing is in it"),
])
def test_places_that_do_not_agree_with_the_tag_are_named(tree, name, old, new, reason):
    replace(tree / name, old, new)
    commit(tree)
    git(tree, "tag", "v1.2.3")
    refused = release(tree)
    assert refused.returncode == 1 and reason in refused.stderr


def test_changes_and_names_that_are_no_tags_are_refused(tree):
    for tag, reason in [("v1.2", "is not v and a version"), ("v1.2.4", "there is no tag 'v1.2.4'")]:
        refused = release(tree, tag)
        assert refused.returncode == 1 and reason in refused.stderr
    git(tree, "tag", "v1.2.3")
    (tree / "CMakeLists.txt").write_text("")
    refused = release(tree)
    assert refused.returncode == 1 and "the working tree has changes" in refused.stderr
