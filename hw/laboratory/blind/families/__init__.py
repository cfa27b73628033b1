"""The one table of a round: its classes, how many programs each has, and who makes them."""

from families import (allocation, collectives, contention, data_loading, exchanges, graphs, grouped,
                      host_copies, launch_bound, memory_bound, priorities, products, streams,
                      training, training_pair)

# class (a scenario's tag is blind_CLASS), programs on one GPU, on two, makers
TABLE = [
    ("products", 9, 0, products.VARIANTS),
    ("training", 8, 10, {1: training.VARIANTS, 2: training_pair.VARIANTS}),
    ("host_copies", 8, 6, host_copies.VARIANTS),
    ("data_loading", 6, 4, data_loading.VARIANTS),
    ("launch_bound", 7, 0, launch_bound.VARIANTS),
    ("memory_bound", 7, 0, memory_bound.VARIANTS),
    ("streams", 7, 5, streams.VARIANTS),
    ("priorities", 6, 0, priorities.VARIANTS),
    ("graphs", 5, 4, graphs.VARIANTS),
    ("allocation", 4, 3, allocation.VARIANTS),
    ("contention", 5, 9, contention.VARIANTS),
    ("collectives", 0, 15, collectives.VARIANTS),
    ("grouped_calls", 0, 8, grouped.VARIANTS),
    ("exchanges", 0, 8, exchanges.VARIANTS),
]


# class, programs, makers: a round on four or eight GPUs
ON_SEVERAL = [
    ("collectives", 16, collectives.VARIANTS),
    ("grouped_calls", 6, grouped.VARIANTS),
    ("exchanges", 4, exchanges.VARIANTS),
    ("training", 10, training_pair.ON_SEVERAL),
    ("graphs", 4, graphs.VARIANTS),
]


def makers(variants, gpus):
    """What is not written for eight GPUs is what there is for four."""
    if not isinstance(variants, dict):
        return variants
    return variants[max(known for known in variants if known <= gpus)]
