"""compare() on pairs of modules of which it is known by algebra whether they are one function and train alike."""

import copy
import unittest

import isonorm

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    raise unittest.SkipTest("needs torch")


def images(n=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(6, 8, generator=g), torch.randint(0, 5, (6,), generator=g)) for _ in range(n)]


def net(norm=None, act=None, eps=1e-5, p=0.0):
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(8, 16), norm or nn.LayerNorm(16, eps=eps), act or nn.GELU(), nn.Dropout(p), nn.Linear(16, 5)
    )


class ByHand(nn.Module):
    """net() with the norm spelled out, and other names."""

    def __init__(self, eps=1e-5):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 5)
        self.gain, self.shift = nn.Parameter(torch.ones(16)), nn.Parameter(torch.zeros(16))
        self.eps = eps

    def forward(self, x):
        x = self.first(x)
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.gain + self.shift
        return self.last(x * 0.5 * (1 + torch.erf(x / 2**0.5)))


NAMES = {
    "first.weight": "0.weight",
    "first.bias": "0.bias",
    "gain": "1.weight",
    "shift": "1.bias",
    "last.weight": "4.weight",
    "last.bias": "4.bias",
}


class Attention(nn.Module):
    """One head; `packed`: queries, keys and values of one matrix."""

    def __init__(self, packed):
        super().__init__()
        if packed:
            self.qkv = nn.Linear(8, 24)
        else:
            self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1) if hasattr(self, "qkv") else (self.q(x), self.k(x), self.v(x))
        return torch.softmax(q @ k.mT / 8**0.5, -1) @ v


PACKED = {f"qkv.{n}": lambda p, n=n: torch.cat([p[f"q.{n}"], p[f"k.{n}"], p[f"v.{n}"]]) for n in ("weight", "bias")}


class Scaled(nn.Module):
    """A linear layer whose stored weight is `factor` times what it applies."""

    def __init__(self, factor):
        super().__init__()
        self.weight, self.factor = nn.Parameter(torch.randn(5, 8) * factor), factor

    def forward(self, x):
        return x @ (self.weight / self.factor).T


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


class Same(unittest.TestCase):
    def test_by_other_names(self):
        r = isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True)
        self.assertEqual(r.verdict, "equivalent", r)
        self.assertTrue(r)
        self.assertEqual((r.dtype, r.points), ("f64", 5))
        self.assertLess(r.deviation, 1e-13)
        self.assertLess(r.power.factor, 1e-10)
        self.assertEqual([p.parameter for p in r.power.probes if not p.seen], [])
        self.assertIn("equivalent", str(r))

    def test_training(self):
        for optimizer in (sgd, adamw):
            r = isonorm.compare(
                net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True, optimizer=optimizer
            )
            self.assertEqual((r.verdict, r.steps), ("equivalent", 20), r)

    def test_packed_matrices_train_alike(self):
        a, b = Attention(False), Attention(True)
        x = [torch.randn(2, 3, 8) for _ in range(3)]
        r = isonorm.compare(a, b, batches=x, map=PACKED, carry=True, optimizer=sgd)
        self.assertTrue(r, r)
        self.assertTrue(isonorm.compare(a, b, batches=x, map=lambda p: {n: f(p) for n, f in PACKED.items()}, carry=True))

    def test_without_a_map(self):
        a, b = net(), ByHand()
        with torch.no_grad():
            for new, old in NAMES.items():
                b.get_parameter(new).copy_(a.get_parameter(old))
        r = isonorm.compare(a, b, batches=images(), loss=F.cross_entropy, map=None)
        self.assertTrue(r, r)
        with torch.no_grad():
            b.gain[3] += 1e-6
        self.assertEqual(isonorm.compare(a, b, batches=images(), loss=F.cross_entropy, map=None).verdict, "different")

    def test_in_f32(self):
        r = isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True, dtype="f32")
        self.assertEqual((r.verdict, r.dtype), ("equivalent", "f32"), r)

    def test_a_copy(self):
        a = net(p=0.3)
        before = copy.deepcopy(a.state_dict())
        self.assertTrue(isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()]))
        self.assertTrue(all(torch.equal(v, before[k]) for k, v in a.state_dict().items()))
        self.assertTrue(all(p.dtype == torch.float32 and p.grad is None for p in a.parameters()))

    def test_buffers_and_batch_statistics(self):
        torch.manual_seed(0)
        a = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
        self.assertTrue(isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()], optimizer=sgd))
        b = copy.deepcopy(a)
        b[1].momentum = 0.5  # is not seen in training mode
        self.assertTrue(isonorm.compare(a, b, batches=[x for x, _ in images()]))

    def test_a_tied_table_and_a_transformer(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.head = nn.Embedding(11, 16), nn.Linear(16, 11, bias=False)
                self.block = nn.TransformerEncoderLayer(16, 2, 32, 0.1, norm_first=True, batch_first=True)
                self.head.weight = self.table.weight

            def forward(self, ids):
                return self.head(self.block(self.table(ids)))

        torch.manual_seed(0)
        ids = [(torch.randint(0, 11, (2, 7)), torch.randint(0, 11, (2, 7))) for _ in range(3)]
        common = {"batches": ids, "loss": lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten())}
        a = Tied()
        r = isonorm.compare(a, copy.deepcopy(a), optimizer=adamw, steps=4, **common)
        self.assertTrue(r, r)
        b = copy.deepcopy(a)
        b.block.norm2.eps = 1e-6
        r = isonorm.compare(a, b, **common)
        self.assertEqual((r.verdict, r.first.a), ("different", "block.norm2"), r)

    def test_buffers_that_a_forward_changes(self):
        class Counting(nn.Linear):
            def __init__(self):
                super().__init__(8, 5)
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x):
                self.count += 1
                return super().forward(x) * self.count

        torch.manual_seed(0)
        a = Counting()
        self.assertTrue(isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()]))

    def test_functions_without_parameters(self):
        x = [torch.randn(3, 8)]
        self.assertTrue(isonorm.compare(nn.SiLU(), Swish(), batches=x))
        self.assertEqual(isonorm.compare(nn.SiLU(), nn.GELU(), batches=x).verdict, "different")


class Swish(nn.Module):
    def forward(self, x):
        return x / (1 + torch.exp(-x))


class Different(unittest.TestCase):
    def compare(self, a, b, **more):
        more = {"batches": images(), "loss": F.cross_entropy, "carry": True, **more}
        r = isonorm.compare(a, b, **more)
        self.assertEqual(r.verdict, "different", r)
        self.assertFalse(r)
        self.assertIsNotNone(r.first)
        self.assertGreater(r.first.deviation, r.first.bound)
        return r

    def test_eps(self):
        r = self.compare(net(), net(eps=1e-6))
        self.assertEqual((r.first.a, r.first.what), ("1", "output"))
        self.assertIn("eps=1e-06", r.cause)

    def test_eps_of_a_module_that_is_no_leaf(self):
        r = self.compare(ByHand(), ByHand(eps=1e-6))
        self.assertEqual(r.first.a, "last")
        self.assertIn("eps of a is 1e-05, of b in b 1e-06", r.cause)

    def test_activation(self):
        r = self.compare(net(), net(act=nn.GELU(approximate="tanh")))
        self.assertEqual(r.first.a, "2")
        self.assertIn("approximate='tanh'", r.cause)

    def test_norm(self):
        r = self.compare(net(norm=nn.LayerNorm(16, bias=False)), net(norm=nn.RMSNorm(16)))
        self.assertEqual(r.first.a, "1")
        self.assertIn("RMSNorm", r.cause)

    def test_rounding_before_it_is_no_difference(self):
        class Norm(nn.LayerNorm):
            def forward(self, x):
                x = x - x.mean(-1, keepdim=True)
                return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight + self.bias

        r = self.compare(net(), net(norm=Norm(16), act=nn.GELU(approximate="tanh")))
        self.assertEqual(r.first.a, "2")

    def test_amplified_rounding_is_no_difference_either(self):
        class Backwards(nn.Linear):
            def forward(self, x):
                return x.flip(-1) @ self.weight.flip(-1).T + self.bias

        class Sine(nn.Module):
            def forward(self, x):
                return torch.sin(1e6 * x)

        def made(first, act):
            torch.manual_seed(0)
            return nn.Sequential(first(8, 64), Sine(), act, nn.Linear(64, 5))

        r = self.compare(made(nn.Linear, nn.GELU()), made(Backwards, nn.GELU(approximate="tanh")))
        self.assertEqual(r.first.a, "2")

    def test_a_known_mistake(self):
        class Linear(nn.Linear):
            _factor = 1  # no option that says what it does

            def forward(self, x):
                return super().forward(x) * self._factor

        torch.manual_seed(0)
        a = nn.Sequential(Linear(8, 5))
        b = copy.deepcopy(a)
        b[0]._factor = 3
        r = self.compare(a, b)
        self.assertEqual((r.first.a, r.first.what), ("0", "output"))
        self.assertIn("3", r.cause)

    def test_what_shows_at_drawn_points_alone(self):
        class Gain(nn.Module):
            def __init__(self, bent):
                super().__init__()
                self.gain, self.bent = nn.Parameter(torch.ones(5)), bent

            def forward(self, x):
                return x[:, :5] * (self.gain + (self.gain - 1) ** 2 if self.bent else self.gain)

        r = self.compare(Gain(False), Gain(True))
        self.assertEqual(r.points, 2)

    def test_an_output_that_the_loss_does_not_see(self):
        class Two(nn.Linear):
            def forward(self, x):
                return super().forward(x), x * self.extra

        torch.manual_seed(0)
        a = Two(8, 5)
        a.extra = torch.tensor(1.0)
        b = copy.deepcopy(a)
        b.extra = torch.tensor(1.000001)
        self.compare(a, b, loss=lambda y, t: F.cross_entropy(y[0], t))

    def test_dropout(self):
        r = self.compare(net(), net(p=0.2))
        self.assertIn("Dropout(p=0.2", r.cause)
        self.assertEqual(r.first.a, "3")

    def test_the_order_of_draws(self):
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net(p=0.2)

            def forward(self, x):
                torch.rand(1)
                return self.net(x)

        r = self.compare(net(p=0.2), Late(), map={f"net.{n}": n for n, _ in net().named_parameters()})
        self.assertIn("in eval() the two agree", r.cause)

    def test_a_backward_alone(self):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return g * 0.5

        class Halved(nn.GELU):
            def forward(self, x):
                return Wrong.apply(super().forward(x))

        Halved.__name__ = "GELU"
        r = self.compare(net(), net(act=Halved()))
        self.assertIn("gradient", r.first.what)
        self.assertEqual(r.first.a, "1")  # what the wrong backward gives back

    def test_a_small_gradient_beside_large_ones(self):
        class Detached(nn.Module):
            def __init__(self, wrong):
                super().__init__()
                self.big, self.small = nn.Linear(8, 5), nn.Parameter(torch.ones(5))
                self.wrong = wrong

            def forward(self, x):
                small = 1e-7 * self.small
                return self.big(x) + (small + 1e-6 * (small - small.detach()) if self.wrong else small)

        torch.manual_seed(0)
        self.compare(Detached(False), Detached(True))

    def test_values_of_parameters(self):
        a, b = net(), net()
        with torch.no_grad():
            b[4].bias[2] += 1e-6
        r = self.compare(a, b, carry=False)
        self.assertEqual((r.first.what, r.first.a), ("parameter", "4.bias"))
        self.assertTrue(isonorm.compare(a, b, batches=images(), loss=F.cross_entropy, carry=True))

    def test_names_that_do_not_fit(self):
        r = isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy)
        self.assertEqual(r.verdict, "different")
        self.assertIn("a has no parameter gain", str(r))
        more = nn.Sequential(*net(), nn.Linear(5, 5))
        self.assertIn("follows from 5.weight of a", str(isonorm.compare(more, net(), batches=images(), carry=True)))
        less = {k: v for k, v in NAMES.items() if k != "gain"}
        self.assertIn("gain", str(isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=less)))

    def test_the_same_function_that_trains_otherwise(self):
        x = [torch.randn(6, 8) for _ in range(3)]
        both = {"batches": x, "map": {"weight": lambda p: 2 * p["weight"]}, "carry": True}
        a, b = Scaled(1), Scaled(2)
        self.assertTrue(isonorm.compare(a, b, **both))
        r = isonorm.compare(a, b, **both, optimizer=sgd)
        self.assertEqual(r.verdict, "different", r)
        self.assertEqual(r.first.what, "weights at step 1")
        self.assertIn("optimizer", r.cause)


class Otherwise(unittest.TestCase):
    def test_undecided_where_nothing_can_be_seen(self):
        class Nothing(nn.Linear):
            def forward(self, x):
                return 0 * super().forward(x)

        r = isonorm.compare(Nothing(8, 5), Nothing(8, 5), batches=[x for x, _ in images()], carry=True)
        self.assertEqual((r.verdict, bool(r)), ("undecided", False), r)

    def test_power_where_no_factor_shows(self):
        class Direction(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(5, 8))

            def forward(self, x):
                return x @ (self.weight / self.weight.norm()).T

        a = Direction()
        r = isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()], map=None)
        self.assertTrue(r.power.probes[0].seen, r)

    def test_power_names_what_was_not_seen(self):
        class Idle(nn.Linear):
            def __init__(self):
                super().__init__(8, 5)
                self.idle = nn.Parameter(torch.ones(3))

        torch.manual_seed(0)
        a = Idle()
        r = isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()])
        self.assertTrue(r, r)
        self.assertEqual([p.parameter for p in r.power.probes if not p.seen], ["idle"])

    def test_undecided_where_no_probe_is_seen(self):
        class Idle(nn.Module):
            def __init__(self):
                super().__init__()
                # Of nine eight are probed: all but the one that does something.
                self.all = nn.ParameterList([*(torch.ones(3) for _ in range(8)), torch.randn(5, 8)])

            def forward(self, x):
                return x @ self.all[8].T

        a = Idle()
        r = isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()])
        self.assertEqual(r.verdict, "undecided", r)

    def test_refuses(self):
        a = net()
        for other, options, said in (
            (a, {}, "given twice"),
            (net(), {"points": 0}, "0 points"),
            (net(), {"dtype": "bf16"}, "'bf16'"),
            (net(), {"batches": []}, "no batches"),
            (net(), {"batches": [torch.zeros(2, 8)]}, "pair"),
            (net(), {"map": None, "optimizer": sgd}, "needs a map"),
            (net(), {"loss": lambda y, t: y.sum() * float("nan")}, "nan"),
            (nn.Linear(8, 4), {"map": None, "loss": None, "batches": [torch.zeros(2, 8)]}, "shapes"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                isonorm.compare(a, other, **{"batches": images(), "loss": F.cross_entropy, **options})

    def test_assert_equivalent(self):
        isonorm.assert_equivalent(net(), net(), batches=images(), loss=F.cross_entropy)
        with self.assertRaisesRegex(AssertionError, "different: .*\n(.*\n)*.*first .*output of 1: off by"):
            isonorm.assert_equivalent(net(), net(eps=1e-6), batches=images(), loss=F.cross_entropy)


if __name__ == "__main__":
    unittest.main()
