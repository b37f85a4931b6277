"""Planted mistakes: attention, rotary positions, recurrent layers, embeddings."""

import torch
from torch import nn
from torch.nn import functional as F

from .right_attention import (TIME, TOKENS, WIDTH, attention, causal, fused, heads, joined, later, separate, turned)
from .rows import Formula, Net, adamw, ids, normal, several, with_random_gains, wrong

# The modules between which scores and values are computed, and the first one after them.
CORE = "q|k|v|qkv|o"


def core(name, of, cause=None, of_a=lambda q, k, v: attention(q, k, v, causal(q)), place="o", inputs=TOKENS, **more):
    """Causal attention, of(q, k, v) in b."""
    wrong(f"attention: {name}", inputs, cause=cause, place=place, **more)(lambda: (separate(of_a), separate(of)))


def masked(mask):
    return lambda q, k, v: attention(q, k, v, torch.zeros(TIME, TIME).to(q).masked_fill(mask, -torch.inf))


def scaled(q, k, v, factor):
    return (q @ k.mT * factor + causal(q)).softmax(-1) @ v


core("scaled by the width, not the head's", lambda q, k, v: scaled(q, k, v, WIDTH**-0.5))
core("no scale", lambda q, k, v: scaled(q, k, v, 1))
core("a mask inverted", masked(later().T))
core("no mask", attention)
core("one token ahead seen", masked(torch.ones(TIME, TIME).triu(2).bool()))
core(
    "a window of 3 tokens, not 4",
    masked(later() | torch.ones(TIME, TIME).tril(-3).bool()),
    of_a=masked(later() | torch.ones(TIME, TIME).tril(-4).bool()),
)
core("softmax over queries", lambda q, k, v: (q @ k.mT / 8**0.5).softmax(-2) @ v, of_a=attention)
core("a mask of -10, not -inf", lambda q, k, v: attention(q, k, v, torch.zeros(TIME, TIME).to(q).masked_fill(later(), -10.0)))
core("a mask behind the softmax", lambda q, k, v: (q @ k.mT / 8**0.5).softmax(-1).masked_fill(later(), 0) @ v)
core("softmax in bf16", lambda q, k, v: (q @ k.mT / 8**0.5 + causal(q)).bfloat16().softmax(-1).to(q) @ v, "bf16")
core("dropout of weights", lambda q, k, v: F.dropout(attention(q, k, v, causal(q)), 0.1), "training alone|ropout|repeat|draw")
core("queries for keys", lambda q, k, v: attention(k, q, v, causal(q)))
core("values for keys", lambda q, k, v: attention(q, v, k, causal(q)))
core("heads not put back", lambda q, k, v: attention(q, k, v, causal(q)).transpose(1, 2).reshape(q.shape))
core("keys without gradient", lambda q, k, v: attention(q, k.detach(), v, causal(q)), "backward|gradient|detach", place="[kqvo].*")
core("a softmax without the last key", lambda q, k, v: attention(q, k[..., :-1, :], v[..., :-1, :]), of_a=attention)
ROTARY = lambda q, k, v: attention(turned(q, True), turned(k, True), v, causal(q))  # noqa: E731


def spun(x, base=10000.0, sign=1, first=0):
    half = x.shape[-1] // 2
    angles = torch.outer(first + torch.arange(TIME, dtype=x.dtype), base ** (-torch.arange(half, dtype=x.dtype) / half))
    u, v = x.chunk(2, -1)
    return torch.cat([u * angles.cos() - sign * v * angles.sin(), v * angles.cos() + sign * u * angles.sin()], -1)


core("rotary positions of neighbours, not halves", lambda q, k, v: attention(turned(q, False), turned(k, False), v, causal(q)), of_a=ROTARY)
core("rotary positions with a base of 1,000", lambda q, k, v: attention(spun(q, 1e3), spun(k, 1e3), v, causal(q)), of_a=ROTARY)
core("rotary positions of queries alone", lambda q, k, v: attention(spun(q), k, v, causal(q)), of_a=ROTARY)
core("rotary positions of values, too", lambda q, k, v: attention(spun(q), spun(k), spun(v), causal(q)), of_a=ROTARY)
core("keys one position late", lambda q, k, v: attention(spun(q), spun(k, first=1), v, causal(q)), of_a=ROTARY)
core("keys turned the other way", lambda q, k, v: attention(spun(q), spun(k, sign=-1), v, causal(q)), of_a=ROTARY)
SLOPES = torch.tensor([0.5, 0.25])[:, None, None]


def slanted(sign, slopes=SLOPES):
    return lambda q, k, v: attention(q, k, v, causal(q) + sign * slopes.to(q) * torch.arange(TIME))


core("linear biases with the other sign", slanted(-1), of_a=slanted(1))
core("slopes of heads exchanged", slanted(1, SLOPES.flip(0)), of_a=slanted(1))


def mapped(name, rows, place="qkv|o"):
    """A fused layer whose rows come from q, k, v in another way."""
    wrong(
        f"a map: {name}",
        TOKENS,
        place=place,
        map={f"qkv.{n}": lambda p, n=n: rows(*(p[f"{x}.{n}"] for x in "qkv")) for n in ("weight", "bias")},
    )(lambda: (separate(attention), fused(attention)))


mapped("keys first", lambda q, k, v: torch.cat([k, q, v]))
mapped("values before keys", lambda q, k, v: torch.cat([q, v, k]))
mapped("rows of heads interleaved", lambda q, k, v: torch.stack([q, k, v], 1).flatten(0, 1))


@wrong("a map: a square weight not transposed", TOKENS, place="linear|a itself", map=lambda p: dict(p))
def _():
    parts = [{"weight": (WIDTH, WIDTH)} for _ in range(2)]
    return Net(lambda m, x: x @ m.weight, **parts[0]), Net(lambda m, x: x @ m.weight.T, **parts[1])


@wrong("a pad mask over queries, not keys", several(TOKENS, lambda g: torch.arange(TIME) < torch.tensor([[6], [4], [2]])), place="o")
def _():
    def bias(q, real, *at):
        return torch.zeros(real.shape).to(q).masked_fill(~real, -1e9)[at]

    return (
        separate(lambda q, k, v, real: attention(q, k, v, bias(q, real)[:, None, None])),
        separate(lambda q, k, v, real: attention(q, k, v, bias(q, real)[:, None, :, None])),
    )


@wrong("grouped queries: keys repeated in another order", normal(3, TIME, WIDTH), place="o")
def _():
    def of(repeat):
        def forward(m, x):
            q, k, v = m.q(x).unflatten(-1, (4, 4)).transpose(1, 2), *(y.unflatten(-1, (2, 4)).transpose(1, 2) for y in (m.k(x), m.v(x)))
            return m.o(joined(attention(q, repeat(k), repeat(v))))

        return Net(forward, q=nn.Linear(WIDTH, 16), k=nn.Linear(WIDTH, 8), v=nn.Linear(WIDTH, 8), o=nn.Linear(16, WIDTH))

    return of(lambda y: y.repeat_interleave(2, 1)), of(lambda y: y.repeat(1, 2, 1, 1))


@wrong("cross attention: values of the queries' tokens", several(TOKENS, TOKENS), place="v|o")
def _():
    def net(of):
        return Net(of, **{n: nn.Linear(WIDTH, WIDTH) for n in "qkvo"})

    return (
        net(lambda m, x, y: m.o(joined(attention(heads(m.q(x)), heads(m.k(y)), heads(m.v(y)))))),
        net(lambda m, x, y: m.o(joined(attention(heads(m.q(x)), heads(m.k(y)), heads(m.v(x)))))),
    )


def recurrent(name, kind, of, cause=None, place="cell|head|a itself"):
    """nn.GRU or nn.LSTM beside of(p, x), then a linear layer."""

    def make():
        a = Net(lambda m, x: m.head(m.cell(x)[0]), cell=kind(5, 6, batch_first=True), head=nn.Linear(6, 4))
        return a, Net(lambda m, x: m.head(m.cell(x)), cell=Formula(a.cell, of), head=nn.Linear(6, 4))

    wrong(f"recurrent: {name}", normal(3, 7, 5), cause=cause, place=place)(make)


def gru(gates=lambda r, z: (r, z), reset_before=False, carried=lambda h: h, first=torch.zeros):
    def of(p, x):
        h, out = first(3, 6).to(x), []
        for step in x.unbind(1):
            ri, zi, ni = F.linear(step, p["weight_ih_l0"], p["bias_ih_l0"]).chunk(3, -1)
            rh, zh, nh = F.linear(h, p["weight_hh_l0"], p["bias_hh_l0"]).chunk(3, -1)
            r, z = gates(torch.sigmoid(ri + rh), torch.sigmoid(zi + zh))
            if reset_before:
                nh = F.linear(r * h, p["weight_hh_l0"][12:], p["bias_hh_l0"][12:])
                h = z * h + (1 - z) * torch.tanh(ni + nh)
            else:
                h = z * h + (1 - z) * torch.tanh(ni + r * nh)
            out.append(h)
            h = carried(h)
        return torch.stack(out, 1)

    return of


def lstm(order=(0, 1, 2, 3), forget=0.0):
    def of(p, x):
        h = c = x.new_zeros(3, 6)
        out = []
        for step in x.unbind(1):
            gates = (F.linear(step, p["weight_ih_l0"], p["bias_ih_l0"]) + F.linear(h, p["weight_hh_l0"], p["bias_hh_l0"])).chunk(4, -1)
            i, f, g, o = (gates[k] for k in order)
            c = torch.sigmoid(f + forget) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)

    return of


recurrent("reset and update gates of a GRU exchanged", nn.GRU, gru(gates=lambda r, z: (z, r)))
recurrent("a GRU's reset before the product", nn.GRU, gru(reset_before=True))
recurrent("the update gate the other way", nn.GRU, gru(gates=lambda r, z: (r, 1 - z)))
recurrent("states without gradient", nn.GRU, gru(carried=torch.Tensor.detach), "backward|gradient|detach", place="cell.*|head|a itself")
recurrent("a first state of 1", nn.GRU, gru(first=torch.ones))
recurrent("gates of an LSTM in the order i, f, o, g", nn.LSTM, lstm((0, 1, 3, 2)))
recurrent("a forget bias of 1", nn.LSTM, lstm(forget=1.0))


@wrong("recurrent: the way back not turned round", normal(3, 7, 5), place="head|back")
def _():
    def net(of):
        return Net(of, fore=nn.GRU(5, 6, batch_first=True), back=nn.GRU(5, 6, batch_first=True), head=nn.Linear(12, 4))

    return (
        net(lambda m, x: m.head(torch.cat([m.fore(x)[0], m.back(x.flip(1))[0].flip(1)], -1))),
        net(lambda m, x: m.head(torch.cat([m.fore(x)[0], m.back(x.flip(1))[0]], -1))),
    )


def words(name, of, cause=None, place="norm|head", of_a=None, **more):
    """Embeddings of words and positions, a norm, a head: of(m, ids) gives their sum."""

    def net(of):
        parts = {"words": nn.Embedding(21, 16), "positions": nn.Embedding(12, 16), "norm": nn.LayerNorm(16), "head": nn.Linear(16, 20)}
        return with_random_gains(Net(lambda m, i: m.head(m.norm(of(m, i))), **parts))

    def right_sum(m, i):
        return m.words(i) + m.positions(torch.arange(TIME))

    wrong(f"embeddings: {name}", ids(20, 3, TIME), cause=cause, place=place, **more)(lambda: (net(of_a or right_sum), net(of)))


words("positions from 1", lambda m, i: m.words(i) + m.positions(1 + torch.arange(TIME)), place="positions")
words("positions from the end", lambda m, i: m.words(i) + m.positions(torch.arange(TIME).flip(0)), place="positions")
words("no positions", lambda m, i: m.words(i) + 0 * m.positions(torch.arange(TIME)))
words(
    "no factor of sqrt(width)",
    lambda m, i: m.words(i) + m.positions(torch.arange(TIME)),
    of_a=lambda m, i: 4 * m.words(i) + m.positions(torch.arange(TIME)),
)
words(
    "a pad that does not train",
    lambda m, i: F.embedding(i, m.words.weight, padding_idx=0) + m.positions(torch.arange(TIME)),
    "backward|gradient",
    place="words.*",
)
words("a word taken for another", lambda m, i: m.words(torch.where(i == 7, 8, i)) + m.positions(torch.arange(TIME)), place="words")
words("a word that no batch has", lambda m, i: m.words(torch.where(i == 20, 19, i)) + m.positions(torch.arange(TIME)), unseen=True)


@wrong(
    "tied words and head, apart in b",
    ids(11, 4, 6),
    cause="commute with the map of embedding.weight",
    place=r"(head|embedding)(\.weight)?",
    map={"head.weight": "embedding.weight"},
    optimizer=adamw,
)
def _():
    a = Net(lambda m, i: F.linear(torch.tanh(m.embedding(i)), m.embedding.weight), embedding=nn.Embedding(11, 8))
    return a, Net(lambda m, i: m.head(torch.tanh(m.embedding(i))), embedding=nn.Embedding(11, 8), head=nn.Linear(8, 11, bias=False))
