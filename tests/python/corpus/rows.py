"""What a row is, and what rows are made of: formulas with the parameters of a module, and draws of batches."""

import dataclasses
from typing import Callable, Optional

import torch
from torch import nn

RIGHT, WRONG = [], []


@dataclasses.dataclass(frozen=True)
class Row:
    """make() gives (a, b); torch's generator is seeded before. inputs(generator) gives a batch."""

    name: str
    make: Callable
    inputs: Callable
    options: dict  # of compare()
    batches: int = 3
    computes_in_f32: bool = False  # inside, whatever the dtype of the comparison
    cause: Optional[str] = None  # of a wrong row: what a right cause says, as a regular expression
    place: Optional[str] = (
        None  # of a wrong row: the module, parameter or buffer with the mistake, as a regular expression
    )
    unseen: bool = False  # a wrong row whose mistake no batch shows

    def pair(self, seed):
        torch.manual_seed(seed)
        return self.make()

    def drawn(self, seed):
        generator = torch.Generator().manual_seed(seed)
        return [self.inputs(generator) for _ in range(self.batches)]


def right(name, inputs, *, batches=3, computes_in_f32=False, **options):
    """The decorated function makes a right pair. Parameters of b may be of any value: the map sets them."""

    def note(make):
        RIGHT.append(Row(name, make, inputs, {"carry": True, **options}, batches, computes_in_f32))
        return make

    return note


def wrong(name, inputs, *, cause=None, place=None, unseen=False, batches=3, **options):
    """The decorated function makes a pair with one planted mistake, in b."""

    def note(make):
        WRONG.append(Row(name, make, inputs, {"carry": True, **options}, batches, False, cause, place, unseen))
        return make

    return note


class Formula(nn.Module):
    """A module with the parameters and buffers of `like`, by the same names and of the same values, whose forward is
    of(p, *inputs): p is the dict of all of them, by their names without a leading "module."."""

    def __init__(self, like, of):
        super().__init__()
        self._of = of
        for name, p in like.named_parameters():
            owner, last = self._owner(name)
            owner.register_parameter(last, nn.Parameter(p.detach().clone(), p.requires_grad))
        for name, t in like.named_buffers():
            owner, last = self._owner(name)
            owner.register_buffer(last, t.clone())

    def _owner(self, name):
        """The submodule that holds `name`, made if it does not exist, and the last part of the name."""
        *path, last = name.split(".")
        owner = self
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = getattr(owner, part)
        return owner, last

    def forward(self, *inputs, **named):
        held = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        return self._of({name.removeprefix("module."): t for name, t in held.items()}, *inputs, **named)


class Called(nn.Module):
    """`module`, whose forward is of(module, *inputs): for modules with more arguments or results than a row needs."""

    def __init__(self, module, of):
        super().__init__()
        self.module, self._of = module, of

    def forward(self, *inputs, **named):
        return self._of(self.module, *inputs, **named)


class Net(nn.Module):
    """Submodules and parameters by name, and forward(self, *inputs) = of(self, *inputs). A shape makes a normal parameter."""

    def __init__(self, of, **parts):
        super().__init__()
        self._of = of
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(torch.randn(part) * 0.3) if isinstance(part, tuple) else part)

    def forward(self, *inputs, **named):
        return self._of(self, *inputs, **named)


def same_weights(module):
    """Another module of the same class, with the same values."""
    import copy

    return copy.deepcopy(module)


def with_random_gains(module):
    """The module, its parameters that are all 0 or all 1 changed: else a mistake in them would not be seen at the first point."""
    with torch.no_grad():
        for p in module.parameters():
            if p.numel() > 1 and (p == p.flatten()[0]).all():
                p.add_(0.2 * torch.randn(p.shape))
    return module


def normal(*shape, mean=0.0, deviation=1.0):
    """A tensor of normal numbers."""
    return lambda g: mean + deviation * torch.randn(shape, generator=g)


def ids(count, *shape):
    """A tensor of whole numbers below `count`."""
    return lambda g: torch.randint(0, count, shape, generator=g)


def several(*draws):
    """A tuple: the arguments of a module, or inputs and targets."""
    return lambda g: tuple(draw(g) for draw in draws)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
