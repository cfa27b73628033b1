"""Runs generated scripts: measures them on this machine's GPUs, or captures them without one.

    python3 run.py DIRECTORY/ -o OUT/ [--budget 250]            on a machine with GPUs: OUT/results.jsonl, OUT/kernels-N.tar
    python3 run.py DIRECTORY/ -o OUT/ --compile 5 --launches 3  compiles what is compiled, 5 at once, before anything is measured; each script in 3 processes
    python3 run.py DIRECTORY/ -o OUT/ --capture [--jobs 2]      anywhere: OUT/NAME/step.yaml and its record, OUT/captured.jsonl

DIRECTORY is generate.py's; a script of N GPUs is measured where there are as many, and captured as one rank of N. results.jsonl: the machine, then a line for each script
and rank. Files stay below 15 MiB, so that they can be carried."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scenarios" / "pytorch"
TAR_MOST = 15 << 20


def chosen(arguments):
    folder = pathlib.Path(arguments.directory)
    listed = json.loads((folder / "programs.json").read_text())
    return [dict(d, script=str((folder / d["file"]).resolve())) for d in listed if not arguments.only or re.search(arguments.only, d["name"])]


def compile_first(listed, work, jobs):
    """One step of each script that compiles, `jobs` at once: Inductor finds its kernels in its cache afterwards."""
    folder = work / "compiled_first"
    folder.mkdir(parents=True, exist_ok=True)

    def one(d):
        text = pathlib.Path(d["script"]).read_text()
        if "torch.compile(" in text:
            short = folder / f"{d['name']}.py"
            short.write_text(re.sub(r"range\(60\)", "range(1)", text))
            with open(folder / f"{d['name']}.txt", "w") as said:
                subprocess.run([sys.executable, "-W", "ignore", str(short)], stdout=said, stderr=subprocess.STDOUT, check=False, timeout=180)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, listed))


def measure(arguments):
    sys.path.insert(0, str(PACKAGE))
    from foretrace.measuring import run_scripts
    output = pathlib.Path(arguments.output)
    work = output / "work"
    began, budget = time.time(), arguments.budget
    listed = chosen(arguments)
    if arguments.compile:
        compile_first(listed, work, arguments.compile)
        print(f"compiled: {time.time() - began:.0f} s", flush=True)
    with open(output / "results.jsonl", "w") as out:
        for launch, gpus in [(i, n) for i in range(arguments.launches) for n in sorted({d["gpus"] for d in listed})]:
            jobs = [{"name": d["name"], "script": d["script"]} for d in listed if d["gpus"] == gpus]
            left = budget - (time.time() - began) if budget else None
            if left is not None and left < 5:
                continue
            results, machine = run_scripts(jobs, work, gpus, timeout=arguments.timeout, budget=left)
            out.write(json.dumps({"machine": machine, "gpus": gpus, "launch": launch}) + "\n")
            for d in jobs:
                for line in results.get(d["name"], [{"name": d["name"], "outcome": "not run"}]):
                    out.write(json.dumps({**line, "launch": launch}) + "\n")
                    out.flush()
                    print(summary(line), flush=True)
    pack(work, output)
    print(f"{time.time() - began:.0f} s")


def summary(line):
    if line["outcome"] != "measured":
        return f"{line['name']}: {line['outcome']} {line.get('error', '')[:200]}"
    return (f"{line['name']} rank {line['rank']}: step {min(line['step_ms']):.2f} free {line['free_running_ms']:.2f} host {min(line['host_ms']):.2f} busy "
            f"{line.get('gpu_busy_ms', 0):.2f} ms, {line.get('kernels', 0)} kernels, peak {line['memory']['allocated'][1]}, {line['seconds']} s")


def pack(work, output):
    """The kernels of all scripts in files that can be carried; and what the workers printed last."""
    number, size, tar = 0, 0, None
    for path in sorted(work.glob("*.jsonl.gz")):
        if tar is None or size + path.stat().st_size > TAR_MOST:
            if tar:
                tar.close()
            tar, size, number = tarfile.open(output / f"kernels-{number}.tar", "w"), 0, number + 1
        tar.add(path, path.name)
        size += path.stat().st_size
        path.unlink()
    if tar:
        tar.close()
    printed = work / "output.rank0.txt"
    if printed.exists():
        (output / "printed.txt").write_text(printed.read_text(errors="replace")[-200_000:])


def capture_one(d, output, gpu):
    began = time.time()
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")]), HF_HUB_OFFLINE="1")
    command = [sys.executable, "-W", "ignore", "-m", "foretrace", "capture", "-o", str(output / d["name"]), "--world-size", str(d["gpus"]), "--gpu", gpu, d["script"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    line = {"name": d["name"], "outcome": "captured" if done.returncode == 0 else "failed", "seconds": round(time.time() - began, 1)}
    text = done.stdout + done.stderr
    found = re.search(r"peak ([\d,]+) B; host ([\d.]+) ms", text)
    if found:
        line.update(peak=int(found.group(1).replace(",", "")), host_ms=float(found.group(2)))
    if done.returncode:
        line["outcome"] = "out_of_memory" if "OutOfMemoryError" in text else "failed"
        line["error"] = "\n".join(text.strip().splitlines()[-12:])[-1500:]
    else:
        line["said"] = [s.strip() for s in done.stdout.splitlines()]
    return line


def capture(arguments):
    output = pathlib.Path(arguments.output)
    with open(output / "captured.jsonl", "w") as out, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(lambda d: capture_one(d, output, arguments.gpu), chosen(arguments)):
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(line["name"], line["outcome"], line.get("peak", ""), line.get("host_ms", ""), line["seconds"], "s", line.get("error", "")[-300:], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--only", help="names, a regular expression")
    parser.add_argument("--budget", type=float, help="seconds for all that is measured")
    parser.add_argument("--launches", type=int, default=1, help="how often all of it is measured, in a process of its own each time (1)")
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="compile first, N scripts at once")
    parser.add_argument("--timeout", type=float, default=60, help="seconds without progress of a script (60)")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--gpu", default="h100")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    (capture if arguments.capture else measure)(arguments)


if __name__ == "__main__":
    main()
