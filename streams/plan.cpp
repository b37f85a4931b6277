#include "streams/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/printed.h"
#include "core/system/name_pattern.h"
#include "io/json_text.h"
#include "nn/branch.h"
#include "nn/residual/post_norm.h"
#include "streams/attached.h"
#include "streams/parametrize.h"

namespace isonorm::streams {

const NormPlace* Plan::find_norm(const std::string& name) const {
  for (const NormPlace& n : norms)
    if (n.name == name) return &n;
  return nullptr;
}

bool Plan::behind_table(const std::string& norm) const {
  return std::ranges::any_of(places, [&](const Place& p) { return p.role == Role::writer && p.norm == norm; });
}

Plan plan_of(const nn::Module& module) {
  Plan layout;
  const Stream* const stream = stream_of(module);
  check(stream != nullptr, "layout: the model has no norm of a stream");
  std::map<const nn::Norm*, std::string> name_of_norm;
  std::set<std::string> of_norm, scales;  // names of norms' parameters and of layer scales
  const auto modules = module.named_modules();
  for (const auto& [name, norm] : norms_of(module)) {
    name_of_norm[norm] = name;
    NormPlace place{.name = name,
                    .eps = norm->eps(),
                    .normalizes = norm->spec().kind != NormKind::none || dynamic_cast<const nn::PostEnd*>(norm),
                    .factor = norm->layer_options().factor};
    const auto* connection = dynamic_cast<const nn::Connection*>(norm);
    place.keeps_gain = norm->weight.defined() && connection && !connection->foldable();
    if (norm->weight.defined() && !place.keeps_gain) {
      place.weight = text(name, ".weight");
      if (norm->bias.defined()) place.bias = text(name, ".bias");
      of_norm.insert({place.weight, place.bias});
    }
    layout.norms.push_back(place);
  }
  layout.width = stream->width();
  const bool raw = stream->storage() == Stored::raw && row_of(stream->form()).layer_norm_model();
  layout.form = raw ? Form::layer_norm : stream->form();

  struct TiedReader {
    Tensor table;
    std::string norm;
  };
  std::map<std::string, TiedReader> tied;
  std::map<std::string, Place> readers;
  std::map<std::string, std::string> scale_of;  // writer's name to layer scale's name
  for (const auto& [path, m] : modules) {
    const std::string weight = path.empty() ? "weight" : text(path, ".weight"), bias = bias_beside(weight);
    if (const auto* branch = dynamic_cast<const nn::BranchOutput*>(m); branch && branch->scale.defined()) {
      const std::string scale = text(path, ".scale");
      scale_of[weight] = scale_of[bias] = scale;
      scales.insert(scale);
    }
    const auto* linear = dynamic_cast<const nn::Linear*>(m);
    const nn::Norm* through = linear ? read_through(linear->weight) : nullptr;
    if (!through) continue;
    const auto at = name_of_norm.find(through);
    check(at != name_of_norm.end(), "layout: reader '", weight, "' reads through a norm outside of the model");
    check(!nn::has_added(linear->weight.parametrisations()), "layout: '", weight,
          "' has a parametrisation of its own, so the stored tensor is not the weight of its layer");
    if (linear->tied())
      tied[weight] = {linear->weight, at->second};
    else
      readers[weight] = {.norm = at->second, .bias = bias};
  }
  const std::vector<NamedParameter> parameters = named_parameters(module);
  for (const NamedParameter& p : parameters) {
    check((p.role == Role::neutral && !of_norm.contains(p.name)) || !nn::has_added(p.parametrisations), "layout: '", p.name,
          "' has a parametrisation of its own, so the stored tensor is not the weight of its layer");
    if (of_norm.contains(p.name) || scales.contains(p.name)) continue;
    Place place;
    if (p.role == Role::reader) {
      const auto at = readers.find(p.name);
      check(at != readers.end(), "layout: reader '", p.name, "': which norm it reads through is not known");
      place = at->second;
    }
    if (const auto at = scale_of.find(p.name); at != scale_of.end()) place.scale = at->second;
    place.name = p.name, place.role = p.role, place.dim = p.stream_dim;
    place.blind_begin = p.blind_begin, place.blind_end = p.blind_end;
    layout.places.push_back(place);
  }
  for (const auto& [name, _] : module.state_dict()) {  // buffers
    const bool parameter =
        std::ranges::any_of(parameters, [&name = name](const NamedParameter& p) { return p.name == name; });
    if (!parameter) layout.places.push_back({.name = name});
  }
  for (const auto& [weight, reader] : tied) {
    const auto table = std::ranges::find_if(
        parameters, [&of = reader.table](const NamedParameter& p) { return p.tensor.handle() == of.handle(); });
    check(table != parameters.end(), "layout: '", weight, "' reads with a table that is no parameter of the model");
    layout.tied.push_back({table->name, weight, bias_beside(weight), reader.norm});
    std::ranges::find(layout.places, table->name, &Place::name)->dim = 1;  // also if the table is no writer
  }
  return layout;
}

namespace {

class Resolver {
 public:
  Resolver(const Layout& layout, const TensorMap& state, bool converted)
      : layout_(layout), state_(state), converted_(converted) {}

  Plan take() {
    const std::set<std::string> of_norms = norm_names();
    std::vector<std::string> names;
    for (const auto& [name, _] : state_)
      if (!of_norms.contains(name)) names.push_back(name);
    const std::vector<Layout::Entry> entries = layout_.entries_of(names);
    for (size_t i = 0; i < names.size(); ++i)
      if (entries[i].known) place(names[i], entries[i]);
    untie();
    check_norms();
    know_biases();
    plan_.width = layout_.width(), plan_.recentred = layout_.recentred();
    return std::move(plan_);
  }

 private:
  // Adds the norms whose gain or bias is in the state, and norms named without a star. Returns the names of the gains
  // and biases.
  std::set<std::string> norm_names() {
    std::set<std::string> names;
    const auto add_norm = [&](const std::string& name, const Layout::Norm& said) {
      if (plan_.find_norm(name)) return;
      NormPlace n{.name = name, .eps = said.eps, .plus_one = said.plus_one, .folds = !layout_.keeps(name)};
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
          found = true, met_norms_.insert(norm.first);
          add_norm(of, norm.second);
        }
      plain_norms_ |= !found;
    }
    return names;
  }

  // Throws if an entry of "norms" or "kept" describes nothing: no tensor or reader belongs to such a norm.
  void check_norms() {
    const auto meet = [&](const std::string& norm) {
      if (const auto* of = norm.empty() ? nullptr : layout_.norm_of(norm)) met_norms_.insert(of->first);
    };
    for (const Place& p : plan_.places) meet(p.norm);
    for (const Layout::Tied& t : plan_.tied) meet(t.norm);
    for (const auto& [pattern, _] : layout_.norms())
      check(met_norms_.contains(pattern), "layout: no tensor or reader is of a norm \"", pattern, "\"");
    for (const std::string& pattern : layout_.kept()) {
      std::vector<std::string> stars;
      check(std::ranges::any_of(
                plan_.norms,
                [&](const NormPlace& n) { return n.name == pattern || names::matches(pattern, n.name, stars); }),
            "layout: \"kept\": no norm is called \"", pattern, "\"");
    }
  }

  void place(const std::string& name, const Layout::Entry& e) {
    check(e.role == Role::neutral || e.dim >= 0, "layout: which dimension of '", name, "' is the stream is not said");
    Place p{.name = name, .role = e.role, .dim = std::max(e.dim, 0), .said = e.role != Role::neutral || e.off_stream};
    if (p.role == Role::reader) p.bias = e.bias, p.parts = e.parts;
    p.norm = e.norm;
    if (!p.norm.empty() && (plain_norms_ || p.role == Role::writer)) add_plain_norm(p.norm);
    if (p.role == Role::writer && converted_ && !p.norm.empty()) {  // the conversion applied it to the rows
      if (const auto* of = layout_.norm_of(p.norm)) met_norms_.insert(of->first);
      p.norm.clear();
    }
    if (!converted_ || state_.find(e.scale)) p.scale = e.scale;
    plan_.places.push_back(p);
  }

  const Place* find(const std::string& name) const {
    for (const Place& p : plan_.places)
      if (p.name == name) return &p;
    return nullptr;
  }

  // If the state has the head's weight, the head is not tied (any more).
  void untie() {
    for (const Layout::Tied& t : layout_.tied()) {
      const Place* table = find(t.table);
      if (plain_norms_) add_plain_norm(t.norm);
      if (table && state_.find(t.weight) && !find(t.weight))
        plan_.places.push_back(
            {.name = t.weight, .role = Role::reader, .dim = table->dim, .norm = t.norm, .bias = t.bias});
      else
        plan_.tied.push_back(t);
    }
  }

  // A reader's bias is known through its reader; it may be as long as the stream is wide without being a writer.
  void know_biases() {
    std::set<std::string> biases;
    for (const Place& p : plan_.places)
      if (p.role == Role::reader) biases.insert(p.bias);
    for (Place& p : plan_.places) p.said = p.said || biases.contains(p.name);
    for (const std::string& name : biases)
      if (state_.find(name) && !find(name)) plan_.places.push_back({.name = name});
  }

  // A norm without gain and bias has no tensor that reveals it: it is added when a reader names it.
  void add_plain_norm(const std::string& name) {
    if (plan_.find_norm(name)) return;
    if (const auto* norm = layout_.norm_of(name)) plan_.norms.push_back({.name = name, .eps = norm->second.eps});
  }

  const Layout& layout_;
  const TensorMap& state_;
  const bool converted_;
  Plan plan_;
  std::set<std::string> met_norms_;
  bool plain_norms_ = false;  // whether a pattern of norms matched no tensor
};

}  // namespace

Plan plan_in(const Layout& layout, const TensorMap& state, Form form, bool converted) {
  Plan plan = Resolver(layout, state, converted).take();
  plan.form = form;
  return plan;
}

std::vector<FileStream> streams_in(const std::vector<std::pair<std::string, Layout>>& streams, const TensorMap& state,
                                   Form form, bool converted) {
  std::vector<FileStream> found;
  std::map<std::string, size_t> stream_of;
  for (const auto& [name, layout] : streams) {
    std::optional<Scope> scope;
    if (!name.empty()) scope.emplace(name);
    found.push_back({name, plan_in(layout, state, form, converted), {}});
    const auto own = [&](const std::string& tensor) {
      if (!state.find(tensor)) return;
      const size_t at = stream_of.emplace(tensor, found.size() - 1).first->second;
      check(at + 1 == found.size(), "layout: tensor '", tensor, "' is in stream '", found[at].name, "', too");
    };
    const Plan& p = found.back().plan;
    for (const Place& place : p.places) own(place.name), own(place.scale);
    for (const NormPlace& n : p.norms) own(n.weight), own(n.bias);
  }
  for (const auto& [name, tensor] : state) {
    const auto at = stream_of.find(name);
    found[at == stream_of.end() ? 0 : at->second].outline.add(name, tensor);
  }
  return found;
}

std::string spec_of(const Plan& p) {
  json spec{{"width", p.width},
            {"norms", json::object()},
            {"writers", json::object()},
            {"readers", json::object()},
            {"tied", json::object()},
            {"scales", json::object()},
            {"not_on_stream", json::array()}};
  check(row_of(p.form).layer_norm_model(), "spec: ", name_of(p.form), " is no form of the LayerNorm model");
  for (const NormPlace& n : p.norms) {
    check(n.normalizes && n.factor == 1 && !n.keeps_gain, "spec: norm '", n.name,
          "' does not normalize, has a factor or keeps its gain, which no description says");
    spec["norms"][n.name] = shortest(n.eps);
    if (n.plus_one) spec["norms"][n.name] = {{"eps", shortest(n.eps)}, {"gain", "1+w"}};
    if (!n.folds) spec["kept"].push_back(n.name);
  }
  for (const Place& place : p.places) {
    if (place.role == Role::writer) spec["writers"][place.name] = {{"dim", place.dim}, {"norm", place.norm}};
    if (place.role == Role::reader)
      spec["readers"][place.name] = {
          {"dim", place.dim}, {"norm", place.norm}, {"bias", place.bias}, {"parts", place.parts}};
    if (place.role == Role::neutral) spec["not_on_stream"].push_back(place.name);
    if (!place.scale.empty()) spec["scales"][place.name] = place.scale;
  }
  for (const Layout::Tied& t : p.tied) spec["tied"][t.table] = {{"head", t.weight}, {"norm", t.norm}, {"bias", t.bias}};
  if (!p.recentred.empty()) spec["recentre"] = p.recentred;
  return dump(spec, 1) + '\n';
}

}  // namespace isonorm::streams
