#include "lab/papers/newer/nets.h"

#include "isonorm.h"
#include "nn/linear.h"
#include "nn/residual/pre_norm.h"

namespace isonorm::papers {

using nn::Module;
using streams::Form;
using streams::Layout;

namespace {

constexpr int64_t kHidden = 40, kBlocks = 2, kStreams = 4, kHead = 8;

// A norm whose output is written to the stream. With a gain the output has a mean, so it is projected again.
struct WritingNorm : nn::PreNorm {
  WritingNorm(bool gain, bool enters)
      : PreNorm(kNewerWidth, nn::ConnectionOptions{.affine = gain}.not_foldable()), enters(enters) {}
  Tensor write(const Tensor& x) {
    const Tensor rows = (*this)(x);
    return enters && weight.defined() ? projected(rows) : rows;
  }
  const bool enters;
};

// A norm that reads rows before they are on the stream.
struct EnteringNorm : nn::PreNorm {
  explicit EnteringNorm(bool enters) : PreNorm(kNewerWidth), enters(enters) {}
  Tensor enter(const Tensor& x) { return (*this)(enters ? projected(x) : x); }
  const bool enters;
};

struct Branch : Module {
  nn::Linear& up = add("up", nn::Linear(kNewerWidth, kHidden));
  nn::Linear& down = add("down", nn::Linear(kHidden, kNewerWidth));
  Tensor forward(const Tensor& z) override { return down(gelu(up(z))); }
};

// ids [n] -> logits: an embedding table, blocks of class B (rows -> rows), and a head.
template <class B> struct Net : Module {
  nn::Embedding& table = add("table", nn::Embedding(kNewerIds, kNewerWidth));
  nn::ModuleList<B>& blocks = add("blocks", nn::ModuleList<B>());
  nn::Linear& head = add("head", nn::Linear(kNewerWidth, kNewerClasses));

  template <class... Args> explicit Net(const Args&... args) {
    for (int64_t i = 0; i < kBlocks; ++i) blocks.append(B(args...));
  }
  Tensor through(Tensor x) {
    for (B* b : blocks) x = (*b)(x);
    return x;
  }
};

struct PeriBlock : Branch {
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kNewerWidth, {.affine = false}));
  WritingNorm& after;
  PeriBlock(bool gain, bool enters) : after(add("after", WritingNorm(gain, enters))) {}
  Tensor forward(const Tensor& x) override { return x + after.write(Branch::forward(norm(x))); }
};
struct Peri : Net<PeriBlock> {
  WritingNorm& first;
  nn::LayerNorm& last = add("last", nn::LayerNorm(kNewerWidth, {.affine = false}));
  Peri(bool gain, bool enters) : Net(gain, enters), first(add("first", WritingNorm(gain, enters))) {}
  Tensor forward(const Tensor& ids) override { return head(last(through(first.write(table(ids))))); }
};

struct Olmo2Block : Branch {
  WritingNorm& after = add("after", WritingNorm(true, false));
  Tensor forward(const Tensor& x) override { return x + after.write(Branch::forward(x)); }
};
struct Olmo2 : Net<Olmo2Block> {
  EnteringNorm& last;
  explicit Olmo2(bool enters) : last(add("last", EnteringNorm(enters))) {}
  Tensor forward(const Tensor& ids) override { return head(last.enter(through(table(ids)))); }
};

enum class Coefficients { numbers, of_normed, of_bare };

// rows X [streams, n, width].
struct HyperBlock : Branch {
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kNewerWidth, {.affine = false}));
  nn::LayerNorm& seen = add("seen", nn::LayerNorm(kNewerWidth, {.affine = false}));
  nn::Linear& predictor = add("predictor", nn::Linear(kNewerWidth, 1, {.bias = false}));
  nn::Parameter& from = add_parameter("from", full({kStreams, 1, 1}, 1. / kStreams));
  nn::Parameter& mix = add_parameter("mix", full({kStreams, kStreams}, 1. / kStreams));
  nn::Parameter& to = add_parameter("to", ones({kStreams, 1, 1}));
  const Coefficients coefficients;
  explicit HyperBlock(Coefficients c) : coefficients(c) {}
  Tensor forward(const Tensor& x) override {
    Tensor read = from();
    if (coefficients != Coefficients::numbers)
      read = read + tanh(predictor(coefficients == Coefficients::of_normed ? seen(x) : x));
    const Tensor y = Branch::forward(norm(sum(read * x, {0})));
    return reshape(matmul(mix(), reshape(x, {kStreams, -1})), x.shape()) + to() * unsqueeze(y, 0);
  }
};
struct Hyper : Net<HyperBlock> {
  nn::LayerNorm& last = add("last", nn::LayerNorm(kNewerWidth, {.affine = false}));
  using Net::Net;
  Tensor forward(const Tensor& ids) override {
    const Tensor rows = unsqueeze(table(ids), 0);
    return head(last(sum(through(rows * ones({kStreams, 1, 1}, rows.options())), {0})));
  }
};

// Single-head attention of every row to all rows.
struct QkBlock : Branch {
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kNewerWidth, {.affine = false}));
  nn::Linear& q = add("q", nn::Linear(kNewerWidth, kHead));
  nn::Linear& k = add("k", nn::Linear(kNewerWidth, kHead));
  nn::LayerNorm& q_norm = add("q_norm", nn::LayerNorm(kHead, {.affine = false}));
  nn::LayerNorm& k_norm = add("k_norm", nn::LayerNorm(kHead, {.affine = false}));
  Tensor forward(const Tensor& x) override {
    const Tensor z = norm(x);
    return x + Branch::forward(matmul(softmax(matmul(q_norm(q(z)), transpose(k_norm(k(z)), 0, 1))), z));
  }
};
struct Qk : Net<QkBlock> {
  nn::LayerNorm& last = add("last", nn::LayerNorm(kNewerWidth, {.affine = false}));
  Tensor forward(const Tensor& ids) override { return head(last(through(table(ids)))); }
};

struct Pointwise : Module {
  nn::Parameter& scale = add_parameter("scale", ones({}));
  nn::Parameter& shift = add_parameter("shift", zeros({}));
  const bool derf;
  explicit Pointwise(bool derf) : derf(derf) {}
  Tensor forward(const Tensor& x) override { return derf ? erf(scale() * x + shift()) : tanh(scale() * x + shift()); }
};
struct PointwiseBlock : Branch {
  Pointwise& norm;
  explicit PointwiseBlock(bool derf) : norm(add("norm", Pointwise(derf))) {}
  Tensor forward(const Tensor& x) override { return x + Branch::forward(norm(x)); }
};
struct PointwiseNet : Net<PointwiseBlock> {
  Pointwise& last;
  explicit PointwiseNet(bool derf) : Net(derf), last(add("last", Pointwise(derf))) {}
  Tensor forward(const Tensor& ids) override { return head(last(through(table(ids)))); }
};

template <class M, auto... args> std::unique_ptr<Module> made(Slip) { return std::make_unique<M>(args...); }

const std::vector<Form> kAll = streams::centred_forms();
Layout layout() { return Layout().width(kNewerWidth); }
Layout table_and_branches() { return layout().writes("table").writes("blocks.*.down"); }
Layout pre_norms(Layout l) { return l.reads("blocks.*.up", "blocks.*.norm").reads("head", "last"); }

}  // namespace

std::vector<NewerArrangement> peri_ln() {
  const auto around = [](Layout l) { return pre_norms(std::move(l)).norm("first", 1e-5).norm("blocks.*.after", 1e-5); };
  const Layout exact = around(table_and_branches());
  return {{.name = "Peri-LN",
           .make = made<Peri, false, true>,
           .layout = exact,
           .exact = kAll,
           .wrong = {{"E not mapped", Form::rms_norm, around(layout().writes("blocks.*.down"))},
                     {"W2 not mapped", Form::rms_norm, around(layout().writes("table"))}}},
          {.name = "Peri-LN with gains",
           .make = [](Slip s) -> std::unique_ptr<Module> {
             return std::make_unique<Peri>(true, s != Slip::gains_as_they_are);
           },
           .layout = exact,
           .exact = kAll,
           .wrong = {{"no P after gains", Form::rms_norm, exact, Slip::gains_as_they_are}}}};
}

std::vector<NewerArrangement> olmo2_order() {
  const Layout exact = layout().writes("blocks.*.down").reads("head", "last").norm("blocks.*.after", 1e-5);
  return {
      {.name = "OLMo 2",
       .make = [](Slip s) -> std::unique_ptr<Module> { return std::make_unique<Olmo2>(s != Slip::last_norm_as_it_is); },
       .layout = exact,
       .exact = kAll,
       .wrong = {{"P E, too", Form::rms_norm, Layout(exact).writes("table")},
                 {"no P before the last norm", Form::rms_norm, exact, Slip::last_norm_as_it_is}}}};
}

std::vector<NewerArrangement> hyper_connections() {
  const Layout plain = pre_norms(table_and_branches());
  const Layout predicted = Layout(plain).reads("blocks.*.predictor", "blocks.*.seen");
  return {{.name = "numbers",
           .make = made<Hyper, Coefficients::numbers>,
           .layout = plain,
           .exact = kAll,
           .wrong = {{"W2 not mapped", Form::rms_norm, pre_norms(layout().writes("table"))}}},
          {.name = "computed of N(X)",
           .make = made<Hyper, Coefficients::of_normed>,
           .layout = predicted,
           .exact = kAll,
           .wrong = {{"E not mapped", Form::rms_norm,
                      pre_norms(layout().writes("blocks.*.down")).reads("blocks.*.predictor", "blocks.*.seen")}}},
          {.name = "computed of X",
           .make = made<Hyper, Coefficients::of_bare>,
           .layout = plain,
           .wrong = {{"P E, P W2", Form::rms_norm, plain}}}};
}

std::vector<NewerArrangement> qk_norm() {
  const auto heads = [](Layout l) {
    return l.width(kHead).norm("blocks.*.q_norm", 1e-5).norm("blocks.*.k_norm", 1e-5);
  };
  const Layout exact = heads(Layout().writes("blocks.*.q").writes("blocks.*.k"));
  return {{.name = "QK-norm",
           .make = made<Qk>,
           .layout = exact,
           .exact = {Form::rms_norm, Form::crms_isometric},
           .wrong = {{"Wq, Wk not mapped", Form::rms_norm, heads(Layout())},
                     {"Wk not mapped", Form::rms_norm, heads(Layout().writes("blocks.*.q"))},
                     {"scores of v, not of D v", Form::crms_norm, exact}}}};
}

std::vector<NewerArrangement> pointwise() {
  const auto control = [](const char* name, std::unique_ptr<Module> (*make)(Slip)) {
    return NewerArrangement{.name = name,
                            .make = make,
                            .layout = table_and_branches(),
                            .wrong = {{"P E, P W2", Form::rms_norm, table_and_branches()}}};
  };
  return {control("DyT", made<PointwiseNet, false>), control("Derf", made<PointwiseNet, true>)};
}

}  // namespace isonorm::papers
