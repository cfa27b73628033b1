"""The shared libraries that a program needs, and stand-ins for those whose code is never run."""

import pathlib
import re
import shutil
import subprocess

# Debian's SimGrid links them for a model of ns-3 that foretrace does not use. ns-3 and GSL are GPL, and 30 MB.
NEVER_RUN = re.compile(r"lib(ns3-|gsl|gfortran|quadmath)")


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def needed_by(file):
    """Names in its DT_NEEDED."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-dW", str(file)))


def loader_of(program):
    """Path of the program's interpreter."""
    return pathlib.Path(re.search(r"program interpreter: (.*)\]", tool("readelf", "-lW", str(program))).group(1))


def closure(files):
    """({name: path} of all libraries that these files load, {name: path} of those that are never run)."""
    places = {}
    for file in files:
        places.update(re.findall(r"^\s*(\S+) => (/\S+)", tool("ldd", str(file)), re.M))
    found, unused, waiting = {}, {}, list(files)
    while waiting:
        for name in needed_by(waiting.pop()):
            if name in found or name in unused or name.startswith("ld-linux"):
                continue
            if name not in places:
                raise SystemExit(f"error: {name} is not found by ldd")
            path = pathlib.Path(places[name])
            if NEVER_RUN.match(name):
                unused[name] = path
            else:
                found[name] = path
                waiting.append(path)
    return found, unused


def symbols(file, undefined):
    """{name: (type, bytes)} of its dynamic symbols, without versions."""
    result = {}
    for line in tool("readelf", "--dyn-syms", "-W", str(file)).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].endswith(":") and (fields[6] == "UND") == undefined and fields[4] in ("GLOBAL", "WEAK"):
            result[fields[7].split("@")[0]] = (fields[3], int(fields[2], 0))
    return result


def write_stand_ins(users, unused, folder, compiler):
    """Libraries by the names of `unused`, with what `users` take from them: functions that return 0, data that is 0."""
    wanted = set().union(*(symbols(user, True) for user in users))
    offered = {}
    for path in unused.values():
        offered.update({name: kind for name, kind in symbols(path, False).items() if name in wanted})
    lines = [".text"]
    functions = sorted(name for name, (kind, _) in offered.items() if kind in ("FUNC", "IFUNC"))
    data = sorted(name for name, (kind, _) in offered.items() if kind not in ("FUNC", "IFUNC"))
    lines += [f'.globl "{name}"\n.type "{name}", %function\n"{name}":' for name in functions]
    lines += ["xor %eax, %eax\nret" if shutil.os.uname().machine == "x86_64" else "mov x0, #0\nret", ".bss", ".balign 16"]
    for name in data:
        lines.append(f'.globl "{name}"\n.type "{name}", %object\n.size "{name}", {offered[name][1]}\n"{name}": .skip {max(offered[name][1], 16)}\n.balign 16')
    lines.append('.section .note.GNU-stack,"",%progbits\n')
    source = folder / "stand_in.s"
    source.write_text("\n".join(lines))
    for name in unused:
        subprocess.run([compiler, "-shared", "-nostdlib", "-s", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)], check=True)
        source.write_text('.section .note.GNU-stack,"",%progbits\n')  # one has all
    source.unlink()
    return functions + data
