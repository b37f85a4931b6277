"""Outputs, loss and gradients of two modules at points: a's present parameters, then random ones."""

import contextlib
import math
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call

from . import _isonorm
from ._calls import check_copied
from ._entries import finite, kinds, same_exact, shapes
from ._maps import pulled_back
from ._models import COMPARED, arguments, dense, draws, exact, floating, in_dtype, measured, named_leaves, naming, ours, rebuilt
from ._result import NotFinite, Probe, Undecided, Unmatched
from ._rounding import Autocasts, MovedResults

PROBES = 8  # parameters to perturb, evenly spaced among all


class Ran(NamedTuple):
    """The results of one forward and backward of a module."""

    names: list  # of the outputs that follow
    outputs: list  # measured()
    exact: list  # exact()
    left_out: dict  # {name: class} of outputs that are neither
    loss: Any
    gradients: list
    state: dict  # buffers and frozen parameters after the pass, by name
    changed: set  # names of the state that the pass changed


class Seen:
    """The interface of a model that has run to the library (python/outside.cpp)."""

    def __init__(self, loss, tensors):
        self.loss, self.tensors = loss, tensors

    def differentiate(self):
        return self.loss, self.tensors


def tracked(tensors):
    """Copies that take gradients."""
    return {n: t.detach().clone().requires_grad_() for n, t in tensors.items()}


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
    """a and b on the same batches. `mapping` gives b's parameters; None: b keeps its own, and a's are not drawn. originals: {id of a
    parameter of the user's modules: its name}."""

    def __init__(self, a, b, mapping, loss, batches, controls, seed, dtype, originals=()):
        self.a, self.b, self.mapping, self.loss, self.batches = a, b, mapping, loss, batches
        self.controls, self.seed, self.dtype = controls, seed, dtype
        self.moves_results = True
        self.originals = originals
        self.autocasts = ["", ""]  # dtypes to which torch.autocast would cast in a and in b
        #: {name: reason} of everything that a comparison leaves out
        self.not_compared = {}
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
            size = p.abs().double().square().mean().sqrt().item() if p.numel() else 0
            scale = (size if size > 0 and math.isfinite(size) else 0.1) / math.sqrt(1.25)
            z = torch.randn(p.shape, generator=generator, dtype=torch.complex128 if p.is_complex() else torch.float64)
            drawn[name] = ((z + 0.5) * scale).to(p)
        return drawn

    @staticmethod
    def moved(parameters, control):
        """Parameters moved by one ulp."""
        moved = {}
        for stream, (name, p) in enumerate(parameters.items()):
            t = _isonorm.moved_by_one_ulp(ours(p), seed=control, stream=stream).torch().to(p.device)
            moved[name] = torch.view_as_complex(t) if p.is_complex() else t
        return moved

    def run(self, model, parameters, wrt, batch, rounding=contextlib.nullcontext()):
        """The Ran of a module with these parameters: gradients by `wrt`, then by floating inputs. rounding: a mode of torch in which
        module and loss run.

        The module gets copies of inputs, buffers and frozen parameters, and the loss copies of targets: both may change
        them in place.
        """
        inputs, targets = self.loss.parts(batch)
        inputs = rebuilt(inputs, lambda t: t.detach().clone().requires_grad_(t.is_floating_point()))
        frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
        before = {**dict(model.named_buffers()), **{n: p for n, p in parameters.items() if n in frozen}}
        state = {n: t.clone() for n, t in before.items()}
        leaves, who = [*wrt, *floating(inputs)], "a" if model is self.a else "b"

        def forward_and_backward(model):
            with rounding:
                positional, named = arguments(rebuilt(inputs, torch.clone))
                with naming(who, self.dtype, model):
                    output = model(*positional, **named)
                found = self.loss.leaves(output)
                outputs = in_dtype({n: t for n, v in found.items() for t in measured(v)}, self.dtype)  # the loss may change them
                others = rebuilt(exact(list(found.values())), torch.clone)
                left_out = {n: type(v).__name__ for n, v in named_leaves(output).items() if not isinstance(v, (*COMPARED, type(None)))}
                loss = self.loss(output, rebuilt(targets, torch.clone), self.seed)
            check_copied(who, loss, self.originals)
            if loss.requires_grad and leaves:
                with naming(f"the backward pass of {who}", self.dtype):
                    loss.backward()  # grad() would refuse a reentrant checkpoint
            return list(outputs), list(outputs.values()), others, left_out, loss.detach()  # the graph would hold copies

        with draws(self.seed, self.dtype), torch.enable_grad():
            given = {**parameters, **state}
            found = with_tensors(model, given, forward_and_backward)
        gradients = [torch.zeros_like(x) if x.grad is None else dense(x.grad) for x in leaves]
        changed = {n for n, t in before.items() if given[n].dtype != t.dtype or not torch.equal(given[n], t)}
        return Ran(*found, gradients, in_dtype({n: given[n] for n in before}, self.dtype), changed)

    def of_a(self, parameters, batch, rounding=contextlib.nullcontext(), own=False):
        """own: whether the parameters are this run's own, which it may change."""
        leaves = parameters if own else tracked(parameters)
        return self.run(self.a, leaves, list(leaves.values()) if self.mapping is not None else [], batch, rounding)

    def of_b(self, parameters, batch):
        """Its gradients are in a's coordinates."""
        if self.mapping is None:
            return self.run(self.b, tracked(self.own_b), [], batch)
        leaves = tracked(parameters)
        made = self.mapping(leaves)
        own = tracked(made)  # a reentrant checkpoint ends at them, not in the map
        ran = self.run(self.b, own, list(own.values()), batch)
        of_own, of_inputs = ran.gradients[: len(own)], ran.gradients[len(own) :]
        return ran._replace(gradients=[*pulled_back(leaves, made, dict(zip(own, of_own))).values(), *of_inputs])

    def names(self, batch):
        """Of what run() differentiates by."""
        count = len(floating(self.loss.parts(batch)[0]))
        inputs = [f"input[{i}]" if count > 1 else "input" for i in range(count)]
        return ([] if self.mapping is None else list(self.own)) + inputs

    @staticmethod
    def seen(ran, reference, state=()):
        """Its outputs and these buffers, and its gradients, as the library compares them with the reference's."""
        number = ran.loss.item()
        outputs = [finite(t, r) for t, r in zip(ran.outputs, reference.outputs)]
        outputs += [finite(ran.state[n], reference.state[n]) for n in state]
        gradients = [finite(g, r) for g, r in zip(ran.gradients, reference.gradients)]
        return Seen(number, [ours(t) for t in outputs]), Seen(number, [ours(g) for g in gradients])

    def control(self, parameters, batch, number):
        """a with parameters and each result of an operation moved by one ulp."""
        moved = {n: p.requires_grad_() for n, p in self.moved(parameters, number).items()}
        try:
            return self.of_a(moved, batch, self.rounding(number), own=True)
        except (RuntimeError, ValueError):  # operations that do not support TorchDispatchMode
            self.moves_results = False
            return self.of_a(self.moved(parameters, number), batch)

    def rounding(self, seed):
        """A mode that moves each result by one ulp, if torch knows all of them; it can be entered once."""
        return MovedResults(seed, self.dtype) if self.moves_results else contextlib.nullcontext()

    def controls_at(self, a, parameters, batch):
        """The controls of this run of a."""

        def stays_finite(ran):
            pairs = zip([a.loss, *a.outputs, *a.gradients], [ran.loss, *ran.outputs, *ran.gradients])
            return all((y.isfinite() | ~x.isfinite()).all() for x, y in pairs)

        def control(number):
            ran = self.control(parameters, batch, number)
            if self.moves_results and not stays_finite(ran):  # such as the root of a difference that was 0
                self.moves_results = False
                ran = self.control(parameters, batch, number)
            return ran

        return [control(c) for c in range(1, self.controls + 1)]

    def compare(self, points, told):
        """The library's Comparison, and the point at which the two differ (None if they do not)."""
        noted = _isonorm.Points(self.dtype, points)
        for point in range(1, points + 1):
            self.compare_at(point, noted)
            told(point)
            if noted.differs:
                return noted.judgement(), point
        return noted.judgement(), None

    def compare_at(self, point, noted):
        """Runs both modules and the controls at a point, and adds their results to `noted`."""
        batch, parameters = self.batches(point - 1), self.parameters(point)
        casts = [Autocasts() if point == 1 else contextlib.nullcontext() for _ in "ab"]
        with casts[0]:
            a = self.of_a(parameters, batch)
        with casts[1]:
            b = self.of_b(parameters, batch)
        given, other = ([*shapes(ran.outputs), *shapes(ran.exact)] for ran in (a, b))
        if given != other:
            raise ValueError(f"compare: a gives tensors of shapes {given}, b of {other}")
        if point == 1:
            self.autocasts = [c.spoken() for c in casts]
            self.check_repeatable(a, self.of_a(parameters, batch))
        drawn = ", whose parameters are drawn: points=1 compares at the present ones alone" if point > 1 else ""
        if not math.isfinite(a.loss.item()):
            refused = Undecided if drawn else NotFinite
            raise refused(f"compare: the loss of a itself is {a.loss.item()} at point {point}{drawn}")
        names = self.names(batch)
        for name, g in zip(self.own if self.mapping is not None else (), a.gradients):
            if not g.isfinite().all():
                raise Undecided(f"a's gradient of {name} is not finite at point {point}{drawn}")
        controls = self.controls_at(a, parameters, batch)
        if not same_exact(a.exact, b.exact, [c.exact for c in controls]):
            raise Unmatched(f"whole numbers or words in the outputs differ at point {point}", "output", point)
        sides, state = self.with_paired_state(a, b, controls)
        differing = []  # integer buffers
        for n in state:
            x, y, *moved = (ran.state[n] for ran in sides)
            other = Unmatched(f"{n} differs after the pass of point {point}", n, point)
            if x.shape != y.shape or len(exact(x)) != len(exact(y)):
                raise other
            differing += [] if same_exact(exact(x), exact(y), map(exact, moved)) else [other]
        state = [n for n in state if measured(a.state[n])]
        compared = [
            [*zip(a.names + state + names, [*ran.outputs, *(ran.state[n] for n in state), *ran.gradients])] for ran in sides
        ]
        for (name, x), (_, y), *moved in zip(*compared):
            if not x.isfinite().all() and not same_exact([kinds(x)], [kinds(y)], [[kinds(m)] for _, m in moved]):
                raise Unmatched(f"{name} has NaN or infinities at other places at point {point}", name, point)
        self.not_compared.update(a.left_out)
        self.not_compared.update({f"{n} of b": kind for n, kind in b.left_out.items() if a.left_out.get(n) != kind})
        gradients_decide = self.loss.loss is not None and bool(names)
        noted.note(point, [self.seen(ran, a, state) for ran in sides], names, a.names, state, gradients_decide)
        if differing and not noted.differs:
            raise differing[0]

    def check_repeatable(self, once, again):
        """Raises Undecided if two runs of a, with one seed, gave other outputs."""
        for name, x, y in zip(once.names, once.outputs, again.outputs):
            d = _isonorm.deviation(ours(finite(y, x)), ours(finite(x, x))) if x.shape == y.shape else math.inf
            if not d <= _isonorm.bound(0.0, self.dtype):
                raise Undecided(
                    f"a is not repeatable: run twice with the same parameters, inputs and seed of torch, its {name} is off by {d:.1e};"
                    " random numbers that it draws must come from torch's default generator"
                )
        if not same_exact(once.exact, again.exact, []):
            raise Undecided("a is not repeatable: run twice, it gives other whole numbers or words")

    def with_paired_state(self, a, b, controls):
        """The runs, with b's buffers and frozen parameters under a's names, and the names of tensors that a pass changed in a or b."""
        pairs = {n: self.mapping.in_b(n) if self.mapping else n for n in a.state}
        pairs = {n: m for n, m in pairs.items() if m in b.state}
        for n in a.changed - set(pairs):
            self.not_compared[n] = "a buffer of a alone"
        for m in b.changed - set(pairs.values()):
            self.not_compared[f"{m} of b"] = "a buffer of b alone"
        b = b._replace(state={n: b.state[m] for n, m in pairs.items()}, changed={n for n, m in pairs.items() if m in b.changed})
        return (a, b, *controls), [n for n in pairs if n in a.changed | b.changed]

    def probes(self):
        """At the first point, of parameters one by one: does the comparison detect every other entry times 1 + size?"""
        size = _isonorm.largest_bound(self.dtype)
        batch, parameters = self.batches(0), self.parameters(1)
        a = self.of_a(parameters, batch)
        reference, *controls = (self.seen(ran, a) for ran in (a, *self.controls_at(a, parameters, batch)))
        outputs = a.names
        names = [n for n, p in parameters.items() if p.numel() and p.abs().max() > 0]
        chosen = [names[i * len(names) // min(PROBES, len(names))] for i in range(min(PROBES, len(names)))]
        probes = []
        for name in chosen:
            changed = parameters[name].clone()
            changed.view(-1)[::2] *= 1 + size  # not all entries, because a norm after it would undo that
            other = self.seen(self.of_a({**parameters, name: changed}, batch), a)
            share = _isonorm.Points(self.dtype, 1).share([reference, other, *controls], self.names(batch), outputs)
            probes.append(Probe(name, size, share))
        return tuple(probes)
