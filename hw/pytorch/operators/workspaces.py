#!/usr/bin/env python3
"""Workspaces that cuDNN's convolutions ask for on this GPU: what hw/emulated/dnn is judged by.

    python3 hw/pytorch/operators/workspaces.py -o OUT.jsonl.gz [--seconds 60]                                  on a GPU
    python3 hw/pytorch/operators/workspaces.py --table OUT.jsonl.gz -o hw/emulated/devices/convolutions.csv    anywhere

A line a call: direction, type, layout, sizes, and the bytes that PyTorch's allocator held at its peak beyond inputs and results.
"""

import argparse
import gzip
import itertools
import json
import random
import time

ROUNDED = 512  # bytes that the allocator gives to what asks for less
COLUMNS = "call,type,layout,batch,in,size,out,kernel,stride,groups,bytes"
# batch, channels in, out, size, kernel, stride, padding, groups: layers of resnet, vgg, mobilenet, efficientnet, regnet, convnext, vit, densenet
LAYERS = (
    (32, 3, 64, 224, 7, 2, 3, 1), (32, 64, 64, 56, 1, 1, 0, 1), (32, 64, 64, 56, 3, 1, 1, 1), (32, 64, 256, 56, 1, 1, 0, 1), (32, 256, 128, 56, 1, 1, 0, 1),
    (32, 128, 128, 56, 3, 2, 1, 1), (32, 256, 512, 56, 1, 2, 0, 1), (32, 128, 512, 28, 1, 1, 0, 1), (32, 256, 256, 14, 3, 1, 1, 1), (32, 1024, 256, 14, 1, 1, 0, 1),
    (32, 512, 512, 7, 3, 1, 1, 1), (32, 2048, 512, 7, 1, 1, 0, 1), (32, 3, 64, 224, 3, 1, 1, 1), (32, 64, 64, 224, 3, 1, 1, 1), (32, 128, 256, 56, 3, 1, 1, 1),
    (32, 3, 32, 224, 3, 2, 1, 1), (32, 16, 96, 112, 1, 1, 0, 1), (32, 24, 144, 56, 1, 1, 0, 1), (32, 144, 24, 56, 1, 1, 0, 1), (32, 320, 1280, 7, 1, 1, 0, 1),
    (32, 32, 32, 112, 3, 1, 1, 32), (32, 96, 96, 112, 3, 2, 1, 96), (32, 240, 240, 28, 5, 1, 2, 240), (32, 672, 672, 14, 5, 2, 2, 672), (32, 1152, 1152, 7, 3, 1, 1, 1152),
    (32, 240, 10, 1, 1, 1, 0, 1), (32, 10, 240, 1, 1, 1, 0, 1), (32, 1152, 48, 1, 1, 1, 0, 1), (32, 224, 224, 56, 3, 1, 1, 4), (32, 448, 448, 28, 3, 1, 1, 8),
    (32, 896, 896, 14, 3, 1, 1, 16), (32, 3, 96, 224, 4, 4, 0, 1), (32, 96, 96, 56, 7, 1, 3, 96), (32, 96, 192, 56, 2, 2, 0, 1), (32, 384, 384, 14, 7, 1, 3, 384),
    (32, 3, 768, 224, 16, 16, 0, 1), (32, 3, 384, 224, 14, 14, 0, 1), (32, 128, 32, 28, 3, 1, 1, 1), (32, 58, 58, 28, 3, 1, 1, 58), (32, 58, 58, 28, 1, 1, 0, 1))


def over(call):
    """(bytes beyond the results at the peak, bytes of the results) of a call that was made before."""
    import torch
    made = call()
    del made
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    made = call()
    held = torch.cuda.memory_allocated() - before
    return torch.cuda.max_memory_allocated() - before - held, held


def table(path, output):
    """What libraries read: float32 in TF32 alone, as PyTorch computes it where nobody asks otherwise."""
    with gzip.open(path, "rt") as file:
        head, *rows = map(json.loads, file)
    found = {(r["call"], r["type"], "nhwc" if r["last"] else "nchw", r["x"][0], r["x"][1], r["x"][2], r["w"][0], r["w"][2], r["stride"], r["groups"],
              r["workspace"] if r["workspace"] > ROUNDED else 0) for r in rows if r["type"] != "f32" or r["tf32"]}
    with open(output, "w") as out:
        out.write(f"# Workspaces of cuDNN {head['cudnn']} on {head['gpu']}, bytes; float32 computes in TF32. Made by hw/pytorch/operators/workspaces.py --table.\n{COLUMNS}\n")
        for row in sorted(found):
            out.write(",".join(map(str, row)) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--table", help="what another call measured: the table is made of it")
    options = parser.parse_args()
    if options.table:
        table(options.table, options.output)
        return
    import torch
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    end = time.monotonic() + options.seconds
    todo = [(batch, *layer[1:], kind, last, tf32) for layer, (kind, tf32), last, batch in
            itertools.product(LAYERS, (("bf16", True), ("f16", True), ("f32", True), ("f32", False)), (False, True), (32, 8, 64))]
    random.Random(1).shuffle(todo)
    todo.sort(key=lambda one: (one[0] != 32, one[8] == "f16"))
    with gzip.open(options.output, "wt") as out:
        out.write(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "calls": 3 * len(todo)}) + "\n")
        for n, c, o, s, k, stride, padding, groups, kind, last, tf32 in todo:
            if time.monotonic() > end:
                break
            torch.backends.cudnn.allow_tf32 = tf32
            form = torch.channels_last if last else torch.contiguous_format
            x = torch.randn(n, c, s, s, device="cuda", dtype=types[kind]).to(memory_format=form)
            w = torch.randn(o, c // groups, k, k, device="cuda", dtype=types[kind]).to(memory_format=form)
            y = torch.conv2d(x, w, None, stride, padding, 1, groups)
            calls = {"forward": lambda: torch.conv2d(x, w, None, stride, padding, 1, groups)}
            for name, mask in (("data", (True, False, False)), ("weight", (False, True, False))):
                calls[name] = lambda mask=mask: torch.ops.aten.convolution_backward(y, x, w, None, (stride,) * 2, (padding,) * 2, (1, 1), False, (0, 0), groups, mask)
            for name, call in calls.items():
                extra, held = over(call)
                out.write(json.dumps({"call": name, "type": kind, "tf32": tf32, "last": last, "x": [n, c, s, s], "w": [o, c // groups, k, k], "stride": stride, "padding": padding,
                                      "groups": groups, "workspace": extra, "results": held}) + "\n")


if __name__ == "__main__":
    main()
