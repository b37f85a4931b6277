#include "training/run/content.h"

#include <algorithm>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "io/fits.h"
#include "training/steps/callbacks.h"

namespace isonorm::training {
namespace {

constexpr std::string_view kEntry = "content.";

bool is_weights(const SavedContent& c) { return c.kind == kModel || c.kind == "tensor"; }

// True for a content that has no entry of its own.
bool is_common(const std::string& name, const SavedContent& c) {
  if (name == kOptimizer) return !is_weights(c) && c.state.text.empty();
  return name == c.kind && (name == kModel || name == kAverage || name == kBest);
}

}  // namespace

void add_content(Checkpoint& c, const std::string& name, const SavedContent& content) {
  const auto& [kind, state] = content;
  TensorMap& section = is_weights(content) ? c.weights : c.optimizer;
  const bool common = is_common(name, content), prefixed = !common || name == kAverage;
  for (const auto& [part, tensor] : state.tensors)
    section.add(!prefixed ? part : part.empty() ? name : text(name, '.', part), tensor);
  if (!common)
    c.values.emplace(text(kEntry, name), text(kind, state.text.empty() ? "" : " ", state.text));
  else if (name == kOptimizer)
    c.values.emplace(kOptimizer, kind);
  else if (!state.text.empty())
    c.values.emplace(kTests, state.text);
}

SavedContents contents_of(const Checkpoint& c) {
  SavedContents found;
  for (const auto& [key, value] : c.values) {
    if (key == kOptimizer) found[kOptimizer].kind = value;
    if (key == kTests) found[kBest] = {kBest, {{}, value}};
    if (!key.starts_with(kEntry)) continue;
    const size_t space = value.find(' ');
    SavedContent& content = found[key.substr(kEntry.size())];
    content.kind = value.substr(0, space);
    if (space != value.npos) content.state.text = value.substr(space + 1);
  }
  const auto add = [&](const std::string& name, const Tensor& tensor, const char* otherwise) {
    const size_t dot = name.find('.');
    const std::string first = name.substr(0, dot);
    const bool named = c.values.contains(text(kEntry, first)), average = first == kAverage && otherwise == kOptimizer;
    SavedContent& content = found[named || average ? first : otherwise];
    if (content.kind.empty()) content.kind = average ? kAverage : otherwise;
    content.state.tensors.add(!named && !average ? name : dot == name.npos ? "" : name.substr(dot + 1), tensor);
  };
  for (const auto& [name, tensor] : c.weights) add(name, tensor, kModel);
  for (const auto& [name, tensor] : c.optimizer) add(name, tensor, kOptimizer);
  return found;
}

Content::Content(std::string name, std::string kind, State state, Load load)
    : name_(std::move(name)), kind_(std::move(kind)), state_(std::move(state)), load_(std::move(load)) {
  const auto belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  check(!name_.empty() && std::ranges::all_of(name_, belongs), "saved training: a content has the name ", Shown{name_},
        ", expected letters, digits, _ and -");
}

Content::Content(std::string name, BestLoss& best)
    : Content(
          std::move(name), "best",
          [&best] {
            return ContentState{{}, best.last_step() > 0 ? best.written() : ""};
          },
          [&best](const ContentState& s) {
            check(best.read(s.text.empty() ? BestLoss().written() : s.text), "its test passes are damaged");
          }) {}

Content::Content(std::string name, Functions<int64_t> f)
    : Content(
          std::move(name), "integer",
          [f] {
            return ContentState{{}, text(f.get())};
          },
          [f](const ContentState& s) {
            int64_t n = 0;
            check(read_number(s.text, n), "it is ", Shown{s.text}, ", expected a whole number");
            f.set(n);
          }) {}

Content::Content(std::string name, Functions<double> f)
    : Content(
          std::move(name), "number",
          [f] {
            return ContentState{{}, exact(f.get())};
          },
          [f](const ContentState& s) {
            double x = 0;
            check(read_number(s.text, x, std::chars_format::hex), "it is ", Shown{s.text},
                  ", expected a hexadecimal number");
            f.set(x);
          }) {}

Content::Content(std::string name, Functions<std::string> f)
    : Content(
          std::move(name), "text",
          [f] {
            return ContentState{{}, f.get()};
          },
          [f](const ContentState& s) { f.set(s.text); }) {}

Content::Content(std::string name, Functions<Tensor> f)
    : Content(
          std::move(name), "tensor",
          [f] {
            ContentState s;
            s.tensors.add("", f.get());
            return s;
          },
          [f](const ContentState& s) { f.set(s.tensors.at("")); }) {}

Content::Content(std::string name, Functions<TensorMap> f)
    : Content(
          std::move(name), "state",
          [f] {
            return ContentState{f.get(), {}};
          },
          [f](const ContentState& s) { f.set(s.tensors); }) {}

float Content::to_float(double given) { return io::narrowed_to_f32(given, "it"); }

void Content::check_fits(bool fits, int64_t given, size_t bytes) {
  check(fits, "it is ", given, ", expected an integer of ", bytes, " bytes");
}

void Content::copy_values(const Tensor& to, const Tensor& from) {
  check(to.defined(), "this training's tensor is undefined");
  check(from.shape() == to.shape() && from.dtype() == to.dtype(), "it is ", from.dtype(), ' ', from.shape(),
        ", expected ", to.dtype(), ' ', to.shape());
  copy_into(detach(to), from);
}

}  // namespace isonorm::training
