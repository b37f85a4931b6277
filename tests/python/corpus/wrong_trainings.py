"""Planted mistakes: one module under two trainings."""

import torch
from torch.nn import functional as F

from .right_trainings import BATCH, adam, momentum, no_decay_by_dimension, norm_by_hand, pair, torch_adamw, torch_sgd
from .rows import wrong


def trained(name, cause=None, **options):
    wrong(f"training: {name}", BATCH, cause=cause, place=".*", loss=F.cross_entropy, **options)(pair)


def schedule(of):
    return lambda o: torch.optim.lr_scheduler.LambdaLR(o, of)


trained("a rate of 1.1e-3, not 1e-3", "lr|rate", optimizer=(torch_adamw(), torch_adamw(lr=1.1e-3)))
trained("AdamW's decay of 0, not 0.01", "decay", optimizer=(torch_adamw(), torch_adamw(weight_decay=0.0)))
trained(
    "Adam with its decay in the gradient",
    "decay",
    optimizer=(torch_adamw(weight_decay=0.1), lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.1)),
)
trained("Adam's eps of 1e-6", "eps", optimizer=(torch_adamw(), torch_adamw(eps=1e-6)))
trained("Adam's eps in the root", "eps", optimizer=(torch_adamw(), adam(eps_inside=True)))
trained("Adam's second beta of 0.99", "beta", optimizer=(torch_adamw(), torch_adamw(betas=(0.9, 0.99))))
trained("Adam's first beta of 0.8", "beta", optimizer=(torch_adamw(), torch_adamw(betas=(0.8, 0.999))))
trained("Adam without its correction of the first steps", "correction|bias", optimizer=(torch_adamw(), adam(debias=False)))
trained("AMSGrad", "ams", optimizer=(torch_adamw(), torch_adamw(amsgrad=True)))
trained("a momentum of 0.8", "momentum", optimizer=(torch_sgd(), torch_sgd(momentum=0.8)))
trained("Nesterov's momentum", "esterov", optimizer=(torch_sgd(), torch_sgd(nesterov=True)))
trained("a first velocity of (1 - mu) g", "momentum|dampening", optimizer=(torch_sgd(), momentum(of_first=0.1)))
trained("dampening", "dampening", optimizer=(torch_sgd(), torch_sgd(dampening=0.9)))
trained("decay of biases and gains, too", "decay", optimizer=(no_decay_by_dimension, torch_adamw(weight_decay=0.1)))
trained("no limit on the gradients", "clip|norm", optimizer=torch_sgd(), clip=(0.1, None))
trained("each gradient limited alone", "clip|norm", optimizer=torch_sgd(), clip=(0.1, lambda p: [norm_by_hand([q]) for q in p]))
trained(
    "micro-batches whose gradients are added",
    "factor|accum|clip",
    optimizer=torch_sgd(),
    accumulate=(1, 3),
    clip=(None, lambda p: [q.grad.mul_(3) for q in p]),
)
trained(
    "a schedule that starts a step late",
    "rate|schedule",
    optimizer=torch_sgd(),
    schedule=(schedule(lambda t: 0.9**t), schedule(lambda t: 0.9 ** max(0, t - 1))),
)
trained(
    "a warm-up that lasts one step more",
    "rate|schedule",
    optimizer=torch_sgd(),
    schedule=(schedule(lambda t: min(1, (t + 1) / 5)), schedule(lambda t: min(1, (t + 1) / 6))),
)
trained(
    "another rate after step 10",
    "rate|schedule",
    optimizer=torch_sgd(),
    schedule=(schedule(lambda t: 1.0), schedule(lambda t: 0.5 if t >= 10 else 1.0)),
)
