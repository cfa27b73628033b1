"""One process plays one rank of any world: process groups find their store here, and nobody else."""

import importlib
import os


def _rank_and_world():
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def make_lone_store(world_size):
    """A store on which the other ranks have always just arrived."""
    import torch.distributed as dist

    class LoneStore(dist.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            if key not in self.values:  # another rank would have set it: NCCL's unique id, 128 bytes
                self.values[key] = (b"%016x" % (hash(key) & (2**64 - 1))).ljust(128, b"\1")
            return self.values[key]

        def add(self, key, amount):
            value = int(self.values.get(key, b"0")) + (world_size if amount > 0 else 0)
            self.values[key] = b"%d" % value
            return value

        def compare_set(self, key, expected, desired):
            self.values.setdefault(key, desired if isinstance(desired, bytes) else desired.encode())
            return self.values[key]

        def check(self, keys):  # PyTorch's watchdog looks here whether another rank has failed
            return all(key in self.values for key in keys)

        def wait(self, *_):
            return None

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def set_timeout(self, _timeout):
            return None

    return LoneStore()


class World:
    """Patches torch.distributed so that init_process_group returns at once; remembers each group's ranks."""

    def __init__(self, emulation):
        self.emulation = emulation
        self.stores = []
        self.groups = {}  # name -> global ranks

    def install(self):
        import torch.distributed as dist
        if not dist.is_available():
            return
        from torch.distributed import distributed_c10d as c10d
        rendezvous = importlib.import_module("torch.distributed.rendezvous")  # the package has a function of that name

        def lone(url, *_, **__):
            rank, world = _rank_and_world()
            store = dist.HashStore() if rank == 0 else make_lone_store(world)
            self.stores.append(store)  # PyTorch's own reference does not keep a store in Python alive
            yield store, rank, world

        for scheme in ("env", "tcp", "file"):
            rendezvous._rendezvous_handlers[scheme] = lone
        helper = c10d._new_process_group_helper

        def remembered(group_size, group_rank, global_ranks_in_group, *rest, **named):
            ranks = list(global_ranks_in_group) or list(range(group_size))
            name = named.get("group_name", rest[2] if len(rest) > 2 else "")
            self.groups[str(name)] = ranks
            if group_rank is not None and group_rank >= 0:  # we are in it
                self.emulation.loaded.foretrace_split(group_size, group_rank)
            try:
                return helper(group_size, group_rank, global_ranks_in_group, *rest, **named)
            finally:
                self.emulation.loaded.foretrace_split(0, 0)

        c10d._new_process_group_helper = remembered

    def ranks_of(self, size, group_name):
        """Global ranks of a communicator: by its group's name, or because only one list of ranks has its size. None if not known."""
        if group_name in self.groups and len(self.groups[group_name]) == size:
            return self.groups[group_name]
        lists = {tuple(r) for r in self.groups.values() if len(r) == size}
        return list(lists.pop()) if len(lists) == 1 else None
