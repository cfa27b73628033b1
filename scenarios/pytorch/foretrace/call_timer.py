"""The library that times a program's calls of CUDA (hw/call_timer), where this process has loaded it."""

import array
import ctypes
import struct

_LAYOUT = struct.Struct("<qIHH")


class CallTimer:
    def __init__(self, library):
        self.library = library
        library.foretrace_timer_count.restype = ctypes.c_size_t
        library.foretrace_timer_now.restype = ctypes.c_int64
        library.foretrace_timer_function.restype = ctypes.c_char_p
        self.begin = self.end = 0

    def start(self):
        self.library.foretrace_timer(1)
        self.begin = self.library.foretrace_timer_now()

    def stop(self):
        self.end = self.library.foretrace_timer_now()
        self.library.foretrace_timer(0)

    def calls(self):
        """{"functions", "ns": of the step, "f", "t", "d", "th"}: of each call its function, begin and length in ns, thread; in the order in which they ended."""
        n = self.library.foretrace_timer_count()
        buffer = ctypes.create_string_buffer(_LAYOUT.size * n)
        self.library.foretrace_timer_calls(buffer)
        columns = {"f": [], "t": [], "d": [], "th": array.array("H")}
        for t, d, f, th in _LAYOUT.iter_unpack(buffer.raw):
            columns["f"].append(f)
            columns["t"].append(t - self.begin)
            columns["d"].append(d)
            columns["th"].append(th)
        most = max(columns["f"], default=-1) + 1
        functions = [self.library.foretrace_timer_function(i).decode() for i in range(most)]
        return {"functions": functions, "ns": self.end - self.begin, **{k: list(v) for k, v in columns.items()}}


def present():
    """The timer, or None."""
    library = ctypes.CDLL(None)
    return CallTimer(library) if hasattr(library, "foretrace_timer") else None
