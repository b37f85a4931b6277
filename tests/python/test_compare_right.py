"""compare() of right pairs that once were different: by a cast, a map, infinities, checkpoints, a large constant, or names."""

import unittest

import isonorm
from pairs import PACKED, NAMES, Attention, ByHand, images, net, sgd

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

INPUTS = [torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


class Fused(Attention):
    """Its query, key and value of one matrix, or of three; by F.scaled_dot_product_attention."""

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1) if hasattr(self, "qkv") else (self.q(x), self.k(x), self.v(x))
        return F.scaled_dot_product_attention(q, k, v)


class Casting(nn.Module):
    """A row over its root mean square, in f32 inside or in the dtype of x."""

    def __init__(self, dtype=None, eps=1e-6):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.last, self._dtype, self._eps = nn.Linear(8, 8), nn.Linear(8, 5), dtype, eps

    def forward(self, x):
        x = self.first(x)
        y = x.to(self._dtype or x.dtype)
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self._eps)
        return self.last(y.to(x.dtype))


class Rotated(nn.Module):
    """x cos(t) with angles made in f32 and stored, or made in the dtype of x; the factor multiplies the angles."""

    def __init__(self, stored, factor=1.0):
        super().__init__()
        self.weight, self._factor = nn.Parameter(torch.ones(8)), factor
        if stored:
            self.register_buffer("angles", self.made(torch.float32), persistent=False)

    def made(self, dtype):
        return 10 * torch.arange(8, dtype=dtype) / 8 / 3 * self._factor

    def forward(self, x):
        angles = self.angles if hasattr(self, "angles") else self.made(x.dtype)
        return x * self.weight * angles.cos()


class Right(unittest.TestCase):
    def equivalent(self, a, b, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, "points": 2, "steps": 6, **more})
        self.assertEqual(r.verdict, "equivalent", r)
        return r

    def different(self, a, b, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, **more})
        self.assertEqual(r.verdict, "different", r)
        return r

    def test_a_module_that_computes_in_f32(self):
        for a, b, who in ((Casting(torch.float32), Casting(), "a"), (Casting(), Casting(torch.float32), "b")):
            r = self.equivalent(a, b, optimizer=sgd)
            self.assertEqual((r.dtype, r.steps), ("f32", 6))
            self.assertRegex(r.why_f32, rf"^{who} \(Casting\) computes in f32, so both .* they are off by \d\.\de-0[78]$")
            self.assertIn(f"  f32         {who} (Casting) computes in f32", str(r))
            self.assertIn(", 6 steps of training, 3 batches\n", str(r))
            self.assertEqual(isonorm.compare(a, b, batches=INPUTS, dtype="f64").verdict, "different")
        self.assertEqual(self.equivalent(Casting(), Casting()).dtype, "f64")

    def test_a_mistake_beside_a_cast(self):
        self.assertEqual(self.different(Casting(torch.float32), Casting(torch.float32, 1.1e-6)).dtype, "f64")
        self.assertEqual(self.different(Casting(torch.float32), Casting(None, 1e-3)).dtype, "f64")

    def test_a_table_of_f32(self):
        for a, b, who in (Rotated(True), Rotated(False), "a"), (Rotated(False), Rotated(True), "b"):
            r = self.equivalent(a, b)
            self.assertRegex(r.why_f32, f"^angles of {who} is stored in f32, so")
        self.different(Rotated(True), Rotated(False, 1.001))
        self.assertEqual(self.different(Rotated(True), Rotated(True, 1.000001)).dtype, "f64")

    def test_a_key_bias_through_a_map(self):
        """Its gradient is rounding alone, and Adam moves it by whole steps; a map carries it on."""
        for seed in range(2):
            torch.manual_seed(seed)
            for mapping in PACKED, lambda p: {n: f(p) for n, f in PACKED.items()}:
                self.equivalent(Attention(False), Fused(True), map=mapping, carry=True, optimizer=adam)
            self.equivalent(Attention(False), Fused(False), map=dict, carry=True, optimizer=adam)

    def test_a_key_bias_that_the_map_mixes(self):
        """The other entries of the bias are still compared."""
        scaled = {**PACKED, "qkv.bias": lambda p: PACKED["qkv.bias"](p) * torch.arange(1, 25)}

        class Scaled(Fused):
            def forward(self, x):
                q, k, v = F.linear(x, self.qkv.weight, self.qkv.bias / torch.arange(1, 25)).chunk(3, -1)
                return F.scaled_dot_product_attention(q, k, v)

        torch.manual_seed(0)
        self.equivalent(Attention(False), Scaled(True), map=scaled, carry=True)
        r = self.different(Attention(False), Scaled(True), map=scaled, carry=True, optimizer=adam)
        self.assertIn("qkv.bias", str(r))

    def test_a_bias_before_a_norm(self):
        class Norm(nn.Module):
            def __init__(self, joined):
                super().__init__()
                torch.manual_seed(1)
                self.linear, self.norm = nn.Linear(8, 6), nn.BatchNorm1d(6)
                if joined:
                    self.all = nn.Parameter(torch.cat([self.linear.bias, self.norm.bias]).detach())
                    self.linear.bias = self.norm.bias = None

            def forward(self, x):
                x = x.flatten(0, 1)
                if not hasattr(self, "all"):
                    return self.norm(self.linear(x))
                y = self.linear(x) + self.all[:6]
                return self.norm(y) + self.all[6:]

        joined = {"all": lambda p: torch.cat([p["linear.bias"], p["norm.bias"]])}
        self.equivalent(Norm(False), Norm(True), map=joined, optimizer=adam)

    def test_infinities_and_nan(self):
        class Banned(nn.Module):
            def __init__(self, value, at=2, factor=1.0):
                super().__init__()
                torch.manual_seed(1)
                self.linear, self._value, self._at, self._factor = nn.Linear(8, 6), value, at, factor

            def forward(self, x):
                return torch.where(torch.arange(6) == self._at, self._value, self.linear(x) * self._factor)

        def loss(y, t):
            return F.cross_entropy(y[..., 3:].flatten(0, 1), t.flatten())

        for value in -torch.inf, torch.inf, torch.nan:
            self.equivalent(Banned(value), Banned(value), optimizer=sgd)
            self.equivalent(Banned(value), Banned(value), loss=loss, batches=[(x, torch.zeros(2, 5).long()) for x in INPUTS])
            r = self.different(Banned(value), Banned(value, at=3))
            self.assertIn("output has NaN or infinities at other places", r.reason)
            self.different(Banned(value), Banned(value, factor=1 + 1e-9))
            self.different(Banned(value), Banned(0.0))
            self.different(Banned(0.0), Banned(value))

    def test_a_mask_of_infinities_as_an_input(self):
        mask = torch.full((5, 5), -torch.inf).triu(1)
        r = self.equivalent(Masked(True), Masked(False), batches=[(x, mask) for x in INPUTS])
        self.assertEqual(r.not_compared, ())

    def test_checkpoints(self):
        class Checkpointed(nn.Module):
            def __init__(self, reentrant):
                super().__init__()
                self.net, self._reentrant = net(p=0.3), reentrant

            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=self._reentrant)

        names = {f"net.{n}": n for n, _ in net().named_parameters()}
        more = {"batches": images(), "loss": F.cross_entropy, "map": names}
        for reentrant in False, True:
            self.equivalent(net(p=0.3), Checkpointed(reentrant), **more)
        self.equivalent(net(p=0.3), Checkpointed(False), optimizer=sgd, **more)

    def test_a_reentrant_checkpoint_behind_a_map(self):
        class Checkpointed(Fused):
            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=True)

        self.equivalent(Attention(False), Checkpointed(True), map=PACKED, carry=True)
        self.equivalent(Attention(False), Checkpointed(True), map=lambda p: {n: f(p) for n, f in PACKED.items()}, carry=True)

    def test_rows_with_a_large_constant(self):
        """What rounding does to a row less its mean is measured: each result of a in a control is moved by one ulp."""

        class Norm(nn.Module):
            def __init__(self, of):
                super().__init__()
                self.weight, self.bias, self._of = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8)), of

            def forward(self, x):
                return self._of(x, self.weight, self.bias)

        def by_hand(x, w, b):
            y = x - x.sum(-1, keepdim=True) / 8
            return y / torch.sqrt(y.square().mean(-1, keepdim=True) + 1e-5) * w + b

        def of_torch(x, w, b):
            return F.layer_norm(x, (8,), w, b)

        for constant in 300, 1000:
            rows = [x + constant for x in INPUTS]
            for optimizer in None, sgd:
                self.equivalent(Norm(by_hand), Norm(of_torch), batches=rows, optimizer=optimizer)
                self.equivalent(Norm(of_torch), Norm(by_hand), batches=rows, optimizer=optimizer)
        r = self.different(Norm(by_hand), Norm(lambda x, w, b: of_torch(x, w, b) * (1 + 1e-7)), batches=rows)
        self.assertLess(r.tolerance, 1e-7)

    def test_operations_whose_results_a_control_does_not_move(self):
        """The backward looks for a maximum by its value; and the root of a difference of 0 would be NaN."""

        class After(nn.Linear):
            def __init__(self, f):
                super().__init__(8, 8)
                self._f = f

            def forward(self, x):
                return self._f(super().forward(x))

        def largest(y):
            return torch.linalg.vector_norm(y, torch.inf, -1)

        def root(y):
            once = y.square().detach()
            return y * (1 + torch.sqrt(once * 3 - (once + once + once)).detach())

        for f in (torch.max, torch.amin, torch.median, lambda y: y.amax(-1), lambda y: y.max(-1).values, largest, root):
            for dtype in "f64", "f32":
                self.equivalent(After(f), After(f), carry=True, dtype=dtype, points=1)

    def test_draws_without_a_dtype(self):
        """torch draws other numbers in f64 than in f32; without a dtype they are drawn in the comparison's."""

        class Noisy(nn.Linear):
            def __init__(self, draw):
                super().__init__(8, 5)
                self._draw = draw

            def forward(self, x):
                return super().forward(x * (self._draw(x) < 0.8))

        for dtype in None, "f32":
            self.equivalent(Noisy(torch.rand_like), Noisy(lambda x: torch.rand(x.shape)), carry=True, dtype=dtype)
        r = self.equivalent(Noisy(torch.rand_like), Noisy(lambda x: torch.rand(x.shape, dtype=torch.float32)), carry=True)
        self.assertEqual(r.dtype, "f32")

    def test_renamed_modules(self):
        with self.assertRaisesRegex(ValueError, "of a alone: 0.weight, .*; of b alone: gain, .*; map= says how"):
            isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy)
        self.equivalent(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True)


class Masked(Attention):
    """Scores and a mask that is added to them, by hand or by torch."""

    def __init__(self, by_hand):
        torch.manual_seed(1)
        super().__init__(False)
        self._by_hand = by_hand

    def forward(self, x, mask):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self._by_hand:
            return torch.softmax(q @ k.mT / 8**0.5 + mask, -1) @ v
        return F.scaled_dot_product_attention(q, k, v, mask)


if __name__ == "__main__":
    unittest.main()
