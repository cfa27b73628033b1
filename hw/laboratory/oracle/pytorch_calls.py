#!/usr/bin/env python3
"""Measures what PyTorch's calls take of the host's time: the `pytorch.*` parameters of a machine file.

    mpirun -n 2 python3 hw/laboratory/oracle/pytorch_calls.py

Prints one line for each parameter, as a machine file has it: the median over 9 repetitions of 200 calls
in a row. The GPUs keep up with these calls, so it is the calls' time that counts.
"""

import statistics
import time

import torch
import torch.distributed as dist

from ranks import start

CALLS, REPETITIONS, WARMUP = 200, 9, 2


def microseconds(call, together, calls=CALLS):
    """Median host time of one call."""
    times = []
    for repetition in range(REPETITIONS + WARMUP):
        torch.cuda.synchronize()
        dist.barrier(group=together)
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        if repetition >= WARMUP:
            times.append((time.perf_counter() - begin) / calls * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def main():
    rank, ranks, device, together = start(29533)
    a, b, c = (torch.rand(128, 128, device=device) for _ in range(3))
    on_host = torch.empty(1024, pin_memory=True)
    here, there = torch.empty(1024, device=device), torch.empty(1024, device=device)
    event, other = torch.cuda.Event(), torch.cuda.Stream()
    event.record()
    one = torch.zeros(64 * ranks, device=device)
    part = torch.zeros(64, device=device)
    peer = rank ^ 1

    def exchange():
        ops = [dist.P2POp(dist.isend, one, peer), dist.P2POp(dist.irecv, there[: 64 * ranks], peer)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    def median(*calls):
        return statistics.median(microseconds(call, together) for call in calls)

    collective = median(
        lambda: dist.all_reduce(one),
        lambda: dist.all_gather_into_tensor(one, part),
        lambda: dist.reduce_scatter_tensor(part, one),
        lambda: dist.broadcast(one, 0),
        lambda: dist.reduce(one, 0),
    )
    rows = {
        "launch_kernel": median(
            lambda: torch.add(a, b, out=c), lambda: c.mul_(0.5), lambda: torch.relu_(c)
        ),
        "launch_gemm": median(lambda: torch.mm(a, b, out=c)),
        "memcpy_async": median(
            lambda: here.copy_(on_host, non_blocking=True),
            lambda: on_host.copy_(here, non_blocking=True),
        ),
        "memcpy_device": median(lambda: there.copy_(here)),
        "memset": median(lambda: c.zero_()),
        "event_record": median(lambda: event.record()),
        "stream_wait_event": median(lambda: other.wait_event(event)),
        "query": median(lambda: event.query()),
        "synchronize": median(lambda: event.synchronize(), other.synchronize),
        "device_synchronize": median(torch.cuda.synchronize),
        "collective, with its events and waits": collective,
    }
    if peer < ranks:
        rows["per_operation"] = microseconds(exchange, together, 50) - collective
    if rank == 0:
        print(f"# PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {ranks} processes")
        for name, value in rows.items():
            print(f"pytorch.{name}: {value:.2f}us")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
