#!/usr/bin/env python3
"""A tarball, a Debian package, a wheel and container files that need nothing of the system but Linux: README.md of this folder."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import libraries  # noqa: E402
import licences  # noqa: E402
import wheel  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def stage_program(options, stage):
    """PREFIX with bin, lib and share; the loader and all libraries lie in lib/foretrace."""
    shutil.rmtree(stage, ignore_errors=True)
    subprocess.run([options.cmake, "--install", options.build, "--prefix", stage, "--component", "program", "--strip"], check=True, stdout=subprocess.DEVNULL)
    own = stage / "lib/foretrace"
    shutil.move(stage / "bin/foretrace", own / "foretrace")
    ours = [own / "foretrace", own / "libforetrace_flows.so"]
    loader = libraries.loader_of(ours[0])
    found, unused = libraries.closure(ours)
    for name, path in found.items():
        shutil.copy(path.resolve(), own / name)
    shutil.copy(loader.resolve(), own / loader.name)
    libraries.write_stand_ins([path for path in found.values() if path.name.startswith("libsimgrid")], unused, own, options.compiler)
    subprocess.run([options.compiler, "-O1", "-s", "-static", f'-DFORETRACE_LOADER="{loader.name}"', "-o", stage / "bin/foretrace", HERE / "launcher.cc"], check=True)
    licences.write(dict(found, **{loader.name: loader}), unused, stage / "share/doc/foretrace/licences")
    for file in own.iterdir():
        file.chmod(0o755 if file.name in ("foretrace", loader.name) else 0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cmake", "cpack", "compiler", "version"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="the installed tree and an uncompressed wheel alone: for tests")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    stage = out / "foretrace"
    stage_program(options, stage)
    machine = shutil.os.uname().machine
    for old in (*out.glob("*.deb"), *out.glob("*.tar.gz"), *out.glob("*.whl")):
        old.unlink()
    if options.quick:
        wheel.write(stage, options.version, out, compressed=False)
        return
    configuration = out / "cpack.cmake"
    configuration.write_text((HERE / "cpack.cmake.in").read_text().replace("@STAGE@", str(stage)).replace("@VERSION@", options.version)
                             .replace("@MACHINE@", machine).replace("@OUT@", str(out))
                             .replace("@DEBIAN@", {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)))
    for generator in ("TGZ", "DEB"):
        if generator == "DEB" and not shutil.which("dpkg"):
            print("no Debian package: there is no dpkg here")
            continue
        subprocess.run([options.cpack, "-G", generator, "--config", configuration], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, FORETRACE_KIND=generator))
    shutil.rmtree(out / "_CPack_Packages", ignore_errors=True)
    wheel.write(stage, options.version, out)
    (out / "Containerfile").write_text((HERE / "Containerfile.in").read_text().replace("@NAME@", f"foretrace-{options.version}-linux-{machine}"))
    for file in (*sorted(out.glob("*.tar.gz")), *sorted(out.glob("*.deb")), *sorted(out.glob("*.whl"))):
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file}")


if __name__ == "__main__":
    main()
