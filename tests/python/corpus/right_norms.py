"""Right pairs: norms, activations and arithmetic, written in other ways."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from .rows import Formula, Net, normal, right, sgd, several, with_random_gains

ROWS = normal(6, 16)


def layer_norm(x, gain=None, bias=None, eps=1e-5):
    x = x - x.mean(-1, keepdim=True)
    x = x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
    return (x if gain is None else x * gain) + (0 if bias is None else bias)


def rms_norm(x, gain, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


@right("LayerNorm as its formula", ROWS)
def _():
    a = with_random_gains(nn.LayerNorm(16))
    return a, Formula(a, lambda p, x: layer_norm(x, p["weight"], p["bias"]))


@right("LayerNorm by E[x^2] - E[x]^2", ROWS)
def _():
    def of(p, x):
        variance = x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True).square()
        return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(variance + 1e-5) * p["weight"] + p["bias"]

    a = with_random_gains(nn.LayerNorm(16))
    return a, Formula(a, of)


@right("LayerNorm as a formula, rows with a constant of 300 times their spread", normal(6, 16, mean=300.0))
def _():
    a = with_random_gains(nn.LayerNorm(16))
    return a, Formula(a, lambda p, x: layer_norm(x, p["weight"], p["bias"]))


@right("LayerNorm as RMSNorm of centred rows, between two linear layers", ROWS)
def _():
    def of(p, x):
        x = F.linear(x, p["0.weight"], p["0.bias"])
        x = rms_norm(x - x.mean(-1, keepdim=True), p["1.weight"], 1e-5) + p["1.bias"]
        return F.linear(x, p["2.weight"], p["2.bias"])

    a = with_random_gains(nn.Sequential(nn.Linear(16, 24), nn.LayerNorm(24), nn.Linear(24, 8)))
    return a, Formula(a, of)


@right("RMSNorm as its formula", ROWS)
def _():
    a = with_random_gains(nn.RMSNorm(16, eps=1e-6))
    return a, Formula(a, lambda p, x: rms_norm(x, p["weight"]))


@right("RMSNorm by the norm of the row", ROWS)
def _():
    a = with_random_gains(nn.RMSNorm(16, eps=0.0))
    return a, Formula(a, lambda p, x: x / x.norm(dim=-1, keepdim=True) * 4 * p["weight"])


@right("GroupNorm as its formula", normal(3, 8, 5, 5))
def _():
    def of(p, x):
        groups = x.reshape(3, 4, -1)
        groups = (groups - groups.mean(-1, keepdim=True)) / (groups.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return groups.reshape(x.shape) * p["weight"].view(-1, 1, 1) + p["bias"].view(-1, 1, 1)

    a = with_random_gains(nn.GroupNorm(4, 8))
    return a, Formula(a, of)


@right("InstanceNorm2d as GroupNorm with a group per channel", normal(3, 8, 5, 5))
def _():
    return with_random_gains(nn.InstanceNorm2d(8, affine=True)), nn.GroupNorm(8, 8)


@right("GroupNorm of one group as layer_norm over all", normal(3, 8, 5, 5))
def _():
    def of(p, x):
        x = F.layer_norm(x, (8, 5, 5))
        return x * p["weight"][:, None, None] + p["bias"][:, None, None]

    a = with_random_gains(nn.GroupNorm(1, 8))
    return a, Formula(a, of)


@right("BatchNorm1d in training, its statistics updated by hand", normal(6, 16))
def _():
    def of(p, x):
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        with torch.no_grad():
            p["running_mean"].lerp_(mean, 0.1)
            p["running_var"].lerp_(x.var(0), 0.1)
            p["num_batches_tracked"].add_(1)
        return (x - mean) / (variance + 1e-5).sqrt() * p["weight"] + p["bias"]

    a = with_random_gains(nn.BatchNorm1d(16))
    return a, Formula(a, of, buffers=True)


@right("a bias before BatchNorm, which takes it off again, with AdamW", normal(6, 16))
def _():
    def of(p, x):
        x = F.linear(x, p["0.weight"]) + p["0.bias"]
        return F.batch_norm(x, None, None, p["1.weight"], p["1.bias"], training=True)

    a = with_random_gains(nn.Sequential(nn.Linear(16, 12), nn.BatchNorm1d(12, track_running_stats=False)))
    return a, Formula(a, of)


@right("BatchNorm2d in eval, folded into the convolution before it", normal(2, 3, 6, 6))
def _():
    a = with_random_gains(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))).eval()
    with torch.no_grad():
        a[1].running_mean.normal_(), a[1].running_var.uniform_(0.5, 2)

    def of(p, x):
        gain = p["1.weight"] / (p["1.running_var"] + 1e-5).sqrt()
        return F.conv2d(x, p["0.weight"] * gain[:, None, None, None], (p["0.bias"] - p["1.running_mean"]) * gain + p["1.bias"])

    return a, Formula(a, of, buffers=True).eval()


@right("weight_norm as its formula", ROWS)
def _():
    def of(p, x):
        g, v = p["parametrizations.weight.original0"], p["parametrizations.weight.original1"]
        return F.linear(x, g * v / v.norm(dim=1, keepdim=True), p["bias"])

    a = parametrizations.weight_norm(nn.Linear(16, 8))
    return a, Formula(a, of)


@right("local response normalization as its formula", normal(3, 4, 6, 6))
def _():
    def of(p, x):
        x = F.conv2d(x, p["0.weight"], p["0.bias"])
        squares = F.pad(x.square(), (0, 0, 0, 0, 2, 2))
        return x / (1 + 0.5 / 5 * sum(squares[:, i : i + 8] for i in range(5))) ** 0.75

    a = nn.Sequential(nn.Conv2d(4, 8, 1), nn.LocalResponseNorm(5, alpha=0.5))
    return a, Formula(a, of)


@right("GELU by erf", ROWS)
def _():
    a = nn.Sequential(nn.Linear(16, 8), nn.GELU())
    return a, Formula(a, lambda p, x: (lambda y: y / 2 * (1 + torch.erf(y / 2**0.5)))(F.linear(x, p["0.weight"], p["0.bias"])))


@right("GELU by the normal distribution", ROWS)
def _():
    def of(p, x):
        y = F.linear(x, p["0.weight"], p["0.bias"])
        return y * torch.special.ndtr(y)

    a = nn.Sequential(nn.Linear(16, 8), nn.GELU())
    return a, Formula(a, of)


@right("GELU's tanh form, x outside of the cube", ROWS)
def _():
    def of(p, x):
        y = F.linear(x, p["0.weight"], p["0.bias"])
        return y * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * y * (1 + 0.044715 * y * y))

    a = nn.Sequential(nn.Linear(16, 8), nn.GELU("tanh"))
    return a, Formula(a, of)


@right("SiLU, Softplus, Mish, ELU and GLU by exponentials", ROWS)
def _():
    a = Net(
        lambda m, x: F.glu(F.mish(m.one(x)) + F.silu(m.two(x)) + F.softplus(m.three(x)) + F.elu(m.four(x))),
        **{name: nn.Linear(16, 8) for name in ("one", "two", "three", "four")},
    )

    def of(p, x):
        one, two, three, four = (F.linear(x, p[f"{n}.weight"], p[f"{n}.bias"]) for n in ("one", "two", "three", "four"))
        y = one * torch.tanh(torch.log1p(one.exp())) + two / (1 + torch.exp(-two)) + torch.log1p(three.exp())
        left, gate = (y + torch.where(four > 0, four, torch.expm1(four))).chunk(2, -1)
        return left / (1 + torch.exp(-gate))

    return a, Formula(a, of)


@right("ReLU in place, and where()", ROWS)
def _():
    a = nn.Sequential(nn.Linear(16, 8), nn.ReLU(inplace=True), nn.Linear(8, 4))

    def of(p, x):
        y = F.linear(x, p["0.weight"], p["0.bias"])
        return F.linear(torch.where(y > 0, y, torch.zeros_like(y)), p["2.weight"], p["2.bias"])

    return a, Formula(a, of)


@right("softmax without its shift, and log_softmax by logsumexp", ROWS, optimizer=sgd)
def _():
    a = Net(lambda m, x: (m.one(x).softmax(-1), m.two(x).log_softmax(-1)), one=nn.Linear(16, 5), two=nn.Linear(16, 5))

    def of(p, x):
        one, two = (F.linear(x, p[f"{n}.weight"], p[f"{n}.bias"]) for n in ("one", "two"))
        return one.exp() / one.exp().sum(-1, keepdim=True), two - two.logsumexp(-1, keepdim=True)

    return a, Formula(a, of)


@right("a sum of products in another order", normal(4, 64))
def _():
    a = nn.Linear(64, 8)
    return a, Formula(a, lambda p, x: (x.flip(-1)[:, None] * p["weight"].flip(-1)).sum(-1) + p["bias"])


@right("cumsum as a product with a triangle", normal(4, 9))
def _():
    a = Net(lambda m, x: m.linear(x).cumsum(-1), linear=nn.Linear(9, 12))
    return a, Formula(a, lambda p, x: F.linear(x, p["linear.weight"], p["linear.bias"]) @ torch.ones(12, 12).triu().to(x))


@right("Bilinear as einsum", several(normal(6, 5), normal(6, 7)))
def _():
    a = nn.Bilinear(5, 7, 4)
    return a, Formula(a, lambda p, x, y: torch.einsum("ni,oij,nj->no", x, p["weight"], y) + p["bias"])
