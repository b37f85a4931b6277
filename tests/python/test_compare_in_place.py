"""compare() of modules and losses that change what they are given."""

import copy
import unittest

import isonorm
from pairs import images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = [x for x, _ in images()]


class InPlace(unittest.TestCase):
    """Whatever a module or a loss changes, the next run gets it unchanged."""

    def same(self, a, b, batches=INPUTS, **more):
        r = isonorm.compare(a, b, batches=batches, carry=True, **more)
        self.assertTrue(r, r)
        return r

    class With(nn.Module):
        def __init__(self, first):
            super().__init__()
            torch.manual_seed(0)
            self.linear, self.first = nn.Linear(8, 5), first

        def forward(self, x):
            return self.linear(self.first(x))

    def test_first_operations(self):
        def without_the_first(x):
            x[:, 0] = 0
            return x

        for changed, fresh in (
            (lambda x: x.add_(1), lambda x: x + 1),
            (lambda x: x.mul_(2), lambda x: 2 * x),
            (lambda x: F.relu(x, inplace=True), F.relu),
            (lambda x: x.clamp_(-1, 1), lambda x: x.clamp(-1, 1)),
            (lambda x: x.masked_fill_(x > 1, 0), lambda x: x.masked_fill(x > 1, 0)),
            (without_the_first, lambda x: x * (torch.arange(8) > 0)),
        ):
            self.same(self.With(changed), self.With(fresh), points=2)
        self.same(self.With(changed), self.With(fresh), dtype="f32", optimizer=sgd)

    def test_modules(self):
        for kind in nn.ReLU, nn.ReLU6, nn.SiLU, nn.Hardtanh, nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.Mish, nn.Dropout:
            self.same(self.With(kind(inplace=True)), self.With(kind()), points=1)

    def test_the_gradient_is_of_the_input_before(self):
        def wrong(x):
            with torch.no_grad():
                y = x.clone().mul_(3)
            return y + 2 * (x - x.detach())

        r = isonorm.compare(self.With(lambda x: x.mul_(3)), self.With(wrong), batches=INPUTS)
        self.assertEqual(r.verdict, "different", r)
        self.assertIn("gradient", r.reason)
        self.assertIn("input", r.first_difference.tensor)

    def test_the_next_run_sees_the_batch_as_it_was(self):
        class Counting(nn.Module):
            def forward(self, x, n):
                n["steps"] = n["steps"] + 1
                return x * n["steps"] * n["seen"].add_(1)

        given = [(x, {"steps": 1, "seen": torch.ones(())}) for x in INPUTS]
        before = copy.deepcopy(given)
        self.same(Counting(), Counting(), given)
        self.assertEqual(str(before), str(given))

    def test_caches_in_a_batch(self):
        class Cache:
            def __init__(self):
                self.keys = []

        class Cached(nn.Linear):
            def forward(self, x, cache):
                cache.keys.append(super().forward(x))
                return torch.stack(cache.keys).sum(0)

        torch.manual_seed(0)
        a, cache = Cached(8, 5), Cache()
        self.same(a, copy.deepcopy(a), [(x, cache) for x in INPUTS])
        self.assertEqual(cache.keys, [])

    def test_what_autograd_refuses(self):
        """x.mul_(f(x)) changes what f's backward needs; without gradients its outputs are compared."""

        def changed(x):
            return x.mul_(torch.rsqrt(x.pow(2).mean(-1, keepdim=True)))

        def fresh(x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))

        a, b = self.With(fresh), self.With(changed)
        with self.assertRaisesRegex(ValueError, "^compare: the backward pass of b raises RuntimeError: .* inplace operation"):
            isonorm.compare(a, b, batches=INPUTS)

        class Inference(self.With):
            def forward(self, x):
                with torch.no_grad():
                    return super().forward(x)

        self.same(Inference(fresh), Inference(changed))

    def test_losses(self):
        def loss(y, t):
            return t.sub_(y.mul_(1)).square_().mean()

        batches = [(x, torch.randn(6, 5, generator=torch.Generator().manual_seed(1))) for x in INPUTS]
        before = copy.deepcopy(batches)
        self.same(net(), net(), batches, loss=loss, optimizer=sgd)
        self.assertTrue(all(torch.equal(t, u) for (_, t), (_, u) in zip(batches, before)))

    def test_outputs_are_those_before_the_loss(self):
        class Shifted(nn.Linear):
            shift = 0.0

            def forward(self, x):
                y = super().forward(x)
                return torch.cat([y, y.detach()[:, :1] + self.shift], -1)

        torch.manual_seed(0)
        a = Shifted(8, 5)
        b = copy.deepcopy(a)
        b.shift = 1.0

        def loss(y, t):
            y[:, -1] = 0
            return y.square().mean()

        r = isonorm.compare(a, b, batches=[(x, None) for x in INPUTS], loss=loss)
        self.assertEqual(r.verdict, "different", r)
        self.assertIn("output", r.reason)

    class Centre(nn.Module):
        """x less a running mean, which a pass changes in place or assigns; it counts the passes."""

        def __init__(self, rate=0.1, frozen=False, assigned=False, step=1):
            super().__init__()
            if frozen:
                self.centre = nn.Parameter(torch.zeros(8), requires_grad=False)
            else:
                self.register_buffer("centre", torch.zeros(8))
            self.register_buffer("passes", torch.zeros((), dtype=torch.int64))
            self._rate, self._assigned, self._step = rate, assigned, step

        def forward(self, x):
            y = x - self.centre
            moved = (1 - self._rate) * self.centre + self._rate * x.mean(0)
            if self._assigned:
                self.centre, self.passes = moved, self.passes + self._step
            else:
                self.centre.copy_(moved)
                self.passes.add_(self._step)
            return y

    def test_buffers_and_frozen_parameters(self):
        for frozen in False, True:
            self.same(self.Centre(frozen=frozen), self.Centre(frozen=frozen))
        self.same(self.Centre(), self.Centre(assigned=True))
        for a, b, name in (
            (self.Centre(), self.Centre(rate=0.2), "centre"),
            (self.Centre(frozen=True), self.Centre(rate=0.2, frozen=True), "centre"),
            (self.Centre(assigned=True), self.Centre(rate=0.2, assigned=True), "centre"),
            (self.Centre(), self.Centre(rate=0), "centre"),
            (self.Centre(rate=0), self.Centre(), "centre"),
            (self.Centre(), self.Centre(step=2), "passes"),
            (self.Centre(), self.Centre(step=0), "passes"),
        ):
            r = isonorm.compare(a, b, batches=INPUTS)
            self.assertEqual((r.verdict, name in str(r)), ("different", True), r)

    def test_a_norm_that_keeps_its_statistics(self):
        torch.manual_seed(0)
        a = nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5))
        b = copy.deepcopy(a)
        b[1].track_running_stats = False
        r = isonorm.compare(a, b, batches=INPUTS)
        self.assertEqual((r.verdict, r.reason), ("different", "at point 1 the loss, the output and all 5 gradients agree, and all 2 buffers differ: look at the buffers that the pass changes"))

    def test_the_cause_in_an_in_place_module(self):
        """It is found by the module's input, as it was before."""

        class Act(nn.Module):
            _of = "relu"

            def forward(self, x):
                return getattr(F, self._of)(x, inplace=True)

        def made(of):
            torch.manual_seed(0)
            act = Act()
            act._of = of
            return nn.Sequential(nn.Linear(8, 16), act, nn.Linear(16, 5))

        r = isonorm.compare(made("relu"), made("silu"), batches=INPUTS)
        self.assertEqual((r.first_difference.tensor, r.first_difference.what), ("1", "output"))
        self.assertEqual(r.likely_cause, "another activation: a computes ReLU, b SiLU")

    def test_whole_numbers_alone(self):
        """Without floating inputs and parameters there is no gradient; outputs are compared."""
        torch.manual_seed(0)
        a, b = nn.Embedding(7, 3), nn.Embedding(7, 3)
        ids = [torch.arange(7)]
        self.assertEqual(isonorm.compare(a, b, batches=ids, map=None).verdict, "different")


if __name__ == "__main__":
    unittest.main()
