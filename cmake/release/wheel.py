"""A wheel of the Python package with the program inside, by the format of packaging.python.org ("Binary distribution format")."""

import base64
import hashlib
import os
import zipfile

# The program brings its loader and libc, and the launcher is static: what counts is the kernel (3.2), on any libc.
TAGS = {"x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        "aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"}
LEFT_OUT = ("share/foretrace/scenarios/pytorch", "share/man", "share/bash-completion", "share/zsh")


def files_below(folder):
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            yield os.path.relpath(path, folder), path


def write(stage, version, out, compressed=True):
    """Of the installed tree `stage`; returns its path."""
    tag = f"py3-none-{TAGS[os.uname().machine]}"
    dist = f"foretrace-{version}.dist-info"
    path = out / f"foretrace-{version}-{tag}.whl"
    package = stage / "share/foretrace/scenarios/pytorch/foretrace"
    readme = (package.parent / "README.md").read_text()
    record = []
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method, compresslevel=9) as wheel:
        def add(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = method, (0o100000 | mode) << 16
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")

        def add_tree(folder, inside):
            for name, file in files_below(folder):
                if inside and name.startswith(LEFT_OUT) or "__pycache__" in name:
                    continue
                with open(file, "rb") as data:
                    add(f"foretrace/{inside}{name}", data.read(), 0o755 if os.access(file, os.X_OK) else 0o644)

        add_tree(package, "")
        add_tree(stage, "_program/")
        add(f"{dist}/METADATA", f"""Metadata-Version: 2.1
Name: foretrace
Version: {version}
Summary: Predicts what a multi-GPU program does in time
License: Apache-2.0; LICENCES.md names those of the libraries in the program
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}""".encode())
        add(f"{dist}/WHEEL", f"Wheel-Version: 1.0\nGenerator: foretrace\nRoot-Is-Purelib: false\n{''.join(f'Tag: py3-none-{one}' + chr(10) for one in TAGS[os.uname().machine].split('.'))}".encode())
        add(f"{dist}/entry_points.txt", b"[console_scripts]\nforetrace = foretrace.program:main\n")
        add(f"{dist}/licenses/LICENSE", (stage / "share/doc/foretrace/copyright").read_bytes())
        record.append(f"{dist}/RECORD,,")
        wheel.writestr(zipfile.ZipInfo(f"{dist}/RECORD", (2020, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
    return path
