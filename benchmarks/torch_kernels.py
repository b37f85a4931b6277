#!/usr/bin/env python3
"""Single ops in PyTorch: the other side of `benchmarks/kernels`, with its sizes, inputs and cotangents.

Speaks the protocol of benchmarks/serve.h; the works are "OP ROWS WIDTH". With --compile the forward function of an op
goes through torch.compile, and AdamW is PyTorch's fused one.
"""

import argparse
import time

import torch
from torch.nn import functional as F

from torch_serve import milliseconds, serve


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


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


def layer_norm(rows, width):
    return (leaf(rows, width), leaf(width), leaf(width)), lambda x, gain, bias: (F.layer_norm(x, (width,), gain, bias),)


def rms_norm(rows, width):
    return (leaf(rows, width), leaf(width)), lambda x, gain: (F.rms_norm(x, (width,), gain, eps=1e-5),)


def softmax(rows, width):
    return (leaf(rows, width),), lambda x: (F.softmax(x, -1),)


def gelu(rows, width):
    return (leaf(rows, width),), lambda x: (F.gelu(x),)


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
    target = torch.randint(width, (rows,))
    return (leaf(rows, width),), lambda x: (F.cross_entropy(x, target),)


def chain(length, width):
    step = torch.randn(width)

    def forward(x):
        for _ in range(length):
            x = x + step
        return (x,)
    return (leaf(width),), forward


OPS = {
    "add_norm_layer": add_norm(F.layer_norm, True), "add_norm_rms": add_norm(F.rms_norm, False), "layer_norm": layer_norm,
    "rms_norm": rms_norm, "softmax": softmax, "gelu": gelu, "cross_entropy": cross_entropy, "mlp": mlp,
    "attention": attention, "chain": chain,
}


class Differentiable:
    def __init__(self, inputs, forward, compiled):
        self.inputs = inputs
        self.forward = torch.compile(forward, dynamic=False) if compiled else forward
        self.cotangents = [torch.randn_like(y) for y in forward(*inputs)]

    def __call__(self):
        start = time.perf_counter()
        outputs = self.forward(*self.inputs)
        middle = time.perf_counter()
        gradients = torch.autograd.grad(outputs, self.inputs, self.cotangents)
        end = time.perf_counter()
        del outputs, gradients  # not timed, as on our side
        return 1e3 * (middle - start), 1e3 * (end - middle)


class AdamW:
    def __init__(self, layers, width, fused):
        parameters = [leaf(*shape) for _ in range(layers) for shape in ((width, width), (width,))]
        for p in parameters:
            p.grad = torch.randn_like(p)
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=fused or None)

    def __call__(self):
        return milliseconds(self.optimizer.step), 0.0


class Works:
    def __init__(self, compiled):
        self.compiled, self.made = compiled, {}

    def run(self, op, rows, width):
        if (op, rows, width) not in self.made:
            made = (AdamW(rows, width, self.compiled) if op == "adamw"
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
    options = parser.parse_args()
    torch.manual_seed(1)
    serve({}, Works(options.compile))


if __name__ == "__main__":
    main()
