"""Outputs, loss and gradients of two modules at points: a's parameters as they stand, then drawn anew."""

import math
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call

from . import _isonorm
from ._models import arguments, draws, exact, floating, in_dtype, measured, naming, ours, rebuilt
from ._result import Power, Probe, Unmatched

PROBES = 8  # parameters that are perturbed, evenly spaced among all


class Ran(NamedTuple):
    """What one forward and backward of a module gave."""

    outputs: list  # measured()
    exact: list  # exact()
    loss: Any
    gradients: list
    state: dict  # buffers and frozen parameters after the pass, by name
    changed: set  # names of those that the pass changed


class Seen:
    """What the library asks a model that ran for (python/outside.h)."""

    def __init__(self, loss, tensors):
        self.loss, self.tensors = loss, tensors

    def differentiate(self):
        return self.loss, self.tensors


def shapes(leaves):
    return [list(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__ for x in leaves]


def same_exact(a, b, controls):
    """Whether b's leaves are a's, but for entries that rounding moves in the controls."""
    for x, y, *moved in zip(a, b, *controls):
        if any(q != p and all(m == p for m in others) for p, q, *others in zip(*map(entries, (x, y, *moved)))):
            return False
    return True


def entries(x):
    return x.flatten().tolist() if isinstance(x, torch.Tensor) else [x]


class Applied(nn.Module):
    """forward(f) is f(model)."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, f):
        return f(self.model)


def with_tensors(model, tensors, f):
    """f(model), where the model has these parameters and buffers until f ends: a backward pass that recomputes (checkpoint) needs
    them, too. Afterwards `tensors` holds what the model assigned."""
    given = {f"model.{n}": t for n, t in tensors.items()}
    made = functional_call(Applied(model), given, (f,))
    tensors.update((n, given[f"model.{n}"]) for n in tensors)
    return made


class Points:
    """a and b on the same batches. `mapping` gives b's parameters; None: b keeps its own, and a's are not drawn."""

    def __init__(self, a, b, mapping, loss, batches, controls, seed, dtype):
        self.a, self.b, self.mapping, self.loss, self.batches = a, b, mapping, loss, batches
        self.controls, self.seed, self.dtype = controls, seed, dtype
        self.own = {n: p.detach() for n, p in a.named_parameters()}
        self.own_b = {n: p.detach() for n, p in b.named_parameters()}

    def parameters(self, point):
        """a's at a point, counted from 1: at the first as they stand, then s (1/2 + z) / sqrt(5/4) with z standard normal and s the
        root mean square of the present ones (0.1 where that is 0)."""
        if point == 1 or self.mapping is None:
            return self.own
        generator = torch.Generator().manual_seed(self.seed * 1000 + point)
        drawn = {}
        for name, p in self.own.items():
            size = p.double().square().mean().sqrt().item() if p.numel() else 0
            scale = (size if size > 0 and math.isfinite(size) else 0.1) / math.sqrt(1.25)
            z = torch.randn(p.shape, generator=generator, dtype=torch.float64)
            drawn[name] = ((z + 0.5) * scale).to(p)
        return drawn

    def moved(self, parameters, batch, control):
        """Parameters, and where there are none the inputs, moved by one ulp."""

        def move(t, stream):
            moved = _isonorm.moved_by_one_ulp(ours(t), seed=control, stream=stream)
            return moved.torch().to(t.device)

        if parameters:
            return {n: move(p, k) for k, (n, p) in enumerate(parameters.items())}, batch
        return {}, rebuilt(batch, lambda t: move(t, 0) if t.is_floating_point() else t)

    def run(self, model, parameters, wrt, batch, seed):
        """The Ran of a module with these parameters: gradients by `wrt`, then by floating inputs.

        The module gets copies of inputs, buffers and frozen parameters, and the loss copies of targets: both may change
        them in place.
        """
        inputs, targets = self.loss.parts(batch)
        inputs = rebuilt(inputs, lambda t: t.detach().clone().requires_grad_(t.is_floating_point()))
        positional, named = arguments(rebuilt(inputs, torch.clone))
        frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
        before = {**dict(model.named_buffers()), **{n: p for n, p in parameters.items() if n in frozen}}
        state = {n: t.clone() for n, t in before.items()}
        leaves, who = [*wrt, *floating(inputs)], "a" if model is self.a else "b"

        def forward_and_backward(model):
            with naming(who, self.dtype, model):
                output = model(*positional, **named)
            outputs = in_dtype(measured(output), self.dtype)  # now: the loss may change them
            others = rebuilt(exact(output), torch.clone)
            loss = self.loss(output, rebuilt(targets, torch.clone), seed)
            if not (loss.requires_grad and leaves):
                return outputs, others, loss, [None] * len(leaves)
            with naming(f"the backward pass of {who}", self.dtype):
                return outputs, others, loss, torch.autograd.grad(loss, leaves, allow_unused=True)

        with draws(seed), torch.enable_grad():
            given = {**parameters, **state}
            outputs, others, loss, known = with_tensors(model, given, forward_and_backward)
        gradients = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, known)]
        changed = {n for n, t in before.items() if given[n].dtype != t.dtype or not torch.equal(given[n], t)}
        return Ran(outputs, others, loss, gradients, in_dtype({n: given[n] for n in before}, self.dtype), changed)

    def of_a(self, parameters, batch):
        leaves = {n: p.detach().clone().requires_grad_() for n, p in parameters.items()}
        wrt = list(leaves.values()) if self.mapping is not None else []
        return self.run(self.a, leaves, wrt, batch, self.seed)

    def of_b(self, parameters, batch):
        if self.mapping is None:
            return self.run(self.b, {n: p.clone().requires_grad_() for n, p in self.own_b.items()}, [], batch, self.seed)
        leaves = {n: p.detach().clone().requires_grad_() for n, p in parameters.items()}
        return self.run(self.b, self.mapping(leaves), list(leaves.values()), batch, self.seed)

    def names(self, batch):
        """Of what run() differentiates by."""
        count = len(floating(self.loss.parts(batch)[0]))
        inputs = [f"input[{i}]" if count > 1 else "input" for i in range(count)]
        return ([] if self.mapping is None else list(self.own)) + inputs

    @staticmethod
    def seen(ran, state=()):
        number, outputs = ran.loss.item(), [*ran.outputs, *(ran.state[n] for n in state)]
        return Seen(number, [ours(t) for t in outputs]), Seen(number, [ours(g) for g in ran.gradients])

    def controls_at(self, parameters, batch):
        return [self.of_a(*self.moved(parameters, batch, c)) for c in range(1, self.controls + 1)]

    def compare(self, points, told):
        """The library's Comparison, and the point at which the two differ (None if they do not)."""
        noted = _isonorm.Points(self.dtype, points)
        for point in range(1, points + 1):
            self.compare_at(point, noted)
            told(point)
            if noted.differs:
                return noted.found(), point
        return noted.found(), None

    def compare_at(self, point, noted):
        """Runs both modules and the controls at a point, and adds what they gave to `noted`."""
        batch, parameters = self.batches(point - 1), self.parameters(point)
        a, b = self.of_a(parameters, batch), self.of_b(parameters, batch)
        given, other = ([*shapes(ran.outputs), *shapes(ran.exact)] for ran in (a, b))
        if given != other:
            raise ValueError(f"compare: a gives tensors of shapes {given}, b of {other}")
        if not math.isfinite(a.loss.item()):
            raise ValueError(f"compare: the loss of a itself is {a.loss.item()} at point {point}")
        controls = self.controls_at(parameters, batch)
        if not same_exact(a.exact, b.exact, [c.exact for c in controls]):
            raise Unmatched(f"what the two give as whole numbers or words differs at point {point}")
        state = [n for n in a.state if n in a.changed | b.changed and n in b.state]
        for n in state:
            if a.state[n].shape != b.state[n].shape or not same_exact(
                exact(a.state[n]), exact(b.state[n]), [exact(c.state[n]) for c in controls]
            ):
                raise Unmatched(f"{n} differs after the pass of point {point}")
        state = [n for n in state if a.state[n].is_floating_point()]
        sides = [self.seen(ran, state) for ran in (a, b, *controls)]
        names = [f"output[{i}]" if len(a.outputs) > 1 else "output" for i in range(len(a.outputs))] + state
        noted.note(point, sides, self.names(batch), names)

    def probes(self):
        """At the first point, of parameters one by one: would the comparison have seen every other entry times 1 + size?"""
        size = _isonorm.largest_bound(self.dtype)
        batch, parameters = self.batches(0), self.parameters(1)
        reference = self.seen(self.of_a(parameters, batch))
        controls = [self.seen(ran) for ran in self.controls_at(parameters, batch)]
        outputs = [str(i) for i in range(len(reference[0].tensors))]
        names = [n for n, p in parameters.items() if p.numel() and p.abs().max() > 0]
        chosen = [names[i * len(names) // min(PROBES, len(names))] for i in range(min(PROBES, len(names)))]
        probes = []
        for name in chosen:
            changed = parameters[name].clone()
            changed.view(-1)[::2] *= 1 + size  # not all of them, which a norm behind it would take back
            other = self.seen(self.of_a({**parameters, name: changed}, batch))
            share = _isonorm.Points(self.dtype, 1).share([reference, other, *controls], self.names(batch), outputs)
            probes.append(Probe(name, size, share))
        return Power(probes)
