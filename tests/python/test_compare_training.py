"""compare() of two modules that train in two ways: optimizer, schedule, micro-batches and clipping of each."""

import unittest

import isonorm
from pairs import ByHand, NAMES, images, net, sgd

import torch
from torch import nn
from torch.nn import functional as F

INPUTS = {"batches": images(), "loss": F.cross_entropy, "points": 1, "steps": 5, "controls": 2}


def adamw(**options):
    return lambda p: torch.optim.AdamW(p, **{"lr": 1e-2, **options})


def decayed_by_names(p):
    """No decay of biases and of the norm's gain, known by their names in net()."""
    plain = [w for n, w in p.model.named_parameters() if n.endswith("bias") or n.startswith("1.")]
    rest = [w for n, w in p.model.named_parameters() if not (n.endswith("bias") or n.startswith("1."))]
    return torch.optim.AdamW([{"params": rest, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0}], lr=1e-2)


def decayed_by_shapes(p):
    """The same groups, known by their shapes."""
    groups = [{"params": [w for w in p if (w.dim() > 1) == decays], "weight_decay": 0.1 * decays} for decays in (True, False)]
    return torch.optim.AdamW(groups, lr=1e-2)


class Training(unittest.TestCase):
    def compare(self, b=None, **more):
        a = net()
        return isonorm.compare(a, a if b is None else b, **{**INPUTS, **more})

    def same(self, **more):
        r = self.compare(**more)
        self.assertEqual((r.verdict, r.steps), ("equivalent", 5), r)

    def different(self, where, **more):
        r = self.compare(**more)
        self.assertEqual(r.verdict, "different", r)
        self.assertEqual(r.first_difference.what, where, r)
        return r


class Pairs(Training):
    def test_two_optimizers(self):
        """AdamW with its decay spelled out, w - lr d w before Adam's step (1711.05101, algorithm 2)."""

        class Decayed(torch.optim.Adam):
            def step(self, closure=None):
                with torch.no_grad():
                    for group in self.param_groups:
                        for p in group["params"]:
                            p.mul_(1 - group["lr"] * 0.1)
                super().step()

        right = adamw(weight_decay=0.1)
        self.same(optimizer=(right, lambda p: Decayed(p, lr=1e-2)))
        r = self.different("weights at step 1", optimizer=(right, lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1)))
        self.assertRegex(r.likely_cause, r"^the optimizer: a's is AdamW, b's is Adam \(.*decay.*\); with a's optimizer the two agree$")

    def test_the_first_is_of_a(self):
        seen = []

        def noting(who):
            def made(p):
                seen.append((who, type(p.model).__name__))
                return sgd(p)

            return made

        how = {"map": NAMES, "carry": True, "optimizer": (noting("a"), noting("b")), **INPUTS}
        self.assertTrue(isonorm.compare(net(), ByHand(), **how))
        self.assertEqual(set(seen), {("a", "Sequential"), ("b", "ByHand")})

    def test_groups_by_names(self):
        self.same(optimizer=(decayed_by_names, decayed_by_shapes))
        self.different("weights at step 1", optimizer=(decayed_by_names, adamw(weight_decay=0.1)))

    def test_named_parameters(self):
        self.same(optimizer=(lambda p: torch.optim.SGD(p.model.named_parameters(), lr=0.1), sgd))

    def test_parameters_that_no_optimizer_holds(self):
        """Their gradients are those of the step's batch alone."""

        def none_of_the_rest(p):
            return torch.optim.SGD([{"params": p[:2]}, {"params": p[2:], "lr": 0.0}], lr=0.1)

        self.same(optimizer=(lambda p: torch.optim.SGD(p[:2], lr=0.1), none_of_the_rest))
        self.different("weights at step 1", optimizer=(sgd, lambda p: torch.optim.SGD(p[:2], lr=0.1)))


class Causes(Training):
    """The part of the training that differs is named, at whatever step: with a's the two agree."""

    def named(self, where, said, **more):
        r = self.different(where, **more)
        self.assertIn(said, r.likely_cause)
        return r

    def test_options_of_an_optimizer(self):
        for where, said, of_a, of_b in (
            ("weights at step 1", "lr of 0.weight and 5 more is 0.01 in a, 0.011 in b", {}, {"lr": 1.1e-2}),
            ("weights at step 2", "betas of 0.weight and 5 more is (0.9, 0.999) in a, (0.9, 0.95) in b", {}, {"betas": (0.9, 0.95)}),
            ("weights at step 2", "betas of 0.weight and 5 more is (0.9, 0.999) in a, (0.8, 0.999) in b", {}, {"betas": (0.8, 0.999)}),
            ("weights at step 1", "eps of 0.weight and 5 more is 1e-08 in a, 1e-06 in b", {}, {"eps": 1e-6}),
        ):
            said = f"the optimizer: {said}; with a's optimizer the two agree"
            self.named(where, said, optimizer=(adamw(**of_a), adamw(**of_b)))
        both = adamw(weight_decay=0.1, fused=False), adamw(weight_decay=0.2, foreach=True)  # one of the two matters
        self.named("weights at step 1", "the optimizer: weight_decay of 0.weight and 5 more is 0.1 in a, 0.2 in b;", optimizer=both)

    def test_a_momentum(self):
        def momentum(mu, **more):
            return lambda p: torch.optim.SGD(p, lr=0.1, momentum=mu, **more)

        said = "the optimizer: momentum of 0.weight and 5 more is 0.9 in a, 0.8 in b;"
        self.named("weights at step 2", said, optimizer=(momentum(0.9), momentum(0.8)))

        class Dampened(torch.optim.SGD):
            """Its first velocity is g / 2, so that its first step is one of half the rate."""

            def step(self, closure=None):
                for p in self.param_groups[0]["params"]:
                    if "seen" not in self.state[p]:
                        self.state[p]["seen"] = True
                        p.grad.mul_(0.5)
                super().step()

        said = "the optimizer: a's is SGD, b's is Dampened; with a's optimizer the two agree"
        self.named("weights at step 1", said, optimizer=(momentum(0.9), lambda p: Dampened(p, lr=0.1, momentum=0.9)))

    def test_groups(self):
        r = self.compare(optimizer=(decayed_by_names, adamw(weight_decay=0.1)))
        self.assertIn("weight_decay of 0.bias and 3 more is 0 in a, 0.1 in b", r.likely_cause)
        r = self.compare(optimizer=(sgd, lambda p: torch.optim.SGD(p[:-1], lr=0.1)))
        self.assertIn("the optimizer: 4.bias is in the optimizer of a alone;", r.likely_cause)

    def test_one_optimizer_by_names(self):
        """It gives b's parameters, which have other names, to other groups."""
        how = {"map": NAMES, "carry": True, "optimizer": decayed_by_names, **INPUTS}
        r = isonorm.compare(net(), ByHand(), **how)
        self.assertEqual(r.first_difference.what, "weights at step 1")
        self.assertIn("the update: at step 1 the gradients agree and the updated weights do not; weight_decay of gain ", r.likely_cause)

    def test_schedules(self):
        def falling(by):
            return lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda t: by**t)

        said = "the schedule: at step 2 the rate is 0.05 in a, 0.025 in b; with a's schedule the two agree"
        self.named("weights at step 2", said, optimizer=sgd, schedule=(falling(0.5), falling(0.25)))

    def test_clipping_and_micro_batches(self):
        self.named("weights at step 1", "clip: 0.5 in a, None in b; with a's clip the two agree", optimizer=sgd, clip=(0.5, None))
        batches = [(x, t.clone()) for x, t in images()]
        for _, t in batches:
            t[0] = -100
        said = "accumulate: 1 in a, 3 in b; with a's accumulate the two agree"
        self.named("loss at step 1", said, batches=batches, optimizer=sgd, accumulate=(1, 3))

    def test_two_parts(self):
        r = self.different("weights at step 1", optimizer=(adamw(), adamw(lr=2e-2)), clip=(0.5, lambda p: None))
        self.assertEqual(r.likely_cause, "the training: with a's optimizer and clip the two agree")


class Schedules(Training):
    def test_warmup(self):
        """lr t / 10 in the first ten steps, by LambdaLR and by LinearLR."""

        def by_lambda(o):
            return torch.optim.lr_scheduler.LambdaLR(o, lambda t: min(1, (t + 1) / 10))

        def linear(total):
            return lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1, 1.0, total)

        self.same(optimizer=sgd, schedule=(by_lambda, linear(9)))
        self.different("weights at step 2", optimizer=sgd, schedule=(by_lambda, linear(10)))
        self.different("weights at step 1", optimizer=sgd, schedule=(by_lambda, None))


class Accumulation(Training):
    def test_a_mean_over_micro_batches(self):
        self.same(optimizer=adamw(), accumulate=(None, 3))
        self.same(b=ByHand(), map=NAMES, carry=True, optimizer=adamw(), accumulate=2)

    def test_counts_of_targets_that_differ(self):
        """A mean of means over targets is not the mean if parts have other counts of them (meta-pytorch/torchtune 1875)."""
        batches = [(x, t.clone()) for x, t in images()]
        for _, t in batches:
            t[0] = -100
        r = self.different("loss at step 1", batches=batches, optimizer=sgd, accumulate=(1, 3))
        self.assertGreater(r.deviation, 1e-3)

    def test_named_inputs(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net()

            def forward(self, x, scale):
                return self.net(x) * scale

        batches = [({"x": x, "scale": torch.tensor(2.0)}, t) for x, t in images()]
        a = Named()
        r = isonorm.compare(a, a, batches=batches, loss=F.cross_entropy, optimizer=sgd, accumulate=(1, 2))
        self.assertTrue(r, r)


class Clipping(Training):
    def test_a_norm(self):
        """g min(1, c / (|g| + 1e-6)), as in torch.nn.utils.clip_grad_norm_."""

        def by_hand(p):
            norm = torch.sqrt(sum(w.grad.square().sum() for w in p))
            for w in p:
                w.grad *= min(1, 0.5 / (norm.item() + 1e-6))

        self.same(optimizer=sgd, clip=(0.5, by_hand))
        self.different("weights at step 1", optimizer=sgd, clip=(0.5, None))
        self.different("weights at step 1", optimizer=sgd, clip=(0.5, lambda p: nn.utils.clip_grad_value_(p, 0.01)))


class Refused(Training):
    def test_misuses(self):
        class Without:
            def __init__(self, parameters):
                pass

        for options, said in (
            ({"optimizer": torch.optim.SGD(net().parameters())}, r"^compare: optimizer is of type SGD, expected a function of the parameters, such as lambda p: "),
            ({"optimizer": (sgd, sgd, sgd)}, r"^compare: optimizer is a tuple of 3, expected one for both or a pair \(of a, of b\)$"),
            ({"optimizer": (sgd, None)}, "^compare: optimizer is None, expected a function of the parameters"),
            ({"optimizer": Without}, "^compare: what optimizer of a makes is of type Without, expected an optimizer of torch$"),
            ({"optimizer": (sgd, lambda p: None)}, "^compare: what optimizer of b makes is None, expected an optimizer"),
            ({"optimizer": lambda p: torch.optim.SGD(p, lr=-1)}, "^compare: the optimizer of a raises ValueError: Invalid learning rate: -1$"),
            ({"optimizer": torch.optim.LBFGS}, r"^compare: the optimizer of a raises TypeError: .*step\(\) missing 1 required positional argument: 'closure'$"),
            ({"optimizer": sgd, "schedule": 0.1}, "^compare: schedule is 0.1, expected a function of the optimizer"),
            ({"optimizer": sgd, "schedule": (None, lambda o: 1 / 0)}, "^compare: the schedule of b raises ZeroDivisionError: division by zero$"),
            ({"optimizer": sgd, "accumulate": 0}, "^compare: accumulate is 0, expected a number of micro-batches of at least 1$"),
            ({"optimizer": sgd, "accumulate": 4}, r"^compare: accumulate=4, and a tensor of a batch has shape \[6, 8\]: 6 is no multiple of 4$"),
            ({"optimizer": sgd, "accumulate": 2, "loss": None}, "^compare: accumulate needs a loss"),
            ({"optimizer": sgd, "clip": -1.0}, "^compare: clip is -1.0, expected the largest norm"),
            ({"optimizer": sgd, "clip": lambda p: p.missing}, "^compare: the clip of a raises AttributeError"),
            ({"clip": 1.0, "schedule": (None, None)}, "^compare: schedule and clip given without an optimizer$"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                self.compare(net(), **options)
        for more in {}, {"optimizer": sgd}, {"optimizer": (sgd, sgd)}, {"optimizer": sgd, "clip": 1.0}:
            with self.assertRaisesRegex(ValueError, "given twice"):
                self.compare(**more)


if __name__ == "__main__":
    unittest.main()
