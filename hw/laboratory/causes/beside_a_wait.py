#!/usr/bin/env python3
"""Writes beside_a_wait.yaml: what a call takes that begins while another thread of the process waits, frees or allocates.

hw/laboratory/causes/beside_a_wait.py > beside_a_wait.yaml; regions are CALL_beside_WAIT."""

WAITS = {
    "nothing": ["host_compute: {duration: 1ms}"],
    "stream": ["stream_synchronize: {stream: s}"],
    "device": ["device_synchronize: {}"],
    "event": ["event_synchronize: {event: e}"],
    "free": ["free: {buffer: x}", "malloc: {buffer: x}"],
    "alloc": ["host_alloc: {buffer: p}", "host_free: {buffer: p}"],
}
CALLS = {
    "launch": "spin: {stream: s, duration: 1us}",
    "launch_elsewhere": "spin: {stream: t, duration: 1us}",
    "record": "event_record: {event: f, stream: s}",
    "upload": "memcpy_async: {stream: s, src: pinned, dst: dev}",
    "query": "event_query: {event: e}",
    "wait": "stream_synchronize: {stream: t}",
    "host_copy": "memcpy: {src: a, dst: b}",
}
print("""# What does a call take while another thread of the process waits for the stream, the device or an event, frees or allocates?
schema_version: 1
name: beside_a_wait
streams: {s: {flags: non_blocking}, t: {flags: non_blocking}}
events: {e: {timing: false}, f: {timing: false}}
buffers:
  x: {memory: device, size: 64MiB}
  dev: {memory: device, size: 4KiB}
  a: {memory: pageable, size: 4KiB}
  b: {memory: pageable, size: 4KiB}
  pinned: {memory: pinned, size: 4KiB}
  p: {memory: pinned, size: 32MiB}
threads:
  waits:
    - malloc: {buffer: x}""")
calls = ["  calls:"]
for wait, waiting in WAITS.items():
    for call, made in CALLS.items():
        for line in ["spin: {stream: s, duration: 1ms}", "event_record: {event: e, stream: s}", "host_barrier: {}", *waiting, "host_barrier: {}",
                     "device_synchronize: {}"]:
            print(f"    - {line}")
        calls += ["    - host_barrier: {}", "    - host_compute: {duration: 200us}",
                  f"    - region: {{name: {call}_beside_{wait}, issue_only: true, ops: [{made}]}}", "    - host_barrier: {}"]
print("    - free: {buffer: x}")
print("\n".join(calls))
