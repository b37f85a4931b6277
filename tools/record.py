"""Records the inputs and outputs of a model's readers and writers, for isonorm convert --reference. Printed by isonorm hooks.

    import record
    rows = record.record(model, lambda: model(ids))  # a torch.nn.Module; one forward pass
    record.save("reference.safetensors", rows)

Run the model in f64 if you can (model.double()): then rounding hides least. Two more forward passes run with changed
parameters; afterwards the model has its own again.
"""
import json
import re

SPEC = json.loads(r"""SPEC""")


def alternatives(pattern):
    """"a.{b,c}.d" as "a.b.d" and "a.c.d"."""
    if not (found := re.fullmatch(r"([^{]*)\{([^}]*)\}(.*)", pattern)):
        return [pattern]
    begin, middle, end = found.groups()
    return [one for word in middle.split(",") for one in alternatives(begin + word + end)]


def part(spec, name):
    """The entries of one part of the description, without alternatives."""
    entries = spec.get(name, {})
    if isinstance(entries, list):
        return [one for pattern in entries for one in alternatives(pattern)]
    return {one: value for pattern, value in entries.items() for one in alternatives(pattern)}


def matched(entries, names):
    """Yields (name, value) for each name that matches an entry. A * in the value becomes the text that it matched in the name."""
    for pattern, value in entries.items():
        parts = re.split(r"(\*\*|\*)", pattern)
        form = re.compile("".join({"**": "(.+)", "*": r"([^.]+)"}.get(part, re.escape(part)) for part in parts))
        for name in names:
            if found := form.fullmatch(name):
                stood_for = iter(found.groups())
                yield name, re.sub(r"\*\*|\*", lambda _: next(stood_for), value) if isinstance(value, str) else value


def save(path, rows):
    from safetensors.torch import save_file

    save_file(rows, path, {"order": json.dumps(list(rows))})  # the library sorts names; this is the order of execution


def results(y):
    """The tensors that a model returns, without hidden states, caches and loss."""
    import torch

    if isinstance(y, torch.Tensor):
        return [y.detach().flatten().cpu().clone()] if y.is_floating_point() else []
    if hasattr(y, "items"):
        y = [v for k, v in y.items() if k not in ("hidden_states", "past_key_values", "attentions", "loss")]
    return [t for v in y for t in results(v)] if isinstance(y, (list, tuple)) else []


def record(model, run, prefix=None):
    """Rows by name, in the order in which they were computed: NAME.input and NAME.output of readers and writers, and rows that
    show that nothing else reads the stream. With several streams the names are STREAM/NAME. prefix: what the model's names
    have before the names in the file; None: the shortest prefix that fits.
    """
    streams = SPEC.get("streams", {"": SPEC})
    found = [(when, f"{stream}/{name}" if stream else name, x) for stream, spec in streams.items()
             for name, (when, x) in recorded(spec, model, run, prefix).items()]
    return {name: x for _, name, x in sorted(found, key=lambda entry: entry[0])}


def recorded(spec, model, run, prefix):
    """For each name the number of modules that had run, and the rows."""
    import torch

    modules = dict(model.named_modules(remove_duplicate=False))
    tensors = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    readers = {name: entry["norm"] for name, entry in part(spec, "readers").items()}
    heads = {entry["head"]: entry["norm"] for entry in spec.get("tied", {}).values()}
    writers = {name: entry if isinstance(entry, dict) else {"dim": entry} for name, entry in part(spec, "writers").items()}
    entry = spec.get("recentre")
    if prefix is None:
        forms = [re.escape(name.removesuffix(".weight")).replace(r"\*\*", ".+").replace(r"\*", r"[^.]+") + "$"
                 for name in readers]
        found = [name[:at.start()] for name in modules for form in forms if (at := re.search(form, name))]
        prefix = min(found, key=len, default="")
    layers = [name.removeprefix(prefix) for name in modules]
    stored = [name.removeprefix(prefix) for name in tensors]
    width, rows, tables, normed, known, ran = spec["width"], {}, {}, {}, set(), []
    handles = [layer.register_forward_hook(lambda *_: ran.append(None)) for layer in modules.values()]

    def keep(name, x, once=True):
        if once and name in rows:
            raise RuntimeError(f"{name} is there twice: record one forward pass; what shares its layers cannot be recorded")
        x = x.detach().cpu()
        rows[name] = len(ran), (x if x.is_floating_point() else x.long()).clone(memory_format=torch.contiguous_format)

    def named(entries, ends):
        """The tensors that match the entries. A tensor's own name comes before patterns; a layer's name stands for its tensors."""
        found = {}
        for pattern, value in sorted(entries.items(), key=lambda entry: "*" not in entry[0]):
            whole = dict(matched({pattern: value}, stored))
            found |= whole or {name: v for end in ends for name, v in matched({pattern + end: value}, stored)}
        return found

    def module(name):
        return modules.get(prefix + name, modules.get(name))

    def tensor(name):
        return tensors.get(prefix + name, tensors.get(name))

    def first(y):
        return next((t for t in y if isinstance(t, torch.Tensor)), None) if isinstance(y, (list, tuple)) else y

    def after(layer, hook):
        def called(_, x, more, y):
            x, y = next(iter((*x, *more.values())), None), first(y)
            if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
                hook(x, y)

        handles.append(layer.register_forward_hook(called, with_kwargs=True))

    def reader(weight, norm):
        layer = module(weight.removesuffix(".weight"))

        def read(x, y):
            if norm not in normed:
                raise RuntimeError(f"{weight} is called before norm {norm}, which it is said to read through")
            stream, out = normed[norm]
            if (parts := beside.get(weight, 1)) > 1:  # the layer reads norms of a row and of its negative, side by side
                rows_read = [out if i % 2 == 0 else module(norm).forward(-stream) for i in range(parts)]
                y = first(layer.forward(torch.cat(rows_read, -1)))
            elif x.shape != out.shape:  # flattened, or some of the norm's rows: call the layer with all of them
                if x.numel() != out.numel() and not all(
                        (row == out.reshape(-1, width)).all(-1).any() for row in x.reshape(-1, width)[:64]):
                    return
                y = first(layer.forward(out))
            keep(weight + ".input", stream), keep(weight + ".output", y)

        after(layer, read)

    def writer(weight):
        layer = module(weight.removesuffix(".weight"))

        def wrote(x, y):
            if isinstance(layer, torch.nn.Conv2d):  # rows of patches
                if layer.padding == "same":
                    return
                padding = 0 if layer.padding == "valid" else layer.padding
                x = torch.nn.functional.unfold(x, layer.kernel_size, layer.dilation, padding, layer.stride)
                x, y = x.transpose(1, 2), y.flatten(2).transpose(1, 2)
            keep(weight + ".input", x), keep(weight + ".output", y)

        if isinstance(layer, torch.nn.Embedding):
            tables[id(layer.weight)] = weight
        else:
            after(layer, wrote)

    def other(name, layer):
        """Records a module that is not in the description. convert finds out whether it reads the stream."""
        def saw(x, y):
            if not x.is_floating_point() or x.shape[-1:] != (width,) or not x.numel():
                return
            if x.shape == y.shape and torch.equal(x, y):
                return  # dropout, identity
            of = {norm for norm, (_, out) in normed.items() if (x.reshape(-1, width)[0] == out.reshape(-1, width)).all(-1).any()}
            if not of & kept:
                keep(name + (".reads" if of else ".seen"), x, once=False)
        after(layer, saw)

    def at_entry(hook):
        """Calls `hook` with the rows that enter a stream that is recentred once."""
        def called(_, x, more):
            if x:
                return (hook(x[0]), *x[1:]), more
            name = next(iter(more))
            return x, more | {name: hook(more[name])}

        if module(entry) is None:
            raise RuntimeError(f"the model has no module {entry}, which is to be recentred")
        return module(entry).register_forward_pre_hook(called, with_kwargs=True)

    norms = dict(matched(part(spec, "norms"), layers))
    kept = {norm for norm, _ in matched(dict.fromkeys(part(spec, "kept")), layers)}
    through = named({name: value["norm"] for name, value in writers.items() if value.get("norm")}, (".weight",))
    beside = named({name: value.get("parts", 1) for name, value in part(spec, "readers").items()}, (".weight",))
    for norm in norms:
        after(module(norm), lambda x, y, norm=norm: normed.__setitem__(norm, (x.clone(), y.clone())))
    heads = {head: norm for head, norm in heads.items() if module(head.removesuffix(".weight")) is not None}
    read = named(readers, (".weight",)) | heads
    for weight, norm in read.items():
        if module(weight.removesuffix(".weight")) is not None:
            reader(weight, norm)
    dims = {name: 0 if name.endswith(".bias") and tensor(name).dim() == 1 else dim
            for name, dim in named({n: value["dim"] for n, value in writers.items()}, (".weight", ".bias")).items()}
    for weight in dims:
        if weight.endswith(".weight") and module(weight.removesuffix(".weight")) is not None:
            writer(weight)
    for weight, norm in through.items():
        after(module(norm), lambda x, y, weight=weight: keep(weight + ".output", y))
    if entry:
        handles.append(at_entry(lambda x: (keep(entry + ".enters", x), x)[1]))
    scales = named(part(spec, "scales"), (".weight", ".bias"))
    known.update(norms, [name.rpartition(".")[0] for name in (*dims, *scales.values(), *read)])
    for name in layers:
        layer = module(name)
        if name not in known and not list(layer.children()) and (
                list(layer.parameters()) or "norm" in type(layer).__name__.lower()):
            other(name, layer)

    embedding = torch.nn.functional.embedding

    def embedded(ids, table, *rest, **more):
        y = embedding(ids, table, *rest, **more)
        if id(table) in tables:
            keep(tables[id(table)] + ".input", ids)
            if tables[id(table)] not in through:
                keep(tables[id(table)] + ".output", y)
        return y

    torch.nn.functional.embedding = embedded
    try:
        with torch.no_grad():
            before = results(run())
    finally:
        torch.nn.functional.embedding = embedding
        for handle in handles:
            handle.remove()
    if not before or len(heads) < len(spec.get("tied", {})):
        return rows

    # Two changes of parameters that do not change the function if only norms read the stream and only readers read the norms:
    # a constant is added to the output of every writer; every gain is multiplied by a factor, and its readers are divided by it.
    held = {name: t.detach().clone() for name, t in tensors.items()}
    untied = {weight: module(weight.removesuffix(".weight")) for weight in heads}
    tables = {weight: layer.weight for weight, layer in untied.items()}
    generator = torch.Generator().manual_seed(1)

    def random(shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def put_back():
        for name, t in tensors.items():
            t.copy_(held[name])

    with torch.no_grad():
        try:
            for weight, layer in untied.items():
                layer.weight = torch.nn.Parameter(tables[weight].clone())
            for name, dim in dims.items():
                t, dim = (tensor(through[name] + ".bias"), 0) if name in through else (tensor(name), dim)
                if t is None:
                    continue
                constant = random([1 if i == dim else n for i, n in enumerate(t.shape)]).to(t) * t.abs().mean()
                if name in scales:
                    along = (1 / tensor(scales[name]).flatten()).reshape([width if i == dim else 1 for i in range(t.dim())])
                    constant = constant * along
                t += constant
            if entry:
                handle = at_entry(lambda x: x + random((*x.shape[:-1], 1)).to(x) * x.abs().mean())
            try:
                keep("program.shifted", torch.cat(results(run())))
            finally:
                if entry:
                    handle.remove()
            put_back()
            for weight, layer in untied.items():
                layer.weight.copy_(tables[weight])
            for norm in norms:
                if norm in kept or norm in through.values() or tensor(norm + ".weight") is None:
                    continue
                factor = 2 + float(random(()).tanh()) / 2
                more = norms[norm].get("gain") == "1+w" if isinstance(norms[norm], dict) else 0  # than what is stored
                for t, apart in ((tensor(norm + ".weight"), more), (tensor(norm + ".bias"), 0)):
                    if t is not None:
                        t += (factor - 1) * (t + apart)
                for weight, of in read.items():
                    if of == norm:
                        (untied[weight].weight if weight in untied else tensor(weight)).div_(factor)
            keep("program.rescaled", torch.cat(results(run())))
        finally:
            for weight, layer in untied.items():
                layer.weight = tables[weight]
            put_back()
    keep("program.output", torch.cat(before))
    return rows
