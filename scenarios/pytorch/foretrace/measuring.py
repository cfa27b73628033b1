"""Runs scripts on this machine's GPUs and measures a step of each.

A worker process plays one rank, and runs one script after another, so that PyTorch is imported once. A script that fails is recorded; one that takes its process
with it, or hangs, is recorded by the parent, which goes on with the next one in a new process."""

import contextlib
import gc
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

from .environment import rank_environment, script_digest, timer_library
from .child import end_with
from .recorder import CaptureDone
from .reference_loop import host_text
from .scenario import word
from .whole import write_whole

STEPS_OF_TURN, TURNS = 4, 5


def machine():
    """What a result is worth without: GPU, versions, the host's speed."""
    import platform

    import torch

    from .reference_loop import host_speed
    p = torch.cuda.get_device_properties(0)
    return {"gpu": p.name, "sms": p.multi_processor_count, "memory": p.total_memory, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "python": platform.python_version(), "cores": os.cpu_count(),
            "free_memory": torch.cuda.mem_get_info()[0], "host": host_speed()}


def run_one(script, arguments, region=None, module=False, measurement=None):
    """One script in this process; its result, and lines of its kernels (empty if it failed)."""
    import torch

    from . import kernels, session
    from .child import run_script
    from .measurement import Measurement
    from .steps import Steps
    measurement = measurement or Measurement()
    left_over = [torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]  # of scripts before, which some keep in circles that nobody breaks
    steps = Steps(measurement, region)
    session._active = steps
    steps.watch_optimizers()
    result, lines = {"outcome": "measured"}, []
    path, argv = list(sys.path), sys.argv
    try:
        run_script(script, arguments, module)
    except CaptureDone:
        pass
    except torch.cuda.OutOfMemoryError as error:
        result = {"outcome": "out_of_memory", "error": str(error)[:400]}
    except SystemExit as end:
        if end.code not in (None, 0):
            result = {"outcome": "failed", "error": f"exit {end.code}"}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        result = {"outcome": "failed", "error": f"{type(error).__name__}: {str(error)[:400]}", "at": f"{os.path.basename(frame.filename)}:{frame.lineno}"}
        traceback.clear_frames(error.__traceback__)
    finally:
        session._active = None
        steps.close()
        sys.path[:], sys.argv = path, argv
    if result["outcome"] == "measured" and not measurement.done:
        result = {"outcome": "failed", "error": f"the program ended after {measurement.index} steps"}
    result.update(measurement.result())
    result["memory"]["left_over"] = left_over
    if result["outcome"] == "measured" and measurement.calls:
        result["calls_of_host"] = measurement.calls
    if result["outcome"] == "measured" and measurement.profiler:
        lines, sums = kernels.rows(kernels.read_trace(measurement.profiler))
        result.update(sums)
    else:
        result["memory"]["peak_at_end"] = torch.cuda.max_memory_allocated()
    return result, lines


def clean_up():
    """As a new process would find the GPU and PyTorch's settings, but for the libraries' own workspaces."""
    import torch
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
    sys.last_value = sys.last_traceback = None
    with contextlib.suppress(Exception):
        torch._C._cuda_clearCublasWorkspaces()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def worker():
    """python3 -m foretrace.measuring JOBS.json: runs the scripts of a list as one rank; a line of `log` for each."""
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    end_with(jobs.get("parent"))
    rank = int(os.environ.get("RANK", "0"))
    import torch

    from . import kernels
    from .measurement import Measurement
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with open(f"{jobs['log']}.rank{rank}", "a") as log:
        log.write(json.dumps({"machine": machine()}) + "\n")
        log.flush()
        for job in jobs["scripts"]:
            log.write(json.dumps({"begins": job["name"]}) + "\n")
            log.flush()
            os.environ["MASTER_PORT"] = str(job["port"])
            began = time.time()
            measurement = Measurement(**job.get("measurement", {}))
            result, lines = run_one(job["script"], job.get("arguments", []), job.get("region"), job.get("module", False), measurement)
            if lines:
                kernels.write(os.path.join(jobs["output"], f"{job['name']}.rank{rank}.kernels.jsonl.gz"), lines)
            if "calls_of_host" in result:
                kernels.write(os.path.join(jobs["output"], f"{job['name']}.rank{rank}.host.jsonl.gz"), [result.pop("calls_of_host")])
            del lines
            clean_up()
            log.write(json.dumps({"name": job["name"], "rank": rank, "seconds": round(time.time() - began, 2), **result}) + "\n")
            log.flush()
    os._exit(0)


def run_scripts(scripts, output, gpus, timeout=60, budget=None):
    """`scripts`: {"name", "script", ...}; returns {name: [result of each rank]} and the machine. `timeout`: seconds without any progress of a script;
    `budget`: seconds for all."""
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    log = output / "progress.jsonl"
    for rank in range(gpus):
        pathlib.Path(f"{log}.rank{rank}").unlink(missing_ok=True)
    end = time.time() + budget if budget else float("inf")
    left = [dict(s, port=29600 + i) for i, s in enumerate(scripts)]
    while left and time.time() < end:
        processes = _start(left, output, log, gpus)
        lost = _watch(processes, log, gpus, timeout, end)
        done = {r["name"] for r in _lines(log, 0) if "name" in r}
        if lost and lost not in done:
            _append(log, {"name": lost, "rank": 0, "outcome": "failed", "error": "its process ended, or hung"})
            done.add(lost)
        before = len(left)
        left = [s for s in left if s["name"] not in done]
        if len(left) == before:
            break
    results = {}
    for rank in range(gpus):
        for line in _lines(log, rank):
            if "name" in line:
                results.setdefault(line["name"], []).append(line)
    first = next((line["machine"] for line in _lines(log, 0) if "machine" in line), {})
    return results, first


def _start(scripts, output, log, gpus):
    jobs = output / "jobs.json"
    jobs.write_text(json.dumps({"scripts": scripts, "output": str(output), "log": str(log), "parent": os.getpid()}))
    package = str(pathlib.Path(__file__).resolve().parents[1])
    processes = []
    for rank in range(gpus):
        environment = dict(rank_environment(os.environ, rank, gpus, gpus), MASTER_ADDR="127.0.0.1", MASTER_PORT="29599", HF_HUB_OFFLINE="1",
                           TOKENIZERS_PARALLELISM="false")
        environment["PYTHONPATH"] = os.pathsep.join([package] + ([os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []))
        timer = timer_library()
        if timer:
            environment["LD_PRELOAD"] = ":".join([timer] + ([os.environ["LD_PRELOAD"]] if os.environ.get("LD_PRELOAD") else []))
        with open(output / f"output.rank{rank}.txt", "a") as printed:
            processes.append(subprocess.Popen([sys.executable, "-W", "ignore", "-m", "foretrace.measuring", str(jobs)], env=environment, stdout=printed,
                                              stderr=subprocess.STDOUT))
    return processes


def _lines(log, rank):
    path = pathlib.Path(f"{log}.rank{rank}")
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []


def _append(log, line):
    with open(f"{log}.rank0", "a") as file:
        file.write(json.dumps(line) + "\n")


def _watch(processes, log, gpus, timeout, end):
    """Waits for the processes; ends them when one has failed or nothing happens. The script that ran then, or None."""
    seen, since = -1, time.time()
    while True:
        if all(p.poll() is not None for p in processes):
            break
        now = sum(os.path.getsize(f"{log}.rank{r}") for r in range(gpus) if os.path.exists(f"{log}.rank{r}"))
        if now != seen:
            seen, since = now, time.time()
        if time.time() - since > timeout or time.time() > end or any(p.poll() not in (None, 0) for p in processes):
            for p in processes:
                p.kill()
            break
        time.sleep(0.05)
    for p in processes:
        p.wait()
    begun = [line["begins"] for line in _lines(log, 0) if "begins" in line]
    ended = {line["name"] for line in _lines(log, 0) if "name" in line}
    return begun[-1] if begun and begun[-1] not in ended else None


def measure_script(arguments):
    """The command `measure`: one script, `arguments.gpus` processes."""
    output = pathlib.Path(arguments.output)
    name = word(output.resolve().name)
    job = {"name": name, "script": os.path.abspath(arguments.script) if not arguments.module else arguments.script, "arguments": arguments.arguments,
           "region": arguments.region, "module": arguments.module, "measurement": {"warm": arguments.step, "turns": max(1, arguments.steps // STEPS_OF_TURN)}}
    results, host = run_scripts([job], output, arguments.gpus, arguments.timeout)
    ranks = results.get(name, [])
    write_whole(output / "measured.json", json.dumps({"machine": host, "ranks": ranks}, indent=1) + "\n")
    if ranks and ranks[0].get("host"):
        write_whole(output / "host.yaml", host_text(ranks[0]["host"]))  # for simulate --host
    if ranks:
        host["script_digest"] = script_digest([job["script"], *job["arguments"]], arguments.gpus)
        write_timeline(output, name, host, ranks, arguments.region)
    if len(ranks) < arguments.gpus or any(r["outcome"] != "measured" for r in ranks):
        failed = next((r for r in ranks if r["outcome"] != "measured"), {"error": "no result"})
        print(f"foretrace: {failed.get('error')}; what the program printed: {output}/output.rank{failed.get('rank', 0)}.txt", file=sys.stderr)
        return 1
    r = ranks[0]
    print(f"step {r['free_running_ms']:.2f} ms ({_median(r['step_ms']):.2f} ms with a wait behind each), host {_median(r['host_ms']):.2f} ms, "
          f"GPU busy {r['gpu_busy_ms']:.2f} ms, peak {r['memory']['allocated'][1]:,} B; written: {output}/measured.timeline.json")
    return 0


def write_timeline(folder, name, machine, ranks, region):
    """FOLDER/measured.timeline.json of what the ranks measured, with the kernels that they wrote into the folder."""
    from . import kernels, timeline
    files = {r["rank"]: pathlib.Path(folder) / f"{name}.rank{r['rank']}.kernels.jsonl.gz" for r in ranks}
    lines = {rank: kernels.read(file) for rank, file in files.items() if file.exists()}
    timeline.write(pathlib.Path(folder) / "measured.timeline.json", timeline.document(name, machine, ranks, lines, region or "step"))


def _median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else float("nan")


@contextlib.contextmanager
def measure(out, world_size=1, step=3):  # noqa: ARG001: as `capture` takes them
    """`with foretrace.measure(OUT)`: measures the program inside, in this process, on real GPUs; `world_size` and `step` are a capture's."""
    import torch

    from . import kernels, session
    from .measurement import Measurement
    from .steps import Steps
    if session._active is not None:  # python3 -m foretrace measures already
        yield
        return
    measurement = Measurement(turns=TURNS)
    steps = Steps(measurement)
    session._active = steps
    steps.watch_optimizers()
    try:
        yield
    except CaptureDone:
        pass
    finally:
        session._active = None
        steps.close()
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    rank = int(os.environ.get("RANK", "0"))
    result = {"outcome": "measured" if measurement.done else "failed", **measurement.result()}
    if measurement.profiler and measurement.done:
        lines, sums = kernels.rows(kernels.read_trace(measurement.profiler))
        kernels.write(folder / f"{folder.name}.rank{rank}.kernels.jsonl.gz", lines)
        result.update(sums)
    ranks = [dict(result, rank=rank)]
    write_whole(folder / f"measured{rank or ''}.json", json.dumps({"machine": machine(), "ranks": ranks}, indent=1) + "\n")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # of several processes `python3 -m foretrace measure` joins them
        write_timeline(folder, folder.name, {**machine(), "script_digest": script_digest(sys.argv, 1)}, ranks, steps.region)


if __name__ == "__main__":
    worker()
