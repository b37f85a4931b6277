"""compare() of what is the same, and of what cannot be told."""

import copy
import unittest

import isonorm
from pairs import Attention, ByHand, NAMES, PACKED, Swish, adamw, images, net, sgd

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F


class Same(unittest.TestCase):
    def test_by_other_names(self):
        r = isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True)
        self.assertEqual(r.verdict, "equivalent", r)
        self.assertTrue(r)
        self.assertEqual((r.dtype, r.points), ("f64", 5))
        self.assertLess(r.deviation, 1e-13)
        self.assertLess(r.detectable, 1e-10)
        self.assertEqual([p.parameter for p in r.probes if not p.detected], [])
        self.assertIn("equivalent", str(r))

    def test_training(self):
        for optimizer in (sgd, adamw):
            r = isonorm.compare(net(), ByHand(), batches=images(), loss=F.cross_entropy, map=NAMES, carry=True, optimizer=optimizer)
            self.assertEqual((r.verdict, r.steps), ("equivalent", 20), r)

    def test_progress(self):
        said = []
        how = {"batches": images(), "loss": F.cross_entropy, "points": 2, "steps": 20}
        isonorm.compare(net(), net(), optimizer=sgd, progress=said.append, **how)
        self.assertEqual([s["step"] for s in said if s["phase"] == "points"], [1, 2])
        self.assertEqual([s["step"] for s in said if s["phase"] == "training"], list(range(1, 21)))
        wrong = [s for s in said if s["phase"] == "negative controls"]
        self.assertEqual([s["step"] for s in wrong], list(range(1, wrong[0]["steps"] + 1)))

        def stop(step):
            raise KeyError(step["step"])

        with self.assertRaisesRegex(KeyError, "1"):
            isonorm.compare(net(), net(), progress=stop, **how)

    def test_packed_matrices_train_alike(self):
        a, b = Attention(False), Attention(True)
        x = [torch.randn(2, 3, 8) for _ in range(3)]
        r = isonorm.compare(a, b, batches=x, map=PACKED, carry=True, optimizer=sgd)
        self.assertTrue(r, r)
        self.assertTrue(isonorm.compare(a, b, batches=x, map=lambda p: {n: f(p) for n, f in PACKED.items()}, carry=True))

    def test_what_the_function_does_not_see_may_train_otherwise(self):
        class Reordered(Attention):
            def forward(self, x):
                scores = self.k(x) @ (self.q(x) / 8**0.5).mT
                return torch.softmax(scores.mT, -1) @ self.v(x)

        torch.manual_seed(0)
        x = [torch.randn(2, 3, 8) for _ in range(3)]

        # It moves the bias of keys, whose gradient is rounding alone, by whole steps in random directions.
        def adam(parameters):
            return torch.optim.Adam(parameters, lr=1e-3, eps=1e-30)

        r = isonorm.compare(Attention(False), Reordered(False), batches=x, carry=True, optimizer=adam)
        self.assertTrue(r, r)

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
        b[1].momentum = 0.5  # shows in the buffers alone
        r = isonorm.compare(a, b, batches=[x for x, _ in images()])
        self.assertEqual((r.verdict, r.first_difference.tensor), ("different", "1.running_mean"), r)

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
        self.assertEqual((r.verdict, r.first_difference.tensor), ("different", "block.norm2"), r)

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

    def test_checkpoints(self):
        class Checkpointed(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net(p=0.3)

            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)

        names = {f"net.{n}": n for n, _ in net().named_parameters()}
        more = {"batches": images(), "loss": F.cross_entropy, "map": names}
        r = isonorm.compare(net(p=0.3), Checkpointed(), optimizer=sgd, **more)
        self.assertEqual((r.verdict, r.points), ("equivalent", 5), r)

    def test_functions_without_parameters(self):
        x = [torch.randn(3, 8)]
        self.assertTrue(isonorm.compare(nn.SiLU(), Swish(), batches=x))
        self.assertEqual(isonorm.compare(nn.SiLU(), nn.GELU(), batches=x).verdict, "different")


class Otherwise(unittest.TestCase):
    def test_undecided_where_nothing_can_be_seen(self):
        class Nothing(nn.Linear):
            def forward(self, x):
                return 0 * super().forward(x)

        r = isonorm.compare(Nothing(8, 5), Nothing(8, 5), batches=[x for x, _ in images()], carry=True)
        self.assertEqual((r.verdict, bool(r)), ("undecided", False), r)

    def test_detects_parameters_of_which_no_factor_shows(self):
        class Direction(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(5, 8))

            def forward(self, x):
                return x @ (self.weight / self.weight.norm()).T

        a = Direction()
        r = isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()], map=None)
        self.assertTrue(r.probes[0].detected, r)

    def test_names_what_was_not_detected(self):
        class Idle(nn.Linear):
            def __init__(self):
                super().__init__(8, 5)
                self.idle = nn.Parameter(torch.ones(3))

        torch.manual_seed(0)
        a = Idle()
        r = isonorm.compare(a, copy.deepcopy(a), batches=[x for x, _ in images()])
        self.assertTrue(r, r)
        self.assertEqual([p.parameter for p in r.probes if not p.detected], ["idle"])

    def test_undecided_where_no_probe_is_seen(self):
        class Idle(nn.Module):
            def __init__(self):
                super().__init__()
                # Eight of nine are probed; the ninth does something.
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
            (net(), {"points": 0}, "points is 0"),
            (net(), {"dtype": "bf16"}, "'bf16'"),
            (net(), {"batches": []}, "no batches"),
            (net(), {"batches": [torch.zeros(2, 8)]}, "pair"),
            (net(), {"map": None, "optimizer": sgd}, "needs a map"),
            (net(), {"loss": lambda y, t: y.sum() * float("nan")}, "nan"),
            (nn.Linear(8, 4), {"map": None, "loss": None, "batches": [torch.zeros(2, 8)]}, "shapes"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                isonorm.compare(a, other, **{"batches": images(), "loss": F.cross_entropy, **options})

    def test_says_who_raised(self):
        class InF32(nn.GELU):
            def forward(self, x):
                if x.dtype != torch.float32:
                    raise RuntimeError(f"expected Float, got {x.dtype}\nand more")
                return super().forward(x)

        class Without(nn.GELU):
            def forward(self, x):
                return x.missing

        def weighted(y, t):
            return F.cross_entropy(y, t, weight=torch.ones(5, dtype=torch.float32))

        hint = '; copies run in f64, with dtype="f32" in f32$'
        for a, b, loss, said in (
            (net(act=InF32()), net(), F.cross_entropy, "^compare: 2 of a raises RuntimeError: expected Float, got torch.float64" + hint),
            (net(), net(act=InF32()), F.cross_entropy, "^compare: 2 of b raises RuntimeError: .*" + hint),
            (net(), net(act=Without()), F.cross_entropy, "^compare: 2 of b raises AttributeError: .*'missing'$"),
            (net(), net(), weighted, "^compare: the loss raises RuntimeError: .*" + hint),
        ):
            with self.assertRaisesRegex(ValueError, said) as raised:
                isonorm.compare(a, b, batches=images(), loss=loss, carry=True)
            self.assertIsNotNone(raised.exception.__cause__)
        r = isonorm.compare(net(act=InF32()), net(), batches=images(), loss=weighted, dtype="f32")
        self.assertTrue(r, r)

    def test_assert_equivalent(self):
        isonorm.assert_equivalent(net(), net(), batches=images(), loss=F.cross_entropy)
        with self.assertRaisesRegex(AssertionError, "different: .*\n(.*\n)*.*first .*output of 1: off by"):
            isonorm.assert_equivalent(net(), net(eps=1e-6), batches=images(), loss=F.cross_entropy)


if __name__ == "__main__":
    unittest.main()
