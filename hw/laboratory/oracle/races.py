#!/usr/bin/env python3
"""What data comes back when PyTorch code forgets to wait: the races of scenarios/races, run for real.

    mpirun -n 2 python3 hw/laboratory/oracle/races.py > races.csv

What two H200s returned: reports/measured/races/h200.csv. One line for each race and repetition, with the wait and without: how many of the elements are not what the
order of the program says, and which is the first. `is_completed` asks a work at once, and after its wait on
the host: `wrong` counts a "yes" while the GPU is still at work.
"""

import torch
import torch.distributed as dist

from ranks import start

REPETITIONS, WARMUP = 10, 3
ELEMENTS = 64 << 20  # 256 MiB of float32


def wrong_in(tensor, value):
    """(how many elements are not `value`, the first of them or -1)"""
    torch.cuda.synchronize()
    differ = tensor != value
    count = int(differ.sum())
    return count, int(differ.to(torch.uint8).argmax()) if count else -1


def result_used_before_wait(rank, device, wait):
    total = torch.full((ELEMENTS,), float(rank + 1), device=device)
    torch.cuda.synchronize()
    work = dist.all_reduce(total, async_op=True)
    if wait:
        work.wait()
    used = total + 0  # on the current stream
    found = wrong_in(used, 3.0)
    work.wait()
    return ELEMENTS, *found


def write_into_a_buffer_in_flight(rank, device, wait):
    buffer = torch.full((ELEMENTS,), 1.0 if rank == 0 else 0.0, device=device)
    torch.cuda.synchronize()
    if rank == 0:
        work = dist.isend(buffer, 1)
        if wait:
            work.wait()
        buffer.fill_(2.0)
        work.wait()
        torch.cuda.synchronize()
        return ELEMENTS, 0, -1
    dist.recv(buffer, 0)
    return ELEMENTS, *wrong_in(buffer, 1.0)


def two_streams_without_order(rank, device, wait):
    elements = ELEMENTS // 4
    source = torch.ones(elements, device=device)
    written = torch.zeros(elements, device=device)
    host = torch.zeros(elements, pin_memory=True)
    compute, copies = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(compute):
        torch.cuda._sleep(1_000_000)  # half a millisecond
        written.copy_(source)
    if wait:
        copies.wait_stream(compute)
    with torch.cuda.stream(copies):
        host.copy_(written, non_blocking=True)
    torch.cuda.synchronize()
    return elements, *wrong_in(host, 1.0)


def host_writes_while_a_copy_reads(rank, device, wait):
    batch = torch.ones(ELEMENTS, pin_memory=True)
    arrived = torch.zeros(ELEMENTS, device=device)
    torch.cuda.synchronize()
    arrived.copy_(batch, non_blocking=True)
    if wait:
        torch.cuda.synchronize()
    batch.zero_()
    return ELEMENTS, *wrong_in(arrived, 1.0)


def is_completed(rank, device, wait):
    tensor = torch.ones(ELEMENTS, device=device)
    torch.cuda.synchronize()
    work = dist.all_reduce(tensor, async_op=True)
    if wait:
        work.wait()
        torch.cuda.synchronize()
    says = work.is_completed()
    torch.cuda.synchronize()
    return 1, int(says) if not wait else int(not says), -1


def main():
    rank, _, device, together = start(29534)
    if rank == 0:
        print("race,waits,repetition,elements,wrong,first_wrong")
    for race in (result_used_before_wait, write_into_a_buffer_in_flight, two_streams_without_order,
                 host_writes_while_a_copy_reads, is_completed):
        for wait in (False, True):
            for repetition in range(REPETITIONS + WARMUP):
                dist.barrier(group=together)
                found = race(rank, device, wait)
                everyone = [None, None]
                dist.all_gather_object(everyone, found, group=together)
                # Of two ranks the one that has more to say.
                elements, wrong, first = max(everyone, key=lambda one: one[1])
                if rank == 0 and repetition >= WARMUP:
                    print(f"{race.__name__},{'yes' if wait else 'no'},{repetition - WARMUP},"
                          f"{elements},{wrong},{first}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
