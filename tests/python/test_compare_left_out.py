"""compare() of what once was "equivalent" and is not: buffers, imaginary parts, keys, losses without a gradient, coarse dtypes."""

import copy
import unittest

import isonorm
from pairs import images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = [x for x, _ in images()]


class Statistics(nn.Module):
    """A batch norm whose statistics are kept, or are not."""

    def __init__(self, keeps, kind="linear norm"):
        super().__init__()
        torch.manual_seed(1)
        self._linear, self._norm = kind.split()
        setattr(self, self._linear, nn.Linear(8, 6))
        setattr(self, self._norm, nn.BatchNorm1d(6))
        self._keeps = keeps

    def forward(self, x):
        norm = getattr(self, self._norm)
        x = getattr(self, self._linear)(x)
        if self._keeps or not self.training:
            return norm(x)
        return F.batch_norm(x, None, None, norm.weight, norm.bias, True)


RENAMED = {f"{b}.{n}": f"{a}.{n}" for a, b in (("linear", "first"), ("norm", "second")) for n in ("weight", "bias")}


class Complex(nn.Module):
    """A complex filter; of its weight, or of the weight's real part."""

    def __init__(self, of=lambda w: w):
        super().__init__()
        torch.manual_seed(1)
        self.weight, self._of = nn.Parameter(torch.randn(5, dtype=torch.complex64)), of

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self._of(self.weight), n=8)


class Cache:
    def __init__(self, keys):
        self.keys = keys


class Giving(nn.Module):
    """A linear layer and what `of` makes of its output."""

    def __init__(self, of):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self._of = nn.Linear(8, 5), of

    def forward(self, x):
        return self._of(self.linear(x))


class Counting(nn.Linear):
    """Counts its calls in a buffer."""

    def __init__(self, count, by=1):
        torch.manual_seed(1)
        super().__init__(8, 5)
        self.by = by
        self.register_buffer("count", count.clone())

    def forward(self, x):
        self.count += self.by
        return super().forward(x)


class LeftOut(unittest.TestCase):
    def verdict(self, verdict, a, b, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, "points": 2, "steps": 4, **more})
        self.assertEqual(r.verdict, verdict, r)
        return r

    def test_buffers(self):
        for a, b in (True, False), (False, True):
            r = self.verdict("different", Statistics(a), Statistics(b))
            self.assertIn("gradients agree, and all 2 buffers differ: look at the buffers that the pass changes", r.reason)
            self.assertEqual((r.first_difference.what, r.first_difference.tensor), ("buffer", "norm.running_mean"))
        self.verdict("equivalent", Statistics(True), Statistics(True))

    def test_buffers_of_renamed_modules(self):
        more = {"map": RENAMED}
        self.verdict("equivalent", Statistics(True), Statistics(True, "first second"), **more)
        r = self.verdict("different", Statistics(True), Statistics(False, "first second"), **more)
        self.assertEqual((r.first_difference.what, r.first_difference.tensor), ("buffer", "norm.running_mean"))

    def test_a_buffer_of_whole_numbers(self):
        whole = torch.zeros((), dtype=torch.int64)
        self.verdict("equivalent", Counting(whole), Counting(whole))
        r = self.verdict("different", Counting(whole), Counting(whole, by=2))
        self.assertIn("count differs after the pass of point 1", r.reason)

    def test_buffers_of_one_alone_are_named(self):
        plain, counting = nn.Linear(8, 5), Counting(torch.zeros(()))
        more = {"carry": True}
        r = self.verdict("equivalent", plain, counting, **more)
        self.assertEqual(r.not_compared, ("count of b (a buffer of b alone)",))
        self.assertIn("\n  left out    count of b (a buffer of b alone)", str(r))
        r = self.verdict("equivalent", counting, plain, **more)
        self.assertEqual(r.not_compared, ("count (a buffer of a alone)",))

    def test_complex_parameters(self):
        for dtype in None, "f32":
            r = self.verdict("equivalent", Complex(), Complex(), optimizer=sgd, dtype=dtype)
            self.assertEqual([p.parameter for p in r.probes if p.detected], ["weight"])
            self.verdict("equivalent", Complex(), Complex(), optimizer=lambda p: torch.optim.Adam(p, lr=1e-3), dtype=dtype)
            self.verdict("different", Complex(), Complex(lambda w: w.real), dtype=dtype)
            self.verdict("different", Complex(), Complex(torch.conj), dtype=dtype)

    def test_values_and_maps_of_complex_parameters(self):
        other = Complex()
        with torch.no_grad():
            other.weight[3] += 1e-6j
        r = self.verdict("different", Complex(), other)
        self.assertEqual(r.first_difference.what, "parameter")
        turned = {"map": {"weight": lambda p: p["weight"] * 1j}, "carry": True}
        self.verdict("equivalent", Complex(), Complex(lambda w: w / 1j), optimizer=sgd, **turned)
        self.verdict("different", Complex(), Complex(lambda w: w * 1j), **turned)

    def test_keys_of_outputs(self):
        a = Giving(lambda y: {"logits": y, "probabilities": y.softmax(-1)})
        self.verdict("equivalent", a, Giving(lambda y: {"probabilities": y.softmax(-1), "logits": y}))
        self.verdict("equivalent", a, Giving(lambda y: (y, y.softmax(-1))))  # in order
        self.verdict("different", a, Giving(lambda y: (y.softmax(-1), y)))
        self.verdict("different", a, Giving(lambda y: {"logits": y.softmax(-1), "probabilities": y}))
        for other in (
            lambda y: {"logits": y, "p": y.softmax(-1)},
            lambda y: {"logits": y},
            lambda y: {"logits": y, "probabilities": y.softmax(-1), "more": y},
        ):
            with self.assertRaisesRegex(ValueError, r"a gives output\[logits\], output\[probabilities\], b gives output\["):
                isonorm.compare(a, Giving(other), batches=INPUTS)

    def test_what_is_left_out_of_outputs(self):
        cached = Giving(lambda y: {"y": y, "cache": Cache(y), "none": None})
        r = self.verdict("equivalent", cached, cached.__class__(cached._of))
        self.assertEqual(r.not_compared, ("output[cache] (Cache)",))
        r = self.verdict("equivalent", cached, Giving(lambda y: y))
        self.assertEqual(r.not_compared, ("output[cache] (Cache)",))
        r = self.verdict("equivalent", Giving(lambda y: (y,)), Giving(lambda y: (y, Cache(y))))
        self.assertEqual(r.not_compared, ("output[1] of b (Cache)",))

    def test_losses_without_a_gradient(self):
        batches = [(x, None) for x in INPUTS]
        for loss in (
            lambda y, t: y.detach().square().mean(),
            lambda y, t: (0 * y).square().mean(),
            lambda y, t: torch.tensor(1.0, requires_grad=True),
        ):
            r = self.verdict("undecided", net(), net(), batches=batches, loss=loss)
            self.assertIn("nothing was measured", r.reason)
        self.verdict("different", net(), net(eps=1e-4), batches=batches, loss=lambda y, t: y.detach().square().mean())

    def test_a_gradient_of_a_that_is_not_finite(self):
        """As in C++: nothing can be compared with it."""

        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(8))

            def forward(self, x):
                return x + self.weight.square().sqrt()

        r = self.verdict("undecided", Root(), Root())
        self.assertEqual(r.reason, "a's gradient of weight is not finite at point 1")

    def test_coarse_parameters(self):
        """One rule: b's values are a's, or a's rounded to f32. Both dtypes are said."""
        a = nn.Linear(8, 5)
        for dtype, said in (torch.bfloat16, "bf16"), (torch.float16, "f16"):
            b = copy.deepcopy(a).to(dtype)
            r = self.verdict("different", a, b)
            self.assertIn(f"weight of b is not what the map makes of a's parameters: it is {said}, a is f32", r.reason)
            self.verdict("different", a, copy.deepcopy(b).float())
            self.verdict("equivalent", b, copy.deepcopy(b).float())
            joined = {"weight": lambda p: 1 * p["weight"]}
            self.verdict("different", a, b, map=joined)
            self.verdict("equivalent", a, b, carry=True)
        self.verdict("equivalent", a, copy.deepcopy(a).double())
        self.verdict("equivalent", copy.deepcopy(a).double(), a)
        self.verdict("equivalent", nn.Linear(8, 5).double(), nn.Linear(8, 5), carry=True)


if __name__ == "__main__":
    unittest.main()
