"""compare() of an a that nothing can be compared with: the reason is said."""

import copy
import random
import unittest

import isonorm
from pairs import Attention, images

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

INPUTS = [x for x, _ in images()]


class Noisy(nn.Linear):
    def __init__(self, noise):
        torch.manual_seed(1)
        super().__init__(8, 5)
        self.noise = noise

    def forward(self, x):
        return super().forward(x) + self.noise(x)


class Logarithm(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.weight = nn.Parameter(1 + torch.rand(5, 8))

    def forward(self, x):
        return x @ torch.log(self.weight).T


class Undecided(unittest.TestCase):
    def test_a_that_is_not_repeatable(self):
        """Random numbers from anything but torch's generator, and a state that is no buffer."""
        own = torch.Generator().manual_seed(1)

        class Counting(nn.Linear):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return super().forward(x) * self.calls

        for made in (
            lambda: Noisy(lambda x: torch.rand(5, generator=own, dtype=x.dtype)),
            lambda: Noisy(lambda x: random.random()),
            lambda: Noisy(lambda x: np.random.rand()),
            lambda: Counting(8, 5),
        ):
            r = isonorm.compare(made(), made(), batches=INPUTS, carry=True)
            self.assertEqual(r.verdict, "undecided", r)
            self.assertIn("a is not repeatable: run twice with the same parameters, inputs and seed of torch, its output is off by", r.reason)
        seeded = [Noisy(lambda x: torch.rand(5, dtype=x.dtype)) for _ in range(2)]
        self.assertTrue(isonorm.compare(*seeded, batches=INPUTS))

    def test_whole_numbers_that_do_not_repeat(self):
        class Drawing(nn.Linear):
            def forward(self, x):
                return super().forward(x), random.randrange(10**9)

        r = isonorm.compare(Drawing(8, 5), Drawing(8, 5), batches=INPUTS, carry=True)
        self.assertEqual(r.verdict, "undecided", r)
        self.assertIn("a is not repeatable", r.reason)

    def test_a_loss_that_drawn_parameters_make_nan(self):
        more = {"batches": [(x, t) for x, t in images()], "loss": F.cross_entropy}
        r = isonorm.compare(Logarithm(), Logarithm(), **more)
        self.assertEqual(r.verdict, "undecided", r)
        self.assertEqual(
            r.reason,
            "the loss of a itself is nan at point 2, whose parameters are drawn: points=1 compares at the present ones alone",
        )
        self.assertTrue(isonorm.compare(Logarithm(), Logarithm(), **more, points=1))


class Noise(unittest.TestCase):
    def test_tensors_that_are_noise_are_named(self):
        """The gradient of keys' bias is 0: softmax takes off what all scores of a query have in common."""
        torch.manual_seed(1)
        a = Attention(False)
        x = [torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]
        r = isonorm.compare(a, copy.deepcopy(a), batches=x, points=1)
        self.assertIn("at 1 point at most", r.reason)
        self.assertIn(" of any tensor, but for k.bias (0 or rounding noise)", r.reason)


class Found(unittest.TestCase):
    """What has no deviation has a place and a cause all the same."""

    def test_whole_numbers(self):
        class Class(nn.Linear):
            def __init__(self, largest):
                torch.manual_seed(1)
                super().__init__(8, 5)
                self.largest = largest

            def forward(self, x):
                y = super().forward(x)
                return y, y.argmax(-1) if self.largest else y.argmin(-1)

        r = isonorm.compare(Class(True), Class(False), batches=INPUTS)
        self.assertEqual((r.verdict, r.first_difference.what, r.first_difference.tensor), ("different", "output", "output"), r)
        self.assertIn("output of output: not equal", str(r))
        self.assertEqual(r.likely_cause, "largest of a is True, of b in b False; with a's the two agree")

    def test_a_norm_in_eval(self):
        def made():
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))

        b = made()
        b[1].eval()
        r = isonorm.compare(made(), b, batches=INPUTS)
        self.assertEqual((r.verdict, r.first_difference.what, r.first_difference.tensor), ("different", "output", "1"), r)
        self.assertEqual(r.likely_cause, "training of 1 is True, of 1 in b False; with a's the two agree")

    def test_a_buffer_alone(self):
        """The forward writes it: the backward is no place to look."""

        def made(momentum):
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4, momentum=momentum))

        r = isonorm.compare(made(0.1), made(0.2), batches=INPUTS)
        self.assertIn("look at the buffers that the pass changes", r.reason)
        self.assertEqual(r.likely_cause, "momentum of 1 is 0.1, of 1 in b 0.2; with a's the two agree")


if __name__ == "__main__":
    unittest.main()
