#!/usr/bin/env python3
"""The benchmark cases in PyTorch: the other side of `benchmarks/step`.

A training step is forward, loss, backward, clip_grad_norm 1.0 and AdamW, in f32, on data fixed before timing; inference
is the forward pass in inference mode. With --serve it does the works "train" and "infer BATCH" on request
(benchmarks/serve.h has the protocol); without it runs --steps training steps by itself.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

from torch_serve import milliseconds, peak_bytes, resident_bytes, say, serve

CASES = {
    "vit_fmnist": dict(model="vit", image=28, channels=1, patch=4, width=128, heads=4, depth=6, classes=10, batch=128),
    "vit_tiny": dict(model="vit", image=224, channels=3, patch=16, width=192, heads=3, depth=12, classes=1000, batch=8),
    "gpt_small": dict(model="gpt", vocab=8192, context=256, width=384, heads=6, depth=6, batch=8),
}
WARMUP_STEPS = 3


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, time_, width = x.shape
        # [B, T, 3, H, width/H] -> 3 x [B, H, T, width/H]
        q, k, v = self.qkv(x).view(batch, time_, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(batch, time_, width))


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, causal)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Vit(nn.Module):
    """Patches -> linear -> + positions, class token in front, pre-norm blocks, norm, head on the class row."""

    def __init__(self, image, channels, patch, width, heads, depth, classes):
        super().__init__()
        self.patch = patch
        self.patch_proj = nn.Linear(patch * patch * channels, width)
        self.position = nn.Parameter(0.02 * torch.randn((image // patch) ** 2, width))
        self.cls = nn.Parameter(0.02 * torch.randn(width))
        self.blocks = nn.ModuleList(Block(width, heads, causal=False) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        batch, channels, height, width = images.shape
        p = self.patch
        x = images.view(batch, channels, height // p, p, width // p, p).permute(0, 2, 4, 3, 5, 1)
        x = self.patch_proj(x.reshape(batch, -1, p * p * channels)) + self.position
        x = torch.cat([self.cls.expand(batch, 1, -1), x], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class Gpt(nn.Module):
    """Tokens + positions, causal pre-norm blocks, norm, a head that shares the token table's weight."""

    def __init__(self, vocab, context, width, heads, depth):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(context, width)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token.weight)


def inputs(name, batch):
    case = CASES[name]
    if case["model"] == "vit":
        return torch.randn(batch, case["channels"], case["image"], case["image"])
    return torch.randint(case["vocab"], (batch, case["context"]))


class Trainer:
    def __init__(self, name, compiled, fused):
        torch.manual_seed(1)
        self.name, case = name, dict(CASES[name])
        batch, vit = case.pop("batch"), case.pop("model") == "vit"
        self.model = Vit(**case) if vit else Gpt(**case)
        self.x = inputs(name, batch)
        self.y = torch.randint(case["classes"], (batch,)) if vit else torch.randint(case["vocab"], self.x.shape)
        # Every batch size is compiled for itself: dynamic shapes would be slower. The loss is compiled along.
        compile_ = (lambda f: torch.compile(f, dynamic=False)) if compiled else (lambda f: f)
        self.forward, self.loss = compile_(self.model), compile_(self.loss_of)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.1, fused=fused or None)
        self.inference_inputs = {}

    def loss_of(self, x, y):
        return F.cross_entropy(self.model(x).flatten(0, -2), y.flatten())

    def step(self):
        loss = self.loss(self.x, self.y)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def infer(self, batch):
        if batch not in self.inference_inputs:
            self.inference_inputs[batch] = inputs(self.name, batch)
        with torch.inference_mode():
            return self.forward(self.inference_inputs[batch])

    def work(self, times, words):
        function = self.step if words[:1] != ["infer"] else lambda: self.infer(int(words[1]))
        return dict(ms=[milliseconds(function) for _ in range(times)], peak_bytes=peak_bytes())


def main():
    parser = argparse.ArgumentParser(description="Times one training step of a benchmark case in PyTorch.")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (needs a C++ compiler)")
    parser.add_argument("--fused", action="store_true", help="PyTorch's fused AdamW instead of its default")
    parser.add_argument("--serve", action="store_true", help="work on request, see above")
    parser.add_argument("--steps", type=int, default=10, help="timed steps without --serve")
    options = parser.parse_args()

    facts = dict(base_bytes=resident_bytes())
    trainer = Trainer(options.case, options.compile, options.fused)
    start = time.monotonic()
    facts["loss"] = trainer.step().item()  # before the first update: about log(classes)
    facts["first_step_at"] = time.monotonic()
    facts["first_step_ms"] = 1e3 * (facts["first_step_at"] - start)
    facts["parameters"] = sum(p.numel() for p in trainer.model.parameters())
    for _ in range(WARMUP_STEPS - 1):
        trainer.step()

    if options.serve:
        serve(facts, trainer.work)
    else:
        done = trainer.work(options.steps, [])
        say(median_ms=statistics.median(done["ms"]), min_ms=min(done["ms"]), peak_bytes=done["peak_bytes"], **facts)


if __name__ == "__main__":
    main()
