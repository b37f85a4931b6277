"""Trains two modules on the same batches, with controls moved by rounding and with a negative control."""

import contextlib

import torch

from . import _isonorm
from ._models import arguments, dense, draws, duplicate, flat, naming, ours, rebuilt


class Trained:
    """a under training, as the library's lockstep asks for it (python/outside.cpp)."""

    def __init__(self, model, loss, recipe, batch, seed, names):
        self.model, self.loss, self.batch, self.seed, self.names = model, loss, batch, seed, names
        self.recipe, self.updates = recipe, recipe.updates(model)
        self.step, self.told = 0, lambda step: None

    def parameters(self):
        """In the order of `names`."""
        all_of_them = dict(self.model.named_parameters())
        return {n: all_of_them[n].detach() for n in self.names}

    def backward(self):
        """The loss of this step's batch; gradients lie at the parameters."""
        self.model.zero_grad(set_to_none=True)
        parts, who = self.recipe.parts(self.batch(self.step)), self.recipe.who
        total = 0.0
        with draws(self.seed + self.step, self.loss.dtype), torch.enable_grad():
            for part in parts:
                with self.rounding():
                    inputs, targets = self.loss.parts(part)
                    positional, named = arguments(rebuilt(inputs, torch.clone))
                    with naming(who, self.recipe.dtype, self.model):
                        output = self.model(*positional, **named)
                    loss = self.loss(output, targets, self.seed) / len(parts)
                if not loss.requires_grad:
                    raise ValueError(f"compare: no gradient comes from the loss of {who} to its parameters: there is nothing to train")
                with naming(f"the backward pass of {who}", self.recipe.dtype):
                    loss.backward()
                total += loss.item()
        return total

    def rounding(self):
        """The torch mode for module and loss."""
        return contextlib.nullcontext()

    def differentiate(self):
        number = self.backward()
        own = dict(self.model.named_parameters())
        # Copies, because step() may change gradients in place.
        return number, [
            ours(torch.zeros_like(own[n]) if own[n].grad is None else dense(own[n].grad).clone()) for n in self.names
        ]

    def update(self):
        self.updates.step()
        self.model.zero_grad(set_to_none=True)  # differentiate() returned copies
        self.step += 1
        self.told(self.step)
        return self.weights(), self.expected(), self.names

    def weights(self):
        """No copies: they hold until the next update."""
        return [ours(p) for p in self.parameters().values()]

    def expected(self):
        """The reference's weights in the coordinates of this model; None: in the same coordinates."""
        return None


class Reference(Trained):
    """a itself. before: its parameters before the update, at which a map carries gradients back."""

    def backward(self):
        number = super().backward()
        self.before = {n: p.clone() for n, p in self.parameters().items()}
        return number


class Control(Trained):
    """a from weights that are moved by one ulp; so is each result of an operation, if torch can tell them."""

    def __init__(self, points, number, model, *more):
        moved = points.moved({n: p.detach() for n, p in model.named_parameters()}, number)
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(moved[name])
        super().__init__(model, *more)
        self.points, self.number = points, number

    def rounding(self):
        return self.points.rounding(self.number + self.step * self.points.controls)


class Other(Trained):
    """b: gradients are compared in a's coordinates, weights with the map of a's."""

    def __init__(self, model, loss, recipe, batch, seed, mapping):
        plain = list(mapping.plain.values())
        names = plain + [n for n in mapping.shapes_b if n not in set(plain)]
        super().__init__(model, loss, recipe, batch, seed, names)
        self.mapping = mapping

    def differentiate(self):
        number = self.backward()
        gradients = {n: None if p.grad is None else dense(p.grad).clone() for n, p in self.model.named_parameters()}
        back = self.mapping.pulled_back(self.reference.before, gradients)
        return number, [ours(back[n]) for n in self.reference.names]

    def expected(self):
        made = self.mapping(self.reference.parameters())
        return [ours(made[n]) for n in self.names]

    def noise_here(self, noise):
        marks = {n: marked.torch() for n, marked in zip(self.reference.names, noise)}
        reached = self.mapping.reached(self.reference.parameters(), marks)
        return [ours(reached[n]) for n in self.names[len(self.mapping.plain) :]]


class Frozen(Trained):
    """A negative control: gains and biases of norms do not train."""

    def __init__(self, model, *more):
        super().__init__(model, *more)
        norms = [m for m in model.modules() if "Norm" in type(m).__name__]
        self.gains = [p for m in norms for p in m.parameters(recurse=False) if self.updates.train(p)]

    def update(self):
        before = [p.detach().clone() for p in self.gains]
        updated = super().update()  # updates all parameters: a user's clipping may need every gradient
        with torch.no_grad():
            for p, value in zip(self.gains, before):
                p.copy_(value)
        return updated


class Misled(Trained):
    """A negative control: one batch is replaced by the next one or, if both are equal, the gradient of that step is negated."""

    AT = _isonorm.NEGATIVE_STEPS // 2

    def __init__(self, model, loss, recipe, batch, seed, names):
        super().__init__(model, loss, recipe, lambda step: batch(step + (step == Misled.AT)), seed, names)
        self.is_one = same(batch(self.AT), batch(self.AT + 1))

    def differentiate(self):
        seen = super().differentiate()
        if self.step == self.AT and self.is_one:
            for p in self.model.parameters():
                p.grad = None if p.grad is None else -p.grad
        return seen


def same(x, y):
    x, y = flat(x), flat(y)
    return len(x) == len(y) and all(torch.equal(p, q) for p, q in zip(x, y))


def names_of(mapping):
    """a's parameters; those that b has entry by entry come first: i of the one is i of the other."""
    return [*mapping.plain, *(n for n in mapping.names_a if n not in mapping.plain)]


def other(points, recipe):
    """The training of b. It begins with the parameters that the map makes of a's present ones."""
    b = duplicate(points.b)
    with torch.no_grad():
        for (_, p), made in zip(b.named_parameters(), points.mapping(points.own).values()):
            p.copy_(made)
    return Other(b, points.loss, recipe, points.batches, points.seed, points.mapping)


def pair(points, recipes):
    """The trainings of a and b."""
    names = names_of(points.mapping)
    reference = Reference(duplicate(points.a), points.loss, recipes[0], points.batches, points.seed, names)
    run = other(points, recipes[1])
    run.reference = reference
    return reference, run


def train_together(points, recipes, steps, told):
    """The library's Comparison of two trainings from a's parameters as they stand, and what the map makes of them.

    recipes: (of a, of b); the negative controls have a's.
    """
    of_a = recipes[0]
    a, loss, batch, seed, mapping = points.a, points.loss, points.batches, points.seed, points.mapping
    names = names_of(mapping)

    def controls(batches):
        return [Control(points, c, duplicate(a), loss, of_a, batches, seed, names) for c in range(1, points.controls + 1)]

    def repeated(step):
        return batch(step % steps)

    def right():
        """[reference, b, controls...]"""
        reference, run = pair(points, recipes)
        reference.told = told("training", steps)
        return [reference, run, *controls(batch)]

    def wrong():
        """[reference, controls...], [negative controls]"""
        reference = Trained(duplicate(a), loss, of_a, repeated, seed, names)
        reference.told = told("negative controls", _isonorm.NEGATIVE_STEPS)
        misled = Misled(duplicate(a), loss, of_a, repeated, seed, names)
        frozen = Frozen(duplicate(a), loss, of_a, repeated, seed, names)
        return [reference, *controls(repeated)], [misled, frozen] if frozen.gains else [misled]

    return _isonorm.train_together(right, wrong, names, points.dtype, len(mapping.plain), steps)
