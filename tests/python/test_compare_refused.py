"""compare() of what it cannot work with: each misuse is a ValueError of one line, which names the argument."""

import warnings
import unittest

import isonorm
from pairs import images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = [x for x, _ in images()]


class Refused(unittest.TestCase):
    def refuses(self, said, a=None, b=None, **options):
        options = {"batches": images(), "loss": F.cross_entropy, "points": 2, **options}
        with self.assertRaises(ValueError) as raised:
            isonorm.compare(net() if a is None else a, net() if b is None else b, **options)
        text = str(raised.exception)
        self.assertRegex(text, "^compare: ")
        self.assertNotIn("\n", text)
        self.assertIn(said, text)

    def test_modules(self):
        class Lazy(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.LazyLinear(5)

        with torch.device("meta"):
            meta = nn.Linear(8, 5)
        for module, said in (
            (nn.GELU, "is the class GELU, expected a torch.nn.Module"),
            (F.gelu, "is of type builtin_function_or_method, expected a torch.nn.Module"),
            (net().state_dict(), "is of type OrderedDict, expected a torch.nn.Module"),
            ("net", "is 'net', expected a torch.nn.Module"),
        ):
            self.refuses("a " + said, a=module)
            self.refuses("b " + said, b=module)
        self.refuses("last.weight of b is lazy and has no shape yet: run b once on a batch", b=Lazy())
        self.refuses("weight of a is on the meta device and has no values", a=meta)
        self.refuses("weight of b is on the meta device and has no values", b=meta)

    def test_maps(self):
        self.refuses("map is 'name', expected 'names', a dict, a function or None", map="name")
        self.refuses("map is of type list, expected", map=["0.weight"])
        self.refuses("map['0.weight'] is 3, expected the name of a parameter of a, or a function", map={"0.weight": 3})
        self.refuses("map= takes 0.wieght, which a does not have as a parameter; a has 0.weight, 0.bias, ", map={"0.weight": "0.wieght"})
        self.refuses("map= names 0.wieght, which b does not have as a parameter; b has 0.weight, 0.bias, ", map={"0.wieght": "0.weight"})
        more = {"0.wieght": torch.zeros(3)}
        self.refuses("the map makes 0.wieght, which b does not have as a parameter; b has 0.weight", map=lambda p: {**p, **more})
        typo = {"0.weight": lambda p: p["0.wieght"]}
        self.refuses("the map of 0.weight raises KeyError: '0.wieght'", map=typo)
        self.refuses("the map raises KeyError: '0.wieght'", map=typo["0.weight"])
        self.refuses("what the map of 0.bias makes is of type list, expected a tensor", map={"0.bias": lambda p: []})
        self.refuses("what the map makes is None, expected a dict of b's parameters", map=lambda p: None)
        arrays = {n: p.detach().numpy() for n, p in net().named_parameters()}
        self.refuses("what the map makes for 0.weight is of type ndarray, expected a tensor", map=lambda p: arrays)

    def test_losses(self):
        expected = ", expected a function of output and targets, such as torch.nn.functional.cross_entropy"
        self.refuses("loss is 'mse'" + expected, loss="mse")
        self.refuses("loss is the class CrossEntropyLoss" + expected, loss=nn.CrossEntropyLoss)
        self.refuses("the loss has shape [6] and dtype float64, expected one floating number",
                     loss=lambda y, t: F.cross_entropy(y, t, reduction="none"))
        self.refuses("the loss has shape [] and dtype int64, expected one floating number", loss=lambda y, t: y.argmax())
        self.refuses("the loss is None, expected a tensor of one number", loss=lambda y, t: None)
        self.refuses("the loss raises TypeError: ", loss=lambda y: y.sum())

    def test_batches(self):
        def ends(at):
            return next(iter(()))

        self.refuses("batches is 3, expected a list or another iterable of batches, or a function", batches=3)
        self.refuses("batches is None, expected a list", batches=None)
        self.refuses("batches is of type Tensor, expected a list of batches: for a single one [batch]", batches=INPUTS[0])
        self.refuses("batches raises StopIteration", batches=ends)
        self.refuses("batches raises IndexError: list index out of range", batches=lambda at: images()[at + 99])
        self.refuses("batches raises ZeroDivisionError: division by zero", batches=(1 / 0 for _ in range(3)))
        self.refuses("0 of a raises TypeError: linear(): argument 'input' (position 1) must be Tensor, not numpy.ndarray",
                     batches=[(x.numpy(), t) for x, t in images()])
        self.refuses("the loss raises TypeError: cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not numpy.ndarray",
                     batches=[(x, t.numpy()) for x, t in images()])
        self.refuses("0 of a raises RuntimeError: Tensor on device cpu is not on the expected device meta",
                     batches=[(x.to("meta"), t) for x, t in images()])
        self.refuses("a raises TypeError: Sequential.forward() got an unexpected keyword argument 'y'",
                     batches=[({"y": x}, t) for x, t in images()])

    def test_numbers(self):
        for name in "points", "controls", "steps":
            for count in 0, 2.5, "2", None:
                self.refuses(f"{name} is {count!r}, expected a whole number of at least 1", **{name: count})
        for seed in "x", 1.5, None:
            self.refuses(f"seed is {seed!r}, expected a whole number", seed=seed)
        for dtype in torch.float64, ["f64"], "bf16":
            self.refuses(f"dtype is {dtype!r}, expected 'f64' or 'f32'", dtype=dtype)
        self.refuses("progress is 3, expected a function of a dict", progress=3)

    def test_who_raised_in_training(self):
        class Tired(nn.GELU):
            def __init__(self):
                super().__init__()
                self.register_buffer("left", torch.tensor(1000.0))

            def forward(self, x):
                self.left -= 400  # counts on in training alone: each point begins anew
                if self.left < 0:
                    raise RuntimeError("no more")
                return super().forward(x)

        self.refuses("2 of a raises RuntimeError: no more", a=net(act=Tired()), map="names", optimizer=sgd)
        self.refuses("2 of b raises RuntimeError: no more", b=net(act=Tired()), map="names", optimizer=sgd)


class Taken(unittest.TestCase):
    """What may look like a misuse, and works."""

    def test_map_style_datasets(self):
        class Set(torch.utils.data.Dataset):
            def __getitem__(self, at):
                return INPUTS[at]

        self.assertTrue(isonorm.compare(net(), net(), batches=Set(), points=2))

    def test_sparse_gradients(self):
        def table():
            torch.manual_seed(0)
            return nn.Embedding(9, 4, sparse=True)

        ids = [torch.tensor([0, 3, 3])]
        self.assertTrue(isonorm.compare(table(), nn.Embedding.from_pretrained(table().weight.data, freeze=False), batches=ids))
        self.assertTrue(isonorm.compare(table(), table(), batches=ids, optimizer=sgd))

    def test_torch_script(self):
        """It runs, and what differs in it is found at its output: its modules take no hooks."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for made in torch.jit.script, lambda m: torch.jit.trace(m, INPUTS[0]):
                self.assertTrue(isonorm.compare(net(), made(net()), batches=INPUTS, points=2))
                self.assertEqual(isonorm.compare(net(), made(net(eps=1e-3)), batches=INPUTS).verdict, "different")


if __name__ == "__main__":
    unittest.main()
