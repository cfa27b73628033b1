"""Which licence each bundled library is under: what its distribution's package says of itself."""

import pathlib
import re
import subprocess

# The licence that a library is used under, where its package's file lists those of many parts.
KNOWN = {
    "libc6": "LGPL-2.1-or-later", "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1", "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "zlib1g": "Zlib", "libsqlite3-0": "public domain", "libyaml-0-2": "MIT", "libyaml-cpp": "MIT", "libfmt": "MIT", "libsimgrid": "LGPL-2.1-only",
    "libboost": "BSL-1.0"}


def package_of(path):
    """The Debian package that has this file, or None."""
    real = str(pathlib.Path(path).resolve())
    for name in (str(path), real, real.removeprefix("/usr")):
        said = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False) if pathlib.Path("/usr/bin/dpkg-query").exists() else None
        if said and said.returncode == 0:
            return re.split(r"[:,]", said.stdout)[0]
    return None


def licence(package):
    return next((text for start, text in KNOWN.items() if package and package.startswith(start)), None)


def write(libraries, unused, folder):
    """LICENCES.md and the packages' own texts; a library of no known licence ends the release."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Libraries in lib/foretrace", "", "foretrace is under the Apache License 2.0. What lies beside it, unchanged from the distribution it was built on:", "",
             "| Library | Package | Licence |", "| --- | --- | --- |"]
    for name, path in sorted(libraries.items()):
        package = package_of(path)
        terms = licence(package)
        if terms is None:
            raise SystemExit(f"error: nobody wrote down the licence of {name} ({package}): add it to {__file__}")
        lines.append(f"| {name} | {package} | {terms} |")
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            (folder / f"{package}.txt").write_bytes(text.read_bytes())
    lines += ["", "Compiled into the program: CLI11 (BSD-3-Clause), nlohmann-json (MIT), Eigen (MPL-2.0), Boost's headers (BSL-1.0), protozero (BSD-2-Clause), "
              "kainjow-mustache (BSL-1.0), tl-expected (CC0-1.0). The launcher bin/foretrace holds parts of libc and libstdc++."]
    lines += ["", "Each may be replaced by another build of the same interface: they are loaded from their files.", ""]
    if unused:
        lines += ["SimGrid was compiled with the headers of ns-3 (GPL-2.0-only), for a model that foretrace never calls; a SimGrid of your own, built without it, has none. These are "
                  "stand-ins without code: " + ", ".join(sorted(unused)) + ".", ""]
    (folder / "LICENCES.md").write_text("\n".join(lines))
