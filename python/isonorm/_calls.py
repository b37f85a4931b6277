"""Inputs and outputs of the modules of two models, call by call, and pairs of modules that have the same part in both."""

import torch

from ._models import flat, hooked, in_dtype, measured, named_leaves


class Call:
    """One call of a module: its input and output tensors, and their gradients if they have any."""

    def __init__(self, name, module, inputs):
        self.name, self.module, self.inputs, self.names, self.outputs = name, module, inputs, [], []
        self.input_gradients, self.gradients, self.nodes = {}, {}, []

    def left(self, output, dtype):
        found = {name: t for name, leaf in named_leaves(output).items() for t in measured(leaf)}
        outputs = list(found.values())
        self.names, self.outputs = list(found), in_dtype(outputs, dtype)
        self.nodes = [t.grad_fn for t in outputs if t.grad_fn is not None]
        note(outputs, self.gradients, dtype)

    def ordered_as(self, names):
        """Its outputs in the order of these keys, if it has the same ones; else they are matched by position."""
        if self.names != names and sorted(self.names) == sorted(names):
            order = [self.names.index(n) for n in names]
            self.names, self.outputs = names, [self.outputs[i] for i in order]
            self.gradients = {at: self.gradients[i] for at, i in enumerate(order) if i in self.gradients}


def note(tensors, gradients, dtype):
    """From now on, gradients[i] is the gradient of tensors[i]; None until it arrives, or if there is none."""
    for i, t in enumerate(tensors):
        if t.requires_grad:
            gradients[i] = None
            t.register_hook(lambda g, i=i: gradients.__setitem__(i, in_dtype(g, dtype)))


class Calls:
    """While it lasts, the calls of a model's modules are appended to `calls` as they end. Tensors are in `dtype`."""

    def __init__(self, model, dtype):
        self.model, self.dtype, self.calls, self.handles, self.open = model, dtype, [], [], []

    def __enter__(self):
        for name, module in hooked(self.model):
            self.handles.append(module.register_forward_pre_hook(self.before(name), with_kwargs=True))
            self.handles.append(module.register_forward_hook(self.after, always_call=True))
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def before(self, name):
        def enter(module, given, named):
            # Gives each module its own tensors, whose gradients come from this module alone.
            views = {}  # a tensor that is given twice gets one view: modules test whether the key is the query
            given, named = own(given, views), {key: own(value, views) for key, value in named.items()}
            inputs = measured((given, named))
            ids = [t.double() for t in flat((given, named)) if not t.is_floating_point() and not t.is_complex()]
            call = Call(name, module, in_dtype([*inputs, *ids], self.dtype))  # now: the module may change them in place
            note(inputs, call.input_gradients, self.dtype)
            self.open.append(call)
            return given, named

        return enter

    def after(self, module, given, output):
        call = self.open.pop()
        if output is not None:
            call.left(output, self.dtype)
            self.calls.append(call)


def own(value, views):
    """The value with views of its floating tensors, if it is such a tensor or a tuple or list of values."""
    if type(value) in (tuple, list):
        return type(value)(own(v, views) for v in value)
    if type(value) is torch.Tensor and value.is_floating_point():
        return views.setdefault(id(value), value.view_as(value))
    return value


def called(model, dtype, run):
    """(calls, what run() gives)"""
    with Calls(model, dtype) as calls:
        ran = run()
    return calls.calls, ran


def matched(pairs, a, b):
    """Pairs of calls, in a's order: the n-th call of a module with the n-th of its partner. pairs: names of b by a's."""
    left = list(b)
    for call in a:
        partner = next((c for c in left if c.name == pairs.get(call.name)), None)
        if partner is not None:
            left.remove(partner)
            partner.ordered_as(call.names)
            if any(t.shape == u.shape for t, u in zip(call.outputs, partner.outputs)):
                yield call, partner


def owner(name):
    return name.rpartition(".")[0]


def paired_modules(a, b, mapping):
    """{name of a module of a: name of its partner in b}.

    Partners are a and b themselves; modules of which all parameters of the one follow from those of the other alone; modules that
    hold just the partners of one another's modules; and modules of one name in partners.
    """
    pairs = {**by_parameters(a, b, mapping), "": ""}
    of_a, of_b = ({n: m for n, m in hooked(model)} for model in (a, b))
    for name in sorted(of_a, key=lambda n: -n.count(".")):
        inside = {n: m for n, m in pairs.items() if n.startswith(f"{name}.")}
        around = common([owner(m) for m in inside.values()])
        back = {n for n, m in pairs.items() if m.startswith(f"{around}.")} if around else set()
        if around and name not in pairs and around not in pairs.values() and back == set(inside):
            pairs[name] = around
    for name in of_a:
        partner = f"{pairs[owner(name)]}.{name.rpartition('.')[2]}".strip(".") if owner(name) in pairs else None
        if name not in pairs and partner in of_b and partner not in pairs.values():
            pairs[name] = partner
    return pairs


def common(names):
    """The name of the innermost module that holds all modules of these names."""
    parts = [n.split(".") for n in names]
    shared = []
    for several in zip(*parts):
        if len(set(several)) > 1:
            break
        shared.append(several[0])
    return ".".join(shared)


def by_parameters(a, b, mapping):
    """Partners among the modules that have parameters of their own."""
    if mapping is None:
        names = {n for n, _ in b.named_parameters()}
        sources = {n: {n} for n, _ in a.named_parameters() if n in names}
    else:
        leaves = {n: p.detach().clone().requires_grad_() for n, p in a.named_parameters()}
        made = mapping(leaves)
        sources = {n: behind(t, leaves) for n, t in made.items()}
    to, back = {}, {}
    for n, of in sources.items():
        for m in of:
            to.setdefault(owner(m), set()).add(owner(n))
            back.setdefault(owner(n), set()).add(owner(m))
    return {x: next(iter(ys)) for x, ys in to.items() if len(ys) == 1 and back[next(iter(ys))] == {x}}


def behind(made, leaves):
    """Names of the leaves that a tensor follows from."""
    if not made.requires_grad:
        return set()
    found = torch.autograd.grad(made.abs().sum(), list(leaves.values()), allow_unused=True, retain_graph=True)
    return {n for n, g in zip(leaves, found) if g is not None}


def before(nodes, known):
    """The autograd nodes that these follow from, and these; without those that are known."""
    seen, left = set(), list(nodes)
    while left:
        node = left.pop()
        if node is not None and node not in seen and node not in known:
            seen.add(node)
            left.extend(n for n, _ in node.next_functions)
    return seen


def check_copied(who, result, originals):
    """Raises ValueError if the result of a copy follows from parameters of the module that was copied: a function that closes over
    that module, such as a lambda or a bound method in place of its forward, goes on to compute with it. originals: {id of the
    parameter: its name}."""
    if not originals or result.grad_fn is None:
        return
    found = {id(getattr(node, "variable", None)) for node in before([result.grad_fn], ())}
    for name in (name for i, name in originals.items() if i in found):
        raise ValueError(
            f"compare: the copy of {who} computes with {name} itself, to which a function is bound that {who} holds:"
            " take modules from self there"
        )
