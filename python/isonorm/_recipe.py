"""How a module trains: optimizer, schedule, micro-batches and clipping, for a and for b."""

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch

from ._given import refuse
from ._models import made_in, naming, rebuilt


class Parameters(list):
    """The parameters of a module under training, in its order. `model` is that module: a copy of the user's."""

    def __init__(self, model: torch.nn.Module):
        super().__init__(model.parameters())
        self.model = model


@dataclass(frozen=True)
class Recipe:
    who: str  # "a" or "b"
    dtype: str
    optimizer: Callable[[Parameters], Any]
    schedule: Optional[Callable[[Any], Any]] = None  # made from the optimizer
    accumulate: int = 1  # number of equal parts of a batch; their gradients are averaged
    clip: Any = None  # largest norm of all gradients, or a function that changes the gradients of Parameters

    def options(self):
        return self.optimizer, self.schedule, self.accumulate, self.clip

    def updates(self, model: torch.nn.Module) -> "Updates":
        return Updates(self, model)

    def parts(self, batch) -> list:
        """The batch in `accumulate` parts along the first dimension of its tensors. Raises ValueError if one cannot be cut so."""

        def part(t, i):
            if t.dim() == 0:
                return t
            if t.size(0) % self.accumulate:
                raise ValueError(
                    f"compare: accumulate={self.accumulate}, and a tensor of a batch has shape {list(t.shape)}:"
                    f" {t.size(0)} is no multiple of {self.accumulate}"
                )
            return t.chunk(self.accumulate)[i]

        if self.accumulate == 1:
            return [batch]
        return [rebuilt(batch, lambda t, i=i: part(t, i)) for i in range(self.accumulate)]


class Updates:
    """The updates of one module: step() clips gradients, updates parameters and advances the schedule."""

    def __init__(self, recipe, model):
        self.recipe, self.parameters = recipe, Parameters(model)
        with self.naming("optimizer"):
            self.optimizer = recipe.optimizer(self.parameters)
        if not hasattr(self.optimizer, "step"):
            refuse(f"what optimizer of {recipe.who} makes", self.optimizer, "an optimizer of torch")
        known = {id(p) for p in self.parameters}
        if any(id(p) not in known for group in self.groups() for p in group["params"]):
            raise ValueError(
                f"compare: the optimizer of {recipe.who} holds other parameters than the list that it was given,"
                " which is of a copy; p.model is that copy"
            )
        with self.naming("schedule"):
            self.schedule = recipe.schedule and recipe.schedule(self.optimizer)
        if recipe.schedule and not hasattr(self.schedule, "step"):
            refuse(f"what schedule of {recipe.who} makes", self.schedule, "a schedule of torch.optim.lr_scheduler")

    @contextlib.contextmanager
    def naming(self, what):
        with naming(f"the {what} of {self.recipe.who}", self.recipe.dtype), made_in(self.recipe.dtype):
            yield

    def groups(self):
        """The groups of the optimizer, as far as it says which parameters it has."""
        return getattr(self.optimizer, "param_groups", [{"params": self.parameters}])

    def train(self, parameter):
        """Whether they change this parameter."""
        return parameter.requires_grad and any(p is parameter for group in self.groups() for p in group["params"])

    def step(self):
        with self.naming("clip"):
            if callable(self.recipe.clip):
                self.recipe.clip(self.parameters)
            elif self.recipe.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip)
        with self.naming("optimizer"):
            self.optimizer.step()
        with self.naming("schedule"):
            if self.schedule is not None:
                self.schedule.step()


def recipes(dtype, loss, **options):
    """(of a, of b), from compare()'s options of these names: one value for both, or a pair. None without an optimizer. Raises
    ValueError for values that cannot be used."""
    given = {name: value for name, value in options.items() if value is not None}
    if "optimizer" not in given:
        if given:
            raise ValueError(f"compare: {' and '.join(given)} given without an optimizer")
        return None
    pairs = {name: value if isinstance(value, tuple) else (value, value) for name, value in given.items()}
    for name, pair in pairs.items():
        if len(pair) != 2:
            raise ValueError(f"compare: {name} is a tuple of {len(pair)}, expected one for both or a pair (of a, of b)")
        for value in pair:
            check(name, value)
    if "accumulate" in given and loss is None:
        raise ValueError("compare: accumulate needs a loss, whose mean over the micro-batches is taken")
    return tuple(Recipe(who, dtype, **{n: p[i] for n, p in pairs.items() if p[i] is not None}) for i, who in enumerate("ab"))


def check(name, value):
    """Raises ValueError if the value is none that Recipe's `name` can have."""
    if name == "accumulate":
        fits = value is None or isinstance(value, int) and value >= 1
        expected = "a number of micro-batches of at least 1"
    elif name == "clip":
        fits = value is None or callable(value) or isinstance(value, (int, float)) and value > 0
        expected = "the largest norm of all gradients, above 0, or a function of the parameters"
    elif name == "schedule":
        fits = value is None or callable(value)
        expected = "a function of the optimizer, such as lambda o: torch.optim.lr_scheduler.LinearLR(o)"
    else:
        fits = callable(value)
        expected = "a function of the parameters, such as lambda p: torch.optim.AdamW(p, lr=1e-3)"
    if not fits:
        refuse(name, value, expected)
