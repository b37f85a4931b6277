#include "training/run/content.h"

#include <algorithm>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "io/checkpoint.h"
#include "io/fits.h"
#include "training/steps/callbacks.h"

namespace isonorm::training {

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
