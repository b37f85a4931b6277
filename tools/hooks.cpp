// isonorm hooks SPEC: the Python program that records a reference for isonorm convert.
#include <cstdio>

#include "streams/layout.h"
#include "tools/model_data.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

// Around the description, which has no three quotes in a row, being JSON.
constexpr const char* kBefore =
    R"py("""What the readers and writers of a model see and make, for isonorm convert --reference. Printed by isonorm hooks.

    import numpy, record
    rows = record.record(model, lambda: model(ids))  # a torch.nn.Module; a run as users run it
    numpy.savez("reference.npz", **rows)

Run the model in f64 where that is possible (model.double()): then rounding hides least.
"""
import json
import re

SPEC = json.loads(r""")py";
constexpr const char* kBehind = R"py(""")


def matched(entries, names):
    """(name, value) for each of the names that an entry has; what a * stands for is the same in the value."""
    for pattern, value in entries.items():
        parts = re.split(r"(\*\*|\*)", pattern)
        form = re.compile("".join({"**": "(.+)", "*": r"([^.]+)"}.get(part, re.escape(part)) for part in parts))
        for name in names:
            if found := form.fullmatch(name):
                stood_for = iter(found.groups())
                yield name, re.sub(r"\*\*|\*", lambda _: next(stood_for), value)


def record(model, run, prefix=None):
    """NAME.input and NAME.output as arrays. `prefix` is what the model's names have before the file's; without it the
    shortest that fits is taken."""
    import torch

    modules = dict(model.named_modules(remove_duplicate=False))
    readers = {name: entry["norm"] for name, entry in SPEC.get("readers", {}).items()}
    writers = {name if name.endswith((".weight", ".bias")) else name + ".weight": "" for name in SPEC.get("writers", {})}
    if prefix is None:
        layers = [name.removesuffix(".weight") for name in readers]
        forms = [re.escape(layer).replace(r"\*\*", ".+").replace(r"\*", r"[^.]+") + "$" for layer in layers]
        found = [name[:at.start()] for name in modules for form in forms if (at := re.search(form, name))]
        prefix = min(found, key=len, default="")
    names = [name.removeprefix(prefix) + ".weight" for name in modules]
    rows, tables, normed, handles = {}, {}, {}, []

    def keep(name, x):
        rows.setdefault(name, x.detach().cpu().clone())  # programs add in place

    def module(name):
        return modules.get(prefix + name, modules.get(name))

    def after(layer, hook):
        handles.append(layer.register_forward_hook(lambda _, x, more, y: hook((*x, *more.values())[0], y),
                                                   with_kwargs=True))

    def reader(weight, norm):
        layer, before = module(weight.removesuffix(".weight")), module(norm)

        def read(x, y):
            stream, out = normed[norm]
            if x.shape != out.shape:  # some of the norm's rows: the layer is asked for all of them
                every = out.reshape(-1, out.shape[-1])
                if not all((row == every).all(-1).any() for row in x.reshape(-1, x.shape[-1])):
                    return
                y = layer.forward(out)
            keep(weight + ".input", stream), keep(weight + ".output", y)

        after(before, lambda x, y: normed.__setitem__(norm, (x.clone(), y.clone())))
        after(layer, read)

    def writer(weight):
        layer = module(weight.removesuffix(".weight"))

        def wrote(x, y):
            if isinstance(layer, torch.nn.Conv2d):  # rows of patches
                x = torch.nn.functional.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
                x, y = x.transpose(1, 2), y.flatten(2).transpose(1, 2)
            keep(weight + ".input", x), keep(weight + ".output", y)

        if isinstance(layer, torch.nn.Embedding):
            tables[id(layer.weight)] = weight
        else:
            after(layer, wrote)

    for weight, norm in matched(readers, names):
        reader(weight, norm)
    for entry in SPEC.get("tied", {}).values():
        if module(entry["head"].removesuffix(".weight")):
            reader(entry["head"], entry["norm"])
    for weight, _ in matched({name: "" for name in writers if name.endswith(".weight")}, names):
        writer(weight)

    embedding = torch.nn.functional.embedding

    def embedded(ids, table, *rest, **more):
        y = embedding(ids, table, *rest, **more)
        if id(table) in tables:
            keep(tables[id(table)] + ".input", ids), keep(tables[id(table)] + ".output", y)
        return y

    torch.nn.functional.embedding = embedded
    try:
        with torch.no_grad():
            run()
    finally:
        torch.nn.functional.embedding = embedding
        for handle in handles:
            handle.remove()
    return {name: x.numpy() for name, x in rows.items()}
)py";

int run(const std::string& spec) {
  check_outputs({}, {{"SPEC", spec}});
  const std::string json = spec_text(spec);
  const Scope scope(spec);
  streams::Layout::from_json(json);  // throws for what convert would not read
  std::printf("%s%s%s", kBefore, json.c_str(), kBehind);
  return kOk;
}

}  // namespace

Verb add_hooks(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "hooks", "Print a Python program that records what a PyTorch model computes, for convert --reference");
  auto spec = std::make_shared<std::string>();
  command->add_option("SPEC", *spec, "the JSON file of convert --spec (docs/conversion.md)")->required();
  command->footer("Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads.");
  return {command, [spec] { return run(*spec); }};
}

}  // namespace isonorm::tools
