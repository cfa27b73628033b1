"""NCCL's operations as torch.distributed has them. A collective runs in place: torch.distributed knows no other all_reduce,
broadcast and reduce."""

import torch.distributed as dist

from objects import RED_OPS, TYPES
from program import ProgramError


class Communication:
    def __init__(self, calls):
        self.calls, self.objects = calls, calls.objects

    def _parts(self, call, send=1, recv=1):
        """The views of a collective, as functions, with so many times its size."""
        element = TYPES[call.type]
        count = call.size // element.itemsize
        view = self.calls.view
        return view(call.send, element, send * count), view(call.recv, element, recv * count), count

    def _group(self, call):
        number = self.objects.program.comms[call.comm]["communicator"]
        members = self.objects.group(call.comm)[1]
        return (lambda: self.objects.groups[number]), members

    def _on(self, call, function):
        return self.calls.on(call.stream, function)

    def all_reduce(self, call):
        _, recv, _ = self._parts(call)
        (group, _), op = self._group(call), RED_OPS[call.values["op"]]
        return self._on(call, lambda: dist.all_reduce(recv(), op, group()))

    def broadcast(self, call):
        send, recv, _ = self._parts(call)
        group, members = self._group(call)
        root = members[call.root]
        data = send if root == self.objects.rank else recv
        return self._on(call, lambda: dist.broadcast(data(), root, group()))

    def reduce(self, call):
        send, recv, _ = self._parts(call)
        (group, members), op = self._group(call), RED_OPS[call.values["op"]]
        root = members[call.root]
        data = recv if root == self.objects.rank else send
        return self._on(call, lambda: dist.reduce(data(), root, op, group()))

    def all_gather(self, call):
        group, members = self._group(call)
        send, recv, _ = self._parts(call, recv=len(members))
        return self._on(call, lambda: dist.all_gather_into_tensor(recv(), send(), group()))

    def reduce_scatter(self, call):
        group, members = self._group(call)
        op = RED_OPS[call.values["op"]]
        send, recv, _ = self._parts(call, send=len(members))
        return self._on(call, lambda: dist.reduce_scatter_tensor(recv(), send(), op, group()))

    def all_to_all(self, call):
        group, members = self._group(call)
        send, recv, _ = self._parts(call, len(members), len(members))
        return self._on(call, lambda: dist.all_to_all_single(recv(), send(), group=group()))

    def gather(self, call):
        group, members = self._group(call)
        root = members[call.root]
        here = root == self.objects.rank
        send, recv, count = self._parts(call, recv=len(members) if here else 1)
        parts = (lambda: list(recv().split(count))) if here else (lambda: None)
        return self._on(call, lambda: dist.gather(send(), parts(), root, group()))

    def scatter(self, call):
        group, members = self._group(call)
        root = members[call.root]
        here = root == self.objects.rank
        send, recv, count = self._parts(call, send=len(members) if here else 1)
        parts = (lambda: list(send().split(count))) if here else (lambda: None)
        return self._on(call, lambda: dist.scatter(recv(), parts(), root, group()))

    def _transfer(self, call, function):
        element = TYPES[call.type]
        data = self.calls.view(call.buffer, element, call.size // element.itemsize)
        group, members = self._group(call)
        return lambda: (function, data(), members[call.peer], group())

    def send(self, call):
        transfer = self._transfer(call, dist.send)

        def send():
            function, data, peer, group = transfer()
            function(data, peer, group)
        return self._on(call, send)

    def recv(self, call):
        transfer = self._transfer(call, dist.recv)

        def receive():
            function, data, peer, group = transfer()
            function(data, peer, group)
        return self._on(call, receive)

    def group_of(self, call):
        """What a group does at its end, and on which stream: transfers of one stream together, or collectives of one kind."""
        kinds = {one.kind for one in call.inside}
        if not call.inside:
            return None
        if len({(one.comm, one.stream) for one in call.inside}) > 1:
            raise ProgramError("torch.distributed groups operations of one communicator and stream only")
        first = call.inside[0]
        if kinds <= {"nccl_send", "nccl_recv"}:
            made = [self._transfer(one, dist.isend if one.kind == "nccl_send" else dist.irecv) for one in call.inside]

            def exchange():
                for work in dist.batch_isend_irecv([dist.P2POp(*one()) for one in made]):
                    work.wait()
            return self._on(first, exchange)
        if len(kinds) > 1:
            raise ProgramError(f"torch.distributed cannot group {' and '.join(sorted(kinds))}")
        if len(call.inside) == 1 or kinds <= {"nccl_all_reduce", "nccl_all_gather", "nccl_reduce_scatter"}:
            functions = [self.calls.function(one) for one in call.inside]
            group, _ = self._group(first)
            device = self.objects.devices[0]

            def coalesced():
                self.calls.use(first.stream)
                with dist._coalescing_manager(group(), device):  # noqa: SLF001: what FSDP uses
                    for function in functions:
                        function()
            return coalesced
        raise ProgramError(f"torch.distributed cannot group several of {kinds.pop()}")
