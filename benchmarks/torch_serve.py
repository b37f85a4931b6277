"""PyTorch's end of the line protocol; benchmarks/serve.h describes it."""

import json
import sys
import time

import torch


def status_bytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def resident_bytes():
    return status_bytes("VmRSS")


def peak_bytes():
    """The largest resident size of this process (getrusage would also count the parent before exec)."""
    return status_bytes("VmHWM")


def wait(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def device_bytes(device):
    """The most that tensors had of a device's memory; 0 of the CPU, whose tensors are not counted."""
    return torch.cuda.max_memory_allocated() if torch.device(device).type == "cuda" else 0


def milliseconds(function, device="cpu"):
    """Until the device has done it."""
    start = time.perf_counter()
    function()
    wait(device)
    return 1e3 * (time.perf_counter() - start)


def say(**fields):
    print(json.dumps(fields), flush=True)


def serve(ready, work):
    """Says that it is ready; then work(times, words) answers, as a dict, each line `go N WORDS...` until the end."""
    say(event="ready", threads=torch.get_num_threads(), version=torch.__version__, **ready)
    for line in sys.stdin:
        words = line.split()
        if words[:1] != ["go"]:
            break
        say(**work(int(words[1]), words[2:]))
