#!/usr/bin/env python3
"""Writes allocating_threads.yaml: one to four threads of a process allocate, each for its own stream.

hw/laboratory/causes/allocating_threads.py > allocating_threads.yaml; regions are KIND_THREADS_THREAD."""

OBJECTS = """# What do threads of one process wait for each other that allocate and free: with cudaMalloc, from the pool, with kernels between and without?
schema_version: 1
name: allocating_threads
streams: {s: {count: 4, flags: non_blocking}}
buffers:
  own: {memory: device, size: 4MiB, count: 4}
  small: {memory: device, size: 64KiB, count: 4}
  pool: {memory: device, size: 4MiB, count: 4}
  x: {memory: device, size: 4MiB, count: 4}
threads:"""

KERNELS = "{elementwise: {stream: s(THREAD), src: x(THREAD), dst: BUFFER(THREAD)}}, {elementwise: {stream: s(THREAD), src: BUFFER(THREAD), dst: x(THREAD)}}"
# Name, times of a region, operations; THREAD is filled in.
KINDS = [
    ("malloc", 10, "{malloc: {buffer: own(THREAD)}}, {free: {buffer: own(THREAD)}}"),
    ("malloc_small", 20, "{malloc: {buffer: small(THREAD)}}, {free: {buffer: small(THREAD)}}"),
    ("malloc_and_kernels", 10, "{malloc: {buffer: own(THREAD)}}, " + KERNELS.replace("BUFFER", "own") +
     ", {stream_synchronize: {stream: s(THREAD)}}, {free: {buffer: own(THREAD)}}"),
    ("pool", 60, "{malloc_async: {stream: s(THREAD), buffer: pool(THREAD)}}, {free_async: {stream: s(THREAD), buffer: pool(THREAD)}}"),
    ("pool_and_kernels", 30, "{malloc_async: {stream: s(THREAD), buffer: pool(THREAD)}}, " + KERNELS.replace("BUFFER", "pool") +
     ", {free_async: {stream: s(THREAD), buffer: pool(THREAD)}}"),
    ("kernels", 30, "{elementwise: {stream: s(THREAD), src: x(THREAD), dst: x(THREAD)}}, {elementwise: {stream: s(THREAD), src: x(THREAD), dst: x(THREAD)}}"),
]
NAMES = ["first", "second", "third", "fourth"]

print(OBJECTS)
for number, name in enumerate(NAMES):
    print(f"  {name}:")
    for kind, times, ops in KINDS:
        for threads in range(1, len(NAMES) + 1):
            if number == 0:
                print("    - device_synchronize: {}")
            print("    - host_barrier: {}")
            if number < threads:
                print(f"    - region: {{name: {kind}_{threads}_{name}, per: {times}, "
                      f"ops: [{{repeat: {{times: {times}, ops: [{ops.replace('THREAD', str(number))}]}}}}, {{stream_synchronize: {{stream: s({number})}}}}]}}")
            print("    - host_barrier: {}")
