"""compare() on questions that people asked in public: two modules that should be one function, and are or are not. Each test names
the repository and the number of the issue or pull request; the answer there, or algebra, gives the verdict."""

import math
import unittest

import isonorm
from pairs import Swish, adamw, sgd

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TIME = 16, 2, 5
INPUTS = [torch.randn(2, TIME, WIDTH, generator=torch.Generator().manual_seed(i)) for i in range(3)]


class RMSNorm(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.weight, self._of = nn.Parameter(1 + 0.1 * torch.randn(WIDTH)), of

    def forward(self, x):
        return self._of(x, self.weight)


def root(x):
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class Block(nn.Module):
    """A residual branch behind a norm."""

    def __init__(self, norm):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.norm, self.last = nn.Linear(WIDTH, WIDTH), RMSNorm(norm), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = self.first(x)
        return x + self.last(self.norm(x))


class Inference(Block):
    def forward(self, x):
        with torch.no_grad():
            return super().forward(x)


class Rotary(nn.Module):
    """Causal attention with rotary positions, of neighbours or of halves; `complex_in_f32` as in Meta's program."""

    def __init__(self, halves, complex_in_f32=False):
        super().__init__()
        torch.manual_seed(1)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self._halves, self._complex_in_f32 = halves, complex_in_f32

    def rotated(self, x):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(TIME, dtype=torch.float64), rates)
        if self._complex_in_f32:
            pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        u, v = (x[..., :half], x[..., half:]) if self._halves else (x[..., ::2], x[..., 1::2])
        made = u * cos - v * sin, v * cos + u * sin
        return torch.cat(made, -1) if self._halves else torch.stack(made, -1).flatten(-2)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)


def permuted(w):
    """Rows of neighbours as rows of halves, as in convert_llama_weights_to_hf.py."""
    return w.view(HEADS, -1, 2, WIDTH).transpose(1, 2).reshape(WIDTH, WIDTH)


PERMUTED = {f"{n}.weight": lambda p, n=n: permuted(p[f"{n}.weight"]) for n in "qk"}


class Attention(nn.Module):
    """One head with a causal mask, True: `of` scores and values that are given, or left out."""

    def __init__(self, of):
        super().__init__()
        self.qkv, self._of = nn.Linear(WIDTH, 3 * WIDTH), of
        self.register_buffer("later", torch.ones(TIME, TIME, dtype=torch.bool).triu(1))

    def forward(self, x):
        return self._of(*self.qkv(x).chunk(3, -1), self.later)


class Loss(nn.Module):
    """A cross entropy over micro-batches of which some targets are ignored."""

    def __init__(self, of):
        super().__init__()
        torch.manual_seed(1)
        self.head, self._of = nn.Linear(WIDTH, 7), of

    def forward(self, x, targets):
        return self._of([F.cross_entropy(y, t, reduction="sum") for y, t in zip(self.head(x), targets)], (targets >= 0).sum(-1))


class Public(unittest.TestCase):
    def compare(self, a, b, **more):
        return isonorm.compare(a, b, **{"batches": INPUTS, "carry": True, **more})

    def same(self, a, b, **more):
        r = self.compare(a, b, **more)
        self.assertEqual(r.verdict, "equivalent", r)

    def different(self, a, b, said="", **more):
        r = self.compare(a, b, **more)
        self.assertEqual(r.verdict, "different", r)
        self.assertIn(said, r.likely_cause or "")
        return r

    def test_rotary_positions(self):
        """pytorch/torchtitan 335, huggingface/transformers 25199, 33826: halves need permuted weights, and then are the same."""
        self.same(Rotary(False), Rotary(True), map=PERMUTED, optimizer=adamw)
        self.assertGreater(self.different(Rotary(False), Rotary(True)).deviation, 1e-3)
        meta = Rotary(False, complex_in_f32=True)
        self.different(meta, Rotary(True), "a (Rotary) computes in f32, and without that the two agree", map=PERMUTED, dtype="f64")
        self.same(meta, Rotary(True), map=PERMUTED)

    def test_gelu(self):
        """deepspeedai/Megatron-DeepSpeed 84: x outside of the cube is the same; the constant of 8 digits is not, but in f32."""

        class Fused(nn.Module):
            def __init__(self, constant):
                super().__init__()
                self._constant = constant

            def forward(self, x):
                return x * 0.5 * (1.0 + torch.tanh(self._constant * x * (1 + 0.044715 * x * x)))

        self.same(nn.GELU("tanh"), Fused(math.sqrt(2 / math.pi)))
        r = self.different(nn.GELU("tanh"), Fused(0.79788456))  # off by 1e-9
        self.assertLess(r.deviation, 1e-8)
        self.same(nn.GELU("tanh"), Fused(0.79788456), dtype="f32")

    def test_quick_gelu(self):
        """huggingface/pytorch-image-models 1754, mindspore-lab/mindone 225"""

        class Quick(Swish):
            def forward(self, x):
                return super().forward(1.702 * x) / 1.702

        def mlp(act):
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(WIDTH, 32), act, nn.Linear(32, WIDTH))

        self.assertEqual(self.different(mlp(nn.GELU()), mlp(Quick())).first_difference.tensor, "1")

    def test_norms(self):
        """linkedin/Liger-Kernel 74, allenai/OLMo 281, mosaicml/llm-foundry 371"""
        right = Block(lambda x, w: x * root(x) * w)
        self.different(right, Block(lambda x, w: x * root(x) * (1 + w)), "b by the gain + 1")
        outside = Block(lambda x, w: x / (x.norm(2, -1, keepdim=True) * WIDTH**-0.5 + 1e-6) * w)
        self.assertEqual(self.different(right, outside).first_difference.tensor, "norm")
        self.assertEqual(self.different(right, Block(lambda x, w: x / root(x) * w)).first_difference.tensor, "norm")

    def test_a_norm_in_place(self):
        """GeeeekExplorer/nano-vllm 170: in f32 x.float() is x itself, and the residual stream gets the normed rows."""

        def nano(x, w):
            y = x.float()
            return y.mul_(root(y)).to(x.dtype).mul_(w)

        right, wrong = Inference(lambda x, w: x * root(x) * w), Inference(nano)
        r = self.different(right, wrong, "norm of b (RMSNorm) computes in f32, and without that the two agree", dtype="f64")
        self.assertLess(r.deviation, 1e-5)
        self.assertGreater(self.different(right, wrong).deviation, 0.01)

    def test_casts_before_and_after_the_gain(self):
        """huggingface/transformers 29402, vllm-project/vllm 42325"""
        after = Block(lambda x, w: (x * root(x) * w).bfloat16().to(x.dtype))
        before = Block(lambda x, w: ((x * root(x)).bfloat16() * w.bfloat16()).to(x.dtype))
        said = "norm of a (RMSNorm) and norm of b (RMSNorm) compute in bf16, and without that the two agree"
        self.different(after, before, said)

    def test_masks(self):
        """rasbt/LLMs-from-scratch 1061, pytorch/pytorch 170400: True in the mask of scaled_dot_product_attention is what is seen."""

        def by_hand(q, k, v, later):
            return torch.softmax((q @ k.mT / WIDTH**0.5).masked_fill(later, -torch.inf), -1) @ v

        right = Attention(lambda q, k, v, later: F.scaled_dot_product_attention(q, k, v, ~later))
        self.same(Attention(by_hand), right, optimizer=sgd)
        self.different(Attention(by_hand), Attention(F.scaled_dot_product_attention))

    def test_conv1d(self):
        """huggingface/transformers 311, AutoGPTQ/AutoGPTQ 139: weights of GPT-2 are transposed."""

        class Conv1D(nn.Module):
            def __init__(self, outputs):
                super().__init__()
                self.weight, self.bias = nn.Parameter(torch.randn(WIDTH, outputs)), nn.Parameter(torch.randn(outputs))

            def forward(self, x):
                return x @ self.weight + self.bias

        transposed = {"weight": lambda p: p["weight"].T}
        self.same(Conv1D(24), nn.Linear(WIDTH, 24), map=transposed, optimizer=adamw)
        self.different(Conv1D(WIDTH), nn.Linear(WIDTH, WIDTH))

    def test_folded_batch_norm(self):
        """open-mmlab/mmcv 747: the same in eval(), to rounding; not in training."""
        torch.manual_seed(1)
        a = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)).eval()
        with torch.no_grad():
            a[1].running_mean.normal_(), a[1].running_var.uniform_(0.5, 2)

        def folded(p):
            gain = p["1.weight"] / torch.sqrt(a[1].running_var.double() + a[1].eps)
            bias = (p["0.bias"] - a[1].running_mean.double()) * gain + p["1.bias"]
            return {"weight": p["0.weight"] * gain[:, None, None, None], "bias": bias}

        images = [torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(i)) for i in range(2)]
        self.same(a, nn.Conv2d(3, 8, 3, padding=1), map=folded, batches=images)
        self.different(a.train(), nn.Conv2d(3, 8, 3, padding=1), "in eval() the two agree", map=folded, batches=images)

    def test_accumulated_losses(self):
        """meta-pytorch/torchtune 1875: a mean of means is not the mean, if counts of targets differ."""
        targets = torch.tensor([[1, 2, 3, -100, -100], [0, 1, 2, 3, 4]])
        more = {"batches": [((x, targets), None) for x in INPUTS], "loss": lambda y, _: y}
        whole = Loss(lambda sums, counts: sum(sums) / counts.sum())
        parts = Loss(lambda sums, counts: sum(s * n / n for s, n in zip(sums, counts)) / counts.sum())
        self.same(whole, parts, optimizer=adamw, **more)
        self.different(whole, Loss(lambda sums, counts: sum(s / n for s, n in zip(sums, counts)) / len(sums)), **more)


if __name__ == "__main__":
    unittest.main()
