"""Right pairs: losses that a module computes, and reductions."""

import torch
from torch import nn
from torch.nn import functional as F

from .rows import Net, normal, right, several

LOGITS = normal(6, 8)


def classes(g):
    return torch.randint(0, 5, (6,), generator=g)


def some_ignored(g):
    return torch.tensor([1, -100, 0, 4, -100, 2])


def losses(of_a, of_b, outputs=5):
    """Two modules that end with a loss of their own."""
    a, b = ({"head": nn.Linear(8, outputs)} for _ in range(2))
    return Net(lambda m, x, t: of_a(m.head(x), t), **a), Net(lambda m, x, t: of_b(m.head(x), t), **b)


WITH_CLASSES = several(LOGITS, classes)
WITH_NUMBERS = several(LOGITS, normal(6, 5))
WITH_SHARES = several(LOGITS, lambda g: torch.rand(6, 5, generator=g))
MEANS = {"loss": lambda y, _: y}


def paired(inputs):
    """The module gets inputs and targets, and its output is the loss."""
    return lambda g: (inputs(g), None)


@right("cross entropy, and the logarithm of a softmax", paired(WITH_CLASSES), **MEANS)
def _():
    return losses(F.cross_entropy, lambda y, t: -y.softmax(-1).gather(1, t[:, None]).log().mean())


@right("cross entropy, and logsumexp less the right logit", paired(WITH_CLASSES), **MEANS)
def _():
    return losses(F.cross_entropy, lambda y, t: (y.logsumexp(-1) - y[torch.arange(6), t]).mean())


@right("cross entropy with label smoothing, and with soft targets", paired(WITH_CLASSES), **MEANS)
def _():
    return losses(
        lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1),
        lambda y, t: F.cross_entropy(y, 0.9 * F.one_hot(t, 5).to(y) + 0.1 / 5),
    )


@right("cross entropy that ignores targets, and of the others alone", paired(several(LOGITS, some_ignored)), **MEANS)
def _():
    return losses(F.cross_entropy, lambda y, t: F.cross_entropy(y[t >= 0], t[t >= 0]))


@right("cross entropy with weights of classes, and a weighted mean", paired(WITH_CLASSES), **MEANS)
def _():
    weights = torch.tensor([1.0, 2, 0.5, 1, 3])

    def by_hand(y, t):
        w = weights.to(y)[t]
        return (w * F.cross_entropy(y, t, reduction="none")).sum() / w.sum()

    return losses(lambda y, t: F.cross_entropy(y, t, weight=weights.to(y)), by_hand)


@right("binary cross entropy of logits, and by softplus", paired(WITH_SHARES), **MEANS)
def _():
    return losses(F.binary_cross_entropy_with_logits, lambda y, t: (F.softplus(y) - y * t).mean())


@right("mean squared error, and a dot product", paired(WITH_NUMBERS), **MEANS)
def _():
    return losses(F.mse_loss, lambda y, t: (y - t).flatten().dot((y - t).flatten()) / 30)


@right("Huber and smooth L1", paired(WITH_NUMBERS), **MEANS)
def _():
    return losses(lambda y, t: F.huber_loss(y, t, delta=0.5), lambda y, t: 0.5 * F.smooth_l1_loss(y, t, beta=0.5))


@right("a divergence from a teacher, and its cross entropy less its entropy", paired(WITH_NUMBERS), **MEANS)
def _():
    def parts(y, t):
        p = t.softmax(-1)
        return (p * t.log_softmax(-1)).sum(-1).mean() - (p * y.log_softmax(-1)).sum(-1).mean()

    return losses(lambda y, t: F.kl_div(y.log_softmax(-1), t.log_softmax(-1), reduction="batchmean", log_target=True), parts)


@right(
    "the mean of tokens that count, by a mask and by a choice",
    paired(several(LOGITS, lambda g: torch.tensor([1, 0, 1, 1, 0, 1]).bool())),
    **MEANS,
)
def _():
    return losses(lambda y, real: (y * real[:, None]).sum() / real.sum() / 5, lambda y, real: y[real].mean())


@right("a triplet loss, and by distances", several(LOGITS, LOGITS, LOGITS))
def _():
    def far(x, y):
        return (x - y + 1e-6).norm(dim=-1)

    parts = [{"head": nn.Linear(8, 5)} for _ in range(2)]
    return Net(lambda m, *x: F.triplet_margin_loss(*map(m.head, x), margin=3.0), **parts[0]), Net(
        lambda m, x, y, z: F.relu(far(m.head(x), m.head(y)) - far(m.head(x), m.head(z)) + 3).mean(), **parts[1]
    )


@right("a contrastive loss of both directions, and of the transposed scores", several(LOGITS, LOGITS))
def _():
    def both(m, x, y):
        scores = F.normalize(m.one(x), dim=-1) @ F.normalize(m.two(y), dim=-1).T / 0.1
        target = torch.arange(6)
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2

    def sums(m, x, y):
        u, v = m.one(x), m.two(y)
        scores = torch.einsum("id,jd->ij", u / u.norm(dim=-1, keepdim=True), v / v.norm(dim=-1, keepdim=True)) * 10
        return ((scores.logsumexp(0) + scores.logsumexp(1)) / 2 - scores.diagonal()).mean()

    parts = [{"one": nn.Linear(8, 5), "two": nn.Linear(8, 5)} for _ in range(2)]
    return Net(both, **parts[0]), Net(sums, **parts[1])
