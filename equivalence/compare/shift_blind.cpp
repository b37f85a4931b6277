#include "equivalence/compare/shift_blind.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/printed.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/explain/models.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

using Sum = ShiftBlindness::Sum;
using streams::Role;

struct Found {
  std::vector<Sum> parameters, streams;
  bool measured = true;  // at every point some writer had a gradient
  bool centred = false;  // some norm does not subtract the mean by itself: F2 then says nothing
};

std::vector<streams::NamedParameter> with_roles(const nn::Module& model,
                                                const std::vector<streams::NamedParameter>& declared) {
  std::vector<streams::NamedParameter> all = streams::named_parameters(model);
  for (const streams::NamedParameter& d : declared) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const streams::NamedParameter& p) { return p.name == d.name; });
    check(at != all.end(), "check_shift_blind: the model has no parameter ", d.name);
    check(d.role == Role::neutral || (d.stream_dim >= 0 && d.stream_dim < at->tensor.rank()),
          "check_shift_blind: ", d.name, " has shape ", at->tensor.shape(), ", its stream dimension is said to be ",
          d.stream_dim);
    at->role = d.role;
    at->stream_dim = d.stream_dim;
  }
  return all;
}

// The larger sum of each row, by position.
void take(std::vector<Sum>& rows, size_t i, const std::string& name, Role role, const Tensor& g, int dim) {
  if (rows.size() <= i)
    rows.push_back({{.what = "gradient",
                     .where = {.tensor = name, .index = {}},
                     .bound = 64 * static_cast<double>(g.size(dim)) * epsilon(g.dtype())},
                    role});
  rows[i].size = larger(rows[i].size, sum_along(g, dim));
}

// One forward and backward at the present parameters.
void look(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Objective& loss,
          const training::Examples& batch, Found& found) {
  std::vector<Tensor> inputs;
  std::vector<std::string> norms;
  for (const streams::NamedParameter& p : parameters)
    if (p.role != Role::neutral) inputs.push_back(p.tensor);
  const size_t weights = inputs.size();
  const streams::Stream* stream = streams::stream_of(model);
  if (stream && stream->centres()) found.centred = true;
  Tensor value;
  {
    const streams::StreamWatch watch(model, [&](const std::string& path, const Tensor& rows) {
      if (!requires_grad(rows)) return;
      norms.push_back(path);
      inputs.push_back(rows);
    });
    value = loss(model, batch);
  }
  const std::vector<Tensor> gradients = grad(value, inputs);
  NoGrad no_grad;
  size_t i = 0;
  bool measured = false;
  for (const streams::NamedParameter& p : parameters) {
    if (p.role == Role::neutral) continue;
    measured = measured || (p.role == Role::writer && largest_entry(gradients[i]) != 0);
    take(found.parameters, i, p.name, p.role, gradients[i], p.stream_dim), ++i;
  }
  found.measured = found.measured && measured;
  for (; i < gradients.size(); ++i) {
    const Tensor& g = gradients[i];
    take(found.streams, i - weights, norms[i - weights], Role::neutral, g, g.rank() - 1);
  }
}

bool blind(const std::vector<Sum>& rows, Role role) {
  return std::all_of(rows.begin(), rows.end(), [&](const Sum& r) { return r.role != role || r.explained(); });
}

// Sets every norm's gain to 1 and its bias to 0.
void flatten_gains(nn::Module& model) {
  NoGrad no_grad;
  for (const auto& [_, m] : model.named_modules()) {
    auto* norm = dynamic_cast<nn::Norm*>(m);
    if (norm && norm->weight.defined()) fill(detach(norm->weight), 1);
    if (norm && norm->bias.defined()) fill(detach(norm->bias), 0);
  }
}

// eval: the findings in eval(), empty if the model was in it. flat: with gains of 1 and biases of 0.
std::string cause(const Found& found, const Found& eval, const Found& flat,
                  const std::vector<streams::NamedParameter>& parameters) {
  if (!eval.parameters.empty() && blind(eval.parameters, Role::writer))
    return "dropout after a writer (in eval() the sums are 0): recentre the branch after the mask";
  if (!found.centred && !found.streams.empty() && !blind(found.streams, Role::neutral)) {
    const auto reader = std::find_if(found.parameters.rbegin(), found.parameters.rend(),
                                     [](const Sum& r) { return r.role == Role::reader && !r.explained(); });
    return text(
        "no final norm, or another reader of the bare stream (the gradient of the stream itself does not sum "
        "to 0",
        reader != found.parameters.rend()
            ? text(", and the gradient of the reader ", reader->where.tensor, " does not either")
            : "",
        ")");
  }
  const auto table = [&](const Sum& r) {
    return r.role != Role::writer || r.explained() ||
           std::any_of(parameters.begin(), parameters.end(), [&](const streams::NamedParameter& p) {
             return p.name == r.where.tensor && p.tensor.rank() == 2 && p.stream_dim == 1;
           });
  };
  if (!flat.parameters.empty() && blind(flat.parameters, Role::writer) &&
      std::all_of(found.parameters.begin(), found.parameters.end(), table))
    return "a tied head after a learned gain or bias (only a table has sums that are not 0; with gains of 1 and "
           "biases of 0 it has none): recentre the rows that are written, read the raw ones";
  if (!found.streams.empty() && (found.centred || blind(found.streams, Role::neutral)))
    return "layer scale, or another change of the branch, between the writer and the stream (the stream's own gradient "
           "allows a shift): fold it into the writer, or recentre after it";
  return "";
}

}  // namespace

ShiftBlindness check_shift_blind(nn::Module& model, const Objective& loss, const Batches& batches,
                                 const CompareOptions& o, const std::vector<streams::NamedParameter>& declared) {
  check(o.points > 0, "check_shift_blind: ", o.points, " points, expected at least 1");
  const std::vector<streams::NamedParameter> parameters = with_roles(model, declared);
  ShiftBlindness result;
  result.verdict = Verdict::different;
  if (std::none_of(parameters.begin(), parameters.end(), [](const auto& p) { return p.role == Role::writer; })) {
    result.reason = "not convertible: no parameter is declared to write to a stream";
    return result;
  }
  const Restore restore(model);
  Found found, eval, flat;
  Generator generator{o.seed, 0};
  for (int point = 0; point < o.points; ++point) {
    const training::Examples batch = batches(point);
    draw_parameters(model.parameters(), generator);
    look(model, parameters, loss, batch, found);
    if (!blind(found.parameters, Role::writer)) {
      const Restore gains(model);
      flatten_gains(model);
      look(model, parameters, loss, batch, flat);
    }
    if (!model.training()) continue;
    const Restore flags(model);
    model.eval();
    look(model, parameters, loss, batch, eval);
  }
  result.parameters = found.parameters;
  result.streams = found.streams;
  result.readers_blind = blind(found.parameters, Role::reader);
  result.stream_blind = !found.streams.empty() && blind(found.streams, Role::neutral);
  if (!found.measured) {
    result.verdict = Verdict::undecided;
    result.reason = "nothing was measured: at some point no writer has a gradient";
    return result;
  }
  const auto bad = [](const Sum& r) { return r.role == Role::writer && !r.explained(); };
  const auto first = std::find_if(found.parameters.begin(), found.parameters.end(), bad);
  if (blind(found.parameters, Role::writer)) {
    result.verdict = Verdict::equivalent;
    result.reason = "convertible: at every point all writers' gradients sum to 0 along the stream";
    return result;
  }
  const auto count = std::count_if(found.parameters.begin(), found.parameters.end(), bad);
  const auto writers = std::count_if(found.parameters.begin(), found.parameters.end(),
                                     [](const Sum& r) { return r.role == Role::writer; });
  result.reason = text("not convertible: the gradient of ", first->where.tensor, " sums along the stream to ",
                       scientific(first->size), " of its largest entry, the bound is ", scientific(first->bound), " (",
                       count, " of ", writers, " writers)");
  result.likely_cause = cause(found, eval, flat, parameters);
  return result;
}

}  // namespace isonorm::equivalence
