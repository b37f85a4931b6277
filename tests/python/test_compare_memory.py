"""How much memory compare() takes, in copies of a's parameters in the dtype of the comparison: what torch allocates and frees is summed up."""

import unittest
import warnings
from unittest import mock

import isonorm
from isonorm import _memory

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

WIDTH = 256
SIZE = 8 * 2 * WIDTH * (WIDTH + 2)  # of the parameters in f64
INPUTS = [torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(i)) for i in range(3)]


def made():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def peak(run):
    """The most bytes that torch holds at a time in run(), beyond those from before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for e in sorted(events, key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    return most


class Memory(unittest.TestCase):
    def test_points(self):
        for points in 1, 4:
            a, b = made(), made()
            copies = peak(lambda: isonorm.compare(a, b, batches=INPUTS, points=points)) / SIZE
            self.assertLess(copies, 1.01 * _memory.copies(4, False))
            self.assertGreater(copies, 0.7 * _memory.copies(4, False))

    def test_training(self):
        for controls in 2, 4:
            more = {"batches": INPUTS, "points": 1, "steps": 2, "controls": controls, "optimizer": adam}
            a, b = made(), made()
            copies = peak(lambda: isonorm.compare(a, b, **more)) / SIZE
            self.assertLess(copies, 1.01 * _memory.copies(controls, True))
            self.assertGreater(copies, 0.8 * _memory.copies(controls, True))

    def test_is_said(self):
        more = {"batches": INPUTS, "points": 1, "steps": 1, "controls": 1}
        with mock.patch.object(_memory, "MUCH", 4 * SIZE):
            with self.assertWarnsRegex(UserWarning, r"compare: takes about 0\.0\d+ GB besides activations, \d+ times the parameters of a"):
                isonorm.compare(made(), made(), **more)
            with self.assertWarnsRegex(UserWarning, "fewer controls take less"):
                isonorm.compare(made(), made(), optimizer=adam, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            isonorm.compare(made(), made(), **more)


if __name__ == "__main__":
    unittest.main()
