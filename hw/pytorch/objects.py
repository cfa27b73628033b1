"""What a program declares, in one process: torch streams, events, memory, process groups."""

import mmap
import os
import threading

import torch
import torch.distributed as dist

from cuda import PER_THREAD, Kernels, Runtime
from meeting import stored_file
from program import ProgramError

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
         "int8": torch.int8, "int32": torch.int32, "int64": torch.int64}
RED_OPS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX,
           "avg": dist.ReduceOp.AVG}


class Buffer:
    """`bytes` is a uint8 tensor while there is memory. Device and pinned memory is PyTorch's allocators'."""

    def __init__(self, declared, device, element):
        self.declared, self.device, self.element, self.bytes = declared, device, element, None
        self.memory, self.size = declared["memory"], declared["size"]
        self.registered = False

    def allocate(self):
        if self.memory == "device":
            self.bytes = torch.empty(self.size, dtype=torch.uint8, device=self.device)
        elif self.memory == "pinned":
            self.bytes = torch.empty(self.pages(), dtype=torch.uint8, pin_memory=True)
        else:  # on a page of its own, which nobody has touched
            self.bytes = torch.frombuffer(mmap.mmap(-1, self.pages()), dtype=torch.uint8)

    def pages(self):
        """Whole ones: files are read in pages."""
        return -(-self.size // mmap.PAGESIZE) * mmap.PAGESIZE

    def fill(self):
        whole = self.size // self.element.itemsize
        view = self.view(self.element, whole)
        if self.declared["contents"] == "zeros":
            view.zero_()
        elif not self.element.is_floating_point:
            view.random_(0, 4)
        elif self.declared["contents"] == "normal":
            view.normal_()
        else:
            view.uniform_()

    def view(self, element, count, offset=0):
        return self.bytes[offset:offset + count * element.itemsize].view(element)

    def pin(self):
        """cudaHostRegister, until host_unregister or the pass' end."""
        torch.cuda.check_error(torch.cuda.cudart().cudaHostRegister(self.bytes.data_ptr(), self.size, 0))
        self.registered = True

    def unpin(self):
        torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(self.bytes.data_ptr()))
        self.registered = False

    def free(self):
        if self.registered:
            torch.cuda.cudart().cudaHostUnregister(self.bytes.data_ptr())
            self.registered = False
        self.bytes = None


class Objects:
    def __init__(self, program, ranks):
        self.program, self.rank = program, ranks.rank
        first = int(os.environ.get("LOCAL_RANK", ranks.rank)) * program.devices
        self.devices = [torch.device("cuda", first + one) for one in range(program.devices)]
        torch.cuda.set_device(self.devices[0])
        self.runtime = Runtime()
        self.kernels = {}
        if any(op["kind"] in ("spin", "fault") for op in program.walk()):
            self.kernels = {device: Kernels(device) for device in self.devices}
        self.streams = [self._stream(declared) for declared in program.streams]
        types = program.buffer_types()
        self.buffers = [Buffer(one, self.devices[one["device"]], TYPES[types.get(number, "float32")])
                        for number, one in enumerate(program.buffers)]
        for buffer in self.buffers:
            if not buffer.declared["allocated_by_program"] and buffer.memory != "fresh_pageable":
                buffer.allocate()
                buffer.fill()
        self.events, self.graphs, self.signals = [], {}, []
        self.groups = [None] * len(program.communicators)
        for number, one in enumerate(program.communicators):
            self._check(one)
            if one["init"] != "op":
                self.make_group(number, in_pass=False)
        self.files = {}

    def _stream(self, declared):
        device = self.devices[declared["device"]]
        if declared["kind"] == "legacy_default":
            return torch.cuda.default_stream(device)
        if declared["kind"] == "per_thread_default":
            return torch.cuda.ExternalStream(PER_THREAD, device)
        return self.runtime.stream(device, declared["kind"] == "blocking", declared["priority"])

    def _check(self, communicator):
        processes = [one["process"] for one in communicator["members"]]
        if len(set(processes)) != len(processes):
            raise ProgramError(f"communicator {communicator['name']} has several GPUs of one process: "
                               "torch.distributed has one for each")

    def make_group(self, number, if_needed=False, in_pass=True):
        """torch.distributed's group of a communicator. In a pass its ranks call this, before it all processes do. The first one
        of all processes is torch's own."""
        if self.groups[number] is not None and if_needed:
            return
        members = [one["process"] for one in self.program.communicators[number]["members"]]
        if len(members) == self.program.processes and not in_pass and dist.group.WORLD not in self.groups:
            self.groups[number] = dist.group.WORLD
            return
        some = in_pass and len(members) < self.program.processes
        group = dist.new_group(members, backend="nccl", use_local_synchronization=some)
        if self.rank in members:
            self.groups[number] = group

    def group(self, comm):
        number = self.program.comms[comm]["communicator"]
        return self.groups[number], [one["process"] for one in self.program.communicators[number]["members"]]

    def destroy_group(self, number):
        dist.destroy_process_group(self.groups[number])
        self.groups[number] = None

    def file_of(self, thread, size):
        if (thread, size) not in self.files:
            self.files[thread, size] = stored_file(size)
        return self.files[thread, size]

    def before_pass(self):
        self.events = [torch.cuda.Event(enable_timing=one["timing"]) for one in self.program.events]
        self.signals = [threading.Semaphore(0) for _ in self.program.signals]
        self.graphs.clear()
        for buffer in self.buffers:
            if buffer.memory == "fresh_pageable" and not buffer.declared["allocated_by_program"]:
                buffer.free()
                buffer.allocate()
            elif buffer.memory == "device" and buffer.bytes is not None:
                buffer.fill()  # sums in place would grow from pass to pass
        self.synchronize()

    def after_pass(self):
        self.synchronize()
        for number, one in enumerate(self.program.communicators):
            if one["init"] == "op" and self.groups[number] is not None:
                self.destroy_group(number)
        for buffer in self.buffers:
            if buffer.declared["allocated_by_program"] or buffer.registered:
                kept = None if buffer.declared["allocated_by_program"] else buffer.bytes
                buffer.free()
                buffer.bytes = kept
        self.runtime.kept.clear()

    def synchronize(self):
        for device in self.devices:
            torch.cuda.synchronize(device)
