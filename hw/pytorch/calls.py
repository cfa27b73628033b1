"""A call of a program as a function without arguments: what PyTorch does for each operation (scenarios/program/ops.h)."""

import os
import time

import torch

from communication import Communication
from library import Shapes, library_kernel
from meeting import read_whole
from objects import TYPES
from program import ProgramError

NOT_RUN = {"framework_call": "PyTorch's own calls are the framework's work here",
           "enable_peer_access": "PyTorch enables it at the first copy between two GPUs"}
STAND_INS = {"captured": "additions that move as many bytes ran, not the captured kernels: python3 -m foretrace measure runs the script itself"}


CACHED = 32768  # float32 of each core: PyTorch gives no thread less, and its cache holds two such blocks


class OperationFailed(Exception):
    pass


def spin_until(end_ns):
    while time.perf_counter_ns() < end_ns:
        pass


class Calls:
    """Makes the functions of one host thread. They must run on that thread: PyTorch's current stream is the thread's."""

    def __init__(self, objects, barriers, thread):
        self.objects, self.barriers, self.thread = objects, barriers, thread
        self.communication = Communication(self)
        self.shapes, self.current, self.not_run, self.made = {}, None, {}, {}
        self.stand_ins = {}  # kind of library_kernel: how many a pass
        self.elapsed = {}

    def function(self, call):
        """The same one for calls with the same values."""
        if call.kind in NOT_RUN:
            self.not_run[call.kind] = self.not_run.get(call.kind, 0) + 1
            return None
        if call.kind == "library_kernel" and call.kernel in STAND_INS:
            self.stand_ins[call.kernel] = self.stand_ins.get(call.kernel, 0) + 1
        key = (call.id, *(tuple(one) if isinstance(one, list) else one for one in call.values.values()))
        if call.kind == "event_elapsed_time":
            key += (call.instance,)
        if key not in self.made:
            name, here = call.kind, self
            if name in ("nccl_send", "nccl_recv") or name.startswith("nccl_") and hasattr(Communication, name[5:]):
                name, here = name[5:], self.communication
            make = getattr(here, name if here is not self else "_" + name, None)
            if make is None:
                raise ProgramError("PyTorch has no call for this")
            self.made[key] = make(call)
        return self.made[key]

    def begin(self):
        """In the thread itself, before each pass."""
        self.current = None

    def use(self, number):
        """PyTorch's current stream from here on."""
        if number != self.current:
            torch.cuda.set_stream(self.objects.streams[number])
            self.current = number

    def on(self, number, function):
        def queue():
            self.use(number)
            function()
        return queue

    def buffer(self, number):
        return self.objects.buffers[number]

    def view(self, number, element, count, offset=0):
        """A function for the tensor: memory that the program allocates is another one in each pass."""
        buffer = self.buffer(number)
        if buffer.declared["allocated_by_program"] or buffer.memory == "fresh_pageable":
            return lambda: buffer.view(element, count, offset)
        made = buffer.view(element, count, offset)
        return lambda: made

    # host

    def _host_compute(self, call):
        nanoseconds = call.duration // 1000
        return lambda: spin_until(time.perf_counter_ns() + nanoseconds)

    def _host_fill(self, call):
        dst = self.view(call.dst, torch.float32, call.size // 4)
        return lambda: torch.rand(call.size // 4, out=dst())

    def _host_parallel(self, call):
        """Multiply-adds over the memory once, the rest of them over blocks that stay in the cores' caches."""
        threads = call.threads or len(os.sched_getaffinity(0))
        count, block = call.bytes // 12, threads * CACHED  # of memory two operands are read, one is written
        x, y = torch.rand(max(count, block)), torch.rand(max(count, block))
        small, other, whole = x[:block], y[:block], x[:count].numel()
        turns = max(0, round((call.flops - 2 * whole) / (2 * block)))

        def compute():
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            if whole:
                x[:count].addcmul_(x[:count], y[:count], value=1e-9)
            for _ in range(turns):
                small.addcmul_(small, other, value=1e-9)
        return compute

    def _read_file(self, call):
        file, dst = self.objects.file_of(self.thread, call.size), self.buffer(call.dst)
        return lambda: read_whole(file, dst.bytes.numpy(), call.size)

    def _host_barrier(self, call):
        parties = self.objects.program.barriers[call.barrier]["parties"]
        mine = {"process": self.objects.rank, "thread": self.thread}
        party = parties.index(mine)
        return lambda: self.barriers.arrive_and_wait(call.barrier, party)

    def _host_signal(self, call):
        return lambda: self.objects.signals[call.signal].release()

    def _host_wait(self, call):
        return lambda: self.objects.signals[call.signal].acquire()

    # kernels

    def _kernels(self, call):
        return self.objects.kernels[self.objects.devices[self.objects.program.streams[call.stream]["device"]]]

    def _spin(self, call):
        kernels = self._kernels(call)
        return self.on(call.stream, kernels.spin(call.duration // 1000, kernels.blocks_on(call.blocks, call.values.get("of", 0))))

    def _fault(self, call):
        return self.on(call.stream, self._kernels(call).fault())

    def _gemm(self, call):
        """cuBLAS is column-major: row-major, it is the transposed product with the operands exchanged."""
        if call.type not in TYPES or not TYPES[call.type].is_floating_point:
            raise ProgramError(f"measured with foretrace-hw only: a product of {call.type}")
        element, batch, m, n, k = TYPES[call.type], call.batch, call.m, call.n, call.k
        a = self.view(call.a, element, batch * m * k)
        b = self.view(call.b, element, batch * k * n)
        c = self.view(call.c, element, batch * m * n)

        def operands():
            left, right = b(), a()
            left = left.view(batch, k, n).mT if call.transpose_b else left.view(batch, n, k)
            right = right.view(batch, m, k).mT if call.transpose_a else right.view(batch, k, m)
            out = c().view(batch, n, m)
            return (left[0], right[0], out[0]) if batch == 1 else (left, right, out)
        product, add = (torch.mm, torch.addmm) if batch == 1 else (torch.bmm, torch.baddbmm)
        if any(self.buffer(one).declared["allocated_by_program"] for one in (call.a, call.b, call.c)):
            made = operands
        else:
            fixed = operands()
            made = lambda: fixed

        def multiply():
            left, right, out = made()
            if call.adds_to_c:
                add(out, left, right, out=out)
            else:
                product(left, right, out=out)

        def multiply_in_tf32():
            torch.backends.cuda.matmul.allow_tf32 = True
            multiply()
            torch.backends.cuda.matmul.allow_tf32 = False
        return self.on(call.stream, multiply_in_tf32 if call.values.get("tf32") else multiply)

    def _elementwise(self, call):
        element = TYPES[call.type]
        count = call.size // element.itemsize
        dst = self.view(call.dst, element, count)
        sources = [self.view(one, element, count) for one in call.sources]
        if not sources:
            fill = (lambda: dst().uniform_()) if element.is_floating_point else (lambda: dst().fill_(1))
            return self.on(call.stream, fill)
        if len(sources) == 1:
            return self.on(call.stream, lambda: torch.clamp_min(sources[0](), 0, out=dst()))
        return self.on(call.stream, lambda: torch.add(sources[0](), sources[1](), out=dst()))

    def _reduction(self, call):
        element = TYPES[call.type]
        src = self.view(call.src, element, call.size // element.itemsize)
        dst = self.view(call.dst, element, 1)
        reduce = {"sum": torch.sum, "prod": torch.prod, "min": torch.amin, "max": torch.amax, "avg": torch.mean}[call.values["op"]]
        typed = {} if call.values["op"] in ("min", "max") else {"dtype": element}
        return self.on(call.stream, lambda: reduce(src(), 0, out=dst()[0], **typed))

    def _library_kernel(self, call):
        device = self.objects.devices[self.objects.program.streams[call.stream]["device"]]
        shapes = self.shapes.setdefault(device, Shapes(device))
        return self.on(call.stream, library_kernel(shapes, call))

    def _host_func(self, call):
        objects, nanoseconds = self.objects, call.duration // 1000
        if call.wait is None and call.signal is None:
            return lambda: objects.runtime.launch_sleep(objects.streams[call.stream], nanoseconds)

        def function():
            if call.wait is not None:
                objects.signals[call.wait].acquire()
            spin_until(time.perf_counter_ns() + nanoseconds)
            if call.signal is not None:
                objects.signals[call.signal].release()
        return lambda: objects.runtime.launch_host_function(objects.streams[call.stream], function)

    # copies

    def _memcpy_async(self, call):
        return self.on(call.stream, self._copy(call, True))

    def _memcpy(self, call):
        return self.on(self._default_of(call.src, call.dst), self._copy(call, False))

    def _copy(self, call, non_blocking):
        src = self.view(call.src, torch.uint8, call.size, call.src_offset)
        dst = self.view(call.dst, torch.uint8, call.size, call.dst_offset)
        return lambda: dst().copy_(src(), non_blocking=non_blocking)

    def _default_of(self, *buffers):
        """The legacy default stream of the device that is touched."""
        devices = [self.buffer(one).declared["device"] for one in buffers if self.buffer(one).memory == "device"]
        return devices[-1] if devices else 0  # the program's streams begin with them

    def _memset_async(self, call):
        dst = self.view(call.dst, torch.uint8, call.size)
        return self.on(call.stream, lambda: dst().zero_())

    def _memset(self, call):
        dst = self.view(call.dst, torch.uint8, call.size)
        return self.on(self._default_of(call.dst), lambda: dst().zero_())

    # order

    def _event_record(self, call):
        return lambda: self.objects.events[call.event].record(self.objects.streams[call.stream])

    def _stream_wait_event(self, call):
        return lambda: self.objects.events[call.event].wait(self.objects.streams[call.stream])

    def _event_synchronize(self, call):
        return lambda: self.objects.events[call.event].synchronize()

    def _event_query(self, call):
        return lambda: self.objects.events[call.event].query()

    def _event_elapsed_time(self, call):
        def ask():
            events = self.objects.events
            milliseconds = events[call.start].elapsed_time(events[call.end])
            self.elapsed[call.id, call.instance] = round(milliseconds * 1e6)
        return ask

    def _event_wait_for(self, call):
        def wait():
            begin, event = time.perf_counter_ns(), self.objects.events[call.event]
            while not event.query():
                now = time.perf_counter_ns()
                if now - begin > call.timeout // 1000:
                    raise OperationFailed(f"the event did not complete within {call.timeout / 1e9:g} ms")
                spin_until(now + call.poll // 1000)
        return wait

    def _stream_synchronize(self, call):
        return self.objects.streams[call.stream].synchronize

    def _stream_query(self, call):
        return self.objects.streams[call.stream].query

    def _device_synchronize(self, call):
        device = self.objects.devices[call.device]
        return lambda: torch.cuda.synchronize(device)

    # memory: PyTorch's allocators

    def _malloc(self, call):
        return self.buffer(call.buffer).allocate

    def _free(self, call):
        return self.buffer(call.buffer).free

    _host_alloc, _host_free = _malloc, _free

    def _malloc_async(self, call):
        return self.on(call.stream, self.buffer(call.buffer).allocate)

    def _free_async(self, call):
        return self.on(call.stream, self.buffer(call.buffer).free)

    def _host_register(self, call):
        return self.buffer(call.buffer).pin

    def _host_unregister(self, call):
        return self.buffer(call.buffer).unpin

    # torch.distributed

    def _nccl_comm_init(self, call):
        number = self.objects.program.comms[call.comm]["communicator"]
        return lambda: self.objects.make_group(number, call.if_needed)

    def _nccl_comm_destroy(self, call):
        number = self.objects.program.comms[call.comm]["communicator"]
        return lambda: self.objects.destroy_group(number)

    # graphs

    def _graph_launch(self, call):
        return self.on(call.stream, lambda: self.objects.graphs[call.graph].replay())
