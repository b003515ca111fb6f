#!/usr/bin/env python3
"""Writes an SBOM of an image (SPDX 2.3, JSON) to stdout.

scripts/sbom.py VERSION STATUS [--linked PART=VERSION]... [--bundled PART=VERSION]...

VERSION is spexd's; STATUS is the image's /var/lib/dpkg/status, which names its Debian packages. Of the parts that are
no packages of the image, --linked names what was compiled into the programs, --bundled a library that lies beside them.
SOURCE_DATE_EPOCH sets the date.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import urllib.parse


def installed(status):
    """Returns the fields of each installed package of dpkg's status file, ordered by name."""
    packages = []
    for paragraph in re.split(r"\n\n+", status.strip()):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status") == "install ok installed":
            packages.append(fields)
    return sorted(packages, key=lambda fields: fields["Package"])


def package(name, version, **more):
    identifier = re.sub(r"[^A-Za-z0-9.-]", "-", name)
    return {
        "SPDXID": f"SPDXRef-{identifier}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION", **more,
    }


def debian_package(fields):
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    locator = f"pkg:deb/debian/{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?arch={architecture}"
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
    source = fields.get("Source", name)
    return package(f"deb-{name}", version, externalRefs=[reference], sourceInfo=f"built from the source package {source}")


def relation(of, kind, to):
    return {"spdxElementId": of["SPDXID"], "relationshipType": kind, "relatedSpdxElement": to["SPDXID"]}


def document(version, status, linked, bundled):
    image, spexd = package("image", version), package("spexd", version, licenseDeclared="Apache-2.0")
    debian = [debian_package(fields) for fields in installed(status)]
    parts = [package(f"linked-{name}", its_version) for name, its_version in linked]
    libraries = [package(f"bundled-{name}", its_version) for name, its_version in bundled]
    made = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp()))
    content = json.dumps([spexd, *debian, *parts, *libraries], sort_keys=True).encode()
    described = {"SPDXID": "SPDXRef-DOCUMENT"}
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", **described, "name": f"spexd {version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/spexd-{hashlib.sha256(content).hexdigest()}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(made, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: spexd-sbom"],
        },
        "packages": [image, spexd, *debian, *parts, *libraries],
        "relationships": [
            relation(described, "DESCRIBES", image),
            *(relation(image, "CONTAINS", part) for part in [spexd, *debian, *libraries]),
            *(relation(spexd, "STATIC_LINK", part) for part in parts),
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("status")
    for option in ["--linked", "--bundled"]:
        parser.add_argument(option, action="append", default=[], type=lambda text: tuple(text.split("=", 1)))
    arguments = parser.parse_args()
    with open(arguments.status, encoding="utf-8") as file:
        status = file.read()
    json.dump(document(arguments.version, status, arguments.linked, arguments.bundled), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
