"""compare() of what differs: places through a map, and causes that were tested."""

import copy
import unittest

import isonorm
from pairs import images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = [x for x, _ in images()]


class Own(nn.LayerNorm):
    """A layer norm by another name, whose eps no option says."""

    def __init__(self, eps):
        super().__init__(16)
        self.eps, self._eps = None, eps

    def forward(self, x):
        return F.layer_norm(x, (16,), self.weight, self.bias, self._eps)


class Block(nn.Module):
    """Leaf modules that agree, and what `of` makes of them."""

    def __init__(self, of):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.last, self._of = nn.Linear(8, 8), nn.Linear(8, 8), of

    def forward(self, x):
        return self._of(self, x)


class Renamed(nn.Module):
    """net() with other names, and a module before it that does nothing."""

    def __init__(self, eps=1e-5, act=None):
        super().__init__()
        torch.manual_seed(1)
        self.pos_drop, self.fc1, self.gelu = nn.Dropout(0.0), nn.Linear(8, 16), act or nn.GELU()
        self.ln, self.fc2 = nn.LayerNorm(16, eps=eps), nn.Linear(16, 5)

    def forward(self, x):
        return self.fc2(self.gelu(self.ln(self.fc1(self.pos_drop(x)))))


RENAMED = {f"{new}.{n}": f"{old}.{n}" for new, old in (("fc1", 0), ("ln", 1), ("fc2", 4)) for n in ("weight", "bias")}


class Compared(unittest.TestCase):
    def different(self, a, b, what, place, partner=None, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, "carry": True, **more})
        self.assertEqual(r.verdict, "different", r)
        self.assertEqual((r.first_difference.what, r.first_difference.tensor, r.first_difference.partner), (what, place, partner or place), r)
        return r


class Places(Compared):
    def test_through_a_map(self):
        """Modules are partners if their parameters are: others that stand between them are not taken for partners."""
        r = self.different(net(), Renamed(eps=1e-6), "output", "1", "ln", map=RENAMED)
        self.assertEqual(r.likely_cause, "eps of 1 is 1e-05, of ln in b 1e-06; with a's the two agree")
        r = self.different(net(), Renamed(act=nn.GELU("tanh")), "input", "4", "fc2", map=RENAMED)
        self.assertIsNone(r.likely_cause)
        as_a_function = {"map": lambda p: {new: p[old] * 1 for new, old in RENAMED.items()}}
        self.different(net(), Renamed(eps=1e-6), "output", "1", "ln", **as_a_function)

    def test_what_follows_agrees_again(self):
        """b's norm has the activation in it: its output is not that of a's norm, and what follows from it is a's again."""

        class Activated(nn.LayerNorm):
            def forward(self, x):
                return F.gelu(super().forward(x))

        class Fused(nn.Module):
            def __init__(self, last):
                super().__init__()
                self.first, self.norm, self.last = nn.Linear(8, 16), Activated(16), last

            def forward(self, x):
                return self.last(self.norm(self.first(x)))

        class Shifted(nn.Linear):
            def forward(self, x):
                return super().forward(x) + 1

        modules = ("first", 0), ("norm", 1), ("last", 4)
        names = {f"{new}.{n}": f"{old}.{n}" for new, old in modules for n in ("weight", "bias")}
        self.assertTrue(isonorm.compare(net(), Fused(nn.Linear(16, 5)), batches=INPUTS, map=names, carry=True, points=1))
        r = self.different(net(), Fused(Shifted(16, 5)), "output", "4", "last", map=names)
        self.assertIn("with a's module there the outputs agree", str(r))

    def test_the_forward_comes_first(self):
        """All leaf modules agree: the output of the module around them differs, not only gradients."""
        self.different(Block(lambda m, x: m.first(x) + m.last(x)), Block(lambda m, x: m.first(x) - m.last(x)), "output", "a itself", "b itself")

    def test_the_innermost_module_with_a_wrong_backward(self):
        class Half(nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return y / 2 + y.detach() / 2

        b = net()
        b[4] = Half(16, 5)
        r = self.different(net(), b, "gradient from the backward", "4")
        self.assertEqual(r.likely_cause, "a factor of 0.5, about 1 / 2")
        detached = Block(lambda m, x: m.last(m.first(x).detach()))
        self.different(Block(lambda m, x: m.last(m.first(x))), detached, "gradient of the output", "first")

    def test_a_module_that_takes_no_hooks(self):
        """The verdict stands without a place."""

        class Unwatched(nn.Linear):
            def forward(self, x):
                if self._forward_hooks:
                    raise RuntimeError("watched")
                return super().forward(x)

        def made(bias):
            torch.manual_seed(1)
            return nn.Sequential(Unwatched(8, 8), nn.LayerNorm(8, eps=bias))

        self.different(made(1e-5), made(1e-6), "output", "output")

    def test_bounds_are_the_tensors_own(self):
        """30 times what the controls do to this tensor, and 64 eps: less than to the tensor that they move most."""

        class Two(nn.Module):
            def __init__(self, wrong):
                super().__init__()
                torch.manual_seed(1)
                self.steep, self.flat, self._wrong = nn.Linear(8, 5), nn.Linear(8, 5), wrong

            def forward(self, x):
                y = torch.sin(1e4 * self.steep(x))
                return y, self.flat(x) * (1 + self._wrong)

        r = isonorm.compare(Two(0), Two(1e-9), batches=INPUTS)
        self.assertGreater(r.tolerance, 1e-11)
        self.assertLess(r.first_difference.bound, 1e-12)


class Causes(Compared):
    def test_arithmetic_comes_before_class_names(self):
        r = self.different(net(), net(norm=Own(1e-6)), "output", "1")
        self.assertEqual(r.likely_cause, "another eps: b has 1e-06, a 1e-05")
        self.assertIn("with a's module there the outputs agree", str(r))

    def test_an_option_is_named_only_if_it_matters(self):
        b = net(norm=Own(1e-6))
        b[2].note, b.note = "b", 2
        a = net()
        a[2].note, a.note = "a", 1
        self.assertEqual(self.different(a, b, "output", "1").likely_cause, "another eps: b has 1e-06, a 1e-05")

    def test_options_of_several_modules(self):
        def deep(eps):
            torch.manual_seed(1)
            return nn.Sequential(*(m for e in eps for m in (nn.Linear(8, 8), nn.LayerNorm(8, eps=e))))

        r = self.different(deep([1e-5] * 3), deep([1e-6] * 3), "output", "1")
        self.assertEqual(r.likely_cause, "eps of 1 is 1e-05, of 1 in b 1e-06 (3 modules); with a's the two agree")

    def test_two_options_of_a_module(self):
        def image(**more):
            torch.manual_seed(1)
            return nn.Conv1d(1, 3, 3, **more)

        r = self.different(image(padding=1), image(padding=2, dilation=2), "output", "a itself", "b itself", batches=[x[:, None] for x in INPUTS])
        self.assertIn("dilation of a is (1,), of b in b (2,)", r.likely_cause)
        self.assertIn("with a's the two agree", r.likely_cause)

    def test_training_alone(self):
        """The part is named; a dropout only if there is one."""
        a = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
        b = copy.deepcopy(a)
        b[1].eval()
        r = isonorm.compare(a, b, batches=INPUTS)
        self.assertEqual(r.verdict, "different")
        self.assertNotIn("ropout", str(r))
        b = Block(lambda m, x: F.dropout(m.last(m.first(x)), 0.5, m.training))
        r = isonorm.compare(Block(lambda m, x: m.last(m.first(x))), b, batches=INPUTS)
        self.assertEqual(r.likely_cause, "a part that acts in training alone: in eval() the two agree, and in train() they do not")

    def test_a_module_that_does_not_repeat_itself(self):
        class Kept(nn.Linear):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return super().forward(x) + 0.1 * self.calls

        torch.manual_seed(1)
        a = nn.Linear(8, 8)
        b = Kept(8, 8)
        r = isonorm.compare(a, b, batches=INPUTS, carry=True)
        self.assertEqual(r.verdict, "different", r)
        self.assertIn("b is not repeatable", r.likely_cause)

    def test_no_map_no_word_of_it(self):
        class Signed(torch.optim.SGD):
            def step(self, closure=None):
                for p in self.param_groups[0]["params"]:
                    p.grad.sign_()
                super().step(closure)

        how = {"batches": images(), "loss": F.cross_entropy, "optimizer": (sgd, lambda p: Signed(p, lr=0.1)), "points": 1}
        a = net()
        self.assertNotIn("map", isonorm.compare(a, a, **how).likely_cause)


if __name__ == "__main__":
    unittest.main()
