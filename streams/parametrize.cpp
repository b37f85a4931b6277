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

std::string module_of(const std::string& tensor) {
  const size_t dot = tensor.rfind('.');
  return dot == tensor.npos ? "" : tensor.substr(0, dot);
}

// Throws if a parameter of the module at `path` has a parametrisation of its own, though the stored tensor is mapped or
// folded.
void check_stored(const Parameter& p, const std::string& path) {
  check(!nn::has_added(p.parametrisations()), "layout: a parameter of '", path,
        "' has a parametrisation of its own, and its stored values are to be mapped or folded");
}

// Removes the parametrisations that an earlier stream attached to a parameter.
void free(Parameter& p) {
  if (!find<Attached>(p.parametrisations())) return;
  nn::Parametrisations own = p.parametrisations();
  std::erase_if(own, [](const auto& by) { return dynamic_cast<const Attached*>(by.get()); });
  p.set_parametrisations(std::move(own));
}

// Makes the norm compute the formula of `kind`, with its own eps and p.
void set_kind(Norm& norm, NormKind kind) { norm.set_spec({kind, norm.eps(), norm.spec().p}); }

// Forward hook of a norm on a stream that stores d - 1 of d entries: restores the d entries of each row, then applies
// the norm's gain and bias to them.
struct GainOfExpanded {
  Stream stream;
  Tensor gain, offset;
  Tensor operator()(const Module&, const Tensor&, const Tensor& rows) const {
    const Tensor product = wide(stream.expand(rows), rows) * wide(gain, rows);
    return (offset.defined() ? product + wide(offset, rows) : product).to(rows.dtype());
  }
};

// A layout that was resolved against the layers of a module: each writer, reader and norm with the object that a stream
// changes. The constructor throws and changes nothing; attach() changes everything and does not throw.
class ModulePlan {
 public:
  ModulePlan(Module& model, const Layout& layout, const Stream& stream)
      : model_(model), layout_(layout), stream_(stream), mapped_(stream.storage() == Stored::mapped) {
    find_layers();
    describe_tensors();
    for (const auto& [path, linear] : linears_) add_linear(path, *linear);
    for (const auto& [path, table] : tables_) add_table(path, *table);
    for (const auto& [name, parameter] : parameters_) add_parameter(name, *parameter);
    add_norms();
  }

  void attach() const {
    for (const auto& [_, linear] : linears_)  // a tied weight and a missing bias are not in named_parameters()
      free(linear->weight), free(linear->bias);
    for (const nn::NamedParameter& p : model_.named_parameters()) free(*model_.find_parameter(p.name));
    for (const auto& [_, norm] : norms_) set_kind(*norm, norm->kind());
    for (const auto& [_, connection] : connections_) connection->project_by({});
    for (const Writer& w : writers_) attach(w);
    for (const Reader& r : readers_) attach(r);
    for (const auto& [_, norm] : on_stream_) attach(*norm);
  }

  std::vector<std::string> norms() const {
    std::vector<std::string> paths;
    for (const auto& [path, _] : on_stream_) paths.push_back(path);
    return paths;
  }

 private:
  struct Writer {
    Parameter* tensor;
    int dim;
    bool table;
  };
  struct Reader {
    Linear* layer;
    const Norm* norm;
  };

  void find_layers() {
    for (const auto& [path, m] : model_.named_modules()) {
      if (auto* linear = dynamic_cast<Linear*>(m)) linears_[path] = linear;
      if (auto* table = dynamic_cast<Embedding*>(m)) tables_[path] = table;
      if (auto* connection = dynamic_cast<Connection*>(m)) connections_[path] = connection;
      if (auto* norm = dynamic_cast<Norm*>(m)) norms_[path] = norm;
    }
    for (const nn::NamedParameter& p : model_.named_parameters()) {
      for (const std::string& alias : p.aliases) {
        const auto linear = linears_.find(module_of(alias));
        check((linear != linears_.end() && linear->second->tied()) ||
                  !(alias.ends_with("weight") || alias.ends_with("bias")),
              "layout: '", alias, "' was assigned '", p.name,
              "'; on a stream a head reads with Linear::tied_to(table)");
      }
      const std::string layer = module_of(p.name), last = p.name.substr(p.name.rfind('.') + 1);
      const auto linear = linears_.find(layer);
      const bool of_linear =
          linear != linears_.end() &&
          (last == "weight" || last == "bias" || (last == "scale" && dynamic_cast<BranchOutput*>(linear->second)));
      const bool of_table = tables_.contains(layer) && last == "weight";
      if (!of_linear && !of_table && !norms_.contains(layer)) parameters_[p.name] = model_.find_parameter(p.name);
    }
  }

  // The layout's description of every tensor that does not belong to a norm.
  void describe_tensors() {
    std::vector<std::string> names;
    for (const auto& [path, linear] : linears_) {
      names.push_back(tensor_of(path, "weight"));
      if (linear->bias.defined()) names.push_back(tensor_of(path, "bias"));
    }
    for (const auto& [path, table] : tables_) names.push_back(tensor_of(path, "weight"));
    for (const auto& [name, parameter] : parameters_) names.push_back(name);
    const std::vector<Layout::Entry> entries = layout_.entries_of(names);
    check(!layout_.of_files(),
          "layout: a table's norm, a reader's parts and \"recentre\" describe checkpoints, not modules");
    for (size_t i = 0; i < names.size(); ++i) entries_[names[i]] = entries[i];
    for (const Layout::Tied& t : layout_.tied()) {
      const auto head = entries_.find(t.weight);
      check(head != entries_.end(), "layout: tied \"", t.table, "\": the model has no head '", t.weight, "'");
      head->second = {.role = Role::reader, .norm = t.norm, .known = true};
    }
    check(layout_.width() == 0 || layout_.width() == stream_.width(), "layout: its width is ", layout_.width(),
          ", the stream's ", stream_.width());
  }

  const Layout::Entry& entry_of(const std::string& tensor, int axis) const {
    const Layout::Entry& e = entries_.at(tensor);
    check(e.role == Role::neutral || e.dim < 0 || e.dim == axis, "layout: the stream is dimension ", e.dim, " of '",
          tensor, "', of its layer's weight it is ", axis);
    return e;
  }

  void check_width(const std::string& path, const char* what, int64_t width) const {
    check(width == stream_.width(), "layout: ", path, ' ', what, ' ', width, ", the stream's width is ",
          stream_.width());
  }

  void add_writer(const std::string& path, Parameter& tensor, int dim, bool table = false) {
    check_width(path, "writes", tensor.size(dim));
    if (mapped_) check_stored(tensor, path);
    writers_.push_back({&tensor, dim, table});
  }

  void add_linear(const std::string& path, Linear& linear) {
    const std::string weight = tensor_of(path, "weight"), bias = tensor_of(path, "bias");
    auto* branch = dynamic_cast<BranchOutput*>(&linear);
    const bool reads = entries_.at(weight).role == Role::reader;
    const Layout::Entry& e = entry_of(weight, reads ? 1 : 0);
    const bool writes = e.role == Role::writer;
    check(!linear.bias.defined() || (entries_.at(bias).role == Role::writer) == writes, "layout: '",
          writes ? weight : bias, "' is a writer, and '", writes ? bias : weight, "' is none");
    check(e.scale.empty() || (branch && e.scale == tensor_of(path, "scale")), "layout: the layer scale '", e.scale,
          "' does not belong to a BranchOutput '", path, "'");
    if (writes && branch) check_branch(branch->options());
    if (writes) add_writer(path, linear.weight, 0);
    if (writes && linear.bias.defined()) add_writer(path, linear.bias, 0);
    if (!reads) return;
    check(!branch, "layout: '", path, "' ends a branch, which reads no rows of the stream");
    const auto norm = norms_.find(e.norm);
    check(norm != norms_.end(), "layout: '", path, "' reads through '", e.norm, "', which is not a norm of this model");
    on_stream_.insert(*norm);
    add_reader(path, linear, *norm->second);
  }

  // Mapped storage has no place for dropout and layer scale.
  void check_branch(const nn::BranchOptions& o) const {
    check((o.dropout == 0 && o.layer_scale == 0) || !stream_.centres() || !mapped_, "branch: dropout ", o.dropout,
          " and layer scale ", o.layer_scale, " act on the ", stream_.width(),
          " entries of a raw branch, which mapped storage of ", name_of(stream_.form()),
          " does not hold; use raw storage");
  }

  void add_reader(const std::string& path, Linear& reader, const Norm& norm) {
    const auto* connection = dynamic_cast<const Connection*>(&norm);
    if (connection && !connection->reads_residual()) return;  // its readers get no rows of the stream
    readers_.push_back({&reader, &norm});
    if (reads_table(reader))
      return check(
          !layout_.embeddings_are_read() && norm.parameters().empty(), "layout: tied head '", path,
          "' needs raw storage: it reads through a norm with a gain, or the first branch reads the embeddings, "
          "so the means of the raw rows are seen");
    check_width(path, "reads", reader.weight.size(1));
    if (mapped_ && !reader.tied()) check_stored(reader.weight, path);
    if (hands_over(norm, stream_)) check_stored(reader.weight, path), check_stored(reader.bias, path);
  }

  // A tied head reads with a table of mapped rows without a mean.
  bool reads_table(const Linear& reader) const { return reader.tied() && mapped_ && stream_.centres(); }

  void add_table(const std::string& path, Embedding& table) {
    const std::string weight = tensor_of(path, "weight");
    check(entries_.at(weight).role != Role::reader, "layout: '", path, "' is an embedding, which reads no rows");
    if (entry_of(weight, 1).role == Role::writer) add_writer(path, table.weight, 1, true);
  }

  void add_parameter(const std::string& name, Parameter& parameter) {
    const Layout::Entry& e = entries_.at(name);
    check(e.role != Role::reader, "layout: '", name, "' is not a linear map, so it cannot read rows");
    check(e.role != Role::writer || e.dim >= 0 || std::ranges::count(parameter.shape(), stream_.width()) < 2,
          "layout: which dimension of '", name, "' of shape ", parameter.shape(), " is the stream is not said");
    check(e.dim < parameter.rank(), "layout: '", name, "' of shape ", parameter.shape(), " has no dimension ", e.dim);
    if (e.role == Role::writer) add_writer(name, parameter, e.dim < 0 ? parameter.rank() - 1 : e.dim);
  }

  // The norms that a reader reads through or that the layout names, and the connections that they are part of.
  void add_norms() {
    for (const auto& [path, norm] : norms_)
      if (layout_.norm_of(path)) on_stream_[path] = norm;
    for (const auto& [path, connection] : connections_)
      if (std::ranges::any_of(on_stream_, [&, &path = path](const auto& n) { return path.starts_with(n.first + '.'); }))
        on_stream_[path] = connection;
    bool normed = on_stream_.empty() || !row_of(stream_.form()).normed();
    for (const auto& [path, norm] : on_stream_) {
      check_norm(path, *norm);
      normed = normed || norm->kind() != NormKind::none;
    }
    check(normed, "layout: no norm of the model normalizes; ", name_of(stream_.form()), " is another function's form");
    for (const auto& [pattern, _] : layout_.norms())
      check(std::ranges::any_of(on_stream_,
                                [&, &pattern = pattern](const auto& n) {
                                  const auto* of = layout_.norm_of(n.first);
                                  return of && of->first == pattern;
                                }),
            "layout: no tensor or reader is of a norm \"", pattern, "\"");
  }

  void check_norm(const std::string& path, const Norm& norm) const {
    const auto* described = layout_.norm_of(path);
    check(!described || described->second.eps == norm.eps(), "layout: norm '", path, "' has eps ",
          described ? described->second.eps : 0, ", in the model ", norm.eps());
    check(!layout_.keeps(path) && !(described && described->second.plus_one), "layout: norm '", path,
          "': a gain that is stored as 1+w, or kept, is of files alone");
    const auto* connection = dynamic_cast<const Connection*>(&norm);
    check(!connection || connection->reads_residual() || !stream_.centres_readers(),
          "layout: readers are to be centred, though not all rows that they read are of the stream");
    const NormKind own = norm.kind();
    const FormRow& form = row_of(stream_.form());
    check(norm.width() == stream_.width(), "layout: norm '", path, "' is of width ", norm.width(),
          ", the stream's width is ", stream_.width());
    check(!form.layer_norm_model() || own == NormKind::layer || own == NormKind::none, "layout: norm '", path, "' is ",
          name_of(own), ", which sees the mean of its rows; ", form.name,
          " is LayerNorm's model, whose rows have none");
    check(form.layer_norm_model() || own == form.norm || own == NormKind::none, "layout: norm '", path, "' is ",
          name_of(own), "; ", form.name, " is another function's form");
    check(!hands_over(norm, stream_) || !mapped_, "norm: readers are to take up its learned gain of ", stream_.width(),
          " entries, and mapped parameters of ", form.name, " have no place for it; use raw storage");
    if (gain_is_apart(norm)) check_stored(norm.weight, path), check_stored(norm.bias, path);
  }

  // Gain and bias act on d entries. If the stored rows have d - 1 entries, or if readers fold gain and bias in, the norm
  // does not apply them itself.
  bool gain_is_apart(const Norm& norm) const {
    return hands_over(norm, stream_) || (norm.weight.defined() && row_of(stream_.form()).compressed());
  }

  // With mapped storage the stored values are mapped once, and the parametrisations map nothing.
  void attach(const Writer& w) const {
    const NoGrad no_grad;
    if (mapped_) w.tensor->store(stream_.map_writer(detach(*w.tensor), w.dim));
    if (w.table)
      w.tensor->parametrize(std::make_shared<WritesRows>(stream_));
    else
      w.tensor->parametrize(std::make_shared<Writes>(stream_, w.dim));
  }

  void attach(const Reader& r) const {
    const NoGrad no_grad;
    Parameter &weight = r.layer->weight, &bias = r.layer->bias;
    if (reads_table(*r.layer)) return weight.parametrize(std::make_shared<ReadsTable>(stream_, *r.norm));
    if (mapped_ && !r.layer->tied()) weight.store(stream_.map_reader(detach(weight)));
    weight.parametrize(std::make_shared<Reads>(stream_, *r.norm));
    if (hands_over(*r.norm, stream_) && r.norm->bias.defined())
      bias.parametrize(std::make_shared<ReadsBias>(*r.norm, weight));
  }

  // Puts the norm into the stream's coordinates.
  void attach(Norm& norm) const {
    const FormRow& form = row_of(stream_.form());
    if (auto* connection = dynamic_cast<Connection*>(&norm))
      connection->project_by([stream = stream_](const Tensor& rows) { return stream.map_writer(rows, -1); });
    set_kind(norm, norm.kind() == NormKind::layer && form.layer_norm_model() ? form.norm : norm.kind());
    if (!gain_is_apart(norm)) return;
    nn::ModuleHookHandle hook;
    if (!hands_over(norm, stream_))
      hook = norm.on_forward(GainOfExpanded{stream_, norm.weight.stored(), norm.bias.stored()});
    norm.weight.parametrize(std::make_shared<AppliedElsewhere>(hook));
    if (norm.bias.defined()) norm.bias.parametrize(std::make_shared<AppliedElsewhere>());
  }

  Module& model_;
  const Layout& layout_;
  const Stream stream_;
  const bool mapped_;  // parameters are stored mapped
  ByPath<Linear> linears_;
  ByPath<Embedding> tables_;
  ByPath<Norm> norms_;
  ByPath<Connection> connections_;
  ByPath<Parameter> parameters_;  // all other parameters
  std::map<std::string, Layout::Entry> entries_;
  std::vector<Writer> writers_;
  std::vector<Reader> readers_;
  ByPath<Norm> on_stream_;
};

}  // namespace

void parametrize(Module& model, const Layout& layout, const Stream& stream) {
  each_stream(model, [](const Stream& on) {
    check(on.storage() == Stored::raw, "layout: the model's parameters are mapped to a stream already");
  });
  const bool empty = layout.entries().empty() && layout.norms().empty() && layout.tied().empty();
  check(!empty || row_of(stream.form()).raw(), "layout: it is empty, so ", name_of(stream.form()),
        " would change nothing: a layout needs writers and readers (Layout::writes, Layout::reads)");
  const ModulePlan plan(model, layout, stream);
  plan.attach();
  for (const auto& [_, m] : model.named_modules()) m->redo({});
  bool on = false;
  each_stream(model, [&](const Stream&) { on = true; });
  if (on || !plan.norms().empty()) model.redo(PutOn{layout, stream, plan.norms()});
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

StreamWatch::StreamWatch(nn::Module& model, See see) {
  std::set<std::string> norms;
  for (const auto& [path, _] : norms_of(model)) norms.insert(path);
  for (const auto& [path, module] : model.named_modules()) {
    if (!norms.contains(path)) continue;
    hooks_.push_back(
        module->on_forward([see, path = path](const nn::Module&, const Tensor& rows, const Tensor& normed) {
          see(path, rows);
          return normed;
        }));
  }
}

StreamWatch::~StreamWatch() {
  for (nn::ModuleHookHandle& hook : hooks_) hook.remove();
}

}  // namespace isonorm::streams
