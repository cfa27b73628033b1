"""Python objects that one rank sends to another (pipelines tell their shapes so): kept in a folder, since each rank is captured by itself.

A rank that waits for what none has sent yet ends, and is captured again when more ranks have sent."""

import os
import pathlib
import pickle

from .environment import CaptureError

FOLDER, MISSING = "FORETRACE_MESSAGES", 7  # an environment variable; a child's exit code


class MissingMessage(CaptureError):
    """The sender has not been captured, or not so far."""


def _peer(group, global_rank, group_rank):
    import torch.distributed as dist
    if global_rank is not None or group_rank is None:
        return 0 if global_rank is None else global_rank
    return dist.get_global_rank(group or dist.group.WORLD, group_rank)


class Messages:
    def __init__(self, rank, folder=None):
        self.rank, self.folder = rank, pathlib.Path(folder or os.environ.get(FOLDER, "."))
        self.sent, self.received = {}, {}

    def keep(self, receiver, objects):
        n = self.sent[receiver] = self.sent.get(receiver, -1) + 1
        (self.folder / f"{self.rank}-{receiver}-{n}.pickle").write_bytes(pickle.dumps(list(objects)))

    def take(self, sender):
        n = self.received[sender] = self.received.get(sender, -1) + 1
        path = self.folder / f"{sender}-{self.rank}-{n}.pickle"
        if not path.exists():
            raise MissingMessage(f"rank {self.rank} receives Python objects from rank {sender}, which was not captured, or has not sent them: "
                                 f"--ranks {min(sender, self.rank)},{max(sender, self.rank)}")
        return pickle.loads(path.read_bytes())

    def install(self):
        import torch.distributed as dist
        from torch.distributed import distributed_c10d as c10d
        if not os.environ.get(FOLDER):
            return
        send, pickled = c10d.send_object_list, c10d._object_to_tensor

        def kept(object_list, dst=None, group=None, device=None, group_dst=None, **more):
            self.keep(_peer(group, dst, group_dst), object_list)
            return send(object_list, dst=dst, group=group, device=device, **({"group_dst": group_dst} if group_dst is not None else {}), **more)

        def taken(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
            """NCCL's calls are those of the real one: the sizes, then the bytes."""
            import torch
            sender = _peer(group, src, group_src)
            objects = self.take(sender)
            device = device or torch.device("cuda", torch.cuda.current_device())
            sizes = [pickled(o, torch.device("cpu"), group)[1] for o in objects]
            for tensor in (torch.empty(len(sizes), dtype=torch.long, device=device),
                           torch.empty(sum(int(s.item()) for s in sizes) or 1, dtype=torch.uint8, device=device)):
                if use_batch:
                    c10d.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, sender, group)]).pop().wait()
                else:
                    dist.recv(tensor, src=sender, group=group)
            object_list[:] = objects
            return sender

        for module in (dist, c10d):
            module.send_object_list, module.recv_object_list = kept, taken
