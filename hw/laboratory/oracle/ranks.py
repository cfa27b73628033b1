"""What the measurements of PyTorch with several ranks begin with: one process for each GPU."""

import os

import torch
import torch.distributed as dist


def start(port):
    """Joins the ranks that mpirun or torchrun started. Returns rank, ranks, device, a group on the host.

    `port`: of rank 0's store on this machine; another one in each program, so that two may follow each other.
    """
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("RANK", 0)))
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("WORLD_SIZE", 1)))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(port))
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=device)
    return rank, ranks, device, dist.new_group(backend="gloo")
