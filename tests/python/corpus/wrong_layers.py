"""Planted mistakes: norms, activations, linear layers and residual streams, convolutions and statistics."""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from .right_norms import ROWS, layer_norm, rms_norm
from .rows import Net, normal, with_random_gains, wrong


class OwnNorm(nn.Module):
    """A norm written by hand: of(x, weight, bias)."""

    def __init__(self, of):
        super().__init__()
        self.weight, self.bias, self._of = nn.Parameter(torch.ones(24)), nn.Parameter(torch.zeros(24)), of

    def forward(self, x):
        return self._of(x, self.weight, self.bias)


class OwnActivation(nn.Module):
    def __init__(self, of):
        super().__init__()
        self._of = of

    def forward(self, x):
        return self._of(x)


def mlp(first=None, norm=None, act=None, head=None):
    parts = {
        "first": first or nn.Linear(16, 24),
        "norm": norm or nn.LayerNorm(24),
        "act": act or nn.GELU(),
        "head": head or nn.Linear(24, 8),
    }
    return with_random_gains(nn.Sequential(OrderedDict(parts)))


def part(kind, name, make, cause=None, inputs=ROWS, of_a=None, **more):
    """mlp() beside mlp() with another part."""
    wrong(f"{kind}: {name}", inputs, cause=cause, place=kind, **more)(
        lambda: (mlp(**({kind: of_a()} if of_a else {})), mlp(**{kind: make()}))
    )


def own_norm(name, of, cause=None, **more):
    part("norm", name, lambda: OwnNorm(of), cause, **more)


def own_act(name, of, cause=None, **more):
    part("act", name, lambda: OwnActivation(of), cause, **more)


def centred(x):
    return x - x.mean(-1, keepdim=True)


def spread(x, **more):
    return x.var(-1, keepdim=True, **more)


def detached_mean(x):
    y = x - x.mean(-1, keepdim=True).detach()
    return y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt()


part("norm", "eps of 1e-6, not 1e-5", lambda: nn.LayerNorm(24, eps=1e-6), "eps")
own_norm("eps of 1e-5 by hand, not 1e-3", lambda x, w, b: layer_norm(x, w, b, 1e-5), "eps", of_a=lambda: nn.LayerNorm(24, eps=1e-3))
own_norm("no eps", lambda x, w, b: layer_norm(x, w, b, 0.0), "eps")
own_norm("eps outside of the root", lambda x, w, b: centred(x) / (spread(x, correction=0).sqrt() + 1e-5) * w + b, "eps|root")
own_norm("eps added to the unbiased deviation", lambda x, w, b: centred(x) / (x.std(-1, keepdim=True) + 1e-5) * w + b, "divi|eps")
own_norm("the unbiased variance", lambda x, w, b: centred(x) / (spread(x) + 1e-5).sqrt() * w + b, "divi")
own_norm("no mean taken off", lambda x, w, b: rms_norm(x, w, 1e-5) + b, "another norm|mean")
own_norm("the gain plus 1", lambda x, w, b: layer_norm(x, 1 + w, b), r"\+ 1|gain")
own_norm("no bias", lambda x, w, b: layer_norm(x, w) + 0 * b, "bias|shift")
own_norm("the bias before the gain", lambda x, w, b: (layer_norm(x) + b) * w, "bias|shift")
own_norm("over the batch, not the row", lambda x, w, b: layer_norm(x.T).T * w + b, "batch|dimension")
own_norm("a mean without gradient", lambda x, w, b: detached_mean(x) * w + b, "backward|gradient|detach")
own_norm(
    "a deviation without gradient",
    lambda x, w, b: centred(x) / (spread(x, correction=0) + 1e-5).sqrt().detach() * w + b,
    "backward|gradient|detach",
)
own_norm("a cast to bf16", lambda x, w, b: layer_norm(x).bfloat16().to(x) * w + b, "bf16")
part("norm", "left out", nn.Identity, None, of_a=lambda: nn.LayerNorm(24, elementwise_affine=False))
part("norm", "GroupNorm of 4 groups, not 3", lambda: nn.GroupNorm(4, 24), "num_groups|groups|4, 24", of_a=lambda: nn.GroupNorm(3, 24))
part("act", "GELU by tanh", lambda: nn.GELU("tanh"), "tanh")
own_act("GELU by tanh, by hand", lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))), "tanh")
own_act("quick GELU", lambda x: x * torch.sigmoid(1.702 * x), "activation")
part("act", "ReLU, not GELU", nn.ReLU, "ReLU|relu")
part("act", "SiLU, not GELU", nn.SiLU, "SiLU|silu")
part("act", "a slope of 0.2, not 0.01", lambda: nn.LeakyReLU(0.2), "slope|0.2", of_a=nn.LeakyReLU)
own_act("a slope of 0.2 by hand", lambda x: torch.where(x > 0, x, 0.2 * x), "slope|0.2", of_a=nn.LeakyReLU)
part("act", "a square forgotten in squared ReLU", nn.ReLU, "squared ReLU", of_a=lambda: OwnActivation(lambda x: F.relu(x).square()))
part("act", "left out", nn.Identity, "of b is Identity")
own_act("half of it", lambda x: F.gelu(x) / 2, "factor of 0.5|1 / 2")
part("act", "dropout, too", lambda: nn.Sequential(nn.GELU(), nn.Dropout(0.1)), "ropout|training alone")
part("act", "a threshold of 6 that no batch reaches", nn.ReLU6, of_a=nn.ReLU, unseen=True, inputs=normal(6, 16, deviation=0.01))


class OwnLinear(nn.Linear):
    """A linear layer: of(x, weight, bias)."""

    def __init__(self, inputs, outputs, of):
        super().__init__(inputs, outputs)
        self._of = of

    def forward(self, x):
        return self._of(x, self.weight, self.bias)


def own_last(name, of, cause):
    part("head", name, lambda: OwnLinear(24, 8, of), cause)


own_last("no bias", lambda x, w, b: F.linear(x, w) + 0 * b, "bias|shift")
own_last("the bias twice", lambda x, w, b: F.linear(x, w, 2 * b), "bias|shift")
own_last("twice the product", lambda x, w, b: 2 * F.linear(x, w) + b, "factor of 2")
own_last("the output times 1.001", lambda x, w, b: F.linear(x, w, b) * 1.001, r"factor of 1(\.001| \+ 1\.0e-03)")
own_last("weights rounded to bf16", lambda x, w, b: F.linear(x, w.bfloat16().to(w), b), "bf16")
own_last("weights without gradient", lambda x, w, b: F.linear(x, w.detach(), b), "backward|gradient|detach")
own_last("an input without gradient", lambda x, w, b: F.linear(x.detach(), w, b), "backward|gradient|detach")
own_last("two outputs exchanged", lambda x, w, b: F.linear(x, w, b)[..., [1, 0, *range(2, 8)]], "order|permut|exchang")
own_last("the last row is 0", lambda x, w, b: torch.cat([F.linear(x, w, b)[:-1], torch.zeros(1, 8).to(x)]), "row")
part(
    "first",
    "columns of the weight in another order",
    lambda: OwnLinear(16, 24, lambda x, w, b: F.linear(x, w.flip(1), b)),
    "order|permut|flip",
)


class Residual(nn.Module):
    """Two blocks on a residual stream, as `of` runs one."""

    def __init__(self, of):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.last, self._of = nn.Linear(16, 8), of

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = self._of(x, norm, layer)
        return self.last(x)


def residual(name, of, cause=None, place=r"norms\.[01]|layers\.[01]|last"):
    def make():
        return with_random_gains(Residual(lambda x, norm, layer: x + F.gelu(layer(norm(x))))), Residual(of)

    wrong(f"residual stream: {name}", ROWS, cause=cause, place=place)(make)


# The first module after the mistake.
residual("no sum", lambda x, norm, layer: F.gelu(layer(norm(x))), place=r"norms\.1")
residual("normed rows on the stream", lambda x, norm, layer: (lambda y: y + F.gelu(layer(y)))(norm(x)), place=r"norms\.1")
residual("the norm behind the sum", lambda x, norm, layer: norm(x + F.gelu(layer(x))), place=r"layers\.0|norms\.0")
residual("the stream twice", lambda x, norm, layer: 2 * x + F.gelu(layer(norm(x))), place=r"norms\.1")
residual("the branch halved", lambda x, norm, layer: x + F.gelu(layer(norm(x))) / 2, place=r"norms\.1")
residual(
    "the stream without gradient",
    lambda x, norm, layer: x.detach() + F.gelu(layer(norm(x))),
    "backward|gradient|detach",
    place=r"norms\.[01]|layers\.[01]",
)
residual(
    "the branch without gradient",
    lambda x, norm, layer: x + F.gelu(layer(norm(x))).detach(),
    "backward|gradient|detach",
    place=r"norms\.[01]|layers\.[01].*",
)
residual("activation before the layer", lambda x, norm, layer: x + layer(F.gelu(norm(x))), place=r"layers\.0")


@wrong("weights of the first layer in the second, too", ROWS, place="two|a itself")
def _():
    parts = [{"one": nn.Linear(16, 16), "two": nn.Linear(16, 16)} for _ in range(2)]
    return Net(lambda m, x: m.two(m.one(x).tanh()), **parts[0]), Net(
        lambda m, x: F.linear(m.one(x).tanh(), m.one.weight, m.two.bias), **parts[1]
    )


@wrong("gate and up exchanged", ROWS, place="gate|up|down")
def _():
    parts = [{"gate": nn.Linear(16, 24), "up": nn.Linear(16, 24), "down": nn.Linear(24, 16)} for _ in range(2)]
    return Net(lambda m, x: m.down(F.silu(m.gate(x)) * m.up(x)), **parts[0]), Net(
        lambda m, x: m.down(m.gate(x) * F.silu(m.up(x))), **parts[1]
    )


IMAGES = normal(2, 3, 8, 8)


def convolved(conv=None, norm=None, pool=None, head=lambda m, x: m.head(x.flatten(1))):
    parts = {"conv": conv or nn.Conv2d(3, 6, 3, padding=1), "norm": norm or nn.BatchNorm2d(6), "pool": pool or nn.AvgPool2d(2, padding=1)}
    net = Net(lambda m, x: head(m, m.pool(F.relu(m.norm(m.conv(x))))), **parts, head=nn.Linear(150, 5))
    return with_random_gains(net)


def image(name, cause=None, place=None, inputs=IMAGES, **parts):
    """convolved(), one part of b made in another way."""

    def make():
        return convolved(), convolved(**{n: f if n == "head" else f() for n, f in parts.items()})

    wrong(f"images: {name}", inputs, cause=cause, place=place)(make)


class OwnConv(nn.Conv2d):
    def __init__(self, of):
        super().__init__(3, 6, 3, padding=1)
        self._of = of

    def forward(self, x):
        return self._of(x, self.weight, self.bias)


class OwnBatchNorm(nn.BatchNorm2d):
    def __init__(self, of, **more):
        super().__init__(6, **more)
        self._of = of

    def forward(self, x):
        return self._of(self, x)


def without_update(m, x):
    return F.batch_norm(x, None, None, m.weight, m.bias, True, 0.0, m.eps)


def biased(m, x):
    with torch.no_grad():
        m.running_mean.lerp_(x.mean((0, 2, 3)), 0.1), m.running_var.lerp_(
            x.var((0, 2, 3), correction=0), 0.1
        ), m.num_batches_tracked.add_(1)
    return without_update(m, x)


STATISTICS = r"(norm\.)?(running_(mean|var)|num_batches_tracked)|norm"
image("a kernel flipped", place="conv", conv=lambda: OwnConv(lambda x, w, b: F.conv2d(x, w.flip(2, 3), b, padding=1)))
image("dilation 2", "dilation", "conv", conv=lambda: nn.Conv2d(3, 6, 3, padding=2, dilation=2))
image("a circular border", "circular", "conv", conv=lambda: nn.Conv2d(3, 6, 3, padding=1, padding_mode="circular"))
image("BGR, not RGB", place="conv", conv=lambda: OwnConv(lambda x, w, b: F.conv2d(x.flip(1), w, b, padding=1)))
image("BatchNorm's eps of 1e-3", "eps", "norm", norm=lambda: nn.BatchNorm2d(6, eps=1e-3))
image("BatchNorm with kept statistics, in eval()", "train|eval", "norm", norm=lambda: nn.BatchNorm2d(6).eval())
image("BatchNorm's momentum of 0.9", "momentum", STATISTICS, norm=lambda: nn.BatchNorm2d(6, momentum=0.9))
image(
    "BatchNorm that never updates its statistics",
    "running_|num_batches|statistics|buffer",
    STATISTICS,
    norm=lambda: OwnBatchNorm(without_update),
)
image("a biased running variance", "running_|statistics|buffer", STATISTICS, norm=lambda: OwnBatchNorm(biased))
image("GroupNorm, not BatchNorm", place="norm", norm=lambda: OwnBatchNorm(lambda m, x: F.group_norm(x, 1, m.weight, m.bias)))
image(
    "a border that does not count in means",
    "count_include_pad",
    "pool",
    pool=lambda: nn.AvgPool2d(2, padding=1, count_include_pad=False),
)
image("a maximum, not a mean", "of b is MaxPool2d", "pool", pool=lambda: nn.MaxPool2d(2, padding=1))
image("channels last before the head", place="head", head=lambda m, x: m.head(x.permute(0, 2, 3, 1).flatten(1)))
image("rows and columns exchanged before the head", place="head", head=lambda m, x: m.head(x.mT.flatten(1)))
