#!/usr/bin/env python3
"""The benchmark cases in PyTorch: the other side of `benchmarks/step`.

A training step is forward, loss, backward, clip_grad_norm 1.0 and AdamW, on data fixed before timing; inference is the
forward pass in inference mode. On a device in bf16 by autocast over f32 parameters, or with --pure in bf16 throughout. With --serve it does the works "train" and "infer BATCH" on request
(benchmarks/serve.h has the protocol); without it runs --steps training steps by itself. --deterministic asks PyTorch for the same
bits in every run, as ours has by default.
"""

import argparse
import contextlib
import os
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

from torch_serve import device_bytes, milliseconds, peak_bytes, resident_bytes, say, serve

CASES = {
    "vit_fmnist": dict(model="vit", image=28, channels=1, patch=4, width=128, heads=4, depth=6, classes=10, batch=128),
    "vit_tiny": dict(model="vit", image=224, channels=3, patch=16, width=192, heads=3, depth=12, classes=1000, batch=8),
    "gpt_small": dict(model="gpt", vocab=8192, context=256, width=384, heads=6, depth=6, batch=8),
    "vit_base": dict(model="vit", image=224, channels=3, patch=16, width=768, heads=12, depth=12, classes=1000, batch=2),
    "gpt2": dict(model="gpt", vocab=50304, context=1024, width=768, heads=12, depth=12, batch=32),
    "gpt2_short": dict(model="gpt", vocab=50304, context=256, width=768, heads=12, depth=12, batch=1),
    "gpt_smoke": dict(model="gpt", vocab=32, context=8, width=16, heads=2, depth=1, batch=2),
    "vit_smoke": dict(model="vit", image=8, channels=1, patch=4, width=16, heads=2, depth=1, classes=10, batch=2),
}
DTYPES = dict(f32=torch.float32, f64=torch.float64, bf16=torch.bfloat16)


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
    def __init__(self, width, heads, causal, gelu):
        super().__init__()
        self.gelu = "tanh" if gelu == "tanh" else "none"  # F.gelu's name
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, causal)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate=self.gelu))


class Vit(nn.Module):
    """Patches -> linear -> + positions, class token in front, pre-norm blocks, norm, head on the class row."""

    def __init__(self, image, channels, patch, width, heads, depth, classes, gelu):
        super().__init__()
        self.patch = patch
        self.patch_proj = nn.Linear(patch * patch * channels, width)
        self.position = nn.Parameter(0.02 * torch.randn((image // patch) ** 2, width))
        self.cls = nn.Parameter(0.02 * torch.randn(width))
        self.blocks = nn.ModuleList(Block(width, heads, causal=False, gelu=gelu) for _ in range(depth))
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

    def __init__(self, vocab, context, width, heads, depth, gelu):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(context, width)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True, gelu=gelu) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token.weight)


def inputs(case, batch):
    if case["model"] == "vit":
        return torch.randn(batch, case["channels"], case["image"], case["image"])
    return torch.randint(case["vocab"], (batch, case["context"]))


class Trainer:
    def __init__(self, name, compiled=False, fused=False, device="cpu", dtype="f32", pure=False, mode=None, gelu="erf",
                 **sizes):
        """sizes: batch, context and depth, where other than the case has (None: as it has)."""
        torch.manual_seed(1)
        self.device, self.case = device, CASES[name] | {k: v for k, v in sizes.items() if v}
        case = dict(self.case, gelu=gelu)
        # f32 parameters with products in bf16, as is usual in PyTorch; or everything in one dtype.
        self.autocast = dtype == "bf16" and not pure
        self.dtype = torch.float32 if self.autocast else DTYPES[dtype]
        batch, vit = case.pop("batch"), case.pop("model") == "vit"
        self.model = (Vit(**case) if vit else Gpt(**case)).to(device, self.dtype)
        self.x = self.inputs(batch)
        self.y = (torch.randint(case["classes"], (batch,)) if vit else torch.randint(case["vocab"], self.x.shape)).to(device)
        # Compiles each batch size separately: dynamic shapes would be slower. The loss is compiled, too.
        compile_ = (lambda f: torch.compile(f, dynamic=False, mode=mode)) if compiled else (lambda f: f)
        self.forward, self.loss = compile_(self.model), compile_(self.loss_of)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.1, fused=fused or None)
        self.inference_inputs = {}

    def inputs(self, batch):
        x = inputs(self.case, batch).to(self.device)
        return x.to(self.dtype) if x.is_floating_point() else x

    def context(self):
        if not self.autocast:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, torch.bfloat16)

    def loss_of(self, x, y):
        return F.cross_entropy(self.model(x).flatten(0, -2), y.flatten())

    def step(self):
        with self.context():
            loss = self.loss(self.x, self.y)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def infer(self, batch):
        if batch not in self.inference_inputs:
            self.inference_inputs[batch] = self.inputs(batch)
        with torch.inference_mode(), self.context():
            return self.forward(self.inference_inputs[batch])

    def work(self, times, words):
        function = self.step if words[:1] != ["infer"] else lambda: self.infer(int(words[1]))
        return dict(ms=[milliseconds(function, self.device) for _ in range(times)], peak_bytes=peak_bytes(),
                    peak_tensor_bytes=device_bytes(self.device))


def be_deterministic():
    """For every op, including scaled_dot_product_attention's backward and cuBLAS; call it before the first op."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # PyTorch refuses deterministic products without it
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # helps to find mistakes, but costs time


def main():
    parser = argparse.ArgumentParser(description="Times one training step of a benchmark case in PyTorch.")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (needs a C++ compiler)")
    parser.add_argument("--mode", help="of torch.compile: reduce-overhead, max-autotune, ...")
    parser.add_argument("--batch", type=int, help="samples of a training step, other than the case has")
    parser.add_argument("--context", type=int, help="tokens of a GPT's sample, other than the case has")
    parser.add_argument("--depth", type=int, help="blocks, other than the case has")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--pure", action="store_true", help="bf16 throughout, parameters too, in place of autocast")
    parser.add_argument("--fused", action="store_true", help="PyTorch's fused AdamW instead of its default")
    parser.add_argument("--gelu", choices=["erf", "tanh"], default="erf", help="the exact one, or GPT-2's own")
    parser.add_argument("--deterministic", action="store_true", help="the same bits in every run; an op that cannot is an error")
    parser.add_argument("--serve", action="store_true", help="work on request, see above")
    parser.add_argument("--warmup", type=int, default=3, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=10, help="timed steps without --serve")
    options = parser.parse_args()

    facts = dict(base_bytes=resident_bytes())
    if options.device != "cpu" and not torch.cuda.is_available():
        parser.exit(3, f"torch_step.py: --device {options.device}: PyTorch {torch.__version__} sees no device\n")
    if options.deterministic:
        be_deterministic()
    trainer = Trainer(options.case, options.compile, options.fused, options.device, options.dtype, options.pure, options.mode,
                      options.gelu, batch=options.batch, context=options.context, depth=options.depth)
    start = time.monotonic()
    facts["loss"] = trainer.step().item()  # before the first update: about log(classes)
    facts["first_step_at"] = time.monotonic()
    facts["first_step_ms"] = 1e3 * (facts["first_step_at"] - start)
    facts["parameters"] = sum(p.numel() for p in trainer.model.parameters())
    for _ in range(options.warmup - 1):
        trainer.step()

    if options.serve:
        serve(facts, trainer.work)
    else:
        done = trainer.work(options.steps, [])
        say(median_ms=statistics.median(done["ms"]), min_ms=min(done["ms"]), peak_bytes=done["peak_bytes"], **facts)


if __name__ == "__main__":
    main()
