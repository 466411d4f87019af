"""The chart library that every page carries: which files, from where, and whether they are the published ones.

``python -m ramify.report.vendor`` fetches them from the npm registry and writes them only if their digests are these;
a test holds the stored files against the same digests. The versions are those that ``vl-convert-python`` 1.9 draws
with, so that the page and the static figures come from the same code.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["FILES", "FOLDER", "File", "scripts", "strange"]

FOLDER = Path(__file__).parent / "assets" / "vendor"


class File(NamedTuple):
    """One package of the registry and the one script of it that is used."""

    package: str
    version: str
    member: str  # in the tarball
    tarball: str  # sha512 of the tarball, as the registry states it
    script: str  # sha256 of the script

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


# In the order in which they have to run. The interpreter walks expressions, so that nothing on the page is evaluated
# as code and the content security policy can forbid it.
FILES = (
    File(
        "vega",
        "6.2.0",
        "package/build/vega.min.js",
        "sha512-BIwalIcEGysJdQDjeVUmMWB3e50jPDNAMfLJscjEvpunU9bSt7X1OYnQxkg3uBwuRRI4nWfFZO9uIW910nLeGw==",
        "6c71894413060aaa3c09d02661bc375dfdc1634dedcd0283483dd8841518433b",
    ),
    File(
        "vega-lite",
        "6.4.1",
        "package/build/vega-lite.min.js",
        "sha512-KO3ybHNouRK4A0al/+2fN9UqgTEfxrd/ntGLY933Hg5UOYotDVQdshR3zn7OfXwQ7uj0W96Vfa5R+QxO8am3IQ==",
        "85bd16c3f756c45d4b1745795233a2a5284a91a317e23366797265f181e9dfea",
    ),
    File(
        "vega-interpreter",
        "2.3.0",
        "package/build/vega-interpreter.min.js",
        "sha512-YjFQfZuyK/kwH44pOpj6YHxsv5EsI7WgNroeYJYVhSv2XQg5ikme7ZqJ+KSHwVzIexqCs4o4I+Dava4he0EKjA==",
        "f959f73501f276e96930beef07dec98a2b8d6f66a0bce876bb806d79b3079175",
    ),
)


def scripts() -> list[str]:
    """The texts of the scripts, in the order in which they have to run."""
    return [(FOLDER / file.name).read_text(encoding="utf-8") for file in FILES]


def strange() -> list[str]:
    """The stored files that are not the published ones."""
    return [file.name for file in FILES if _digest((FOLDER / file.name).read_bytes()) != file.script]


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _fetch(file: File) -> tuple[bytes, bytes]:
    """(the script, the licence) of a package, or an error if the tarball is not the one that was reviewed."""
    import httpx2

    url = f"https://registry.npmjs.org/{file.package}/-/{file.package}-{file.version}.tgz"
    raw = httpx2.get(url, follow_redirects=True).raise_for_status().content
    found = "sha512-" + base64.b64encode(hashlib.sha512(raw).digest()).decode()
    if found != file.tarball:
        raise SystemExit(f"{url} is {found}, and {file.tarball} was expected: nothing was written")
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        script, licence = (archive.extractfile(name) for name in (file.member, "package/LICENSE"))
        if script is None or licence is None:
            raise SystemExit(f"{url} lacks {file.member} or its licence: nothing was written")
        return script.read(), licence.read()


def main() -> None:
    for file in FILES:
        script, licence = _fetch(file)
        # The map is not shipped, so a page must not ask for it.
        script = b"\n".join(line for line in script.splitlines() if not line.startswith(b"//# sourceMappingURL="))
        if _digest(script) != file.script:
            raise SystemExit(f"{file.name} is {_digest(script)}: nothing was written")
        (FOLDER / file.name).write_bytes(script)
        (FOLDER / f"{file.package}.LICENSE").write_bytes(licence)
        print(f"{file.package} {file.version}: {len(script):,} bytes")


if __name__ == "__main__":
    main()
