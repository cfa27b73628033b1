"""The emulated GPU's library in this process: what it wrote down."""

import ctypes
import json
import struct
import time
from typing import NamedTuple

NONE = 0xFFFFFFFF
_LAYOUT = struct.Struct("<qqqIIIIII")  # hw/emulated/record.h


class Call(NamedTuple):
    """One call; t, cpu and clock in ns."""
    t: int
    cpu: int
    clock: int
    text: int
    thread: int
    name: int
    stream: int
    comm: int
    graph: int


class Emulation:
    def __init__(self):
        self.loaded = ctypes.CDLL(None)
        for name, result, arguments in (
                ("foretrace_record_count", ctypes.c_size_t, []), ("foretrace_records", None, [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]),
                ("foretrace_text", ctypes.c_char_p, [ctypes.c_uint32]), ("foretrace_kernel_name", ctypes.c_char_p, [ctypes.c_uint32]),
                ("foretrace_thread_name", ctypes.c_char_p, [ctypes.c_uint32]), ("foretrace_demangled", ctypes.c_char_p, [ctypes.c_char_p]), ("foretrace_counts", ctypes.c_char_p, []),
                ("foretrace_recording", None, [ctypes.c_int]), ("foretrace_set_origin", None, []), ("foretrace_now", ctypes.c_int64, []),
                ("foretrace_cpu_now", ctypes.c_int64, []),
                ("foretrace_exclude", None, [ctypes.c_int64]), ("foretrace_reads", None, [ctypes.c_int]), ("foretrace_misfits", ctypes.c_size_t, []),
                ("foretrace_kept_count", ctypes.c_size_t, []), ("foretrace_kept", ctypes.c_size_t, [ctypes.c_size_t, ctypes.c_char_p]),
                ("foretrace_keep", None, [ctypes.c_char_p, ctypes.c_size_t]), ("foretrace_trust", None, [ctypes.c_int]),
                ("foretrace_poke", None, [ctypes.c_longlong, ctypes.c_int]), ("foretrace_ruled_reads", ctypes.c_size_t, []),
                ("foretrace_split", None, [ctypes.c_int, ctypes.c_int])):
            function = getattr(self.loaded, name)
            function.restype, function.argtypes = result, arguments
        self._texts, self._names = {}, {}

    @staticmethod
    def present():
        return hasattr(ctypes.CDLL(None), "foretrace_record_count")

    def count(self):
        return self.loaded.foretrace_record_count()

    def calls(self, begin, end):
        buffer = ctypes.create_string_buffer(_LAYOUT.size * max(end - begin, 0))
        self.loaded.foretrace_records(begin, end, buffer)
        return [Call(*values) for values in _LAYOUT.iter_unpack(buffer.raw)]

    def text(self, index):
        """Keys and values of a call's JSON, without braces."""
        if index not in self._texts:
            self._texts[index] = self.loaded.foretrace_text(index).decode(errors="replace")
        return self._texts[index]

    def kernel_name(self, index):
        if index not in self._names:
            self._names[index] = self.loaded.foretrace_kernel_name(index).decode(errors="replace")
        return self._names[index]

    def demangled(self, name):
        return self.loaded.foretrace_demangled(name.encode()).decode(errors="replace")

    def thread_name(self, index):
        return self.loaded.foretrace_thread_name(index).decode(errors="replace")

    def counts(self):
        """Calls that have no record of their own, since the last time this was asked."""
        return json.loads(self.loaded.foretrace_counts())

    def set_origin(self):
        self.loaded.foretrace_set_origin()

    def now(self):
        """ns since the origin, without the library's and the recorder's time."""
        return self.loaded.foretrace_now()

    def cpu_now(self):
        """The same of the processor's time that the program's threads took."""
        return self.loaded.foretrace_cpu_now()

    def keep_reads(self):
        """From now on what the host reads of the GPU is kept."""
        self.loaded.foretrace_reads(1)

    def kept_reads(self):
        kept = []
        for i in range(self.loaded.foretrace_kept_count()):
            buffer = ctypes.create_string_buffer(self.loaded.foretrace_kept(i, None) or 1)
            n = self.loaded.foretrace_kept(i, buffer)
            kept.append(buffer.raw[:n])
        return kept

    def give_reads(self, kept):
        """The host reads these, in order; a read of another size falls back to the rules and counts as a misfit."""
        self.loaded.foretrace_reads(1)
        for value in kept:
            self.loaded.foretrace_keep(value, len(value))
        self.loaded.foretrace_reads(2)

    def misfits(self):
        return self.loaded.foretrace_misfits()

    def recorder_time(self):
        return _Excluded(self.loaded)


class _Excluded:
    """with emulation.recorder_time(): what happens inside is no host work of the program."""

    def __init__(self, library):
        self.loaded = library

    def __enter__(self):
        self.begin = time.monotonic_ns()

    def __exit__(self, *_):
        self.loaded.foretrace_exclude(time.monotonic_ns() - self.begin)
