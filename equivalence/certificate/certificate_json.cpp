#include <nlohmann/json.hpp>

#include "equivalence/certificate/certificate_text.h"
#include "equivalence/json.h"

namespace isonorm::equivalence {
namespace {

using json = nlohmann::ordered_json;

json last(const std::vector<double>& values) { return values.empty() ? json() : json(values.back()); }

json run_json(const RunResult& run) {
  return {{"form", run.form},
          {"parametrisation", run.variant->parametrisation()},
          {"expected", name_of(run.expected)},
          {"observed", name_of(run.observed)},
          {"as_expected", run.as_expected},
          {"reason", run.reason},
          {"loss_deviation", run.loss_deviation},
          {"gradient_deviation", run.gradient_deviation},
          {"weight_deviation", run.weight_deviation}};
}

json control_json(const RunResult& run) {
  return {
      {"loss", last(run.control.loss)}, {"gradient", last(run.control.gradient)}, {"weight", last(run.control.weight)}};
}

json trajectory_json(const Trajectory& t) {
  json runs = json::array(), respects = json::object();
  for (const RunResult& run : t.runs) runs.push_back(run_json(run));
  for (const Feature& f : features(t.architecture)) respects[f.respect] = f.value;
  return {{"architecture", t.architecture.name},
          {"description", description(t.architecture)},
          {"features", respects},
          {"dtype", name_of(t.dtype)},
          {"steps", t.steps},
          {"control", t.runs.empty() ? json() : control_json(t.runs.front())},
          {"share_of_bound", t.share},
          {"share_of_bound_of_one_control", t.share_alone},
          {"as_expected", t.as_expected},
          {"runs", runs}};
}

json negative_json(const NegativeResult& n) {
  json object = {{"name", n.control.name}, {"claim", n.control.claim}, {"architecture", n.control.architecture}};
  object.update(run_json(n.run));
  object["control"] = control_json(n.run);
  object["times_the_bound"] = n.excess;
  return object;
}

// Names of the forms with what `values` has for them.
template <class T> json by_form(const T& values) {
  json object = json::object();
  for (size_t f = 0; f < std::size(kCertifiedForms); ++f) object[nn::name_of(kCertifiedForms[f])] = values[f];
  return object;
}

json points_json(const PointErrors& e) {
  return {{"architecture", e.architecture.name},
          {"dtype", name_of(e.dtype)},
          {"own", e.own},
          {"forms", by_form(e.forms)},
          {"plain_rms_norm", e.plain}};
}

json errors_json(const std::vector<DTypeErrors>& all) {
  json list = json::array();
  for (const DTypeErrors& d : all)
    list.push_back({{"dtype", name_of(d.dtype)},
                    {"own", d.own},
                    {"forms", by_form(d.forms)},
                    {"limit", d.limit()},
                    {"plain_rms_norm", d.plain},
                    {"maps_in_the_dtype", d.rounded},
                    {"maps_in_f32", d.unrounded},
                    {"within", d.within},
                    {"flat", d.flat},
                    {"plain_differs", d.plain_differs}});
  return list;
}

}  // namespace

std::string certificate_json(const CertificateResult& r) {
  json trajectories = json::array(), negatives = json::array(), gradients = json::array();
  for (const Trajectory& t : r.trajectories) trajectories.push_back(trajectory_json(t));
  for (const NegativeResult& n : r.negatives) negatives.push_back(negative_json(n));
  for (const PointErrors& e : r.gradients) gradients.push_back(points_json(e));
  const json object = {{"verdict", r.certified ? "certified" : "not certified"},
                       {"sentence", certificate_sentence(r)},
                       {"manifest", json::parse(log_manifest(r.manifest)).at("manifest")},
                       {"trajectories", trajectories},
                       {"negative_controls", negatives},
                       {"gradient_errors", errors_json(r.gradient_errors)},
                       {"gradients", gradients},
                       {"width_2", errors_json(r.width2_errors)},
                       {"seconds", r.seconds}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace isonorm::equivalence
