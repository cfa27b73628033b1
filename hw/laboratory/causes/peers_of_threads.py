#!/usr/bin/env python3
"""Writes peers_of_threads.yaml: one thread, or one for each of two GPUs, copies between the GPUs, waits and hands over.

hw/laboratory/causes/peers_of_threads.py > peers_of_threads.yaml; regions are KIND_THREADS_GPU. `--without` leaves out peer access."""

import sys

WITHOUT = "--without" in sys.argv
OBJECTS = """# What do copies between the GPUs of one process cost%s: alone, waited for, behind events, from one thread and from two?
schema_version: 1
name: peers_of_threads%s
devices: 2
streams: {s: {each: device, flags: non_blocking}, t: {each: device, flags: non_blocking}}
events: {e: {each: device, timing: false}, f: {each: device, timing: false}}
signals: {told: {each: device}}
buffers:
  small: {each: device, memory: device, size: 64KiB}
  halo: {each: device, memory: device, size: 512KiB}
  large: {each: device, memory: device, size: 16MiB}
  small_to: {each: device, memory: device, size: 64KiB}
  halo_to: {each: device, memory: device, size: 512KiB}
  large_to: {each: device, memory: device, size: 16MiB}
threads:""" % (("" if not WITHOUT else " without peer access"), ("" if not WITHOUT else "_without"))


def push(what):
    return f"{{memcpy_async: {{stream: s(ME), src: {what}(ME), dst: {what}_to(YOU)}}}}"


def pull(what):
    return f"{{memcpy_async: {{stream: s(ME), src: {what}(YOU), dst: {what}_to(ME)}}}}"


WAIT = "{stream_synchronize: {stream: s(ME)}}"
OWN = "{elementwise: {stream: s(ME), src: halo(ME), dst: halo(ME)}}"
TOLD = "{host_signal: {signal: told(ME)}}, {host_wait: {signal: told(YOU)}}"
# Name, whether one thread makes sense, times, operations; ME and YOU are filled in.
KINDS = [(f"{way.__name__}_{size}_{how}", True, 10, way(size) + rest)
         for way in (push, pull) for size in ("small", "halo", "large") for how, rest in (("row", ""), ("waited", ", " + WAIT))]
KINDS += [
    ("kernel", True, 20, OWN),
    ("kernel_push", True, 10, OWN + ", " + push("halo")),
    ("kernel_push_waited", True, 10, OWN + ", " + push("halo") + ", " + WAIT),
    ("told", False, 20, TOLD),
    ("events", False, 20, f"{OWN}, {{event_record: {{stream: s(ME), event: e(ME)}}}}, {TOLD}, {{stream_wait_event: {{stream: s(ME), event: e(YOU)}}}}"),
    ("pushed_events", False, 20, f"{push('halo')}, {{event_record: {{stream: s(ME), event: e(ME)}}}}, {TOLD}, {{stream_wait_event: {{stream: s(ME), event: e(YOU)}}}}"),
    ("pushed_events_waited", False, 10, f"{push('halo')}, {{event_record: {{stream: s(ME), event: e(ME)}}}}, {TOLD}, {{stream_wait_event: {{stream: s(ME), event: e(YOU)}}}}, {WAIT}"),
    ("foreign_wait", True, 20, f"{OWN}, {{event_record: {{stream: s(ME), event: e(ME)}}}}, {{stream_wait_event: {{stream: t(YOU), event: e(ME)}}}}"),
]

print(OBJECTS)
for me in (0, 1):
    print(f"  gpu{me}:")
    if not WITHOUT:
        print(f"    - enable_peer_access: {{device: {me}, peer: {1 - me}}}")
    for kind, alone, times, ops in KINDS:
        for threads in ((1, 2) if alone else (2,)):
            print("    - host_barrier: {}")
            print(f"    - device_synchronize: {{device: {me}}}")
            print("    - host_barrier: {}")
            if me < threads:
                made = ops.replace("ME", str(me)).replace("YOU", str(1 - me))
                print(f"    - region: {{name: {kind}_{threads}_{me}, per: {times}, "
                      f"ops: [{{repeat: {{times: {times}, ops: [{made}]}}}}, {{stream_synchronize: {{stream: s({me})}}}}]}}")
