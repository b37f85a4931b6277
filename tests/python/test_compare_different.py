"""compare() of what differs: where first, and why."""

import copy
import unittest

import isonorm
from pairs import ByHand, NAMES, Scaled, images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F


class Different(unittest.TestCase):
    def compare(self, a, b, **more):
        more = {"batches": images(), "loss": F.cross_entropy, "carry": True, **more}
        r = isonorm.compare(a, b, **more)
        self.assertEqual(r.verdict, "different", r)
        self.assertFalse(r)
        self.assertIsNotNone(r.first_difference)
        self.assertGreater(r.first_difference.deviation, r.first_difference.bound)
        return r

    def test_eps(self):
        r = self.compare(net(), net(eps=1e-6))
        self.assertEqual((r.first_difference.tensor, r.first_difference.what), ("1", "output"))
        self.assertEqual(r.likely_cause, "eps of 1 is 1e-05, of 1 in b 1e-06; with a's the two agree")

    def test_eps_of_a_module_that_is_no_leaf(self):
        r = self.compare(ByHand(), ByHand(eps=1e-6))
        self.assertEqual(r.first_difference.tensor, "last")
        self.assertEqual(r.first_difference.what, "input")  # the norm is no module
        self.assertEqual(r.likely_cause, "eps of a is 1e-05, of b in b 1e-06; with a's the two agree")

    def test_activation(self):
        r = self.compare(net(), net(act=nn.GELU(approximate="tanh")))
        self.assertEqual(r.first_difference.tensor, "2")
        self.assertEqual(r.likely_cause, "approximate of 2 is 'none', of 2 in b 'tanh'; with a's the two agree")

    def test_norm(self):
        r = self.compare(net(norm=nn.LayerNorm(16, bias=False)), net(norm=nn.RMSNorm(16)))
        self.assertEqual(r.first_difference.tensor, "1")
        self.assertIn("RMSNorm", r.likely_cause)

    def test_rounding_before_it_is_no_difference(self):
        class Norm(nn.LayerNorm):
            def forward(self, x):
                x = x - x.mean(-1, keepdim=True)
                return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight + self.bias

        r = self.compare(net(), net(norm=Norm(16), act=nn.GELU(approximate="tanh")))
        self.assertEqual(r.first_difference.tensor, "2")

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
        self.assertEqual(r.first_difference.tensor, "2")

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
        self.assertEqual((r.first_difference.tensor, r.first_difference.what), ("0", "output"))
        self.assertIn("3", r.likely_cause)

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
        self.assertEqual(r.likely_cause, "p of 3 is 0.0, of 3 in b 0.2; with a's the two agree")
        self.assertEqual(r.first_difference.tensor, "3")

    def test_the_order_of_draws(self):
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net(p=0.2)

            def forward(self, x):
                torch.rand(1)
                return self.net(x)

        r = self.compare(net(p=0.2), Late(), map={f"net.{n}": n for n, _ in net().named_parameters()})
        self.assertIn("in eval() the two agree", r.likely_cause)

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
        self.assertEqual((r.first_difference.what, r.first_difference.tensor), ("gradient from the backward", "2"))
        self.assertEqual(r.likely_cause, "a factor of 0.5, about 1 / 2")

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
        self.assertEqual((r.first_difference.what, r.first_difference.tensor), ("parameter", "4.bias"))
        self.assertTrue(isonorm.compare(a, b, batches=images(), loss=F.cross_entropy, carry=True))

    def test_names_that_do_not_fit(self):
        more = nn.Sequential(*net(), nn.Linear(5, 5))
        less = {k: v for k, v in NAMES.items() if k != "gain"}
        for a, b, mapping, said in (
            (net(), ByHand(), "names", "of a alone: 0.weight, 0.bias, .*; of b alone: gain, shift, .*; map= says how"),
            (more, net(), "names", "of a alone: 5.weight, 5.bias; of b alone: none; map="),
            (net(), ByHand(), less, "of a alone: 1.weight; of b alone: gain; map="),
            (net(), ByHand(), {**NAMES, "gian": "1.weight"}, "map= names gian, which b does not have as a parameter; b has gain, shift, "),
            (net(), ByHand(), lambda p: {"gain": p["1.weight"]}, "makes no shift, .* of b; it makes gain"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                isonorm.compare(a, b, batches=images(), loss=F.cross_entropy, map=mapping)

    def test_the_same_function_that_trains_otherwise(self):
        x = [torch.randn(6, 8) for _ in range(3)]
        both = {"batches": x, "map": {"weight": lambda p: 2 * p["weight"]}, "carry": True}
        a, b = Scaled(1), Scaled(2)
        self.assertTrue(isonorm.compare(a, b, **both))
        r = isonorm.compare(a, b, **both, optimizer=sgd)
        self.assertEqual(r.verdict, "different", r)
        self.assertEqual(r.first_difference.what, "weights at step 1")
        self.assertIn("the update", r.likely_cause)

    def test_gradients_are_compared_before_a_step_that_changes_them(self):
        class Signed(torch.optim.SGD):
            def step(self, closure=None):
                for p in self.param_groups[0]["params"]:
                    p.grad.sign_()
                super().step(closure)

        x = [torch.randn(6, 8) for _ in range(3)]
        r = isonorm.compare(
            Scaled(1),
            Scaled(2),
            batches=x,
            map={"weight": lambda p: 2 * p["weight"]},
            carry=True,
            optimizer=lambda p: Signed(p, lr=0.1),
        )
        self.assertEqual(r.verdict, "different", r)
        self.assertEqual(r.first_difference.what, "weights at step 1")  # the sign of the mapped gradient is not the mapped sign
        self.assertIn("the update", r.likely_cause)


if __name__ == "__main__":
    unittest.main()
