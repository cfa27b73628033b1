#!/usr/bin/env python3
"""Times PyTorch's grouped products (torch._grouped_mm), as experts of a training step call them: forward, of the rows' gradient, of the
weights' gradient.

    python3 hw/laboratory/serving/grouped.py -o grouped.csv

A row: experts, rows of all of them, inputs, outputs, which product, share of rows of the fullest expert in those of the mean one, the
median in us of 15 (CUDA events around 4 calls each)."""

import argparse
import csv
import statistics

import torch

# Experts, inputs, outputs: of networks that are published (gate and up are one product, as transformers calls it).
SHAPES = [(8, 4096, 28672), (8, 14336, 4096), (64, 2048, 2048), (64, 1024, 2048), (64, 2048, 2816), (64, 1408, 2048), (128, 2048, 1536), (128, 768, 2048),
          (32, 2880, 5760), (32, 2880, 2880), (16, 4096, 12800), (16, 6400, 4096), (256, 2048, 1024), (256, 512, 2048), (8, 1024, 4096), (8, 2048, 1024)]
ROWS = (256, 1024, 4096, 16384, 65536)
UNEVEN = (1.0, 2.0)


def offsets(experts, rows, uneven, device):
    """Ends of each expert's rows; the fullest has `uneven` times the mean, the others less by a straight line."""
    share = torch.linspace(uneven, 2 - uneven, experts, dtype=torch.float64)
    ends = torch.round(torch.cumsum(share / share.sum() * rows, 0))
    ends[-1] = rows
    return ends.to(torch.int32).to(device)


def median_us(call):
    for _ in range(3):
        call()
    times = []
    for _ in range(15):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(400_000)  # so that the calls are there before the first kernel begins
        begin.record()
        for _ in range(4):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / 4)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    device = torch.device("cuda")
    print(torch.cuda.get_device_name(), torch.__version__)
    with open(given.output, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["gpu", "experts", "rows", "inputs", "outputs", "product", "uneven", "us"])
        for experts, inputs, outputs in SHAPES:
            weights = torch.randn(experts, inputs, outputs, device=device, dtype=torch.bfloat16)
            for rows in ROWS:
                if rows < experts:
                    continue
                x = torch.randn(rows, inputs, device=device, dtype=torch.bfloat16)
                y = torch.randn(rows, outputs, device=device, dtype=torch.bfloat16)
                for uneven in UNEVEN:
                    ends = offsets(experts, rows, uneven, device)
                    calls = {"forward": lambda: torch._grouped_mm(x, weights, offs=ends),
                             "rows_gradient": lambda: torch._grouped_mm(y, weights.transpose(-2, -1), offs=ends),
                             "weights_gradient": lambda: torch._grouped_mm(x.t(), y, offs=ends)}
                    for name, call in calls.items():
                        try:
                            out.writerow([torch.cuda.get_device_name(), experts, rows, inputs, outputs, name, uneven, f"{median_us(call):.2f}"])
                        except RuntimeError as error:
                            print(experts, rows, inputs, outputs, name, str(error)[:120])
                file.flush()


if __name__ == "__main__":
    main()
