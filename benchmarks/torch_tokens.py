#!/usr/bin/env python3
"""The model of `benchmarks/tokens` in PyTorch: a token at a time, at batch 1, with keys and values in memory of a fixed size.

The work "decode" takes milliseconds of a token (benchmarks/serve.h has the protocol).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from torch_serve import milliseconds, resident_bytes, serve
from torch_step import DTYPES, Block


class Decoder(nn.Module):
    """Tokens + positions, pre-norm blocks, norm, the token table as head; a buffer of keys and a buffer of values for each block."""

    def __init__(self, vocab, context, width, heads, depth):
        super().__init__()
        self.heads, self.context = heads, context
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True, gelu="erf") for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(depth, 1, heads, context, width // heads))

    def attend(self, attn, i, x, at, mask):
        q, k, v = attn.qkv(x).view(3, 1, self.heads, 1, -1)
        self.keys[i].index_copy_(2, at, k)
        self.values[i].index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.keys[i], self.values[i], attn_mask=mask)
        return attn.proj(y.reshape(1, -1))

    def forward(self, token, at):
        """The likeliest id [1] after `token` [1], whose position is `at` [1]."""
        x = self.token(token) + self.position(at)
        mask = (torch.arange(self.context) <= at).view(1, 1, 1, -1)
        for i, block in enumerate(self.blocks):
            x = x + self.attend(block.attn, i, block.norm1(x), at, mask)
            x = x + block.fc2(F.gelu(block.fc1(block.norm2(x))))
        return F.linear(self.norm(x), self.token.weight).argmax(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in dict(width=1024, depth=8, vocab=8192, length=32).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--compile", action="store_true")
    o = parser.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Decoder(o.vocab, 2 * o.length, o.width, o.width // 64, o.depth).to(DTYPES[o.dtype]).eval()
    step = torch.compile(model, dynamic=False) if o.compile else model

    def decode():
        token = torch.tensor([1])
        for i in range(o.length):
            token = step(token, torch.tensor([i]))
            token.item()

    def work(times, words):
        return {"ms": [milliseconds(decode) / o.length for _ in range(times)]}

    with torch.inference_mode():
        work(1, [])
        serve(dict(parameters=sum(p.numel() for p in model.parameters()), base_bytes=resident_bytes()), work)


if __name__ == "__main__":
    main()
