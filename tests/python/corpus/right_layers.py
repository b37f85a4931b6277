"""Right pairs: convolutions, recurrent layers, embeddings, ties, checkpoints, functions with a backward of their own."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .right_norms import ROWS, rms_norm
from .rows import Formula, Net, ids, normal, right, same_weights, sgd, several, with_random_gains

IMAGES = normal(2, 3, 8, 8)


@right("Conv2d as unfold and a product", IMAGES)
def _():
    def of(p, x):
        columns = F.unfold(x, 3, padding=1, stride=2)
        return (p["weight"].flatten(1) @ columns).unflatten(-1, (4, 4)) + p["bias"][:, None, None]

    a = nn.Conv2d(3, 6, 3, padding=1, stride=2)
    return a, Formula(a, of)


@right("Conv1d as a sum of shifted linear layers", normal(2, 4, 11))
def _():
    def of(p, x):
        x = F.pad(x, (2, 2))
        return sum(p["weight"][:, :, k] @ x[:, :, k : k + 11] for k in range(5)) + p["bias"][:, None]

    a = nn.Conv1d(4, 6, 5, padding=2)
    return a, Formula(a, of)


@right("a depthwise convolution channel by channel", IMAGES)
def _():
    def of(p, x):
        parts = [F.conv2d(x[:, c : c + 1], p["weight"][c : c + 1], p["bias"][c : c + 1], padding=1) for c in range(3)]
        return torch.cat(parts, 1)

    a = nn.Conv2d(3, 3, 3, padding=1, groups=3)
    return a, Formula(a, of)


@right("a 1x1 convolution as a linear layer", IMAGES, map={"weight": lambda p: p["weight"][:, :, 0, 0]})
def _():
    b = nn.Linear(3, 6)
    return nn.Conv2d(3, 6, 1), Net(lambda m, x: F.linear(x.movedim(1, -1), m.weight, m.bias).movedim(-1, 1), weight=b.weight, bias=b.bias)


@right("ConvTranspose2d as the gradient of a convolution", normal(2, 6, 4, 4))
def _():
    def of(p, x):
        return torch.nn.grad.conv2d_input((2, 3, 9, 9), p["weight"], x, stride=2) + p["bias"][:, None, None]

    a = nn.ConvTranspose2d(6, 3, 3, stride=2)
    return a, Formula(a, of)


@right("average, maximum and global pooling by unfold", IMAGES)
def _():
    a = Net(
        lambda m, x: torch.cat(
            [F.avg_pool2d(m.conv(x), 2), F.max_pool2d(m.conv(x), 2), F.adaptive_avg_pool2d(m.conv(x), 1).expand(-1, -1, 4, 4)],
            1,
        ),
        conv=nn.Conv2d(3, 4, 3, padding=1),
    )

    def of(p, x):
        x = F.conv2d(x, p["conv.weight"], p["conv.bias"], padding=1)
        blocks = x.unflatten(-1, (4, 2)).unflatten(2, (4, 2)).transpose(3, 4).flatten(-2)
        return torch.cat([blocks.mean(-1), blocks.amax(-1), x.mean((2, 3), keepdim=True).expand(-1, -1, 4, 4)], 1)

    return a, Formula(a, of)


@right("PixelShuffle as a permutation", normal(2, 4, 3, 3))
def _():
    def of(p, x):
        x = F.conv2d(x, p["0.weight"], p["0.bias"])
        return x.unflatten(1, (2, 2, 2)).permute(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 6)

    a = nn.Sequential(nn.Conv2d(4, 8, 1), nn.PixelShuffle(2))
    return a, Formula(a, of)


@right("a GRU step by step", normal(3, 7, 5))
def _():
    def of(p, x):
        h, out = x.new_zeros(3, 6), []
        for step in x.unbind(1):
            ri, zi, ni = F.linear(step, p["weight_ih_l0"], p["bias_ih_l0"]).chunk(3, -1)
            rh, zh, nh = F.linear(h, p["weight_hh_l0"], p["bias_hh_l0"]).chunk(3, -1)
            z = torch.sigmoid(zi + zh)
            h = z * h + (1 - z) * torch.tanh(ni + torch.sigmoid(ri + rh) * nh)
            out.append(h)
        return torch.stack(out, 1), h[None]

    a = nn.GRU(5, 6, batch_first=True)
    return a, Formula(a, of)


@right("a GRU, and GRUCell in a loop", normal(3, 7, 5), map={f"{n}": f"{n}_l0" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")})
def _():
    class Loop(nn.GRUCell):
        def forward(self, x):
            h, out = x.new_zeros(3, 6), []
            for step in x.unbind(1):
                h = super().forward(step, h)
                out.append(h)
            return torch.stack(out, 1), h[None]

    return nn.GRU(5, 6, batch_first=True), Loop(5, 6)


@right("an LSTM step by step", normal(3, 7, 5))
def _():
    def of(p, x):
        h = c = x.new_zeros(3, 6)
        for step in x.unbind(1):
            gates = (F.linear(step, p["weight_ih_l0"]) + F.linear(h, p["weight_hh_l0"]) + p["bias_ih_l0"] + p["bias_hh_l0"])
            i, f, g, o = gates.chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h

    a = Net(lambda m, x: m.module(x)[0][:, -1], module=nn.LSTM(5, 6, batch_first=True))
    return a, Formula(a, of)


def in_two(p):
    names = [n.removeprefix("module.") for n in p if not n.endswith("_reverse")]
    return {f"{way}.{n}": p[f"module.{n}{end}"] for way, end in (("fore", ""), ("back", "_reverse")) for n in names}


@right("a bidirectional LSTM as two", normal(3, 7, 5), map=in_two)
def _():
    def of(m, x):
        return torch.cat([m.fore(x)[0], m.back(x.flip(1))[0].flip(1)], -1)

    a = Net(lambda m, x: m.module(x)[0], module=nn.LSTM(5, 6, batch_first=True, bidirectional=True))
    return a, Net(of, fore=nn.LSTM(5, 6, batch_first=True), back=nn.LSTM(5, 6, batch_first=True))


@right("an embedding as a product with one-hot rows", ids(11, 4, 6))
def _():
    a = nn.Embedding(11, 8)
    return a, Formula(a, lambda p, i: F.one_hot(i, 11).to(p["weight"]) @ p["weight"])


@right("EmbeddingBag as a mean of rows", ids(11, 4, 6))
def _():
    a = nn.EmbeddingBag(11, 8, mode="mean")
    return a, Formula(a, lambda p, i: p["weight"][i].mean(1))


@right("a table for words and for the head, tied", ids(11, 4, 6))
def _():
    def tied():
        embedding, head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        head.weight = embedding.weight
        return Net(lambda m, i: m.head(torch.tanh(m.embedding(i))), embedding=embedding, head=head)

    return tied(), Net(lambda m, i: torch.tanh(F.embedding(i, m.embedding.weight)) @ m.embedding.weight.T, embedding=nn.Embedding(11, 8))


def checkpointed(reentrant):
    a = with_random_gains(nn.Sequential(nn.Linear(16, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 8)))

    def of(m, x):
        return checkpoint(m.module, x, use_reentrant=reentrant)

    return Net(lambda m, x: m.module(x), module=a), Net(of, module=same_weights(a))


@right("a block and its recomputation in the backward pass (checkpoint)", ROWS)
def _():
    return checkpointed(False)


@right("a block twice, with recomputation and the same weights", ROWS)
def _():
    a = nn.Sequential(nn.Linear(16, 16), nn.GELU())
    b = same_weights(a)
    return Net(lambda m, x: m.module(m.module(x)), module=a), Net(
        lambda m, x: checkpoint(m.module, checkpoint(m.module, x, use_reentrant=False), use_reentrant=False), module=b
    )


class RmsKernel(torch.autograd.Function):
    """RMSNorm with a backward of its own, as kernels have it."""

    @staticmethod
    def forward(ctx, x, gain):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, gain, r)
        return x * r * gain

    @staticmethod
    def backward(ctx, g):
        x, gain, r = ctx.saved_tensors
        normed, gg = x * r, g * gain
        return r * (gg - normed * (gg * normed).mean(-1, keepdim=True)), (g * normed).flatten(0, -2).sum(0)


@right("RMSNorm, and a Function with a backward of its own", ROWS)
def _():
    a = with_random_gains(Net(lambda m, x: rms_norm(m.linear(x), m.gain), linear=nn.Linear(16, 16), gain=(16,)))
    return a, Formula(a, lambda p, x: RmsKernel.apply(F.linear(x, p["linear.weight"], p["linear.bias"]), p["gain"]))


class SwiGluKernel(torch.autograd.Function):
    """silu(a) b, which recomputes the sigmoid in its backward pass."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * torch.sigmoid(a) * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        s = torch.sigmoid(a)
        return g * b * s * (1 + a * (1 - s)), g * a * s


@right("a gated MLP, and its Function", ROWS)
def _():
    a = Net(lambda m, x: m.down(F.silu(m.gate(x)) * m.up(x)), gate=nn.Linear(16, 24), up=nn.Linear(16, 24), down=nn.Linear(24, 16))
    return a, Net(
        lambda m, x: m.down(SwiGluKernel.apply(m.gate(x), m.up(x))),
        gate=nn.Linear(16, 24),
        up=nn.Linear(16, 24),
        down=nn.Linear(24, 16),
    )


@right("a mixture of two experts, each row by its own, and all rows by both", ROWS, optimizer=sgd)
def _():
    def sparse(m, x):
        best, which = m.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate((m.one, m.two)):
            rows = (which == i).nonzero()[:, 0]
            out = out.index_add(0, rows, expert(x[rows]))
        return out * best[:, None]

    def dense(m, x):
        weights = m.gate(x).softmax(-1)
        kept = weights * F.one_hot(weights.argmax(-1), 2)
        return kept[:, :1] * m.one(x) + kept[:, 1:] * m.two(x)

    parts = [{"gate": nn.Linear(16, 2), "one": nn.Linear(16, 16), "two": nn.Linear(16, 16)} for _ in range(2)]
    return Net(sparse, **parts[0]), Net(dense, **parts[1])


@right(
    "two linear layers as one with a joined weight",
    ROWS,
    map={f"both.{n}": lambda p, n=n: torch.cat([p[f"one.{n}"], p[f"two.{n}"]]) for n in ("weight", "bias")},
)
def _():
    return (
        Net(lambda m, x: m.one(x).tanh() * m.two(x), one=nn.Linear(16, 8), two=nn.Linear(16, 8)),
        Net(lambda m, x: (lambda y: y[..., :8].tanh() * y[..., 8:])(m.both(x)), both=nn.Linear(16, 16)),
    )


@right("a dict as output, its keys in another order", ROWS)
def _():
    a = Net(lambda m, x: {"hidden": m.linear(x).tanh(), "linear": m.linear(x)}, linear=nn.Linear(16, 8))
    return a, Net(lambda m, x: (lambda y: {"linear": y, "hidden": y.tanh()})(m.linear(x)), linear=nn.Linear(16, 8))


@right("scores of which some are -inf in both", several(ROWS, lambda g: 2 * torch.randint(0, 4, (6,), generator=g)), loss=F.cross_entropy)
def _():
    def banned(m, x):
        return m.linear(x).index_fill(-1, torch.tensor([1, 5]), -torch.inf)

    return Net(banned, linear=nn.Linear(16, 8)), Net(
        lambda m, x: m.linear(x).masked_fill(torch.arange(8).remainder(4) == 1, -torch.inf), linear=nn.Linear(16, 8)
    )


@right("several inputs by name, one in another order", lambda g: {"x": torch.randn(4, 8, generator=g), "y": torch.randn(4, 8, generator=g)})
def _():
    a = Net(lambda m, x, y: m.one(x) - m.two(y), one=nn.Linear(8, 5), two=nn.Linear(8, 5))

    class Other(Net):
        def forward(self, y, x):
            return -self.two(y) + self.one(x)

    return a, Other(None, one=nn.Linear(8, 5), two=nn.Linear(8, 5))
