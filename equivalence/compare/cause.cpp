#include "equivalence/compare/cause.h"

#include <algorithm>

#include "equivalence/compare/shift_blind.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

struct Eps {
  std::string path;
  double value;
};

std::vector<Eps> every_eps(const nn::Module& model) {
  std::vector<Eps> out;
  for (const auto& [path, m] : model.named_modules())
    if (const auto* norm = dynamic_cast<const nn::Norm*>(m)) out.push_back({path, norm->eps()});
  return out;
}

std::string different_eps(const nn::Module& a, const nn::Module& b) {
  const std::vector<Eps> first = every_eps(a), second = every_eps(b);
  if (first.size() != second.size())
    return text("a norm more or less: the first model has ", first.size(), ", the second ", second.size());
  for (size_t i = 0; i < first.size(); ++i)
    if (first[i].value != second[i].value)
      return text("different eps: ", first[i].path, " has ", first[i].value, ", ", second[i].path,
                  " of the second model ", second[i].value);
  return "";
}

std::string different_roles(const Partners& p) {
  constexpr const char* names[] = {"neutral", "a writer", "a reader"};
  const auto none = [](const std::vector<streams::NamedParameter>& all) {  // a model on no stream says nothing of roles
    return std::ranges::all_of(all, [](const streams::NamedParameter& p) { return p.role == streams::Role::neutral; });
  };
  if (none(p.a) || none(p.b)) return "";
  for (size_t i = 0; i < p.a.size(); ++i)
    if (p.a[i].role != p.b[i].role)
      return text("a role declared differently: ", p.a[i].name, " is ", names[static_cast<size_t>(p.a[i].role)],
                  " in the first model, ", p.b[i].name, " ", names[static_cast<size_t>(p.b[i].role)], " in the second");
  return "";
}

bool stores_mapped(const nn::Module& m) {
  const streams::Stream* stream = streams::stream_of(m);
  return stream && stream->centres() && stream->storage() == streams::Stored::mapped;
}

// Weights of a mapped stream that got raw values.
std::string unmapped_writer(const nn::Module& a, const nn::Module& b, const Partners& p) {
  if (stores_mapped(a) || !stores_mapped(b)) return "";
  for (size_t i = 0; i < p.a.size(); ++i)
    if (p.a[i].role == streams::Role::writer && p.routes[i].legs.empty())
      return text("a map that is missing: the second model stores mapped weights, and the map leaves the writer ",
                  p.a[i].name, " as it is (ParameterMap::mapped_storage)");
  return "";
}

}  // namespace

std::string likely_cause(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss,
                         const training::Examples& batch, const std::function<bool()>& differs) {
  if (const std::string eps = different_eps(a, b); !eps.empty()) return eps;
  if (const std::string roles = different_roles(partners); !roles.empty()) return roles;
  if (const std::string unmapped = unmapped_writer(a, b, partners); !unmapped.empty()) return unmapped;
  if (a.training() || b.training()) {
    const Restore restore_a(a), restore_b(b);
    a.eval(), b.eval();
    if (!differs())
      return "dropout behind a writer, or another thing that acts in training only: in eval() the two agree";
  }
  if (const ShiftBlindness blind = check_shift_blind(a, loss, [&](int64_t) { return batch; }, {.points = 1});
      !blind.parameters.empty() && !blind.convertible)
    return text(blind.likely.empty() ? "a first model that cannot be converted" : blind.likely, ": ", blind.reason);
  return "";
}

}  // namespace isonorm::equivalence
