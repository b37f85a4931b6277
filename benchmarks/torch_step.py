#!/usr/bin/env python3
"""One training step of the benchmark cases in PyTorch: the other side of `benchmarks/step`.

A step is forward, loss, backward, clip_grad_norm 1.0 and AdamW, in f32, on data fixed before timing.
Both sides speak one line protocol, so that `benchmarks/compare` can run them alternately. With --serve:

    us   {"event": "ready", "first_step_ms": ..., "parameters": ..., "loss": ..., "threads": ...}
    in   go N                  (run N steps)
    us   {"ms": [...]}         (the time of each)
    in   end                   (or end of input)
    us   {"median_ms": ..., "min_ms": ..., "peak_bytes": ..., "first_step_ms": ..., "threads": ...}

Without --serve it runs --steps steps by itself and prints the last object only.
"""

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

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


def build(name):
    """The model of a case and its fixed random batch."""
    case = dict(CASES[name])
    batch, kind = case.pop("batch"), case.pop("model")
    if kind == "vit":
        x = torch.randn(batch, case["channels"], case["image"], case["image"])
        return Vit(**case), x, torch.randint(case["classes"], (batch,))
    tokens = torch.randint(case["vocab"], (batch, case["context"] + 1))
    return Gpt(**case), tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def peak_bytes():
    """The largest resident size of this process (VmHWM; getrusage would also count the parent before exec)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


class Trainer:
    def __init__(self, name, compiled, fused):
        torch.manual_seed(1)
        self.model, self.x, self.y = build(name)
        self.forward = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.1, fused=fused or None)
        self.times = []

    def step(self):
        logits = self.forward(self.x)
        loss = F.cross_entropy(logits.flatten(0, -2), self.y.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def timed_step(self):
        start = time.perf_counter()
        self.step()
        return 1e3 * (time.perf_counter() - start)

    def run(self, steps):
        times = [self.timed_step() for _ in range(steps)]
        self.times += times
        return times


def say(**fields):
    print(json.dumps(fields), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Times one training step of a benchmark case in PyTorch.")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (needs a C++ compiler)")
    parser.add_argument("--fused", action="store_true", help="PyTorch's fused AdamW instead of its default")
    parser.add_argument("--serve", action="store_true", help="run on request, see above")
    parser.add_argument("--steps", type=int, default=10, help="timed steps without --serve")
    options = parser.parse_args()

    trainer = Trainer(options.case, options.compile, options.fused)
    imported_bytes = peak_bytes()
    start = time.perf_counter()
    loss = trainer.step().item()  # the loss before the first update: about log(classes)
    first_step_ms = 1e3 * (time.perf_counter() - start)
    for _ in range(WARMUP_STEPS - 1):
        trainer.step()

    threads = torch.get_num_threads()
    if options.serve:
        say(event="ready", first_step_ms=first_step_ms, loss=loss, threads=threads, version=torch.__version__,
            parameters=sum(p.numel() for p in trainer.model.parameters()))
        for line in sys.stdin:
            words = line.split()
            if words[:1] != ["go"]:
                break
            say(ms=trainer.run(int(words[1])))
    else:
        trainer.run(options.steps)
    if trainer.times:
        say(median_ms=statistics.median(trainer.times), min_ms=min(trainer.times), peak_bytes=peak_bytes(),
            first_step_ms=first_step_ms, threads=threads, idle_bytes=imported_bytes)


if __name__ == "__main__":
    main()
