"""compare() of what people bring beside plain modules: results kept from a forward, losses with weights, optimizers of other
parameters, maps that cut gradients."""

import copy
import unittest
import warnings

import isonorm
from pairs import adamw, images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

BATCHES = images()
INPUTS = [x for x, _ in BATCHES]
TRAINED = {"batches": BATCHES, "loss": F.cross_entropy, "steps": 10}


class Keeping(nn.Module):
    """Keeps what a submodule gave, with its graph, as modules keep attention weights."""

    def __init__(self, of=list):
        super().__init__()
        self.net, self.last = net(), of()

    def forward(self, x):
        self.last = [self.net[0](x)]
        return self.net[1:](self.last[0])


PART = {f"net.{n}": n for n, _ in net().named_parameters()}


class Hostile(unittest.TestCase):
    def refuses(self, text, a=None, b=None, **more):
        with self.assertRaises(ValueError) as raised:
            isonorm.compare(a or net(), b or net(), **{**TRAINED, **more})
        self.assertIn(text, str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))


class Kept(Hostile):
    def test_results_of_the_last_forward(self):
        self.assertTrue(isonorm.compare(Keeping(), Keeping(), **TRAINED, optimizer=adamw))
        a = Keeping()
        a(INPUTS[0])  # a user who tried it before
        kept = a.last[0]
        self.assertTrue(isonorm.compare(a, Keeping(), **TRAINED))
        self.assertTrue(a.last[0] is kept and kept.grad_fn is not None)

    def test_weights_that_a_hook_computes(self):
        def made(of):
            model = net()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated
                of(model[0])
            return model

        parts = {f"0.weight_{end}": f"0.parametrizations.weight.original{i}" for i, end in enumerate("gv")}
        new, old = nn.utils.parametrizations.weight_norm, nn.utils.weight_norm
        self.assertTrue(isonorm.compare(made(new), made(old), **TRAINED, map=parts, optimizer=adamw))
        wrong = made(old)
        wrong[1].eps = 1e-3
        self.assertEqual(isonorm.compare(made(old), wrong, **TRAINED).verdict, "different")
        self.assertTrue(isonorm.compare(made(nn.utils.spectral_norm), made(nn.utils.spectral_norm), **TRAINED, optimizer=adamw))


    def test_functions_of_the_module_that_was_copied(self):
        """A lambda or a bound method goes on to compute with the user's own module, which the comparison must not touch."""

        class Bound(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net()
                first = self.net[0]
                self.first = lambda x: first(x.to(first.weight.dtype)).to(x.dtype)

            def forward(self, x):
                return self.net[1:](self.first(x))

        a = Bound()
        for dtype in "f32", None:
            self.refuses("the copy of a computes with net.0.weight of a itself", a, Bound(), dtype=dtype)
        self.refuses("the copy of b computes with net.0.weight of b itself", copy.deepcopy(net()), Bound(), map=PART)
        patched = net()
        forward = patched.forward
        patched.forward = lambda x: 2 * forward(x)
        self.refuses("the copy of b computes with 0.weight of b itself", b=patched, dtype="f32")
        self.assertTrue(all(p.grad is None for p in [*a.parameters(), *patched.parameters()]))


class Losses(Hostile):
    def test_weights_of_classes(self):
        weight = torch.tensor([0.1, 1.0, 2.0, 0.5, 1.5])
        loss = nn.CrossEntropyLoss(weight=weight)
        self.assertTrue(isonorm.compare(net(), net(), batches=BATCHES, loss=loss))
        self.assertIs(loss.weight.dtype, torch.float32)

    def test_a_dtype_that_no_dtype_helps(self):
        """Whole numbers as targets of a loss that takes floating ones fail in f32, too."""
        batches = [(x, F.one_hot(t, 5)) for x, t in BATCHES]
        with self.assertRaises(ValueError) as raised:
            isonorm.compare(net(), net(), batches=batches, loss=F.binary_cross_entropy_with_logits)
        self.assertIn("the loss raises RuntimeError", str(raised.exception))
        self.assertNotIn("copies run in f64", str(raised.exception))

    def test_parameters_that_are_nan_in_both(self):
        pair = net(), net()
        for model in pair:
            model[0].weight.data[0] = torch.nan
        self.refuses("the loss of a itself is nan", *pair)

    def test_nothing_to_train(self):
        frozen = [net().requires_grad_(False) for _ in range(2)]
        self.refuses("no gradient comes from the loss of a to its parameters: there is nothing to train", *frozen, optimizer=sgd)
        self.assertTrue(isonorm.compare(*frozen, **TRAINED))

    def test_inference_mode(self):
        with torch.inference_mode():
            self.refuses("runs under torch.inference_mode()")


class Trainings(Hostile):
    def test_parameters_of_another_module(self):
        """The optimizer of the user's own module would train that, and not the copy."""
        own = net()
        self.refuses(
            "the optimizer of a holds other parameters than the list that it was given",
            a=own,
            optimizer=lambda _: torch.optim.SGD(own.parameters(), lr=0.1),
        )

    def test_a_schedule_that_is_none(self):
        self.refuses("what schedule of b makes is None", optimizer=sgd, schedule=(None, lambda o: None))

    def test_clipping_that_asks_each_parameter(self):
        def halve(parameters):
            for p in parameters:
                p.grad.mul_(0.5)

        self.assertTrue(isonorm.compare(net(), net(), **TRAINED, optimizer=sgd, clip=halve))

    def test_a_rate_that_is_a_tensor(self):
        def by_tensor(rate):
            return lambda p: torch.optim.AdamW(p, lr=torch.tensor(rate))

        def by_number(p):
            return torch.optim.AdamW(p, lr=1e-2)

        self.assertTrue(isonorm.compare(net(), net(), **TRAINED, optimizer=(by_number, by_tensor(1e-2))))
        r = isonorm.compare(net(), net(), **TRAINED, optimizer=(by_number, by_tensor(2e-2)))
        self.assertIn("lr of 0.weight and 5 more is 0.01 in a, tensor(0.0200", r.likely_cause)
        f32 = torch.tensor(1e-2)
        r = isonorm.compare(net(), net(), **TRAINED, optimizer=(by_number, lambda p: torch.optim.AdamW(p, lr=f32)))
        self.assertIn("lr of 0.weight and 5 more is 0.01 in a, tensor(0.0100", r.likely_cause)


class Maps(Hostile):
    def test_maps_that_cut_gradients(self):
        for cut in (
            lambda p: p["0.weight"].detach(),
            lambda p: p["0.weight"].data.clone(),
            lambda p: copy.deepcopy(p["0.weight"]),
            lambda p: torch.cat([copy.deepcopy(p["0.weight"])]),
        ):
            self.refuses("no gradient goes back from 0.weight through the map", map={"0.weight": cut})
        own = dict(net().named_parameters())
        self.refuses("nothing that the map makes follows from the dict of a's parameters", map=lambda _: own)

    def test_constants_in_a_map(self):
        """They are in the dtype of the comparison, whatever they are stored in."""
        torch.manual_seed(1)
        a, b = nn.Linear(8, 5, bias=False), nn.Linear(8, 5)
        b.bias.data.fill_(0)
        b.weight.data.copy_(a.weight)
        zero = torch.zeros(5)
        self.assertTrue(isonorm.compare(a, b, batches=INPUTS, map={"bias": lambda p: zero}))

    def test_buffers(self):
        b = net(nn.BatchNorm1d(16))
        self.refuses("map= names 1.running_mean, which b does not have as a parameter", b=b, map={"1.running_mean": "1.bias"})


class Causes(unittest.TestCase):
    def test_statistics_that_were_not_carried(self):
        def made():
            return net(nn.BatchNorm1d(16)).eval()

        b = made()
        b[1].running_mean.fill_(0.5)
        self.assertEqual(self.cause(made(), b), "b has other values of the buffer 1.running_mean; with a's the two agree")

    def test_a_square_is_no_factor(self):
        """The gradient of the square of a fresh gain is twice that of the gain."""

        class Squared(nn.LayerNorm):
            def forward(self, x):
                return F.layer_norm(x, self.normalized_shape, self.weight**2, self.bias, self.eps)

        self.assertNotIn("factor", str(self.cause(net(), net(Squared(16)))))

    def cause(self, a, b):
        r = isonorm.compare(a, b, batches=INPUTS)
        self.assertEqual(r.verdict, "different", r)
        return r.likely_cause

    def test_a_factor_is_no_addend_of_fresh_gains(self):
        """Fresh gains are 1 and biases 0: 2 y and (1 + gain) y are one there."""
        doubled = net()
        doubled[1].register_forward_hook(lambda module, given, output: 2 * output)
        self.assertEqual(self.cause(net(), doubled), "a factor of 2")

        class PlusOne(nn.LayerNorm):
            def forward(self, x):
                return F.layer_norm(x, self.normalized_shape, 1 + self.weight, self.bias, self.eps)

        self.assertIn("another use of the gain: a multiplies by the gain, b by the gain + 1", self.cause(net(), net(PlusOne(16))))

    def test_one_of_several_options(self):
        """They hold three others; one alone matters."""

        class Spread(nn.Module):
            def __init__(self, parts, scale, act):
                super().__init__()
                torch.manual_seed(1)
                self.parts, self.scale, self.act = parts, scale, act
                self.linear = nn.Linear(8, 4)
                if parts == 2:
                    self.linear.weight = nn.Parameter(self.linear.weight.detach() / 2)

            def forward(self, x):
                return self.act(F.linear(x, self.linear.weight * self.parts, self.linear.bias)) * self.scale

        halves = {"map": {"linear.weight": lambda p: p["linear.weight"] / 2}, "batches": INPUTS}
        for options, said in (
            ((3.0, torch.relu), "scale of a is 1.0, of b in b 3.0; with a's the two agree"),
            ((1.0, torch.tanh), "act of a is relu, of b in b tanh; with a's the two agree"),
        ):
            self.assertEqual(isonorm.compare(Spread(1, 1.0, torch.relu), Spread(2, *options), **halves).likely_cause, said)


if __name__ == "__main__":
    unittest.main()
