#!/usr/bin/env python3
"""Single ops in PyTorch: the other side of `benchmarks/kernels`, with its sizes, inputs and cotangents.

Speaks the protocol of benchmarks/serve.h; the works are "OP ROWS WIDTH". With --compile the forward function of an op
goes through torch.compile, and AdamW is PyTorch's fused one.
"""

import argparse

import torch
from torch.nn import functional as F

from torch_serve import milliseconds, serve, wait

DTYPES = dict(f32=torch.float32, f64=torch.float64, bf16=torch.bfloat16)


LIKE = dict(device="cpu", dtype=torch.float32)  # options of every tensor; main() sets them
QUEUED = 8  # runs queued on a device before a wait, as in our program


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True, **LIKE)


def each_of(function):
    """Milliseconds per run, and the results: of several runs on a device, of a single run on the CPU."""
    times = 1 if LIKE["device"] == "cpu" else QUEUED
    wait(LIKE["device"])
    results = []
    ms = milliseconds(lambda: results.extend(function(i) for i in range(times)), LIKE["device"])
    return ms / times, results


def add_norm(norm, with_bias):
    def make(rows, width):
        x, branch, gain = leaf(rows, width), leaf(rows, width), leaf(width)
        if not with_bias:
            def rms(x, branch, gain):
                total = x + branch
                return total, norm(total, (width,), gain, eps=1e-5)
            return (x, branch, gain), rms

        def layer(x, branch, gain, bias):
            total = x + branch
            return total, norm(total, (width,), gain, bias, eps=1e-5)
        return (x, branch, gain, leaf(width)), layer
    return make


def mlp(rows, width):
    inputs = leaf(rows, width), leaf(4 * width, width), leaf(4 * width), leaf(width, 4 * width), leaf(width)
    return inputs, lambda x, w1, b1, w2, b2: (F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2),)


def attention(batch, length):
    """Packed queries, keys and values of 4 heads of 64."""
    def forward(qkv):
        q, k, v = qkv.view(batch, length, 3, 4, 64).permute(2, 0, 3, 1, 4)
        return (F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, 256),)
    return (leaf(batch, length, 3 * 256),), forward


def cross_entropy(rows, width):
    target = torch.randint(width, (rows,), device=LIKE["device"])
    return (leaf(rows, width),), lambda x: (F.cross_entropy(x, target),)


def chain(length, width):
    step = torch.randn(width, **LIKE)

    def forward(x):
        for _ in range(length):
            x = x + step
        return (x,)
    return (leaf(width),), forward


def images(count, channels, side=16):
    """Channels last in memory, as ours."""
    return torch.randn(count, side, side, channels, **LIKE).permute(0, 3, 1, 2).detach().requires_grad_()


def conv2d(side, stride=1, colours=None):
    def make(count, channels):
        x = images(count, colours or channels, side).requires_grad_(not colours)
        weight = leaf(channels, x.shape[1], 3, 3).detach().to(memory_format=torch.channels_last).requires_grad_()
        return (x, weight, leaf(channels)), lambda x, w, b: (F.conv2d(x, w, b, stride, padding=1),)
    return make


def gru_step(batch, hidden):
    def forward(a, u, h):
        (a_r, a_z, a_n), (u_r, u_z, u_n) = a.chunk(3, -1), u.chunk(3, -1)
        n = torch.tanh(a_n + torch.sigmoid(a_r + u_r) * u_n)
        return (n + torch.sigmoid(a_z + u_z) * (h - n),)
    return (leaf(batch, 3 * hidden), leaf(batch, 3 * hidden), leaf(batch, hidden)), forward


def lstm_step(batch, hidden):
    def forward(a, u, c):
        i, f, g, o = (a + u).chunk(4, -1)
        cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell
    return (leaf(batch, 4 * hidden), leaf(batch, 4 * hidden), leaf(batch, hidden)), forward


class Copy:
    def __init__(self, rows, width):
        self.source = leaf(rows, width).detach()
        self.target = torch.empty_like(self.source)

    def __call__(self):
        return each_of(lambda _: self.target.copy_(self.source))[0], 0.0


OPS = {  # name -> (rows, width) -> (inputs, forward)
    "add_norm_layer": add_norm(F.layer_norm, True), "add_norm_rms": add_norm(F.rms_norm, False),
    "layer_norm": lambda rows, width: ((leaf(rows, width), leaf(width), leaf(width)), lambda x, gain, bias: (F.layer_norm(x, (width,), gain, bias),)),
    "rms_norm": lambda rows, width: ((leaf(rows, width), leaf(width)), lambda x, gain: (F.rms_norm(x, (width,), gain, eps=1e-5),)),
    "softmax": lambda rows, width: ((leaf(rows, width),), lambda x: (F.softmax(x, -1),)),
    "gelu": lambda rows, width: ((leaf(rows, width),), lambda x: (F.gelu(x),)),
    "linear": lambda rows, width: ((leaf(rows, width), leaf(width, width), leaf(width)), lambda x, w, b: (F.linear(x, w, b),)),
    "cross_entropy": cross_entropy, "mlp": mlp, "attention": attention, "chain": chain, "gru_step": gru_step, "lstm_step": lstm_step,
    "conv2d": conv2d(16), "conv2d_rgb": conv2d(32, colours=3), "conv2d_large": conv2d(32), "conv2d_stride2": conv2d(32, stride=2),
    "max_pool2d": lambda count, channels: ((images(count, channels),), lambda x: (F.max_pool2d(x, 2),)),
}


class Differentiable:
    def __init__(self, inputs, forward, compiled):
        self.inputs = inputs
        self.forward = torch.compile(forward, dynamic=False) if compiled else forward
        self.cotangents = [torch.randn_like(y) for y in forward(*inputs)]

    def __call__(self):
        forward, outputs = each_of(lambda _: self.forward(*self.inputs))
        wanted = [x for x in self.inputs if x.requires_grad]
        backward, gradients = each_of(lambda i: torch.autograd.grad(outputs[i], wanted, self.cotangents))
        del outputs, gradients  # not timed, as in our program
        return forward, backward


class AdamW:
    def __init__(self, layers, width, fused):
        parameters = [leaf(*shape) for _ in range(layers) for shape in ((width, width), (width,))]
        for p in parameters:
            p.grad = torch.randn_like(p)
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=fused or None)

    def __call__(self):
        return each_of(lambda _: self.optimizer.step())[0], 0.0


class Works:
    def __init__(self, compiled):
        self.compiled, self.made = compiled, {}

    def run(self, op, rows, width):
        if (op, rows, width) not in self.made:
            made = (AdamW(rows, width, self.compiled) if op == "adamw" else Copy(rows, width) if op == "memcpy"
                    else Differentiable(*OPS[op](rows, width), self.compiled))
            self.made[op, rows, width] = made
        return self.made[op, rows, width]

    def __call__(self, times, words):
        run = self.run(words[0], int(words[1]), int(words[2]))
        forward, backward = zip(*(run() for _ in range(times)))
        return dict(ms=[f + b for f, b in zip(forward, backward)], forward_ms=forward, backward_ms=backward)


def main():
    parser = argparse.ArgumentParser(description="Times single ops in PyTorch on request.")
    parser.add_argument("--compile", action="store_true", help="torch.compile the ops; PyTorch's fused AdamW")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    options = parser.parse_args()
    if options.device != "cpu" and not torch.cuda.is_available():
        parser.exit(3, f"torch_kernels.py: --device {options.device}: PyTorch {torch.__version__} sees no device\n")
    LIKE.update(device=options.device, dtype=DTYPES[options.dtype])
    torch.manual_seed(1)
    serve({}, Works(options.compile))


if __name__ == "__main__":
    main()
