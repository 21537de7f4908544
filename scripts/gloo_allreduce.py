"""Gloo's all-reduce on this machine's cores, for scripts/bench-allreduce: torchrun --nproc-per-node N gloo_allreduce.py MIB

Prints seconds: the median of ten in-place float32 sums on rank 0, after two that are not counted, each after a barrier.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist

ROUNDS, WARM_UP = 12, 2


def one_round(values):
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(values)
    return time.perf_counter() - start


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    values = torch.ones(int(float(sys.argv[1]) * 2**20) // 4)
    took = [one_round(values) for _ in range(ROUNDS)][WARM_UP:]
    if dist.get_rank() == 0:
        print(f"{statistics.median_high(took):.9f}")
    dist.destroy_process_group()


main()
