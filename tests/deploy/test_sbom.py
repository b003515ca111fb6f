"""scripts/sbom.py, which lists the contents of an image."""

import json
import os
import subprocess

from dashboard import SOURCES

STATUS = """Package: libz
Status: install ok installed
Architecture: amd64
Version: 1:1.2+b1
Description: two lines
 Version: of a description

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: gcc-base
Status: install ok installed
Architecture: all
Source: gcc (12)
Version: 12.2~1
"""


def made(folder, *flags):
    (folder / "status").write_text(STATUS)
    command = [SOURCES / "scripts" / "sbom.py", "0.1.0+abc", folder / "status", *flags]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


PARTS = ["--linked", "cli11=2.3", "--bundled", "cublas=13.1"]


def test_it_names_spexd_the_installed_packages_and_the_other_parts(tmp_path):
    document = made(tmp_path, *PARTS)
    assert {part["name"]: part["versionInfo"] for part in document["packages"]} == {
        "image": "0.1.0+abc", "spexd": "0.1.0+abc", "deb-libz": "1:1.2+b1", "deb-gcc-base": "12.2~1",
        "linked-cli11": "2.3", "bundled-cublas": "13.1",
    }
    locators = [part["externalRefs"][0]["referenceLocator"] for part in document["packages"] if "externalRefs" in part]
    assert locators == ["pkg:deb/debian/gcc-base@12.2~1?arch=all", "pkg:deb/debian/libz@1%3A1.2%2Bb1?arch=amd64"]


def test_its_relations_lead_to_every_package_and_it_is_the_same_each_time(tmp_path):
    document = made(tmp_path, *PARTS)
    identifiers = {part["SPDXID"] for part in document["packages"]}
    assert {relation["relatedSpdxElement"] for relation in document["relationships"]} == identifiers
    assert document["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    assert document == made(tmp_path, *PARTS)


def test_a_library_belongs_to_the_image_and_what_is_linked_to_the_programs(tmp_path):
    relations = {(relation["spdxElementId"], relation["relationshipType"], relation["relatedSpdxElement"])
                 for relation in made(tmp_path, *PARTS)["relationships"]}
    assert ("SPDXRef-image", "CONTAINS", "SPDXRef-bundled-cublas") in relations
    assert ("SPDXRef-spexd", "STATIC_LINK", "SPDXRef-linked-cli11") in relations
