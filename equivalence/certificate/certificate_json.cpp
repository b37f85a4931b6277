
#include "equivalence/certificate/certificate_text.h"
#include "training/records/manifest_json.h"

namespace isonorm::equivalence {
namespace {

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
          {"from_outside", from_outside(t.architecture)},
          {"regime", *t.regime ? json(t.regime) : json()},
          {"description", description(t.architecture)},
          {"features", respects},
          {"dtype", name_of(t.dtype)},
          {"steps", t.steps},
          {"control", t.runs.empty() ? json() : control_json(t.runs.front())},
          {"share_of_bound", t.share},
          {"share_of_bound_of_one_control", t.share_alone},
          {"horizon",
           {{"steps", t.horizon.steps},
            {"of", t.steps},
            {"ended_by", t.horizon.ended_by.empty() ? json() : json(t.horizon.ended_by)}}},
          {"power_left", t.power},
          {"verdict", name_of(t.verdict)},
          {"runs", runs}};
}

json negative_json(const NegativeResult& n) {
  json object = {{"name", n.control.name},
                 {"claim", n.control.claim},
                 {"architecture", n.control.architecture},
                 {"dtype", name_of(n.dtype)}};
  object.update(run_json(n.run));
  object["as_expected"] = n.as_expected;
  object["control"] = control_json(n.run);
  object["times_the_bound"] = n.excess;
  object["has_power"] = n.has_power;
  return object;
}

// Names of the forms with what `values` has for them.
template <class T> json by_form(const T& values) {
  json object = json::object();
  for (size_t f = 0; f < std::size(kCertifiedForms); ++f) object[name_of(kCertifiedForms[f])] = values[f];
  return object;
}

json verdict_json(const PointVerdict& v) {
  return {
      {"median", v.median}, {"median_of", v.median_of}, {"largest", v.largest},       {"largest_of", v.largest_of},
      {"scale", v.scale},   {"scale_of", v.scale_of},   {"least_seen", v.least_seen}, {"always_seen", v.always_seen},
      {"reason", v.reason}};
}

json points_json(const PointErrors& e, const ArchitectureVerdict& v) {
  std::vector<double> forms[std::size(kCertifiedForms)];
  json verdicts[std::size(kCertifiedForms)];
  for (size_t f = 0; f < std::size(kCertifiedForms); ++f) {
    forms[f] = largest_errors(e.forms[f]);
    verdicts[f] = verdict_json(v.forms[f]);
  }
  return {{"architecture", e.architecture.name},
          {"dtype", name_of(e.dtype)},
          {"points_drawn_anew", e.redrawn},
          {"own", largest_errors(e.own)},
          {"forms", by_form(forms)},
          {"plain_rms_norm", largest_errors(e.plain)},
          {"times_what_rounding_does",
           {{"own", verdict_json(v.own)}, {"forms", by_form(verdicts)}, {"plain_rms_norm", v.plain.median}}},
          {"as_expected", v.as_expected()},
          {"reason", v.reason}};
}

json errors_json(const std::vector<DTypeErrors>& all) {
  json list = json::array();
  for (const DTypeErrors& d : all)
    list.push_back({{"dtype", name_of(d.dtype)},
                    {"own", d.own},
                    {"own_predicted", d.own_predicted},
                    {"forms", by_form(d.forms)},
                    {"forms_predicted", by_form(d.predicted)},
                    {"plain_rms_norm", d.plain},
                    {"maps_in_the_dtype", d.rounded},
                    {"maps_in_f32", d.unrounded},
                    {"activations_kept_in_bf16",
                     {{"own", d.kept_own}, {"forms", by_form(d.kept_forms)}, {"plain_rms_norm", d.kept_plain}}},
                    {"points_drawn_anew", d.redrawn},
                    {"largest_median", d.median},
                    {"largest", d.largest},
                    {"largest_scale", d.scale},
                    {"least_factor_seen", d.least_seen},
                    {"factor_always_seen", d.always_seen},
                    {"as_expected", d.as_expected}});
  return list;
}

json resolutions_json(const std::vector<Resolution>& all) {
  json list = json::array();
  for (const Resolution& r : all)
    list.push_back({{"fault", description(r.fault)},
                    {"dtype", name_of(r.dtype)},
                    {"architecture", r.architecture.name},
                    {"smallest_seen", r.smallest}});
  return list;
}

const char* verdict_text(Verdict v) {
  return v == Verdict::same ? "certified" : v == Verdict::different ? "not certified" : "undecided";
}

}  // namespace

std::string certificate_json(const CertificateResult& r) {
  json trajectories = json::array(), beside = json::array(), negatives = json::array(), gradients = json::array();
  for (const Trajectory& t : r.trajectories) trajectories.push_back(trajectory_json(t));
  for (const Trajectory& t : r.regimes) beside.push_back(trajectory_json(t));
  for (const NegativeResult& n : r.negatives) negatives.push_back(negative_json(n));
  for (size_t i = 0; i < r.gradients.size() && i < r.gradient_verdicts.size(); ++i)
    gradients.push_back(points_json(r.gradients[i], r.gradient_verdicts[i]));
  const json object = {{"verdict", verdict_text(r.verdict)},
                       {"sentence", certificate_sentence(r)},
                       {"manifest", manifest_json(r.manifest)},
                       {"trajectories", trajectories},
                       {"regimes", beside},
                       {"negative_controls", negatives},
                       {"resolution", resolutions_json(r.resolutions)},
                       {"gradient_errors", errors_json(r.gradient_errors)},
                       {"gradients", gradients},
                       {"width_2", errors_json(r.width2_errors)},
                       {"seconds", r.seconds}};
  return dump(object, 2) + "\n";
}

}  // namespace isonorm::equivalence
