"""Modules of which it is known by algebra whether they are one function and train alike, and batches for them."""

import unittest

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("needs torch")


def images(n=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(6, 8, generator=g), torch.randint(0, 5, (6,), generator=g)) for _ in range(n)]


def net(norm=None, act=None, eps=1e-5, p=0.0):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), norm or nn.LayerNorm(16, eps=eps), act or nn.GELU(), nn.Dropout(p), nn.Linear(16, 5))


class ByHand(nn.Module):
    """net() with the norm spelled out, and other names."""

    def __init__(self, eps=1e-5):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 5)
        self.gain, self.shift = nn.Parameter(torch.ones(16)), nn.Parameter(torch.zeros(16))
        self.eps = eps

    def forward(self, x):
        x = self.first(x)
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.gain + self.shift
        return self.last(x * 0.5 * (1 + torch.erf(x / 2**0.5)))


NAMES = {
    "first.weight": "0.weight",
    "first.bias": "0.bias",
    "gain": "1.weight",
    "shift": "1.bias",
    "last.weight": "4.weight",
    "last.bias": "4.bias",
}


class Attention(nn.Module):
    """One head; `packed`: queries, keys and values of one matrix."""

    def __init__(self, packed):
        super().__init__()
        if packed:
            self.qkv = nn.Linear(8, 24)
        else:
            self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1) if hasattr(self, "qkv") else (self.q(x), self.k(x), self.v(x))
        return torch.softmax(q @ k.mT / 8**0.5, -1) @ v


PACKED = {f"qkv.{n}": lambda p, n=n: torch.cat([p[f"q.{n}"], p[f"k.{n}"], p[f"v.{n}"]]) for n in ("weight", "bias")}


class Scaled(nn.Module):
    """A linear layer whose stored weight is `factor` times what it applies."""

    def __init__(self, factor):
        super().__init__()
        self.weight, self.factor = nn.Parameter(torch.randn(5, 8) * factor), factor

    def forward(self, x):
        return x @ (self.weight / self.factor).T


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


class Swish(nn.Module):
    def forward(self, x):
        return x / (1 + torch.exp(-x))
