"""compare() of outputs of other kinds: masks, fields, sparse tensors, arrays, a loss beside logits, a loss that is NaN in f64."""

import unittest
from dataclasses import dataclass

import isonorm
from pairs import images, net

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

BATCHES = images()
INPUTS = [x for x, _ in BATCHES]


class Giving(nn.Module):
    """A linear layer, and what `of` makes of its output."""

    def __init__(self, of):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.of = nn.Linear(8, 5), of

    def forward(self, x):
        return self.of(self.linear(x))


class Outputs(unittest.TestCase):
    def refuses(self, text, a, b, **more):
        with self.assertRaises(ValueError) as raised:
            isonorm.compare(a, b, **{"batches": INPUTS, **more})
        self.assertIn(text, str(raised.exception))

    def test_masks_are_no_numbers(self):
        a, b = Giving(lambda y: (y, y > 0)), Giving(lambda y: (y, (y > 0).long()))
        self.refuses("a gives tensors of shapes [[6, 5], 'bool [6, 5]'], b of [[6, 5], [6, 5]]", a, b)

    def test_fields_are_keys(self):
        @dataclass
        class Output:
            logits: torch.Tensor
            halves: torch.Tensor

        a = Giving(lambda y: Output(y, y / 2))
        self.assertTrue(isonorm.compare(a, Giving(lambda y: {"halves": y / 2, "logits": y}), batches=INPUTS))
        self.refuses("output[logits]", a, Giving(lambda y: {"halves": y / 2, "y": y}))

    def test_sparse_tensors(self):
        self.assertTrue(isonorm.compare(Giving(torch.Tensor.to_sparse), Giving(torch.Tensor.to_sparse), batches=INPUTS))

    def test_the_place_in_models_that_give_loss_and_logits(self):
        """The order of keys is a's, and not that of the alphabet."""

        class Model(nn.Module):
            def __init__(self, eps=1e-5, pair=False):
                super().__init__()
                self.net, self.pair = net(eps=eps), pair

            def forward(self, x, labels):
                logits = self.net(x)
                loss = F.cross_entropy(logits, labels)
                return (loss, logits) if self.pair else {"loss": loss, "logits": logits}

        for pair in False, True:
            batches = [(batch, None) for batch in BATCHES]
            loss = lambda o, _: o["loss"] if isinstance(o, dict) else o[0]
            r = isonorm.compare(Model(), Model(1e-3, pair), batches=batches, loss=loss)
            self.assertEqual((r.verdict, r.first_difference.tensor), ("different", "net.1"), r)
            self.assertIn("eps of net.1 is 1e-05", r.likely_cause)

    def test_the_place_behind_a_module_that_gives_a_dict(self):
        """A dict and a tuple are matched by position, dicts by key, wherever they are given."""

        class Model(nn.Module):
            def __init__(self, of, eps=1e-5):
                super().__init__()
                self.first, self.norm = Giving(of), nn.LayerNorm(5, eps=eps)

            def forward(self, x):
                given = self.first(x)
                y, h = (given["y"], given["h"]) if isinstance(given, dict) else given
                return self.norm(y + 2 * h)

        a = Model(lambda y: {"y": y, "h": torch.tanh(y)})
        for of in (lambda y: (y, torch.tanh(y)), lambda y: {"h": torch.tanh(y), "y": y}):
            r = isonorm.compare(a, Model(of, 1e-3), batches=INPUTS)
            self.assertEqual((r.first_difference.what, r.first_difference.tensor), ("output", "norm"), r)

    def test_nested_tensors(self):
        pair = [Giving(lambda y: torch.nested.as_nested_tensor([y])) for _ in range(2)]
        self.refuses("a nested tensor cannot be compared", *pair)

    def test_a_loss_that_is_nan_in_f64_alone(self):
        """The least number of f64 as a mask is -inf after a cast to f32."""

        class Masked(Giving):
            def __init__(self, scale=1.0):
                def masked(y):
                    least = torch.full_like(y, torch.finfo(y.dtype).min)
                    return torch.softmax(torch.where(y.mean(-1, keepdim=True) > 9, y, least).float(), -1).to(y.dtype) + scale * y

                super().__init__(masked)

        r = isonorm.compare(Masked(), Masked(), batches=BATCHES, loss=F.cross_entropy)
        self.assertEqual((r.verdict, r.dtype), ("equivalent", "f32"), r)
        self.assertEqual(r.why_f32, "the loss of a itself is nan in f64 at point 1, so both were compared in f32")
        self.refuses("the loss of a itself is nan at point 1", Masked(), Masked(), batches=BATCHES, loss=F.cross_entropy, dtype="f64")
        self.assertEqual(isonorm.compare(Masked(), Masked(2.0), batches=BATCHES, loss=F.cross_entropy).verdict, "different")

    def test_no_tensor(self):
        a, b = (Giving(lambda y: np.asarray(y.detach())) for _ in range(2))
        self.refuses("gives no floating tensor that has entries: it gives output (ndarray)", a, b)


if __name__ == "__main__":
    unittest.main()
