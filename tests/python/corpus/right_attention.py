"""Right pairs: attention."""

import torch
from torch import nn
from torch.nn import functional as F

from .rows import Formula, Net, normal, right, several, sgd

WIDTH, HEADS, TIME = 16, 2, 6
TOKENS = normal(3, TIME, WIDTH)


def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(-2)


def attention(q, k, v, bias=None):
    """softmax(q k^T / sqrt(d) + bias) v, of heads."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return (scores if bias is None else scores + bias).softmax(-1) @ v


def later(size=TIME):
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def causal(x):
    return torch.zeros(TIME, TIME, dtype=x.dtype).masked_fill(later(), -torch.inf)


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))


def separate(of, **more):
    """q, k, v and an output layer; of(q, k, v) of heads."""

    def forward(m, x, *rest):
        return m.o(joined(of(*(heads(f(x)) for f in (m.q, m.k, m.v)), *rest)))

    return Net(forward, **{n: nn.Linear(WIDTH, WIDTH) for n in "qkvo"}, **more)


def fused(of):
    def forward(m, x, *rest):
        return m.o(joined(of(*(heads(y) for y in m.qkv(x).chunk(3, -1)), *rest)))

    return Net(forward, qkv=nn.Linear(WIDTH, 3 * WIDTH), o=nn.Linear(WIDTH, WIDTH))


FUSED = {f"qkv.{n}": lambda p, n=n: torch.cat([p[f"{x}.{n}"] for x in "qkv"]) for n in ("weight", "bias")}


@right("attention by hand, and scaled_dot_product_attention", TOKENS)
def _():
    return separate(attention), separate(F.scaled_dot_product_attention)


@right("separate queries, keys and values, and one fused layer, with AdamW", TOKENS, map=FUSED)
def _():
    return separate(attention), fused(F.scaled_dot_product_attention)


@right(
    "the same, the map a function of all parameters",
    TOKENS,
    map=lambda p: {**{n: f(p) for n, f in FUSED.items()}, "o.weight": p["o.weight"], "o.bias": p["o.bias"]},
)
def _():
    return separate(attention), fused(F.scaled_dot_product_attention)


@right("separate and fused, causal, with SGD", TOKENS, map=FUSED, optimizer=sgd)
def _():
    return separate(lambda q, k, v: attention(q, k, v, causal(q))), fused(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    )


@right("the map dict(p), which changes nothing", TOKENS, map=lambda p: dict(p))
def _():
    return separate(attention), separate(F.scaled_dot_product_attention)


@right("a causal mask of -inf, and one of -1e30", TOKENS)
def _():
    def filled(q, k, v):
        return attention(q, k, v, torch.zeros(TIME, TIME).to(q).masked_fill(later(), -1e30))

    return separate(lambda q, k, v: attention(q, k, v, causal(q))), separate(filled)


@right(
    "a mask of pads as booleans, and as a bias",
    several(TOKENS, lambda g: torch.arange(TIME) < torch.randint(2, TIME, (3, 1), generator=g)),
)
def _():
    def bias(q, k, v, real):
        return attention(q, k, v, torch.zeros(real.shape).to(q).masked_fill(~real, -torch.inf)[:, None, None])

    return separate(lambda q, k, v, real: F.scaled_dot_product_attention(q, k, v, real[:, None, None])), separate(bias)


@right("MultiheadAttention, and its formula", TOKENS)
def _():
    def of(p, x):
        q, k, v = (heads(y) for y in F.linear(x, p["in_proj_weight"], p["in_proj_bias"]).chunk(3, -1))
        return linear(p, "out_proj", joined(attention(q, k, v)))

    a = Net(lambda m, x: m.module(x, x, x, need_weights=False)[0], module=nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    return a, Formula(a, of)


@right("attention to other tokens, keys of another width", several(TOKENS, normal(3, 4, 10)))
def _():
    def of(p, x, y):
        q, k, v = linear(p, "q", x), linear(p, "k", y), linear(p, "v", y)
        weights = torch.einsum("bihd,bjhd->bhij", q.view(3, TIME, 2, 8), k.view(3, 4, 2, 8)) / 8**0.5
        return torch.einsum("bhij,bjhd->bihd", weights.softmax(-1), v.view(3, 4, 2, 8)).flatten(2)

    def forward(m, x, y):
        return joined(F.scaled_dot_product_attention(heads(m.q(x)), heads(m.k(y)), heads(m.v(y))))

    a = Net(forward, q=nn.Linear(WIDTH, WIDTH), k=nn.Linear(10, WIDTH), v=nn.Linear(10, WIDTH))
    return a, Formula(a, of)


@right("attention over keys in blocks, with a running maximum", TOKENS)
def _():
    def running(q, k, v):
        top, total, out = q.new_full((*q.shape[:-1], 1), -torch.inf), 0, 0
        for i in range(0, TIME, 2):
            scores = q @ k[..., i : i + 2, :].mT / q.shape[-1] ** 0.5
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            shrunk, weights = (top - new).exp(), (scores - new).exp()
            total = total * shrunk + weights.sum(-1, keepdim=True)
            out, top = out * shrunk + weights @ v[..., i : i + 2, :], new
        return out / total

    return separate(attention), separate(running)


@right("attention with linear biases (ALiBi), and by distances", TOKENS)
def _():
    slopes = torch.tensor([0.5, 0.25])[:, None, None]

    def table(q, k, v):
        distance = torch.arange(TIME)[:, None] - torch.arange(TIME)
        return attention(q, k, v, causal(q) - slopes.to(q) * distance)

    def shifted(q, k, v):  # softmax does not see what a whole row has in common
        return F.scaled_dot_product_attention(q, k, v, slopes.to(q) * torch.arange(TIME) + causal(q))

    return separate(table), separate(shifted)


@right("grouped queries: repeated keys, and heads in groups", TOKENS)
def _():
    def repeated(m, x):
        k, v = (y[:, None].expand(-1, HEADS, -1, -1) for y in (m.k(x), m.v(x)))
        return joined(F.scaled_dot_product_attention(heads(m.q(x)), k, v))

    def grouped(m, x):
        scores = torch.einsum("bihd,bjd->bhij", m.q(x).unflatten(-1, (HEADS, -1)), m.k(x)) / 8**0.5
        return torch.einsum("bhij,bjd->bihd", scores.softmax(-1), m.v(x)).flatten(-2)

    def parts():
        return {"q": nn.Linear(WIDTH, WIDTH), "k": nn.Linear(WIDTH, 8), "v": nn.Linear(WIDTH, 8)}

    return Net(repeated, **parts()), Net(grouped, **parts())


def turned(x, halves):
    """Rotary positions, of neighbours or of halves."""
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(TIME, dtype=x.dtype), 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half))
    u, v = x.chunk(2, -1) if halves else (x[..., ::2], x[..., 1::2])
    pair = u * angles.cos() - v * angles.sin(), v * angles.cos() + u * angles.sin()
    return torch.cat(pair, -1) if halves else torch.stack(pair, -1).flatten(-2)


def halves_of_neighbours(t):
    """Rows of q or k, of neighbours, as rows of halves."""
    return t.unflatten(0, (HEADS, -1, 2)).transpose(1, 2).reshape(t.shape)


@right(
    "rotary positions of neighbours, and of halves with permuted weights",
    TOKENS,
    map={f"{x}.{n}": lambda p, x=x, n=n: halves_of_neighbours(p[f"{x}.{n}"]) for x in "qk" for n in ("weight", "bias")},
)
def _():
    def of(halves):
        return lambda q, k, v: attention(turned(q, halves), turned(k, halves), v, causal(q))

    return separate(of(False)), separate(of(True))


@right("rotary positions by complex numbers", TOKENS)
def _():
    def spun(x):
        half = x.shape[-1] // 2
        angles = torch.outer(torch.arange(TIME, dtype=x.dtype), 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half))
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    return separate(lambda q, k, v: attention(turned(q, False), turned(k, False), v)), separate(
        lambda q, k, v: attention(spun(q), spun(k), v)
    )


@right("norms of queries and keys, and cosines with a scale", TOKENS)
def _():
    def cosines(q, k, v):
        return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * 8 / 8**0.5).softmax(-1) @ v

    def normed(q, k, v):
        def unit(x):
            return x / x.square().mean(-1, keepdim=True).sqrt()

        return attention(unit(q), unit(k), v)

    return separate(cosines), separate(normed)


@right("linear attention: keys and values first", TOKENS)
def _():
    def first(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)

    def last(q, k, v):
        scores = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
        return scores / scores.sum(-1, keepdim=True) @ v

    return separate(first), separate(last)


@right("a Transformer layer of torch, and its formula", TOKENS)
def _():
    def of(p, x):
        normed = F.layer_norm(x, (WIDTH,), p["norm1.weight"], p["norm1.bias"])
        q, k, v = (heads(y) for y in F.linear(normed, p["self_attn.in_proj_weight"], p["self_attn.in_proj_bias"]).chunk(3, -1))
        x = x + linear(p, "self_attn.out_proj", joined(attention(q, k, v)))
        normed = F.layer_norm(x, (WIDTH,), p["norm2.weight"], p["norm2.bias"])
        return x + linear(p, "linear2", F.gelu(linear(p, "linear1", normed)))

    a = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return a, Formula(a, of)
