"""Right pairs: one module under two ways to write one training."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .rows import normal, right, same_weights, several

BATCH = several(normal(6, 16), lambda g: torch.randint(0, 5, (6,), generator=g))


def pair():
    a = nn.Sequential(nn.Linear(16, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 5))
    return a, same_weights(a)


def trained(name, **options):
    right(f"training: {name}", BATCH, loss=F.cross_entropy, **options)(pair)


class Written(torch.optim.Optimizer):
    """change(p, state, step, group): an update written by hand."""

    def __init__(self, parameters, change, **defaults):
        super().__init__(parameters, defaults)
        self._change = change

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                self._change(p, state, state["step"], group)


def adam(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01, l2=0.0, debias=True, eps_inside=False):
    def change(p, state, step, group):
        lr = group["lr"]
        g = p.grad + l2 * p
        p.mul_(1 - lr * decay)
        m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
        v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
        if debias:
            m, v = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
        p.sub_(lr * m / ((v + eps).sqrt() if eps_inside else v.sqrt() + eps))

    return lambda parameters: Written(parameters, change, lr=lr)


def momentum(lr=0.05, mu=0.9, nesterov=False, dampening=0.0, of_first=1.0):
    def change(p, state, step, group):
        if step == 1:
            state["v"] = of_first * p.grad
        else:
            state["v"] = mu * state["v"] + (1 - dampening) * p.grad
        p.sub_(group["lr"] * (p.grad + mu * state["v"] if nesterov else state["v"]))

    return lambda parameters: Written(parameters, change, lr=lr)


def torch_adamw(**more):
    return lambda parameters: torch.optim.AdamW(parameters, **{"lr": 1e-3, **more})


def torch_sgd(**more):
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.05, "momentum": 0.9, **more})


def norm_by_hand(parameters, limit=0.1):
    """Gradients times limit / norm, if their norm is above the limit."""
    norm = torch.sqrt(sum(p.grad.square().sum() for p in parameters))
    for p in parameters:
        p.grad.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))


def no_decay_by_dimension(parameters):
    groups = [{"params": [p for p in parameters if p.ndim > 1]}, {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)


def no_decay_by_name(parameters):
    named = dict(parameters.model.named_parameters())
    decaying = [p for n, p in named.items() if n in ("0.weight", "3.weight")]
    others = [p for n, p in named.items() if n not in ("0.weight", "3.weight")]
    return torch.optim.AdamW([{"params": others, "weight_decay": 0}, {"params": decaying}], lr=1e-3, weight_decay=0.1)


trained("AdamW, and by hand", optimizer=(torch_adamw(), adam()))
trained("AdamW, all tensors at once and one by one", optimizer=(torch_adamw(foreach=True), torch_adamw(foreach=False)))
trained("Adam, and AdamW without decay", optimizer=(lambda p: torch.optim.Adam(p, lr=1e-3), torch_adamw(weight_decay=0.0)))
trained("SGD with momentum, and by hand", optimizer=(torch_sgd(), momentum()))
trained("SGD with Nesterov's momentum, and by hand", optimizer=(torch_sgd(nesterov=True), momentum(nesterov=True)))
trained("the gradients' norm limited, and by hand", optimizer=torch_sgd(), clip=(0.1, norm_by_hand))
trained("three micro-batches, and one batch", optimizer=torch_sgd(), accumulate=(1, 3))
trained("no decay of biases and gains, by shape and by name", optimizer=(no_decay_by_dimension, no_decay_by_name))
trained(
    "a schedule, and the same as a function",
    optimizer=torch_sgd(),
    schedule=(
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda t: (1 + math.cos(t * math.pi / 20)) / 2),
    ),
)
