#include "streams/plan.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/name_pattern.h"
#include "io/json_text.h"
#include "nn/branch.h"
#include "nn/residual/post_norm.h"
#include "streams/attached.h"
#include "streams/parametrize.h"

namespace isonorm::streams {

const Plan::Writer* Plan::writer(const std::string& name) const {
  const auto at = std::ranges::find(writers, name, &Writer::name);
  return at == writers.end() ? nullptr : &*at;
}

const Plan::Reader* Plan::reader(const std::string& name) const {
  const auto at = std::ranges::find(readers, name, &Reader::name);
  return at == readers.end() ? nullptr : &*at;
}

int Plan::dim_of(const std::string& tensor) const {
  if (const Writer* w = writer(tensor)) return w->dim;
  const Reader* r = reader(tensor);
  return r ? r->dim : -1;
}

bool Plan::is_read(const Norm& norm) const {
  return std::ranges::find(readers, &norm - norms.data(), &Reader::norm) != readers.end();
}
bool Plan::is_behind_table(const Norm& norm) const {
  return std::ranges::find(writers, &norm - norms.data(), &Writer::norm) != writers.end();
}

Plan plan_of(const nn::Module& module) {
  Plan plan;
  const Stream* const stream = stream_of(module);
  check(stream != nullptr, "layout: the model has no norm of a stream");
  plan.width = stream->width();
  const bool raw = stream->storage() == Stored::raw && row_of(stream->form()).layer_norm_model();
  plan.form = raw ? Form::layer_norm : stream->form();

  std::map<const nn::Norm*, int> index_of;
  std::set<std::string> of_norms;  // their gains and biases
  for (const auto& [name, norm] : norms_of(module)) {
    index_of[norm] = static_cast<int>(plan.norms.size());
    const auto* connection = dynamic_cast<const nn::Connection*>(norm);
    Plan::Norm n{.name = name,
                 .eps = norm->eps(),
                 .normalizes = norm->spec().kind != NormKind::none || dynamic_cast<const nn::PostEnd*>(norm),
                 .factor = norm->layer_options().factor,
                 .keeps_gain = norm->weight.defined() && connection && !connection->foldable()};
    if (norm->weight.defined() && !n.keeps_gain) {
      n.weight = text(name, ".weight");
      if (norm->bias.defined()) n.bias = text(name, ".bias");
      of_norms.insert({n.weight, n.bias});
    }
    plan.norms.push_back(n);
  }

  std::map<std::string, Plan::Reader> readers;  // by the name of the weight
  std::map<std::string, Tensor> tables;         // of tied heads
  std::map<std::string, std::string> scale_of;  // writer's name to layer scale's name
  std::set<std::string> biases;                 // of readers
  for (const auto& [path, m] : module.named_modules()) {
    const std::string weight = path.empty() ? "weight" : text(path, ".weight"), bias = bias_beside(weight);
    if (const auto* branch = dynamic_cast<const nn::BranchOutput*>(m); branch && branch->scale.defined())
      scale_of[weight] = scale_of[bias] = text(path, ".scale");
    const auto* linear = dynamic_cast<const nn::Linear*>(m);
    const nn::Norm* through = linear ? read_through(linear->weight) : nullptr;
    if (!through) continue;
    const auto at = index_of.find(through);
    check(at != index_of.end(), "layout: reader '", weight, "' reads through a norm outside of the model");
    check(!nn::has_added(linear->weight.parametrisations()), "layout: '", weight,
          "' has a parametrisation of its own, so the stored tensor is not the weight of its layer");
    readers[weight] = {.name = weight, .dim = 1, .norm = at->second, .bias = bias};
    biases.insert(bias);
    if (linear->tied()) tables[weight] = linear->weight;
  }

  const std::vector<NamedParameter> parameters = named_parameters(module);
  std::set<std::string> known = of_norms;  // parameters that are part of another entry
  known.insert(biases.begin(), biases.end());
  for (const NamedParameter& p : parameters)
    if (const auto scale = scale_of.find(p.name); p.role == Role::writer && scale != scale_of.end())
      known.insert(scale->second);
  for (const NamedParameter& p : parameters) {
    check((p.role == Role::neutral && !of_norms.contains(p.name)) || !nn::has_added(p.parametrisations), "layout: '",
          p.name, "' has a parametrisation of its own, so the stored tensor is not the weight of its layer");
    if (p.blind_end > p.blind_begin) plan.blind[p.name] = {p.blind_begin, p.blind_end};
    if (p.role == Role::writer) {
      const auto scale = scale_of.find(p.name);
      plan.writers.push_back(
          {.name = p.name, .dim = p.stream_dim, .scale = scale == scale_of.end() ? "" : scale->second});
    } else if (p.role == Role::reader) {
      const auto at = readers.find(p.name);
      check(at != readers.end(), "layout: reader '", p.name, "': which norm it reads through is not known");
      at->second.dim = p.stream_dim;
      plan.readers.push_back(at->second);
    } else if (!known.contains(p.name)) {
      plan.others.push_back({p.name});
    }
  }
  for (const auto& [name, _] : module.state_dict())
    if (std::ranges::find(parameters, name, &NamedParameter::name) == parameters.end())
      plan.others.push_back({name});  // a buffer
  for (const auto& [weight, tensor] : tables) {
    const auto table = std::ranges::find_if(
        parameters, [&of = tensor](const NamedParameter& p) { return p.tensor.handle() == of.handle(); });
    check(table != parameters.end(), "layout: '", weight, "' reads with a table that is not a parameter of the model");
    plan.readers.push_back(readers.at(weight));
    plan.readers.back().table = table->name;
  }
  return plan;
}

namespace {

// Resolves a layout against the tensors of a checkpoint.
class Resolver {
 public:
  Resolver(const Layout& layout, const TensorMap& state, bool converted, bool folds)
      : layout_(layout), state_(state), converted_(converted), folds_(folds) {}

  Plan resolve(Form form) {
    plan_.form = form, plan_.width = layout_.width(), plan_.recentred = layout_.recentred();
    const std::set<std::string> of_norms = add_norms();
    std::vector<std::string> names;
    for (const auto& [name, _] : state_)
      if (!of_norms.contains(name)) names.push_back(name);
    const std::vector<Layout::Entry> entries = layout_.entries_of(names);
    for (size_t i = 0; i < names.size(); ++i)
      if (entries[i].known) add(names[i], entries[i]);
    for (const Layout::Tied& t : layout_.tied()) add_head(t);
    for (const Plan::Reader& r : plan_.readers)  // a bias that the layout also calls other
      std::erase_if(plan_.others, [&](const Plan::Other& o) { return o.name == r.bias; });
    for (Plan::Norm& n : plan_.norms) n.folds = !layout_.keeps(n.name) && (folds_ || plan_.is_behind_table(n));
    check_used();
    return std::move(plan_);
  }

 private:
  // Adds the norms whose gain or bias is in the state, and norms named without a star. Returns the names of the gains
  // and biases.
  std::set<std::string> add_norms() {
    std::set<std::string> names;
    const auto add_norm = [&](const std::string& name, const Layout::Norm& norm) {
      if (index_of(name) >= 0) return;
      Plan::Norm n{.name = name, .eps = norm.eps, .plus_one = norm.plus_one};
      if (state_.find(name + ".weight")) n.weight = name + ".weight", names.insert(n.weight);
      if (state_.find(name + ".bias")) n.bias = name + ".bias", names.insert(n.bias);
      plan_.norms.push_back(n);
    };
    for (const auto& norm : layout_.norms()) {
      bool found = norm.first.find('*') == std::string::npos;
      if (found) add_norm(norm.first, norm.second);
      for (const auto& [name, tensor] : state_)
        for (std::string_view end : {".weight", ".bias"}) {
          if (!name.ends_with(end)) continue;
          const std::string of = name.substr(0, name.size() - end.size());
          if (layout_.norm_of(of) != &norm) continue;
          found = true, used_norms_.insert(norm.first);
          add_norm(of, norm.second);
        }
      plain_norms_ |= !found;
    }
    return names;
  }

  int index_of(const std::string& norm) const {
    const auto at = std::ranges::find(plan_.norms, norm, &Plan::Norm::name);
    return at == plan_.norms.end() ? -1 : static_cast<int>(at - plan_.norms.begin());
  }

  // The index of the norm that an entry names; -1 if it names none. plain: adds the norm if it has neither gain nor
  // bias, so that no tensor reveals it.
  int used_norm(const std::string& norm, const std::string& user, bool plain) {
    if (norm.empty()) return -1;
    const auto* of = layout_.norm_of(norm);
    if (of) used_norms_.insert(of->first);
    if (of && plain && index_of(norm) < 0) plan_.norms.push_back({.name = norm, .eps = of->second.eps});
    const int index = index_of(norm);
    check(index >= 0, "convert: ", user, " through norm '", norm, "', which is not there");
    return index;
  }
  int read_norm(const std::string& norm, const std::string& reader) {
    return used_norm(norm, text("'", reader, "' reads"), plain_norms_);
  }

  void add(const std::string& name, const Layout::Entry& e) {
    check(e.role == Role::neutral || e.dim >= 0, "layout: which dimension of '", name, "' is the stream is not said");
    if (e.role == Role::neutral) return plan_.others.push_back({name, e.off_stream});
    if (e.role == Role::reader) return plan_.readers.push_back({name, e.dim, read_norm(e.norm, name), e.bias, e.parts});
    Plan::Writer w{.name = name, .dim = e.dim};
    if (!converted_)
      w.norm = used_norm(e.norm, text("the rows of '", name, "' go"), true);
    else if (const auto* of = e.norm.empty() ? nullptr : layout_.norm_of(e.norm))
      used_norms_.insert(of->first);  // the conversion applied it to the rows
    if (!converted_ || state_.find(e.scale)) w.scale = e.scale;
    plan_.writers.push_back(w);
  }

  // If the state has the head's weight, the head is not tied (any more).
  void add_head(const Layout::Tied& t) {
    const Plan::Writer* table = plan_.writer(t.table);
    const bool known = plan_.reader(t.weight) || plan_.writer(t.weight) ||
                       std::ranges::find(plan_.others, t.weight, &Plan::Other::name) != plan_.others.end();
    const bool untied = table && state_.find(t.weight) && !known;
    plan_.readers.push_back({.name = t.weight,
                             .dim = table ? table->dim : 1,
                             .norm = read_norm(t.norm, untied ? t.weight : t.table),
                             .bias = t.bias,
                             .table = untied ? "" : t.table});
  }

  // Throws if an entry of "norms" or "kept" describes nothing: no tensor or reader belongs to such a norm.
  void check_used() const {
    for (const auto& [pattern, _] : layout_.norms())
      check(used_norms_.contains(pattern), "layout: no tensor or reader is of a norm \"", pattern, "\"");
    for (const std::string& pattern : layout_.kept())
      check(std::ranges::any_of(plan_.norms,
                                [&](const Plan::Norm& n) {
                                  std::vector<std::string> stars;
                                  return n.name == pattern || names::matches(pattern, n.name, stars);
                                }),
            "layout: \"kept\": no norm is called \"", pattern, "\"");
  }

  const Layout& layout_;
  const TensorMap& state_;
  const bool converted_, folds_;
  Plan plan_;
  std::set<std::string> used_norms_;  // patterns
  bool plain_norms_ = false;          // whether a pattern of norms matched no tensor
};

}  // namespace

Plan plan_in(const Layout& layout, const TensorMap& state, Form form, bool converted, bool folds) {
  Plan plan = Resolver(layout, state, converted, folds).resolve(form);
  check_plan(plan, state);
  return plan;
}

std::vector<FileStream> streams_in(const std::vector<std::pair<std::string, Layout>>& streams, const TensorMap& state,
                                   Form form, bool converted, bool folds,
                                   const std::map<std::string, std::string>& foreign) {
  std::vector<FileStream> found;
  std::map<std::string, size_t> stream_of;
  for (const auto& [name, layout] : streams) {
    std::optional<Scope> scope;
    if (!name.empty()) scope.emplace(name);
    found.push_back({name, Resolver(layout, state, converted, folds).resolve(form), {}});
    const auto own = [&](const std::string& tensor) {
      if (!state.find(tensor)) return;
      const size_t at = stream_of.emplace(tensor, found.size() - 1).first->second;
      check(at + 1 == found.size(), "layout: tensor '", tensor, "' is in stream '", found[at].name, "', too");
    };
    const Plan& p = found.back().plan;
    for (const Plan::Writer& w : p.writers) own(w.name), own(w.scale);
    for (const Plan::Reader& r : p.readers) own(r.tensor()), own(r.bias);
    for (const Plan::Other& o : p.others) own(o.name);
    for (const Plan::Norm& n : p.norms) own(n.weight), own(n.bias);
  }
  for (const auto& [name, tensor] : state) {
    const auto at = stream_of.find(name);
    found[at == stream_of.end() ? 0 : at->second].outline.add(name, tensor);
  }
  for (const FileStream& s : found) {
    std::optional<Scope> scope;
    if (!s.name.empty()) scope.emplace(s.name);
    check_dtypes(s.plan, foreign);
    check_plan(s.plan, s.outline);
  }
  return found;
}

std::string spec_of(const Plan& p) {
  check(row_of(p.form).layer_norm_model(), "spec: ", name_of(p.form), " is not a form of the LayerNorm model");
  json spec{{"width", p.width},
            {"norms", json::object()},
            {"writers", json::object()},
            {"readers", json::object()},
            {"tied", json::object()},
            {"scales", json::object()},
            {"not_on_stream", json::array()}};
  const auto norm = [&](int index) { return index < 0 ? std::string() : p.norms[index].name; };
  for (const Plan::Norm& n : p.norms) {
    check(n.normalizes && n.factor == 1 && !n.keeps_gain, "spec: norm '", n.name,
          "' does not normalize, has a factor or keeps its gain, which no description says");
    spec["norms"][n.name] = shortest(n.eps);
    if (n.plus_one) spec["norms"][n.name] = {{"eps", shortest(n.eps)}, {"gain", "1+w"}};
    if (!n.folds) spec["kept"].push_back(n.name);
  }
  for (const Plan::Writer& w : p.writers) {
    spec["writers"][w.name] = {{"dim", w.dim}, {"norm", norm(w.norm)}};
    if (!w.scale.empty()) spec["scales"][w.name] = w.scale;
  }
  for (const Plan::Reader& r : p.readers)
    if (r.tied())
      spec["tied"][r.table] = {{"head", r.name}, {"norm", norm(r.norm)}, {"bias", r.bias}};
    else
      spec["readers"][r.name] = {{"dim", r.dim}, {"norm", norm(r.norm)}, {"bias", r.bias}, {"parts", r.parts}};
  for (const Plan::Other& o : p.others) spec["not_on_stream"].push_back(o.name);
  if (!p.recentred.empty()) spec["recentre"] = p.recentred;
  return dump(spec, 1) + '\n';
}

}  // namespace isonorm::streams
