"""Planted mistakes: losses, backward passes, randomness, states, and what no batch shows."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .right_layers import RmsKernel, SwiGluKernel
from .right_losses import LOGITS, MEANS, WITH_CLASSES, WITH_NUMBERS, losses, paired, some_ignored
from .right_norms import ROWS, rms_norm
from .rows import Formula, Net, several, with_random_gains, wrong


def loss(name, of_a, of_b, inputs=WITH_CLASSES, cause=None):
    wrong(f"a loss: {name}", paired(inputs), cause=cause, place="head|a itself|output|loss|the loss", **MEANS)(lambda: losses(of_a, of_b))


WEIGHTS = torch.tensor([1.0, 2, 0.5, 1, 3])
loss("a sum, not a mean", F.cross_entropy, lambda y, t: F.cross_entropy(y, t, reduction="sum"), cause="factor of 6")
loss("label smoothing of 0.1", F.cross_entropy, lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1))
loss(
    "a mean over ignored targets, too",
    F.cross_entropy,
    lambda y, t: F.cross_entropy(y, t, reduction="sum") / len(t),
    several(LOGITS, some_ignored),
    cause="factor of 0.66",
)
loss("no weights of classes", lambda y, t: F.cross_entropy(y, t, weight=WEIGHTS.to(y)), F.cross_entropy)
loss(
    "weighted, and divided by the number",
    lambda y, t: F.cross_entropy(y, t, weight=WEIGHTS.to(y)),
    lambda y, t: F.cross_entropy(y, t, weight=WEIGHTS.to(y), reduction="sum") / 6,
    cause="factor",
)
loss("softmax twice", F.cross_entropy, lambda y, t: F.cross_entropy(y.softmax(-1), t))
loss("targets of the row before", F.cross_entropy, lambda y, t: F.cross_entropy(y, t.roll(1)))
loss(
    "a divergence the other way",
    lambda y, t: F.kl_div(y.log_softmax(-1), t.softmax(-1), reduction="batchmean"),
    lambda y, t: F.kl_div(t.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
    WITH_NUMBERS,
)
loss(
    "a mean over entries, not rows",
    lambda y, t: F.kl_div(y.log_softmax(-1), t.softmax(-1), reduction="batchmean"),
    lambda y, t: F.kl_div(y.log_softmax(-1), t.softmax(-1), reduction="sum") / 30,
    WITH_NUMBERS,
    cause="factor of 0.2|1 / 5",
)
loss("half of a squared error", F.mse_loss, lambda y, t: F.mse_loss(y, t) / 2, WITH_NUMBERS, cause="factor of 0.5|1 / 2")
loss("absolute, not squared errors", F.mse_loss, F.l1_loss, WITH_NUMBERS)


def kernel(name, backward, cause="backward|gradient", of=RmsKernel, place=r"(norm|linear|gain).*"):
    """RMSNorm with a wrong backward of its own: backward(gradient, x, gain, r)."""

    class Wrong(of):
        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    class Norm(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.gain, self._function = nn.Parameter(1 + 0.2 * torch.randn(16)), function

        def forward(self, x):
            return self._function(x, self.gain)

    def make():
        parts = [{"linear": nn.Linear(16, 16), "norm": Norm(f)} for f in (rms_norm, Wrong.apply)]
        return tuple(Net(lambda m, x: m.norm(m.linear(x)), **p) for p in parts)

    wrong(f"a backward pass: {name}", ROWS, cause=cause, place=place)(make)


def to_x(g, x, gain, r):
    normed, gg = x * r, g * gain
    return r * (gg - normed * (gg * normed).mean(-1, keepdim=True))


kernel("no projection", lambda g, x, w, r: (r * g * w, (g * x * r).sum(0)))
kernel("no gain in the gradient of x", lambda g, x, w, r: (to_x(g, x, torch.ones_like(w), r), (g * x * r).sum(0)))
kernel("a mean over rows for the gain", lambda g, x, w, r: (to_x(g, x, w, r), (g * x * r).mean(0)), "factor of 0.16|1 / 6")
kernel("x for the normed rows", lambda g, x, w, r: (to_x(g, x, w, r), (g * x).sum(0)))
kernel("the sign of the projection", lambda g, x, w, r: (2 * r * g * w - to_x(g, x, w, r), (g * x * r).sum(0)))
kernel(
    "a sum, not a mean, in the projection",
    lambda g, x, w, r: (r * (g * w - x * r * (g * w * x * r).sum(-1, keepdim=True)), (g * x * r).sum(0)),
)
kernel("no gradient for the gain", lambda g, x, w, r: (to_x(g, x, w, r), None), "backward|gradient")


@wrong("a backward pass: SwiGLU without the derivative of its sigmoid", ROWS, cause="backward|gradient", place=r"(gate|up|down).*")
def _():
    class Wrong(SwiGluKernel):
        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b * torch.sigmoid(a), g * a * torch.sigmoid(a)

    parts = [{"gate": nn.Linear(16, 24), "up": nn.Linear(16, 24), "down": nn.Linear(24, 16)} for _ in range(2)]
    return Net(lambda m, x: m.down(F.silu(m.gate(x)) * m.up(x)), **parts[0]), Net(
        lambda m, x: m.down(Wrong.apply(m.gate(x), m.up(x))), **parts[1]
    )


class Scale(torch.autograd.Function):
    """x, its gradient doubled."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def pair(of_a, of_b, **parts):
    """Two modules with the same parts, each made by a function."""
    return tuple(Net(of, **{n: make() for n, make in parts.items()}) for of in (of_a, of_b))


def square():
    return nn.Linear(16, 16)


@wrong("a backward pass: a gradient doubled", ROWS, cause="factor of 2", place=r"(one|two).*")
def _():
    return pair(lambda m, x: m.two(m.one(x).tanh()), lambda m, x: m.two(Scale.apply(m.one(x)).tanh()), one=square, two=square)


@wrong("a backward pass: a gradient clamped", ROWS, cause="backward|gradient", place=r"(one|two).*")
def _():
    def clamped(x):
        if x.requires_grad:
            x.register_hook(lambda g: g.clamp(-1e-3, 1e-3))
        return x

    return pair(lambda m, x: m.two(m.one(x).tanh()), lambda m, x: m.two(clamped(m.one(x)).tanh()), one=square, two=square)


@wrong("a backward pass: straight through a clamp", ROWS, cause="backward|gradient", place=r"(one|two).*")
def _():
    def through(y):
        return y + (y.clamp(-0.5, 0.5) - y).detach()

    return pair(lambda m, x: m.two(m.one(x).clamp(-0.5, 0.5)), lambda m, x: m.two(through(m.one(x))), one=square, two=square)


@wrong("a branch under no_grad", ROWS, cause="backward|gradient|no_grad", place=r"(one|two).*")
def _():
    def frozen(m, x):
        with torch.no_grad():
            y = m.one(x).tanh()
        return m.two(x + y)

    return pair(lambda m, x: m.two(x + m.one(x).tanh()), frozen, one=square, two=square)


@wrong("an operation in place that changes the residual stream", ROWS, cause=r"factor of 1\.333", place="two")
def _():
    return pair(
        lambda m, x: (lambda y: m.two(y + y * 2))(m.one(x)),
        lambda m, x: (lambda y: m.two(y.mul_(2) + y))(m.one(x)),
        one=square,
        two=square,
    )


@wrong("dropout of 0.2, not 0.1", ROWS, cause=r"0\.2|p=", place="drop")
def _():
    def net(p):
        return Net(lambda m, x: m.two(m.drop(m.one(x))), one=square(), drop=nn.Dropout(p), two=square())

    return net(0.1), net(0.2)


@wrong("dropout of one layer left out, beside dropout of 0", ROWS, cause=r"\(drop of a is Dropout\(p=0.1", place="drop|two")
def _():
    def net(drop):
        return Net(lambda m, x: m.two(m.drop(m.none(m.one(x)))), none=nn.Dropout(0.0), one=square(), drop=drop, two=square())

    return net(nn.Dropout(0.1)), net(nn.Identity())


@wrong("a backward pass: a mean over rows for the gain of a module alone", ROWS, cause="factor of 0.16|1 / 6", place="a itself")
def _():
    class Wrong(RmsKernel):
        @staticmethod
        def backward(ctx, g):
            to_x, to_gain = RmsKernel.backward(ctx, g)
            return to_x, to_gain / len(g)

    a = with_random_gains(nn.RMSNorm(16, eps=1e-6))
    return a, Formula(a, lambda p, x: Wrong.apply(x, p["weight"]))


@wrong("dropout without its factor", ROWS, cause="factor of 0.9", place="drop|two")
def _():
    class Drop(nn.Dropout):
        def forward(self, x):
            return super().forward(x) * (1 - self.p)

    def net(drop):
        return Net(lambda m, x: m.two(m.drop(m.one(x))), one=square(), drop=drop, two=square())

    return net(nn.Dropout(0.1)), net(Drop(0.1))


@wrong("dropout drawn anew in a recomputation", ROWS, cause="backward|gradient|ropout", place=r"(one|two|drop).*")
def _():
    parts = [{"one": square(), "drop": nn.Dropout(0.5), "two": square()} for _ in range(2)]

    def block(m, x):
        return m.two(m.drop(m.one(x)))

    return Net(block, **parts[0]), Net(lambda m, x: checkpoint(block, m, x, use_reentrant=False, preserve_rng_state=False), **parts[1])


@wrong("a cache that keeps the last batch's rows", ROWS, cause="other values of the buffer kept", place="one|memory")
def _():
    class Kept(Net):
        def forward(self, x):
            y = self.one(x) + self.memory
            with torch.no_grad():
                self.memory.copy_(y.mean(0) * self.kept)
            return y

    def net(kept):
        made = Kept(None, one=square())
        made.register_buffer("memory", torch.zeros(16))
        made.register_buffer("kept", torch.tensor(kept))
        return made

    return net(0.0), net(0.5)


@wrong("a dict of outputs with two names exchanged", ROWS, place="(output.*|hidden|last|one|two|a itself)")
def _():
    def named(m, x):
        y = m.one(x)
        return {"hidden": y, "last": m.two(y)}

    def exchanged(m, x):
        y = m.one(x)
        return {"hidden": m.two(y), "last": y}

    return pair(named, exchanged, one=square, two=square)


@wrong("another most likely class", ROWS, place="(output.*|one|a itself)")
def _():
    return pair(lambda m, x: (m.one(x), m.one(x).argmax(-1)), lambda m, x: (m.one(x), m.one(x).argmin(-1)), one=square)


@wrong("the imaginary part of a complex weight ignored", ROWS, place=".*")
def _():
    def net(of):
        made = Net(of, one=square())
        made.filter = nn.Parameter(torch.randn(9, dtype=torch.cfloat))
        return made

    return (
        net(lambda m, x: torch.fft.irfft(torch.fft.rfft(m.one(x)) * m.filter, 16)),
        net(lambda m, x: torch.fft.irfft(torch.fft.rfft(m.one(x)) * m.filter.real, 16)),
    )


@wrong("unseen: another path in eval()", ROWS, unseen=True)
def _():
    return pair(lambda m, x: m.one(x), lambda m, x: m.one(x) if m.training else 2 * m.one(x), one=square)


@wrong("unseen: another path under no_grad", ROWS, unseen=True)
def _():
    return pair(lambda m, x: m.one(x), lambda m, x: m.one(x) if torch.is_grad_enabled() else 2 * m.one(x), one=square)


@wrong("unseen: another path for rows above 100", ROWS, unseen=True)
def _():
    return pair(lambda m, x: m.one(x), lambda m, x: m.one(x) if x.abs().max() < 100 else 2 * m.one(x), one=square)


@wrong("unseen: a factor of 1 + 1e-16", ROWS, unseen=True)
def _():
    return pair(lambda m, x: m.one(x), lambda m, x: m.one(x) * (1 + 1e-16), one=square)
