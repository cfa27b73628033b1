"""What a capture prints."""


def print_summary(scenario, numbers):
    """`numbers`: {rank: what `write_record` returned}."""
    for rank, n in sorted(numbers.items()):
        kinds = n["kinds"]
        parts = [f"{kinds.get(k, 0)} {word}" for k, word in (("launch", "launches"), ("gemm", "products"), ("lib", "calls of other libraries"), ("copy", "copies"),
                                                         ("coll", "NCCL operations"), ("sync", "waits of the host")) if kinds.get(k)]
        print(f"rank {rank}: {n['operations']} operations; {', '.join(parts)}; peak {n['peak_bytes']:,} B; host {n['host_ms']:.1f} ms "
              f"({n['steps_alike']} steps without a profiler)")
        for line in n["assumptions"]:
            print(f"  assumed: {line}")
    print(f"written: {scenario}")
