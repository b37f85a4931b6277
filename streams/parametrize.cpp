#include "streams/parametrize.h"

#include <algorithm>
#include <map>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "streams/attached.h"

namespace isonorm::streams {

using nn::BranchOutput;
using nn::Connection;
using nn::Embedding;
using nn::Linear;
using nn::Module;
using nn::Norm;
using nn::Parameter;

namespace {

// Calls f(stream) for each parameter that is on a stream.
template <class F> void each_stream(const Module& model, F&& f) {
  for (const nn::NamedParameter& p : model.named_parameters())
    if (const auto* on = find<OnStream>(p.parametrisations)) f(on->stream);
}

// The change that clone() repeats on a copy (Module::redo). A copy whose constructor put it on this stream is left
// alone.
struct PutOn {
  Layout layout;
  Stream stream;
  std::vector<std::string> norms;  // paths of the norms on the stream
  void operator()(Module& copy) const {
    const Stream* const on = stream_of(copy);
    if (!on || !(*on == stream)) parametrize(copy, layout, stream);
  }
};

template <class M> using ByPath = std::map<std::string, M*>;

std::string tensor_of(const std::string& path, const char* tensor) {
  return path.empty() ? tensor : text(path, '.', tensor);
}

void check_axis(const std::string& name, const Layout::Entry& e, int axis) {
  check(e.role == Role::neutral || e.dim < 0 || e.dim == axis, "layout: the stream is dimension ", e.dim, " of '", name,
        "', of its layer's weight it is ", axis);
}

// Throws if a parameter of the module at `path` has a parametrisation of its own, though the stored tensor is mapped or
// folded.
void check_stored(const Parameter& p, const std::string& path) {
  check(!has_own(p.parametrisations()), "layout: a parameter of '", path,
        "' has a parametrisation of its own, and its stored values are to be mapped or folded");
}

// Removes the parametrisations that an earlier stream attached to a parameter or layer.
void free(Parameter& p) {
  if (!find<Attached>(p.parametrisations())) return;
  nn::Parametrisations own = p.parametrisations();
  std::erase_if(own, [](const auto& by) { return dynamic_cast<const Attached*>(by.get()); });
  p.set_parametrisations(std::move(own));
}
void free(Linear& linear) {
  free(linear.weight), free(linear.bias);  // a tied weight and a missing bias are not in named_parameters()
}

// The norm computes the formula of this kind.
void set_kind(Norm& norm, NormKind kind) { norm.set_spec({kind, norm.eps(), norm.spec().p}); }

void check_width(const std::string& path, const char* what, int64_t width, const Stream& stream) {
  check(width == stream.width(), "layout: ", path, ' ', what, ' ', width, ", the stream's width is ", stream.width());
}

// With mapped storage: maps the stored values, once. The parametrisations attached later then map nothing.
void store(const Parameter& p, const std::string& path, const Stream& stream, bool change, Role role, int dim) {
  if (stream.storage() == Stored::raw) return;
  check_stored(p, path);
  if (!change) return;
  const NoGrad no_grad;
  const Tensor now = detach(p);
  p.store(role == Role::writer ? stream.map_writer(now, dim) : stream.map_reader(now));
}

void put_writer(Parameter& p, const std::string& path, const Stream& stream, bool change, int dim) {
  check_width(path, "writes", p.size(dim), stream);
  store(p, path, stream, change, Role::writer, dim);
  if (change) p.parametrize(std::make_shared<Writes>(stream, dim));
}

// Mapped storage has no place for dropout and layer scale.
void check_branch(const nn::BranchOptions& o, const Stream& stream) {
  check((o.dropout == 0 && o.layer_scale == 0) || !stream.centres() || stream.storage() == Stored::raw,
        "branch: dropout ", o.dropout, " and layer scale ", o.layer_scale, " act on the ", stream.width(),
        " entries of a raw branch, which mapped storage of ", name_of(stream.form()),
        " does not hold; use raw storage");
}

void put_table(Embedding& table, const std::string& path, const Stream& stream, bool change) {
  check_width(path, "writes", table.weight.size(1), stream);
  store(table.weight, path, stream, change, Role::writer, 1);
  if (change) table.weight.parametrize(std::make_shared<WritesRows>(stream));
}

void put_linear(Linear& linear, const std::string& path, const Stream& stream, bool change) {
  if (const auto* branch = dynamic_cast<const BranchOutput*>(&linear)) check_branch(branch->options(), stream);
  put_writer(linear.weight, path, stream, change, 0);
  if (linear.bias.defined()) put_writer(linear.bias, path, stream, change, 0);
}

// True if the readers behind the norm get rows of the stream.
bool gives_stream(const Norm& norm) {
  const auto* connection = dynamic_cast<const Connection*>(&norm);
  return !connection || connection->reads_residual();
}

void put_reader(Linear& reader, const std::string& path, const Norm& norm, const Stream& stream, bool change,
                bool reads_embeddings) {
  if (!gives_stream(norm)) return;
  const bool mapped = stream.storage() == Stored::mapped;
  if (reader.tied() && mapped && stream.centres()) {
    check(!reads_embeddings && norm.parameters().empty(), "layout: tied head '", path,
          "' behind a norm with a gain, or with connections whose first branch reads the bare embeddings, needs raw "
          "storage: the means of the raw rows are seen");
    if (change) reader.weight.parametrize(std::make_shared<ReadsTable>(stream, norm));
    return;
  }
  if (reader.tied() && !change) check_width(path, "reads", reader.weight.size(1), stream);
  if (!reader.tied()) {
    check_width(path, "reads", reader.weight.size(1), stream);
    store(reader.weight, path, stream, change, Role::reader, 1);
  }
  const bool folds = hands_over(norm, stream);
  if (folds) check_stored(reader.weight, path), check_stored(reader.bias, path);
  if (!change) return;
  reader.weight.parametrize(std::make_shared<Reads>(stream, norm));
  if (folds && norm.bias.defined()) reader.bias.parametrize(std::make_shared<ReadsBias>(norm, reader.weight));
}

// A norm's gain and bias on the d entries of rows of which the stream stores d - 1: a hook after the norm.
struct GainOfExpanded {
  Stream stream;
  Tensor gain, offset;
  Tensor operator()(const Module&, const Tensor&, const Tensor& rows) const {
    const Tensor product = wide(stream.expand(rows), rows) * wide(gain, rows);
    return (offset.defined() ? product + wide(offset, rows) : product).to(rows.dtype());
  }
};

// Puts the norm into the stream's coordinates. Gain and bias act on d entries. If the stored rows have d - 1 entries,
// or if readers fold gain and bias in, the norm does not apply them itself.
void put_norm(Norm& norm, const std::string& path, const Stream& stream, bool change) {
  const NormKind own = norm.kind();
  const FormRow& form = row_of(stream.form());
  check(norm.width() == stream.width(), "layout: norm '", path, "' is of width ", norm.width(),
        ", the stream's width is ", stream.width());
  check(!form.layer_norm_model() || own == NormKind::layer || own == NormKind::none, "layout: norm '", path, "' is ",
        name_of(own), ", which sees the mean of its rows; ", form.name, " is LayerNorm's model, whose rows have none");
  check(form.layer_norm_model() || own == form.norm || own == NormKind::none, "layout: norm '", path, "' is ",
        name_of(own), "; ", form.name, " is another function's form");
  const bool gained = norm.weight.defined(), over = hands_over(norm, stream),
             apart = over || (gained && form.compressed());
  check(!over || stream.storage() == Stored::raw, "norm: readers are to take up its learned gain of ", stream.width(),
        " entries, and mapped parameters of ", form.name, " have no place for it; use raw storage");
  if (apart) check_stored(norm.weight, path), check_stored(norm.bias, path);
  if (!change) return;
  set_kind(norm, own == NormKind::layer && form.layer_norm_model() ? form.norm : own);
  if (!apart) return;
  nn::ModuleHookHandle hook;
  if (!over) hook = norm.on_forward(GainOfExpanded{stream, norm.weight.stored(), norm.bias.stored()});
  norm.weight.parametrize(std::make_shared<AppliedElsewhere>(hook));
  if (norm.bias.defined()) norm.bias.parametrize(std::make_shared<AppliedElsewhere>());
}

}  // namespace

void parametrize(Module& model, const Layout& layout, const Stream& stream) {
  each_stream(model, [](const Stream& on) {
    check(on.storage() == Stored::raw, "layout: the model's parameters are mapped to a stream already");
  });
  const bool empty = layout.entries().empty() && layout.norms().empty() && layout.tied().empty();
  check(!empty || row_of(stream.form()).raw(), "layout: it is empty, so ", name_of(stream.form()),
        " would change nothing; it names writers and readers (Layout::writes, Layout::reads)");
  ByPath<Linear> linears;
  ByPath<Embedding> tables;
  ByPath<Norm> norms;
  ByPath<Connection> connections;
  ByPath<Parameter> parameters;  // all other parameters
  for (const auto& [path, m] : model.named_modules()) {
    if (auto* linear = dynamic_cast<Linear*>(m)) linears[path] = linear;
    if (auto* table = dynamic_cast<Embedding*>(m)) tables[path] = table;
    if (auto* connection = dynamic_cast<Connection*>(m)) connections[path] = connection;
    if (auto* norm = dynamic_cast<Norm*>(m)) norms[path] = norm;
  }
  const auto layer_of = [](const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == name.npos ? "" : name.substr(0, dot);
  };
  for (const nn::NamedParameter& p : model.named_parameters()) {
    for (const std::string& alias : p.aliases) {
      const auto linear = linears.find(layer_of(alias));
      check((linear != linears.end() && linear->second->tied()) ||
                !(alias.ends_with("weight") || alias.ends_with("bias")),
            "layout: '", alias, "' was assigned '", p.name, "'; on a stream a head reads with Linear::tied_to(table)");
    }
    const std::string layer = layer_of(p.name), last = p.name.substr(p.name.rfind('.') + 1);
    const auto linear = linears.find(layer);
    const bool of_linear =
        linear != linears.end() &&
        (last == "weight" || last == "bias" || (last == "scale" && dynamic_cast<BranchOutput*>(linear->second)));
    const bool of_table = tables.contains(layer) && last == "weight";
    if (!of_linear && !of_table && !norms.contains(layer)) parameters[p.name] = model.find_parameter(p.name);
  }

  // The layout's description of every tensor that does not belong to a norm.
  std::vector<std::string> names;
  for (const auto& [path, linear] : linears) {
    names.push_back(tensor_of(path, "weight"));
    if (linear->bias.defined()) names.push_back(tensor_of(path, "bias"));
  }
  for (const auto& [path, table] : tables) names.push_back(tensor_of(path, "weight"));
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  std::map<std::string, Layout::Entry> said;
  const std::vector<Layout::Entry> entries = layout.entries_of(names);
  check(!layout.of_files(),
        "layout: a norm behind a table, a reader's parts and \"recentre\" are of files, not of modules");
  for (size_t i = 0; i < names.size(); ++i) said[names[i]] = entries[i];
  for (const Layout::Tied& t : layout.tied()) {
    const auto head = said.find(t.weight);
    check(head != said.end(), "layout: tied \"", t.table, "\": the model has no head '", t.weight, "'");
    head->second = {.role = Role::reader, .norm = t.norm, .known = true};
  }
  check(layout.width() == 0 || layout.width() == stream.width(), "layout: its width is ", layout.width(),
        ", the stream's ", stream.width());

  // The first pass (change = false) only checks, so that nothing has changed if it throws.
  std::map<Norm*, std::string> of_stream;  // norms that a reader reads through or that the layout names
  const auto put = [&](bool change) {
    for (const auto& [path, norm] : norms)
      if (layout.norm_of(path)) of_stream[norm] = path;
    for (const auto& [path, linear] : linears) {
      const std::string weight = tensor_of(path, "weight"), bias = tensor_of(path, "bias");
      const Layout::Entry& e = said[weight];
      check_axis(weight, e, e.role == Role::reader ? 1 : 0);
      check(!linear->bias.defined() || (said[bias].role == Role::writer) == (e.role == Role::writer), "layout: '",
            e.role == Role::writer ? weight : bias, "' is a writer, and '", e.role == Role::writer ? bias : weight,
            "' is none");
      check(e.scale.empty() || (dynamic_cast<BranchOutput*>(linear) && e.scale == tensor_of(path, "scale")),
            "layout: the layer scale '", e.scale, "' is not that of a BranchOutput '", path, "'");
      if (e.role == Role::writer) put_linear(*linear, path, stream, change);
      if (e.role != Role::reader) continue;
      check(!dynamic_cast<BranchOutput*>(linear), "layout: '", path,
            "' ends a branch, which reads no rows of the stream");
      const auto norm = norms.find(e.norm);
      check(norm != norms.end(), "layout: '", path, "' reads through '", e.norm, "', which is no norm of this model");
      of_stream[norm->second] = e.norm;
      put_reader(*linear, path, *norm->second, stream, change, layout.embeddings_are_read());
    }
    for (const auto& [path, table] : tables) {
      const Layout::Entry& e = said[tensor_of(path, "weight")];
      check(e.role != Role::reader, "layout: '", path, "' is an embedding, which reads no rows");
      check_axis(tensor_of(path, "weight"), e, 1);
      if (e.role == Role::writer) put_table(*table, path, stream, change);
    }
    for (const auto& [name, parameter] : parameters) {
      const Layout::Entry& e = said[name];
      check(e.role != Role::reader, "layout: '", name, "' is no linear map, which could read rows");
      const auto wide = std::ranges::count(parameter->shape(), stream.width());
      check(e.role != Role::writer || e.dim >= 0 || wide < 2, "layout: which dimension of '", name, "' of shape ",
            parameter->shape(), " is the stream is not said");
      check(e.dim < parameter->rank(), "layout: '", name, "' of shape ", parameter->shape(), " has no dimension ",
            e.dim);
      if (e.role == Role::writer)
        put_writer(*parameter, name, stream, change, e.dim < 0 ? parameter->rank() - 1 : e.dim);
    }
    for (const auto& [path, connection] : connections)  // inner norms of a connection that is on the stream
      if (std::ranges::any_of(of_stream, [&, &path = path](const auto& n) { return path.starts_with(n.second + '.'); }))
        of_stream[connection] = path;
    bool normed = of_stream.empty() || !row_of(stream.form()).normed();
    for (const auto& [norm, path] : of_stream) {
      const auto* said = layout.norm_of(path);
      check(!said || said->second.eps == norm->eps(), "layout: norm '", path, "' has eps ", said ? said->second.eps : 0,
            ", that of the model ", norm->eps());
      check(!layout.keeps(path) && !(said && said->second.plus_one), "layout: norm '", path,
            "': a gain that is stored as 1+w, or kept, is of files alone");
      normed = normed || norm->kind() != NormKind::none;
      if (auto* connection = dynamic_cast<Connection*>(norm)) {
        check(connection->reads_residual() || !stream.centres_readers(),
              "layout: readers are to be centred, though not all rows that they read are of the stream");
        if (change) connection->project_by([stream](const Tensor& rows) { return stream.map_writer(rows, -1); });
      }
      put_norm(*norm, path, stream, change);
    }
    check(normed, "layout: no norm of the model normalizes; ", name_of(stream.form()), " is another function's form");
    for (const auto& [pattern, _] : layout.norms())
      check(std::ranges::any_of(of_stream,
                                [&, &pattern = pattern](const auto& n) {
                                  const auto* of = layout.norm_of(n.second);
                                  return of && of->first == pattern;
                                }),
            "layout: no tensor or reader is of a norm \"", pattern, "\"");
  };
  put(false);
  for (const auto& [_, linear] : linears) free(*linear);
  for (const nn::NamedParameter& p : model.named_parameters()) free(*model.find_parameter(p.name));
  for (const auto& [_, norm] : norms) set_kind(*norm, norm->kind());
  for (const auto& [_, connection] : connections) connection->project_by({});
  put(true);
  for (const auto& [_, m] : model.named_modules()) m->redo({});
  bool on = false;
  each_stream(model, [&](const Stream&) { on = true; });
  PutOn put_on{layout, stream, {}};
  for (const auto& [_, path] : of_stream) put_on.norms.push_back(path);
  if (on || !of_stream.empty()) model.redo(std::move(put_on));
}

void bake(Module& model) {
  const PutOn* const on = model.redone().target<PutOn>();
  check(on != nullptr, "bake: the model was not put on a stream as a whole");
  const Layout layout = on->layout;
  const Stream& s = on->stream;
  parametrize(model, layout, Stream(s.form(), s.width(), Stored::mapped, s.centres_readers()));
}

std::vector<NamedParameter> named_parameters(const Module& module) {
  std::vector<NamedParameter> all;
  for (nn::NamedParameter& p : module.named_parameters()) {
    const auto* on = find<OnStream>(p.parametrisations);
    all.push_back({std::move(p), on ? on->role : Role::neutral, on ? on->dim : 0});
  }
  return all;
}

std::vector<std::string> unasked(Module& model) {
  std::vector<std::string> names;
  for (const nn::NamedParameter& p : model.named_parameters())
    if (find<OnStream>(p.parametrisations) && !model.find_parameter(p.name)->asked()) names.push_back(p.name);
  return names;
}

const Stream* stream_of(const Module& model) {
  const Stream* found = nullptr;
  each_stream(model, [&](const Stream& s) {
    if (!found) found = &s;
    check(s == *found, "layout: parts of the model are on different streams, ", name_of(found->form()), " of width ",
          found->width(), " and ", name_of(s.form()), " of width ", s.width());
  });
  return found;
}

const Norm* read_through(const Parameter& parameter) {
  const auto* reads = find<Reads>(parameter.parametrisations());
  return reads ? reads->norm : nullptr;
}

std::vector<std::pair<std::string, const Norm*>> norms_of(const Module& model) {
  const auto modules = model.named_modules();
  std::set<std::string> paths;
  std::set<const Norm*> read;
  for (const auto& [path, m] : modules) {
    if (const auto* on = m->redone().target<PutOn>())
      for (const std::string& norm : on->norms)
        paths.insert(path.empty() || norm.empty() ? path + norm : text(path, '.', norm));
    if (const auto* linear = dynamic_cast<const Linear*>(m)) read.insert(read_through(linear->weight));
  }
  std::vector<std::pair<std::string, const Norm*>> found;
  for (const auto& [path, m] : modules)
    if (const auto* norm = dynamic_cast<const Norm*>(m); norm && (paths.contains(path) || read.contains(norm)))
      found.emplace_back(path, norm);
  return found;
}

}  // namespace isonorm::streams
