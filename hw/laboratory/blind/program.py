"""A scenario as nested Python values, and its text. Text is made here, not by a YAML library, so
that one round has one text whatever is installed."""

from draw import KIB, MIB


def op(name, /, **keys):
    """One operation; keys that are None are left out."""
    return {name: {key: value for key, value in keys.items() if value is not None}}


def repeat(times, *ops, index=None):
    return op("repeat", index=index, times=times, ops=list(ops))


def region(name, *ops, per=None):
    return op("region", name=name, per=per if per and per > 1 else None, ops=list(ops))


def each_device(*ops):
    return op("for_each", index="d", **{"in": "devices"}, ops=list(ops))


def group(*ops):
    return op("nccl_group", ops=list(ops))


def sync_device(device=None):
    return op("device_synchronize", device=device)


def sync_devices():
    return each_device(sync_device("d"))


def sync(stream=None):
    return op("stream_synchronize", stream=stream)


def size_text(bytes_):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if bytes_ % unit == 0:
            return f"{bytes_ // unit}{name}"
    return f"{bytes_}B"


class Program:
    """One file of a round. `kind` says what a user would call it, `about` is its first line."""

    def __init__(self, kind, about, gpus=1, processes=1, environment=None):
        self.kind, self.about, self.gpus, self.processes = kind, about, gpus, processes
        self.devices = gpus // processes
        self.sections = {"environment": dict(environment or {})}
        for section in ("streams", "events", "signals", "graphs", "buffers", "communicators",
                        "process_groups"):
            self.sections[section] = {}
        self.threads = {}
        self.bytes = {}

    def declare(self, section, name, **keys):
        self.sections[section][name] = {k: v for k, v in keys.items() if v is not None}
        return name

    def stream(self, name, **keys):
        return self.declare("streams", name, **keys, flags="non_blocking")

    def event(self, name, count=None, timing=None):
        return self.declare("events", name, count=count, timing=timing)

    def signal(self, name, count=None):
        return self.declare("signals", name, count=count)

    def graph(self, name="step"):
        return self.declare("graphs", name)

    def buffer(self, name, bytes_, memory="device", **keys):
        self.bytes[name] = bytes_
        return self.declare("buffers", name, memory=memory, size=size_text(bytes_), **keys)

    def world(self, name="world"):
        """A communicator of all GPUs."""
        return self.declare("communicators", name, members="all_devices")

    def torch_world(self, name="world"):
        return self.declare("process_groups", name, ranks="all", init="eager")

    def thread(self, *ops, name="main", process=None):
        self.threads[name] = (process, list(ops))

    def text(self, name, tag):
        lines = [f"# {self.about}", "schema_version: 1", f"name: {name}", f"tags: [{tag}]"]
        lines += [f"processes: {self.processes}"] if self.processes > 1 else []
        lines += [f"devices: {self.devices}"] if self.devices > 1 else []
        for section, entries in self.sections.items():
            if section == "environment" and entries:
                lines.append(f"environment: {flow(entries)}")
            elif entries:
                lines.append(f"{section}:")
                lines += [f"  {key}: {flow(value)}" for key, value in entries.items()]
        lines.append("threads:")
        for thread, (process, ops) in self.threads.items():
            lines.append(f"  {thread}:")
            if process is None:
                lines += block(ops, 4)
            else:
                lines += [f"    process: {process}", "    ops:"] + block(ops, 6)
        return "\n".join(lines) + "\n"


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    # In a flow, x(i, d) would end at its comma.
    return f'"{text}"' if "," in text else text


def block(ops, indent):
    """A list of operations, one line each where they are short."""
    lines, pad = [], " " * indent
    for item in ops:
        (name, keys), = item.items()
        inline = f"{pad}- {name}: {flow(keys)}"
        if not any(key in keys for key in ("ops", "tasks")) or (name != "region" and
                                                               len(inline) <= 140):
            lines.append(inline)
            continue
        lines.append(f"{pad}- {name}:")
        for key, value in keys.items():
            if key in ("ops", "tasks"):
                lines.append(f"{pad}    {key}:")
                lines += block(value, indent + 6)
            else:
                lines.append(f"{pad}    {key}: {flow(value)}")
    return lines
