"""Loads a folder that `isonorm convert IN OUT`, or `isonorm rotate`, wrote, as the class of transformers (5 or newer) or the
architecture of timm that its config.json names.

    import isonorm_torch
    model = isonorm_torch.load("OUT")  # dtype=torch.float64, device_map="auto": whatever from_pretrained takes
    model = isonorm_torch.load("OUT", model=mine)  # a module with the names of the file, such as nn.TransformerEncoder

The class is built as config.json says. Then each norm on a residual stream gives way to that of the form, readers get the biases that
the file has for them, and what reads or writes a narrower stream becomes narrower. A norm behind a table and layer scales are left out,
since the file's tensors have them in; rows with a mean that enter a stream lose it there, once. Every tensor must be there, and no other one.
`python3 isonorm_torch.py OUT` loads it and says what was done.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

VERSION = 1  # of the entry "isonorm" in config.json


def centred(x):
    return x - x.mean(-1, keepdim=True)


def helmert(x):
    k = torch.arange(1, x.shape[-1], dtype=x.dtype, device=x.device)
    return (x.cumsum(-1)[..., :-1] - k * x[..., 1:]) * torch.rsqrt(k * (k + 1))


class Form:
    """A row of streams/form.h. norm: the name of its norm. less: number of entries of a row that are not stored. dropped: the square of the
    entry that is not stored, from a stored row. enter: rows that enter a stream with a mean, in the coordinates of the form: P x, D+ x or
    Q^T x, with Q the Helmert basis. rotated: True if only a rotated stream has it, False if none has it, None if either may."""

    def __init__(self, norm, less=0, dropped=None, enter=centred, rotated=False):
        self.norm, self.less, self.dropped, self.enter, self.rotated = norm, less, dropped, enter, rotated


FORMS = {
    "rms_norm": Form("rms_norm"),
    "uncentred_rms_norm": Form("rms_norm", rotated=True),
    "crms_norm": Form("crms_norm", 1, lambda y: y.sum(-1, keepdim=True).square(), lambda x: centred(x)[..., :-1]),
    "crms_isometric": Form("crms_isometric", 1, enter=helmert, rotated=None),
}
ENTRIES = ("version", "form", "fold", "width", "norms", "biases")
MASKS = r"\.attn\.(bias|masked_bias)$"  # in old files; no class reads them
LISTS = ("identity", "recentred", "scales")  # only in folders that need them


class Norm(torch.nn.Module):
    """x / sqrt(s / width + eps), times the gain and plus the bias that it has; computed in f32 at least. `s` is the sum of squares over a
    row of the Pre-LN model's stream, whose last entry crms_norm does not store: it is minus the sum of the others."""

    def __init__(self, form, width, eps, gain, bias, more):
        super().__init__()
        self.form, self.width, self.eps, self.more = form, width, eps, more
        self.weight, self.bias = gain, bias  # more: gain minus the stored weight, 1 or 0

    def forward(self, x):
        y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        s = y.square().sum(-1, keepdim=True)
        if self.form.dropped:
            s = s + self.form.dropped(y)
        y = y * torch.rsqrt(s / self.width + self.eps)
        if self.weight is not None:
            y = y * (self.weight.to(y.dtype) + self.more)
        return (y if self.bias is None else y + self.bias.to(y.dtype)).to(x.dtype)

    def extra_repr(self):
        return f"{self.form.norm}, width={self.width}, eps={self.eps}"


def entered(x, form):
    return form.enter(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).to(x.dtype)


def files_of(folder):
    index = folder / "model.safetensors.index.json"
    files = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else ["model.safetensors"]
    return [folder / file for file in files]


def shapes_of(folder, form):
    """Of each tensor of the folder, by name."""
    shapes = {}
    for file in files_of(folder):
        with safe_open(file, "pt") as tensors:
            if (written := (tensors.metadata() or {}).get("stream.form", form)) != form:
                raise ValueError(f"the form of {file.name} is {written}, by config.json it is {form}")
            shapes |= {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}
    return shapes


def renamed(model, names):
    """Maps names in a file to names in the model, as from_pretrained does; a norm is named by its module."""
    if not hasattr(model, "base_model_prefix"):  # not a class of transformers
        return dict(zip(names, names))
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightRenaming, rename_source_key

    known = {f"{module}.{leaf}": True for module, _ in model.named_modules() for leaf in ("weight", "bias")}
    known |= dict.fromkeys(model.state_dict(), True)
    renamings = [r for r in get_model_conversion_mapping(model) if isinstance(r, WeightRenaming)]

    def one(name):
        new = rename_source_key(name, renamings, [], model.base_model_prefix, known)[0]
        return new if new in known or name not in known else name

    return {name: one(name) for name in names}


def split(model, shapes):
    """The shapes; a tensor that from_pretrained splits along its first axis is replaced by its parts."""
    if not hasattr(model, "base_model_prefix"):
        return shapes
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import Chunk, WeightConverter

    for split in get_model_conversion_mapping(model):
        if not isinstance(split, WeightConverter) or not all(isinstance(op, Chunk) and op.dim == 0 for op in split.operations):
            continue
        whole, parts = split.source_patterns[0], split.target_patterns
        for name in [name for name in shapes if name.endswith(whole)]:
            rows, *rest = shapes.pop(name)
            shapes |= {name.removesuffix(whole) + part: (rows // len(parts), *rest) for part in parts}
    return shapes


def put(modules, name, tensor_or_module):
    path, _, leaf = name.rpartition(".")
    setattr(modules[path], leaf, tensor_or_module)
    return modules[path], leaf


def put_resized(modules, name, tensor):
    """Replaces a tensor of another shape, and tells its layer the new shape."""
    layer, leaf = put(modules, name, tensor)
    for sizes in (("out_features", "in_features"), ("num_embeddings", "embedding_dim"), ("out_channels",), ("nx", "nf")):
        if leaf == "weight" and all(hasattr(layer, size) for size in sizes):
            for size, n in zip(sizes, tensor.shape):
                setattr(layer, size, n)


def at_entry(path, form):
    """Before the module runs: its first argument, as rows enter the stream."""
    def hook(_, args, more):
        if args:
            return (entered(args[0], form), *args[1:]), more
        if "hidden_states" not in more:
            raise ValueError(f"'{path}' is called without hidden_states, which are to be recentred")
        return args, more | {"hidden_states": entered(more["hidden_states"], form)}
    return hook


def adapt(model, record, shapes):
    """Turns the stock model, whose tensors may be on no device yet, into the folder's model; returns a report."""
    form, kind = FORMS[record["form"]], type(model).__name__
    left_out, recentred, scales = (record.get(key, []) for key in LISTS)
    names = renamed(model, [*shapes, *record["biases"], *scales, *(f"{m}.weight" for m in (*record["norms"], *left_out, *recentred))])
    there = split(model, {names[name]: shape for name, shape in shapes.items()})
    modules = dict(model.named_modules())

    def empty(shape, like=next(model.parameters())):
        return torch.nn.Parameter(torch.empty(shape, dtype=like.dtype, device=like.device))

    for norm, of in record["norms"].items():
        path = names[f"{norm}.weight"].removesuffix(".weight")
        if "norm" not in type(modules.get(path)).__name__.lower():
            raise ValueError(f"{kind} has no norm '{path}'")
        width = of.get("width", record["width"])
        gain, bias = (empty(width - form.less) if key in of else None for key in ("gain", "bias"))
        put(modules, path, Norm(form, width, of["eps"], gain, bias, float(of.get("gain") == "1+w")))
    for norm in left_out:
        path = names[f"{norm}.weight"].removesuffix(".weight")
        if "norm" not in type(modules.get(path)).__name__.lower():
            raise ValueError(f"{kind} has no norm '{path}' that could be left out")
        put(modules, path, torch.nn.Identity())
    for scale in scales:
        path, _, leaf = names[scale].rpartition(".")
        if path not in modules or [name for name, _ in modules[path].named_parameters()] != [leaf]:
            raise ValueError(f"{kind} has no module '{path}' that is a layer scale")
        put(modules, path, torch.nn.Identity())
    for module in recentred:
        path = names[f"{module}.weight"].removesuffix(".weight")
        if path not in modules:
            raise ValueError(f"{kind} has no module '{path}', whose input is to be recentred")
        modules[path].register_forward_pre_hook(at_entry(path, form), with_kwargs=True)
    for name in record["biases"]:
        layer = modules.get(names[name].removesuffix(".bias"))
        size = getattr(layer, "out_features", getattr(layer, "nf", None))
        if size is None or layer.bias is not None:
            raise ValueError(f"{kind} has no reader without a bias for '{name}'")
        layer.register_parameter("bias", empty(size, layer.weight))
    for layer in modules.values():
        if hasattr(layer, "activation_relu_or_gelu"):  # torch's encoder layer: its fused path computes LayerNorm itself
            layer.activation_relu_or_gelu = 0
    narrower, widths = 0, {record["width"], *(of["width"] for of in record["norms"].values() if "width" in of)}
    for name, tensor in model.state_dict().items():
        shape = there.get(name)
        if shape is None:
            raise ValueError(f"tensor '{name}' is missing")
        if shape != tensor.shape:
            axes = [(a, b) for a, b in zip(shape, tensor.shape) if a != b]
            # The width is a multiple if a reader reads several rows side by side.
            if len(shape) != tensor.dim() or len(axes) != 1 or not any(a * w == b * (w - less) for a, b in axes for w in widths):
                raise ValueError(f"tensor '{name}' is {list(shape)}, expected is {list(tensor.shape)}")
            put_resized(modules, name, empty(shape))
            narrower += 1
    if less and not narrower:
        raise ValueError("no tensor is of a narrower stream")
    return (f"{kind}: {len(record['norms'])} norms are {form.norm} now, {len(record['biases'])} readers have a new bias"
            + (f", {narrower} tensors are of a stream of {', '.join(f'{w - less} for {w}' for w in sorted(widths))}" if narrower else "")
            + "".join(f", {len(of)} {what}" for of, what in ((left_out, "norms behind tables are left out"),
                                                             (scales, "layer scales are folded"),
                                                             (recentred, "streams are recentred once")) if of)
            + (f", the stream is rotated ({record['rotation']})" if record.get("rotation") else ""))


def conversion_record(folder):
    """The entry of convert in config.json."""
    record = json.loads((folder / "config.json").read_text())
    record = record.get("isonorm") if isinstance(record, dict) else None
    if not isinstance(record, dict):
        raise ValueError("config.json has no entry \"isonorm\": isonorm convert did not write this folder")
    if record.get("version") != VERSION or record.get("form") not in FORMS:
        raise ValueError(f"config.json is of version {record.get('version')}, form {record.get('form')}; this file reads version "
                         f"{VERSION} of {', '.join(FORMS)}")
    if more := sorted(set(record) - {*ENTRIES, *LISTS, "rotation"}):
        raise ValueError(f"config.json: the entry \"isonorm\" says {', '.join(more)}, which this file does not know")
    kinds = {"width": int, "norms": dict, "biases": list} | {key: list for key in LISTS if key in record} | ({"rotation": str} if "rotation" in record else {})
    if not all(isinstance(record.get(key), kind) for key, kind in kinds.items()) or not all(
            isinstance(of, dict) and isinstance(of.get("eps"), float) and isinstance(of.get("width", 1), int)
            for of in record["norms"].values()) or not all(isinstance(name, str) for key in LISTS for name in record.get(key, [])):
        raise ValueError("config.json: the entry \"isonorm\" is not as isonorm convert writes it")
    if FORMS[record["form"]].rotated == (not record.get("rotation")):
        raise ValueError(f"config.json: the form {record['form']} and the rotation {record.get('rotation')} contradict each other")
    if record.get("rotation") and record.get("recentred"):
        raise ValueError(f"config.json: rows enter a rotated stream at {record['recentred'][0]}, which no weight rotates")
    return record


def filled(model, folder, dtype):
    """Fills a module that is no class of transformers from the folder; returns it with a report."""
    record = conversion_record(folder)
    shapes = shapes_of(folder, record["form"])
    report = adapt(model, record, shapes)
    if more := sorted(set(shapes) - set(model.state_dict())):
        raise ValueError(f"unexpected keys: {', '.join(more)}")
    model.load_state_dict({name: t for file in files_of(folder) for name, t in load_file(file).items()}, assign=True)
    return (model.to(dtype) if dtype else model).eval(), report


def built(folder, dtype, more):
    """The model, with a report on the changes to its class."""
    record, report = conversion_record(folder), []
    if "model_type" not in (of := json.loads((folder / "config.json").read_text())) and "architecture" in of:
        import timm

        return filled(timm.create_model(f"local-dir:{folder}", **more), folder, dtype)
    import transformers

    shapes = shapes_of(folder, record["form"])
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    name = next(iter(config.architectures or []), "")
    stock = getattr(transformers, next((n for n in dir(transformers) if n.lower() == name.lower()), ""), None)
    if not (isinstance(stock, type) and issubclass(stock, transformers.PreTrainedModel)):
        raise ValueError(f"transformers {transformers.__version__} has no class '{name}'")

    def init(self, config, *args, **kwargs):
        stock.__init__(self, config, *args, **kwargs)
        report.append(adapt(self, record, shapes))

    # Keeps the stock class's name and module: transformers renames tensors by them.
    cls = type(stock.__name__, (stock,), {"__init__": init, "__module__": stock.__module__, "_keys_to_ignore_on_load_unexpected": [
        *(stock._keys_to_ignore_on_load_unexpected or []), MASKS]})
    model, found = cls.from_pretrained(folder, config=config, dtype=dtype or "auto", output_loading_info=True, **more)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if found.get(what):
            raise ValueError(f"{what.replace('_', ' ')}: {', '.join(map(str, sorted(found[what])))}")
    return model, report[-1]


def load(folder, dtype=None, model=None, **more):
    """The model, in evaluation mode; `dtype`: that of the file where none is given; `model`: the module to change and to fill, where
    config.json names none; `more`: as from_pretrained, or timm.create_model, takes it. Throws
    ValueError, of one line, where the folder is not of isonorm convert, or of another version of it, and where a tensor is missing, is
    of another shape or has no place."""
    try:
        model, report = filled(model, Path(folder), dtype) if model is not None else built(Path(folder), dtype, more)
    except (ValueError, OSError, SafetensorError) as error:
        raise ValueError(f"{folder}: " + str(error).partition("\n")[0]) from error
    print(f"{folder}: {report}", file=sys.stderr)
    return model


if __name__ == "__main__":
    load(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
