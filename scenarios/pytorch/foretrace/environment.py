"""Where the emulated GPU's libraries and files are, and the environment that makes a process run on it."""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import sys

from .program import BUNDLED, find_program

HERE = pathlib.Path(__file__).resolve().parent
ONE_ROOT = 1_000_000  # ranks
LIBRARIES = ("libforetrace_cuda.so", "libforetrace_nvml.so", "libforetrace_nvrtc12.so", "libforetrace_nvrtc13.so")


class CaptureError(Exception):
    """What the user can mend; its text says how."""


def script_digest(command, ranks):
    """What a record and a measurement are both of: `command` is a script with its arguments, by its text, or a module with its own, by its name, and so many
    ranks. Empty where there is neither, as in a notebook: nothing can be compared then."""
    if not command or not command[0] or "ipykernel" in sys.modules:
        return ""
    script = pathlib.Path(command[0])
    try:
        text = script.read_bytes() if script.is_file() else command[0].encode(errors="surrogateescape")
    except OSError:
        return ""
    words = json.dumps([hashlib.sha256(text).hexdigest(), *command[1:], ranks])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _roots():
    """Folders that may hold hw/emulated/: of a checkout, and of an installed program."""
    yield BUNDLED / "share" / "foretrace"
    yield from reversed(list(HERE.parents)[1:3])
    program = find_program()
    if program:
        yield pathlib.Path(program).resolve().parents[1] / "share" / "foretrace"


def _library_folders():
    """Where our libraries may be: named by $FORETRACE_LIBRARY, beside the installed program, in a build folder of a checkout."""
    given = os.environ.get("FORETRACE_LIBRARY")
    folders = [pathlib.Path(given)] if given else []
    folders.append(BUNDLED / "lib" / "foretrace")
    program = find_program()
    if program:
        folders.append(pathlib.Path(program).resolve().parents[1] / "lib" / "foretrace")
    folders += [parent / "lib" / "foretrace" for parent in list(HERE.parents)[3:5]]
    checkout = list(HERE.parents)[2:3]
    return folders + sorted((f for top in checkout for f in top.glob("build/*/hw")), key=lambda p: p.stat().st_mtime, reverse=True)


def libraries():
    """Paths of the libraries that stand in for CUDA's."""
    for folder in _library_folders():
        if all((folder / name).exists() for name in LIBRARIES):
            return [str(folder / name) for name in LIBRARIES]
    raise CaptureError("libforetrace_cuda.so is not found: install the program `foretrace`, or name the library's folder in FORETRACE_LIBRARY")


def timer_library():
    """Path of the library that times calls of the real ones, or None."""
    return next((str(f / "libforetrace_timer.so") for f in _library_folders() if (f / "libforetrace_timer.so").exists()), None)


def device_files():
    """{key: path} of the GPUs that can be emulated."""
    for root in _roots():
        folder = root / "hw" / "emulated" / "devices"
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    raise CaptureError("hw/emulated/devices is not found: install the program `foretrace`")


def read_device(path):
    """{key: value} of a device's file."""
    values = {}
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.split(" #")[0]
        if not line.startswith("#") and ": " in line:
            key, value = line.split(": ", 1)
            values[key] = int(value) if re.fullmatch(r"-?\d+", value.strip()) else value.strip()
    return values


def torch_versions():
    """("2.11.0+cu130", "13.0") of the PyTorch that this interpreter would import, without importing it; CUDA's is None for other builds."""
    spec = importlib.util.find_spec("torch")
    if not spec or not spec.origin:
        raise CaptureError(f"this Python ({os.path.realpath('/proc/self/exe')}) has no PyTorch")
    text = (pathlib.Path(spec.origin).parent / "version.py").read_text()
    version = re.search(r"__version__ = '([^']*)'", text)
    cuda = re.search(r"^cuda[^=]*= '([^']*)'", text, re.M)
    return version.group(1) if version else "unknown", cuda.group(1) if cuda else None


def cuda_number(version):
    """13000 for "13.0", as CUDA writes versions."""
    major, minor = (version.split(".") + ["0"])[:2]
    return int(major) * 1000 + int(minor) * 10


def _triton():
    """torch.compile on the emulated GPU: Triton links libcuda.so.1, and what it compiles and chooses here is kept apart from what the user's GPUs chose."""
    kept = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "foretrace"
    cuda = pathlib.Path(libraries()[0])
    link = kept / "libcuda" / hashlib.sha256(str(cuda).encode()).hexdigest()[:12] / "libcuda.so.1"
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(cuda)
    except FileExistsError:
        pass  # another capture has just made it
    except OSError:
        return {}  # no home to write to: programs that compile say so themselves
    return {"TRITON_LIBCUDA_PATH": str(link.parent), "TRITON_CACHE_DIR": str(kept / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(kept / "inductor")}


def rank_environment(base, rank, world_size, per_node):
    """What torchrun would set for this rank: of several processes of a node each has one thread for the CPU's operations, if nobody said how many."""
    local = min(world_size, per_node)
    threads = {} if local == 1 or "OMP_NUM_THREADS" in base else {"OMP_NUM_THREADS": "1"}
    return dict(base, RANK=str(rank), LOCAL_RANK=str(rank % local), WORLD_SIZE=str(world_size), LOCAL_WORLD_SIZE=str(local),
                GROUP_RANK=str(rank // local), ROLE_RANK=str(rank), ROLE_WORLD_SIZE=str(world_size), MASTER_ADDR=base.get("MASTER_ADDR", "127.0.0.1"),
                MASTER_PORT=base.get("MASTER_PORT", "29500"), TORCHELASTIC_RUN_ID="none", **threads)


def emulated_environment(gpu, devices, memory=None, base=None):
    """The environment of a process that sees `devices` GPUs of kind `gpu`. `memory`: bytes of each, if not the GPU's own."""
    files = device_files()
    if gpu not in files:
        raise CaptureError(f"--gpu {gpu}: there are {', '.join(files)}")
    torch, cuda = torch_versions()
    if not cuda:
        raise CaptureError(f"PyTorch {torch} is not a CUDA build; the emulated GPU needs one (pip install torch on Linux gives it)")
    environment = dict(os.environ if base is None else base)
    before = environment.get("LD_PRELOAD", "")
    environment.update(
        LD_PRELOAD=":".join(libraries() + ([before] if before else [])), FORETRACE_DEVICE=str(files[gpu]), FORETRACE_DEVICES=str(devices),
        FORETRACE_CUDA=str(cuda_number(cuda)))
    convolutions = files[gpu].parent / "convolutions.csv"
    if convolutions.exists():
        environment["FORETRACE_CONVOLUTIONS"] = str(convolutions)
    environment.update(_triton())
    # Of more ranks than 128 PyTorch lets several make NCCL's ids, and would wait ten minutes for those that no process plays.
    environment["TORCH_NCCL_RANKS_PER_ROOT"] = str(ONE_ROOT)
    environment.setdefault("KINETO_LOG_LEVEL", "5")  # there is no CUPTI, which is no news
    if memory:
        environment["FORETRACE_MEMORY"] = str(memory)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"):
        environment.pop(name, None)
    return environment


def fake_environment(gpu, base=None):
    """The environment of a process whose GPU is made of fake tensors: no GPU of this machine is seen."""
    files = device_files()
    if gpu not in files:
        raise CaptureError(f"--gpu {gpu}: there are {', '.join(files)}")
    environment = dict(os.environ if base is None else base)
    environment.update(FORETRACE_DEVICE=str(files[gpu]), CUDA_VISIBLE_DEVICES="")
    return environment
