#include "equivalence/convert/layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "nn/branch.h"
#include "streams/parametrize.h"
#include "nn/residual/post_norm.h"

namespace isonorm::equivalence {
namespace {

// Calls visit(path, module) for all modules below `module`; a path ends with a dot.
template <class F> void walk(const nn::Module& module, const std::string& path, F&& visit) {
  for (const auto& child : module.children()) {
    const std::string inner = path + child->name() + ".";
    visit(inner, *child);
    walk(*child, inner, visit);
  }
}

}  // namespace

const NormPlace* Layout::find_norm(const std::string& name) const {
  for (const NormPlace& n : norms)
    if (n.name == name) return &n;
  return nullptr;
}

Layout layout_of(const nn::Module& module) {
  Layout layout;
  const streams::Stream* const stream = streams::stream_of(module);
  check(stream != nullptr, "layout: the model has no norm of a stream");
  std::map<const nn::Norm*, std::string> name_of_norm;
  std::set<std::string> of_norm, scales;  // parameters that belong to a norm, and layer scales
  walk(module, "", [&](const std::string& path, const nn::Module& m) {
    const auto* norm = dynamic_cast<const nn::Norm*>(&m);
    if (!norm || !norm->of_stream()) return;
    const std::string name = path.substr(0, path.size() - 1);
    name_of_norm[norm] = name;
    NormPlace place{.name = name,
                    .eps = norm->eps(),
                    .normalizes = norm->spec().kind != NormKind::none || dynamic_cast<const nn::PostEnd*>(norm),
                    .factor = norm->factor()};
    const auto* connection = dynamic_cast<const nn::Connection*>(norm);
    place.keeps_gain = norm->weight.defined() && connection && connection->keeps_gain();
    if (norm->weight.defined() && !place.keeps_gain) {
      place.weight = path + "weight";
      if (norm->bias.defined()) place.bias = path + "bias";
      of_norm.insert({place.weight, place.bias});
    }
    layout.norms.push_back(place);
  });
  layout.width = stream->width();
  const bool raw = stream->storage() == streams::Stored::raw && row_of(stream->form()).layer_norm_model();
  layout.form = raw ? streams::Form::layer_norm : stream->form();

  struct TiedReader {
    Tensor table;
    std::string norm;
  };
  std::map<std::string, TiedReader> tied;
  std::map<std::string, Place> readers;
  std::map<std::string, std::string> scale_of;  // writer to layer scale
  walk(module, "", [&](const std::string& path, const nn::Module& m) {
    if (const auto* branch = dynamic_cast<const nn::BranchOutput*>(&m); branch && branch->scale.defined()) {
      check(branch->options().recentring == nn::Recentring::last || !stream->centres(), "layout: layer scale '", path,
            "scale' comes after the recentring of its writer, and its output is not zero-mean");
      scale_of[path + "weight"] = scale_of[path + "bias"] = path + "scale";
      scales.insert(path + "scale");
    }
    const auto* linear = dynamic_cast<const nn::Linear*>(&m);
    const nn::Norm* through = linear ? streams::read_through(linear->weight) : nullptr;
    if (!through) return;
    const auto at = name_of_norm.find(through);
    check(at != name_of_norm.end(), "layout: reader '", path, "weight' reads through a norm outside of the model");
    if (linear->tied())
      tied[path + "weight"] = {linear->weight, at->second};
    else
      readers[path + "weight"] = {.norm = at->second, .bias = path + "bias"};
  });
  const std::vector<streams::NamedParameter> parameters = streams::named_parameters(module);
  for (const streams::NamedParameter& p : parameters) {
    if (of_norm.contains(p.name) || scales.contains(p.name)) continue;
    Place place;
    if (p.role == streams::Role::reader) {
      const auto at = readers.find(p.name);
      check(at != readers.end(), "layout: reader '", p.name, "': which norm it reads through is not known");
      place = at->second;
    }
    if (const auto at = scale_of.find(p.name); at != scale_of.end()) place.scale = at->second;
    place.name = p.name, place.role = p.role, place.dim = p.stream_dim;
    place.blind_begin = p.blind_begin, place.blind_end = p.blind_end;
    layout.places.push_back(place);
  }
  for (const auto& [weight, reader] : tied) {
    const auto table = std::ranges::find_if(parameters, [&of = reader.table](const streams::NamedParameter& p) {
      return p.tensor.handle() == of.handle();
    });
    check(table != parameters.end(), "layout: '", weight, "' reads with a table that is no parameter of the model");
    layout.tied.push_back({table->name, weight, bias_beside(weight), reader.norm});
    std::ranges::find(layout.places, table->name, &Place::name)->dim = 1;  // also of one that is read bare
  }
  return layout;
}

std::string bias_beside(const std::string& weight) {
  constexpr std::string_view kWeight = "weight";
  return weight.ends_with(kWeight) ? weight.substr(0, weight.size() - kWeight.size()) + "bias" : "";
}

}  // namespace isonorm::equivalence
