"""Where the ranks of a run meet: texts through torch's store, and barriers in shared memory. No collectives: a rank that
failed must not confuse them."""

import datetime
import mmap
import os
import struct
import time

from program import ProgramError

MEETING_S = 100


class NotMet(RuntimeError):
    """A rank did not come: which one."""


class Ranks:
    """Meetings by name, through a store. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them."""

    def __init__(self):
        try:
            self.rank, self.size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
            address, port = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])) if self.size > 1 else ("", 0)
        except (KeyError, ValueError) as error:
            raise ProgramError(f"RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are torchrun's to set: {error}") from error
        self.store = None
        if self.size > 1:
            import torch.distributed as dist
            try:
                self.store = dist.TCPStore(address, port + 1, self.size, self.rank == 0,
                                           timeout=datetime.timedelta(seconds=MEETING_S),
                                           use_libuv=os.environ.get("USE_LIBUV", "1") == "1")
            except RuntimeError as error:
                raise NotMet(f"rank {self.rank} of {self.size} has met nobody at {address}:{port + 1} for {MEETING_S} s: "
                             f"{str(error).splitlines()[0][:200]}") from error

    def gather(self, name, value="", seconds=MEETING_S):
        """Every rank's text; raises when one does not come in time."""
        if not self.store:
            return [str(value)]
        self.store.set(f"{name}/{self.rank}", str(value))
        keys = [f"{name}/{rank}" for rank in range(self.size)]
        self._wait(keys, seconds)
        return [self.store.get(key).decode() for key in keys]

    def leave(self, seconds):
        """Rank 0 serves the store, so it goes last."""
        if self.store:
            self.store.set(f"left/{self.rank}", "")
            if self.rank == 0:
                others = [f"left/{rank}" for rank in range(1, self.size)]
                self._wait(others, seconds)

    def _wait(self, keys, seconds):
        try:
            self.store.wait(keys, datetime.timedelta(seconds=seconds))
        except RuntimeError as error:
            missing = [key.rsplit("/", 1)[1] for key in keys if not self._has(key)]
            raise NotMet(f"rank {', '.join(missing) or '0'} did not come within {seconds:g} s") from error

    def _has(self, key):
        try:
            return self.store.check([key])
        except RuntimeError:
            return True  # the store itself is gone: rank 0 is


class Barriers:
    """Barriers between threads of processes of one host. Each party has a number of its own in shared memory and goes on
    when no party's is smaller: single stores, so no locks."""

    def __init__(self, name, sizes):
        """`sizes`: how many parties each barrier has. The same name and sizes in every process."""
        self.first = [sum(sizes[:index]) for index in range(len(sizes))]
        self.sizes = sizes
        self.path = f"/dev/shm/foretrace-{name}"
        length = max(8, 8 * sum(sizes))
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        os.ftruncate(self.file, length)
        self.slots = memoryview(mmap.mmap(self.file, length)).cast("q")

    def unlink(self):
        """The name goes; who has it open keeps it. After all have opened it."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def arrive_and_wait(self, barrier, party):
        slots, first = self.slots, self.first[barrier]
        slots[first + party] += 1
        mine, last = slots[first + party], first + self.sizes[barrier]
        for at in range(first, last):
            while slots[at] < mine:
                time.sleep(0)  # lets other threads of this process run


def read_whole(file, into, size):
    """`size` bytes of an open file, past the page cache, into memory of whole pages."""
    view, at = memoryview(into), 0
    whole = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE
    while at < size:
        got = os.preadv(file, [view[at:min(at + (1 << 20), whole)]], at)
        if got <= 0:
            raise OSError(f"the file ended after {at} of {size} bytes")
        at += got


def stored_file(size):
    """An open file of random bytes without a name, for O_DIRECT where the file system has it."""
    import tempfile
    whole = max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE
    written, path = tempfile.mkstemp(prefix="foretrace-")
    piece = os.urandom(min(whole, 1 << 20))
    for at in range(0, whole, len(piece)):
        os.pwrite(written, piece[:whole - at], at)
    os.fsync(written)
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        opened = os.open(path, os.O_RDONLY)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
    os.unlink(path)
    os.close(written)
    return opened


assert struct.calcsize("q") == 8
