#!/usr/bin/env python3
"""Writes threads_and_streams.yaml: one to four threads of a process make the same call on and on, on one stream or each on its own.

hw/laboratory/causes/threads_and_streams.py > threads_and_streams.yaml; regions are KIND_STREAM_THREADS_THREAD."""

OBJECTS = """# What do threads of one process wait for each other that launch, record, copy, wait or ask: on one stream, or each on its own?
schema_version: 1
name: threads_and_streams
streams: {own: {count: 4, flags: non_blocking}, shared: {flags: non_blocking}}
events: {e: {count: 4, timing: false}}
buffers:
  host: {memory: pinned, size: 4KiB, count: 4}
  loose: {memory: pageable, size: 16KiB, count: 4}
  dev: {memory: device, size: 16KiB, count: 4}
  from: {memory: pageable, size: 2MiB, count: 4, contents: random}
  to: {memory: pinned, size: 2MiB, count: 4, contents: zeros}
threads:"""

# Name, calls of a region, operations; STREAM and THREAD are filled in.
KINDS = [
    ("launches", 300, "{spin: {stream: STREAM, duration: 1us}}"),
    ("records", 300, "{event_record: {event: e(THREAD), stream: STREAM}}"),
    ("uploads", 300, "{memcpy_async: {stream: STREAM, src: host(THREAD), dst: dev(THREAD), size: 4KiB}}"),
    ("pageable", 300, "{memcpy_async: {stream: STREAM, src: loose(THREAD), dst: dev(THREAD), size: 4KiB}}"),
    ("waits", 100, "{spin: {stream: STREAM, duration: 1us}}, {stream_synchronize: {stream: STREAM}}"),
    ("queries", 300, "{event_query: {event: e(THREAD)}}"),
]
HOST_COPY = "{memcpy: {src: from(THREAD), dst: to(THREAD), size: %dB, src_offset: i %% 64 * 32KiB, dst_offset: i %% 64 * 32KiB}}"
NAMES = ["first", "second", "third", "fourth"]


def steps():
    for kind, times, ops in KINDS:
        for where in ("shared", "own"):
            for threads in range(1, len(NAMES) + 1):
                yield f"{kind}_{where}_{threads}", where, threads, times, ops
    for size in (1536, 11264, 28224):
        for threads in range(1, len(NAMES) + 1):
            yield f"host_copies_{size}_{threads}", "own", threads, 200, HOST_COPY % size


print(OBJECTS)
for number, name in enumerate(NAMES):
    print(f"  {name}:")
    for step, where, threads, times, ops in steps():
        stream = "shared" if where == "shared" else f"own({number})"
        made = ops.replace("STREAM", stream).replace("THREAD", str(number))
        if number == 0:
            print("    - device_synchronize: {}")
        print("    - host_barrier: {}")
        if number < threads:
            print(f"    - region: {{name: {step}_{name}, per: {times}, issue_only: true, "
                  f"ops: [{{repeat: {{index: i, times: {times}, ops: [{made}]}}}}]}}")
        print("    - host_barrier: {}")
