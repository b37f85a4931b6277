"""compare() of batches of every kind: endless ones and mappings."""

import collections
import copy
import dataclasses
import itertools
import os
import signal
import types
import unittest

import isonorm
from pairs import NAMES, ByHand, images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

try:
    import transformers
except ImportError:
    transformers = None

INPUTS = [x for x, _ in images()]


class Encoding(collections.UserDict):
    """As BatchEncoding of transformers: a mapping that is no dict, with attributes for its items."""

    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclasses.dataclass(frozen=True)
class Named:
    x: torch.Tensor


class One(unittest.TestCase):
    """Training on one batch again and again, even of one row, has a negative control to be held against."""

    def test_one_batch(self):
        for count in 1, 6:
            one = [tuple(t[:count] for t in images()[0])]
            more = {"batches": one, "loss": F.cross_entropy, "map": NAMES, "carry": True, "optimizer": sgd}
            r = isonorm.compare(net(), ByHand(), **more)
            self.assertTrue(r, r)


class Endless(unittest.TestCase):
    """No more is read than the comparison looks at."""

    def reading(self, batches):
        """Batches without an end, of which it is known how many were read."""
        self.read = 0
        for batch in itertools.cycle(batches):
            self.read += 1
            yield batch

    def test_generators(self):
        for optimizer, read in (None, 5), (sgd, 20):
            r = isonorm.compare(net(), net(), batches=self.reading(images()), loss=F.cross_entropy, optimizer=optimizer, steps=20)
            self.assertTrue(r, r)
            self.assertEqual(self.read, read)
            self.assertIn(f", {read} batches (no more were read)\n", str(r))

    def test_in_c(self):  # list() of it would take all memory, and no Ctrl-C
        r = isonorm.compare(net(), net(), batches=itertools.repeat(images()[0]), loss=F.cross_entropy, points=2)
        self.assertIn(", 2 batches (no more were read)\n", str(r))

    def test_data_loaders(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(stream):
                return self.reading(INPUTS)

        loader = torch.utils.data.DataLoader(Stream(), batch_size=None)
        r = isonorm.compare(net(), net(), batches=loader)
        self.assertTrue(r, r)
        self.assertEqual(self.read, 5)

    def test_as_a_list(self):
        """A generator that ends begins again: the numbers are those of a list."""
        for count in 1, 3, 5, 7:
            given = [torch.randn(6, 8, generator=torch.Generator().manual_seed(i)) for i in range(count)]
            of_list = isonorm.compare(net(), net(), batches=given)
            self.assertEqual(of_list.deviation, isonorm.compare(net(), net(), batches=iter(given)).deviation)
            self.assertEqual(of_list.control, isonorm.compare(net(), net(), batches=iter(given)).control)
            more = "(no more were read)" in str(of_list)
            self.assertEqual(more, count == 7)

    def test_functions(self):
        asked = []

        def batch(step):
            asked.append(step)
            return INPUTS[step % 3]

        r = isonorm.compare(net(), net(), batches=batch)
        self.assertEqual(sorted(set(asked)), [0, 1, 2, 3, 4])
        self.assertIn(", 5 batches\n", str(r))

    def test_control_c(self):
        """KeyboardInterrupt comes before the next point or step."""
        for phase in "points", "negative controls", "training":
            seen = []

            def press(step):
                seen.append(step["phase"])
                if step["phase"] == phase:
                    os.kill(os.getpid(), signal.SIGINT)

            with self.assertRaises(KeyboardInterrupt):
                isonorm.compare(net(), net(), batches=self.reading(images()), loss=F.cross_entropy, optimizer=sgd, progress=press, points=1)
            self.assertEqual(seen.count(phase), 1)

    def test_refuses(self):
        for batches, said in (
            (iter([]), "there are no batches"),
            ({"x": INPUTS[0]}, "batches is of type dict, expected a list"),
            (Encoding(x=INPUTS[0]), "batches is of type Encoding, expected a list"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                isonorm.compare(net(), net(), batches=batches)


class Mappings(unittest.TestCase):
    """A mapping holds named arguments; inside of arguments, mappings and dataclasses keep their class."""

    class Model(nn.Module):
        def __init__(self, act=None):
            super().__init__()
            self.net = net(act=act)

        def forward(self, x, scale=1.0):
            return {"logits": self.net(x) * scale}

    def both(self, batches, model=None, **more):
        model = model or self.Model
        r = isonorm.compare(model(), model(), batches=batches, **more)
        self.assertTrue(r, r)
        r = isonorm.compare(model(), model(nn.GELU("tanh")), batches=batches, **more)
        self.assertEqual(r.verdict, "different", r)
        return r

    def test_named_arguments(self):
        for kind in dict, collections.OrderedDict, collections.UserDict, Encoding:
            self.both([kind(x=x, scale=2.0) for x in INPUTS])
        self.both([types.MappingProxyType({"x": x}) for x in INPUTS])

    def test_outputs(self):
        class Wrapped(self.Model):
            def forward(self, x):
                return Encoding(super().forward(x))

        self.both(INPUTS, Wrapped)

    def test_with_a_loss(self):
        batches = [(Encoding(x=x), t) for x, t in images()]
        self.both(batches, loss=lambda y, t: F.cross_entropy(y["logits"], t))

    def test_gradients_of_their_tensors(self):
        class Wrong(self.Model):
            def forward(self, x, scale=1.0):
                return super().forward(x + 0.5 * (x.detach() - x), scale)

        r = isonorm.compare(self.Model(), Wrong(), batches=[Encoding(x=x) for x in INPUTS], map=None)
        self.assertEqual(r.verdict, "different", r)
        self.assertIn("gradient", str(r))

    def test_training(self):
        for batches in [Encoding(x=x) for x in INPUTS], [Encoding(x=INPUTS[0])]:
            r = isonorm.compare(self.Model(), self.Model(), batches=batches, optimizer=sgd)
            self.assertEqual((r.verdict, r.steps), ("equivalent", 20), r)

    def test_nested(self):
        class Inner(self.Model):
            def forward(self, given):
                return super().forward(given.x)

        for kind in Encoding, Named:
            r = self.both([(kind(x=x),) for x in INPUTS], Inner)
            self.assertIn("approximate of net.2 is 'none', of net.2 in b 'tanh'", r.likely_cause)

    @unittest.skipUnless(transformers, "transformers is not installed")
    def test_of_transformers(self):
        self.both([transformers.BatchEncoding({"x": x}) for x in INPUTS])
        self.both([transformers.utils.ModelOutput(x=x) for x in INPUTS])

    @unittest.skipUnless(transformers, "transformers is not installed")
    def test_a_tokenizer_and_a_model(self):
        import tokenizers

        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "b": 2, "[PAD]": 3}, "[UNK]"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
        config = transformers.BertConfig(vocab_size=4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
        torch.manual_seed(0)
        a = transformers.BertModel(config, add_pooling_layer=False)
        enc = tokenizer(["a b", "b b a", "a"], padding=True, return_tensors="pt")
        self.assertNotIsInstance(enc, dict)
        r = isonorm.compare(a, copy.deepcopy(a), batches=[enc], points=2)
        self.assertEqual(r.verdict, "equivalent", r)


if __name__ == "__main__":
    unittest.main()
