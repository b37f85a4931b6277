#include "equivalence/compare/cause.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "equivalence/compare/shift_blind.h"
#include "equivalence/explain/hypotheses.h"
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

constexpr const char* kRoles[] = {"neutral", "a writer", "a reader"};

// Of a model on no stream, which says nothing of roles.
bool plain(const std::vector<streams::NamedParameter>& all) {
  return std::ranges::all_of(all, [](const streams::NamedParameter& p) { return p.role == streams::Role::neutral; });
}

std::string different_roles(const Partners& p) {
  if (plain(p.a) || plain(p.b)) return "";
  for (size_t i = 0; i < p.a.size(); ++i)
    if (p.a[i].role != p.b[i].role)
      return text("a role declared differently: ", p.a[i].name, " is ", kRoles[static_cast<size_t>(p.a[i].role)],
                  " in the first model, ", p.b[i].name, " ", kRoles[static_cast<size_t>(p.b[i].role)],
                  " in the second");
  return "";
}

// "pos is a writer, and ..." of the first parameter that a forward does not see.
std::string unseen(nn::Module& m) {
  const std::vector<std::string> unasked = streams::unasked(m);
  if (unasked.empty()) return "";
  const std::string& name = unasked[0];
  for (const streams::NamedParameter& p : streams::named_parameters(m))
    if (p.name == name)
      return text(name, " is ", kRoles[static_cast<size_t>(p.role)],
                  ", and the forward takes what is stored, or nothing of it: a nn::Parameter p is seen as p()");
  return "";
}

// The roles of a first model on no stream are those of its partners.
std::vector<streams::NamedParameter> declared_by_partners(const Partners& p) {
  std::vector<streams::NamedParameter> declared;
  if (!plain(p.a)) return declared;
  for (size_t i = 0; i < p.a.size(); ++i) {
    declared.push_back(p.a[i]);
    if (p.routes[i].legs.empty()) declared[i].role = p.b[i].role, declared[i].stream_dim = p.b[i].stream_dim;
  }
  return declared;
}

// A neutral parameter with an axis of the stream's width, which is no norm's.
std::string forgotten(const nn::Module& m) {
  const streams::Stream* const stream = streams::stream_of(m);
  if (!stream) return "";
  std::set<std::string> of_norms;
  for (const auto& [path, module] : m.named_modules())
    if (dynamic_cast<const nn::Norm*>(module))
      for (const nn::NamedParameter& p : module->named_parameters()) of_norms.insert(text(path, '.', p.name));
  for (const streams::NamedParameter& p : streams::named_parameters(m))
    if (p.role == streams::Role::neutral && std::ranges::count(p.tensor.shape(), stream->width()) &&
        !of_norms.contains(p.name))
      return text("a writer or a reader that the layout does not name: ", p.name, ' ', p.tensor.shape(),
                  " is neutral, and has an axis of the stream's width");
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
                         const training::Examples& batch, const std::function<bool()>& differs, const Pair& gradient,
                         double limit) {
  if (const std::string eps = different_eps(a, b); !eps.empty()) return eps;
  if (const std::string roles = different_roles(partners); !roles.empty()) return roles;
  for (nn::Module* m : {&a, &b})
    if (const std::string taken = unseen(*m); !taken.empty()) return text("a parameter that is not mapped: ", taken);
  if (const std::string unmapped = unmapped_writer(a, b, partners); !unmapped.empty()) return unmapped;
  if (a.training() || b.training()) {
    const Restore restore_a(a), restore_b(b);
    a.eval(), b.eval();
    if (!differs())
      return "dropout behind a writer, or another thing that acts in training only: in eval() the two agree";
  }
  if (const ShiftBlindness blind = check_shift_blind(
          a, loss, [&](int64_t) { return batch; }, {.points = 1}, declared_by_partners(partners));
      !blind.parameters.empty() && !blind.convertible)
    return text(blind.likely.empty() ? "a first model that cannot be converted" : blind.likely, ": ", blind.reason);
  for (const nn::Module* m : {&a, &b})
    if (const std::string name = forgotten(*m); !name.empty()) return name;
  Evidence e{.pair = gradient, .what = recorded(gradient.name), .tolerance = limit, .eps = epsilon(dtype_of(partners))};
  e.what.stage = Stage::gradient;
  for (const streams::NamedParameter& p : partners.a)
    if (p.name == gradient.name) e.role = p.role, e.dim = p.role == streams::Role::neutral ? -1 : p.stream_dim;
  return explain(e).sentence;
}

std::string stream_hint(nn::Module& model, const std::string& error) {
  const streams::Stream* const stream = streams::stream_of(model);
  if (!stream || stream->stored_width() == stream->width()) return "";
  const std::string likely = forgotten(model);
  const auto says = [&](int64_t n) {  // as a number, not as digits of a longer one
    const std::string digits = text(n);
    for (size_t at = error.find(digits); at != error.npos; at = error.find(digits, at + 1)) {
      const size_t end = at + digits.size();
      if ((at == 0 || !std::isdigit(error[at - 1])) && (end == error.size() || !std::isdigit(error[end]))) return true;
    }
    return false;
  };
  if (!says(stream->width()) || !says(stream->stored_width())) return "";
  return text(
      " (", name_of(stream->form()), " stores ", stream->stored_width(), " of the ", stream->width(),
      " entries of a row",
      likely.empty()
          ? ": does the layout miss a writer or a reader, or the forward take what is stored of a parameter p for p()?"
          : "; likely ",
      likely, ')');
}

}  // namespace isonorm::equivalence
