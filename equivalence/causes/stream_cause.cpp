#include "equivalence/causes/cause.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/view.h"
#include "nn/branch.h"
#include "nn/norm.h"
#include "streams/attached.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

constexpr size_t kMostForgotten = 6;

constexpr const char* kRoleNames[] = {"neutral", "a writer", "a reader"};
const char* role_name(Role r) { return kRoleNames[static_cast<size_t>(r)]; }

// "up" of "up.weight", "" of "pos".
std::string layer_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

// Parameters of B that have an axis of the stream's width, no role and no norm that owns them: by layer, each with that
// axis.
std::map<std::string, std::vector<std::pair<size_t, int>>> unnamed(const nn::Module& b,
                                                                   const std::vector<streams::NamedParameter>& all) {
  std::map<std::string, std::vector<std::pair<size_t, int>>> found;
  const int64_t width = streams::stream_of(b)->width();
  std::set<std::string> of_norms;
  for (const auto& [path, module] : b.named_modules())
    if (dynamic_cast<const nn::Norm*>(module))
      for (const nn::NamedParameter& p : module->named_parameters()) of_norms.insert(text(path, '.', p.name));
  for (size_t i = 0; i < all.size(); ++i) {
    const Dims& shape = all[i].tensor.shape();
    const auto axis = std::find(shape.begin(), shape.end(), width);
    if (all[i].role != Role::neutral || axis == shape.end() || of_norms.contains(all[i].name)) continue;
    const std::string layer = layer_of(all[i].name);
    found[layer.empty() ? all[i].name : layer].emplace_back(i, static_cast<int>(axis - shape.begin()));
  }
  return found;
}

bool plain(const std::vector<streams::NamedParameter>& all) {
  return std::ranges::all_of(all, [](const streams::NamedParameter& p) { return p.role == Role::neutral; });
}

class StreamCauses {
 public:
  explicit StreamCauses(Trial& t) : t_(t), a_(t.of_a), b_(t.of_b) {}

  std::vector<StreamCause> all() {
    const streams::Stream* const stream = streams::stream_of(t_.b);
    if (!stream || !stream->centres()) return {};
    declared_otherwise();
    read_as_stored();
    if (stream->storage() == streams::Stored::mapped) stored_mapped();
    const auto layers = unnamed(t_.b, b_);
    forgotten(layers);
    first_sees_mean();
    scaled(layers);
    return std::move(found_);
  }

 private:
  // A cause whose setting makes B's parameters writers: they get A's without the mean along an axis, or, if they are a
  // branch's, the branch's output loses its mean.
  StreamCause as_writers(const std::string& name, const std::string& sentence,
                         const std::vector<std::pair<size_t, int>>& which) const {
    StreamCause c{name, sentence, t_.own};
    c.setting.changes_b = true;
    std::vector<nn::BranchOutput*> branches;
    for (const auto& [path, m] : t_.b.named_modules()) {
      auto* branch = dynamic_cast<nn::BranchOutput*>(m);
      const auto belongs = [&, &path = path](const std::pair<size_t, int>& w) {
        return b_[w.first].name.starts_with(path + '.');
      };
      if (branch && !streams::find<streams::OnStream>(branch->weight.parametrisations())) {
        if (std::any_of(which.begin(), which.end(), belongs)) branches.push_back(branch);
        continue;
      }
      for (const auto& w : which)
        if (layer_of(b_[w.first].name) == path) c.setting.no_mean_b[w.first] = w.second;
    }
    const streams::Stream stream = *streams::stream_of(t_.b);
    c.on = [branches, stream] {
      for (nn::BranchOutput* branch : branches)
        for (nn::Parameter* p : {&branch->weight, &branch->bias})
          if (p->defined()) p->parametrize(std::make_shared<streams::Writes>(stream, 0));
    };
    c.off = [branches] {
      for (nn::BranchOutput* branch : branches)
        for (nn::Parameter* p : {&branch->weight, &branch->bias})
          if (p->defined()) {
            nn::Parametrisations before = p->parametrisations();
            before.pop_back();
            p->set_parametrisations(std::move(before));
          }
    };
    return c;
  }

  void declared_otherwise() {
    if (plain(a_)) return;
    std::vector<std::pair<size_t, int>> which;
    for (size_t i = 0; i < a_.size(); ++i)
      if (a_[i].role == Role::writer && b_[i].role == Role::neutral) which.emplace_back(i, a_[i].stream_dim);
    if (which.empty()) return;
    const size_t i = which[0].first;
    found_.push_back(as_writers(
        "a role declared differently",
        text("a role declared differently: ", a_[i].name, " is ", role_name(a_[i].role), " in the first model, ",
             b_[i].name, ' ', role_name(b_[i].role), " in the second; as a writer the two agree"),
        which));
  }

  void read_as_stored() {
    std::vector<std::pair<size_t, int>> which;
    for (const std::string& name : streams::unasked(t_.b))
      for (size_t i = 0; i < b_.size(); ++i)
        if (b_[i].name == name && b_[i].role == Role::writer) which.emplace_back(i, b_[i].stream_dim);
    if (which.empty()) return;
    found_.push_back(
        as_writers("a parameter that is read as stored",
                   text("a parameter that is not mapped: ", b_[which[0].first].name,
                        " is a writer, and the forward reads its stored tensor; a module calls its parameter p as p()"),
                   which));
  }

  void stored_mapped() {
    std::vector<std::pair<size_t, int>> which;
    for (size_t i = 0; i < b_.size(); ++i)
      if (b_[i].role == Role::writer && !t_.mapped[i]) which.emplace_back(i, b_[i].stream_dim);
    if (which.empty()) return;
    found_.push_back(
        as_writers("a map that is missing",
                   text("a map that is missing: the second model stores mapped weights, and the map leaves the writer ",
                        a_[which[0].first].name, " as it is (ParameterMap::mapped_storage)"),
                   which));
  }

  void forgotten(const std::map<std::string, std::vector<std::pair<size_t, int>>>& layers) {
    for (const auto& [layer, which] : layers) {
      const streams::NamedParameter& p = b_[which[0].first];
      if (found_.size() < kMostForgotten)
        found_.push_back(as_writers("a writer that the layout does not name",
                                    text("a writer that the layout does not name: ", p.name, ' ', p.tensor.shape(),
                                         " is neutral; as a writer the two agree"),
                                    which));
    }
  }

  void first_sees_mean() {
    Setting s = t_.own;
    s.changes_a = true;
    bool any = false;
    for (size_t i = 0; i < a_.size(); ++i) {
      const streams::NamedParameter& p = plain(a_) ? b_[i] : a_[i];
      if (p.role != Role::writer || t_.mapped[i]) continue;
      s.no_mean_a[i] = p.stream_dim;
      any = true;
    }
    if (any)
      found_.push_back(
          {"a first model that sees the mean of its stream",
           "a first model that sees the mean of its stream, as one without a final norm does: with the means of "
           "its writers taken off, the two agree (check_shift_blind() says more)",
           s});
  }

  void scaled(const std::map<std::string, std::vector<std::pair<size_t, int>>>& layers) {
    for (const auto& [layer, which] : layers) {
      const auto& [i, dim] = which[0];
      if (which.size() > 1 || b_[i].tensor.rank() != 1) continue;
      Setting s = t_.own;
      NoGrad no_grad;
      s.point[i] = full(s.point[i].shape(), mean(s.point[i]).item(), s.point[i].options());
      s.changes_a = s.changes_b = true;
      found_.push_back({"a vector that scales a branch",
                        text("a vector that scales the output of a writer: if all entries of ", b_[i].name,
                             " are equal, all but its own gradient agree; fold it into the writer"),
                        s, [] {}, [] {}, a_[i].name});
    }
  }

  Trial& t_;
  const std::vector<streams::NamedParameter>&a_, &b_;
  std::vector<StreamCause> found_;
};

}  // namespace

std::vector<StreamCause> stream_causes(Trial& trial) { return StreamCauses(trial).all(); }

std::string stream_hint(nn::Module& model, const std::string& error) {
  const streams::Stream* const stream = streams::stream_of(model);
  if (!stream || stream->stored_width() == stream->width()) return "";
  const auto says = [&](int64_t n) {  // as a number, not as digits of a longer one
    const std::string digits = text(n);
    for (size_t at = error.find(digits); at != error.npos; at = error.find(digits, at + 1)) {
      const size_t end = at + digits.size();
      if ((at == 0 || !std::isdigit(error[at - 1])) && (end == error.size() || !std::isdigit(error[end]))) return true;
    }
    return false;
  };
  if (!says(stream->width()) || !says(stream->stored_width())) return "";
  std::string neutral;
  const std::vector<streams::NamedParameter> parameters = streams::named_parameters(model);
  for (const auto& [_, which] : unnamed(model, parameters)) {
    const streams::NamedParameter& p = parameters[which[0].first];
    neutral += text(neutral.empty() ? "; neutral, with an axis of this width: " : ", ", p.name, ' ', p.tensor.shape());
  }
  return text(" (", name_of(stream->form()), " stores ", stream->stored_width(), " of the ", stream->width(),
              " entries of a row: does the layout miss a writer or a reader, or does the forward read a parameter p "
              "without calling p()?",
              neutral, ')');
}

}  // namespace isonorm::equivalence
