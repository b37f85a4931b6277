"""compare() of what differs where no floating output, and no gradient, shows it."""

import unittest

import isonorm
from pairs import net, sgd

import torch
from torch import nn

INPUTS = [torch.randn(6, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]


class Also(nn.Module):
    """A linear map, and what `more` makes of its output."""

    def __init__(self, more):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.more = nn.Linear(8, 5), more

    def forward(self, x):
        y = self.linear(x)
        return self.more(y)


class Tied(nn.Module):
    """Two parameters with one value each, or in one memory."""

    def __init__(self, shared):
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
        own = self.one.weight.data
        self.two.weight = nn.Parameter(own if shared else own.clone())

    def forward(self, x):
        return self.two(self.one(x).tanh())


class Unseen(unittest.TestCase):
    def different(self, a, b, **more):
        r = isonorm.compare(a, b, batches=INPUTS, **more)
        self.assertEqual(r.verdict, "different", r)
        return r

    def equivalent(self, a, b, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, **more})
        self.assertEqual(r.verdict, "equivalent", r)

    def test_outputs_that_are_no_floating_tensors(self):
        for one, other in (
            (lambda y: (y, y.argmax(-1)), lambda y: (y, y.argmin(-1))),
            (lambda y: (y, y > 0), lambda y: (y, y > 0.1)),
            (lambda y: (y, torch.complex(y, y).detach()), lambda y: (y, torch.complex(y, -y).detach())),
            (lambda y: {"y": y, "z": 2 * y}, lambda y: {"z": y, "y": 2 * y}),
            (lambda y: (y, 1.5), lambda y: (y, 1.6)),
            (lambda y: (y, "mean"), lambda y: (y, "sum")),
            (lambda y: (y, -1), lambda y: (y, -2)),
        ):
            for dtype in "f64", "f32":
                self.different(Also(one), Also(other), dtype=dtype)
                self.equivalent(Also(one), Also(one), dtype=dtype)

    def test_whole_numbers_that_rounding_moves(self):
        def digits(y):
            return y, (y * 1e13).long()

        self.equivalent(Also(digits), Also(digits))
        self.equivalent(Also(digits), Also(lambda y: (y, (y * 1e13 * (1 + 1e-15)).long())))

    def test_frozen_in_one(self):
        frozen = net()
        frozen[0].weight.requires_grad_(False)
        self.different(net(), frozen)
        self.equivalent(frozen, frozen.__class__(*frozen))

    def test_what_copies_would_not_have(self):
        hooked, accumulating = net(), net()
        hooked[0].weight.register_hook(lambda g: 2 * g)
        accumulating[0].weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))
        for b in hooked, accumulating:
            with self.assertRaisesRegex(ValueError, "0.weight of Sequential has a hook"):
                isonorm.compare(net(), b, batches=INPUTS)
        with self.assertRaisesRegex(ValueError, "one.weight and two.weight of Tied share memory"):
            isonorm.compare(Tied(False), Tied(True), batches=INPUTS, optimizer=sgd)
        self.equivalent(Tied(False), Tied(False), optimizer=sgd)

    def test_batches_stay_as_they_are(self):
        class Remainder(nn.Embedding):
            def forward(self, x):
                return super().forward(x.fmod_(7))

        def table():
            torch.manual_seed(1)
            return Remainder(10, 5)

        ids = [torch.arange(24).reshape(4, 6) % 10]
        self.equivalent(table(), table(), batches=ids, optimizer=sgd)
        self.assertTrue(torch.equal(ids[0], torch.arange(24).reshape(4, 6) % 10))

    def test_a_loss_that_is_no_tensor(self):
        with self.assertRaisesRegex(ValueError, "the loss is 1.0, expected a tensor of one number"):
            isonorm.compare(net(), net(), batches=[(x, None) for x in INPUTS], loss=lambda y, t: 1.0)


if __name__ == "__main__":
    unittest.main()
