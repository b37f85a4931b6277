// A norm, an optimizer and a model from outside the library take part in a proof and the grid. Each is
// a row of data, registered by an explicit call. Expectations are derived from measurements of the update and the
// function. Results mark them as from outside.
#include <cstdio>

#include <isonorm/isonorm.h>
#include <isonorm/equivalence/text/proof_text.h>
#include <isonorm/training/model_row.h>

using namespace isonorm;

// w <- w - lr g / (|g| + 0.001): the sign of the gradient, softened.
class SoftSign : public optim::Optimizer {
 public:
  SoftSign(const std::vector<Tensor>& parameters, double rate) : Optimizer("soft_sign", parameters.size()) {
    add_group(parameters, rate);
  }
  void step(double scale) override {
    const NoGrad no_grad;
    for (Entry& e : entries())
      if (Tensor g; begin_step(e, g)) {
        g = g * scale;
        copy_into(e.parameter, detach(e.parameter) - g / (abs(g) + 1e-3) * lr(e.group));
      }
  }
};

const training::OptimizerRow kSoftSign{
    .name = "soft_sign",
    .make = [](const training::TrainingOptions& o,
               const std::vector<nn::NamedParameter>& parameters) -> std::unique_ptr<optim::Optimizer> {
      std::vector<Tensor> tensors;
      for (const nn::NamedParameter& p : parameters) tensors.push_back(p.tensor);
      return std::make_unique<SoftSign>(tensors, o.lr);
    }};

// A GPT whose logits are bounded: 5 tanh(logits / 5).
struct BoundedOptions {
  int64_t vocab = 7, context = 8;
  nn::TransformerOptions transformer;
};
struct Bounded : nn::Module {
  const BoundedOptions options;
  nn::Gpt& gpt =
      add("gpt", nn::Gpt({.vocab = options.vocab, .context = options.context, .transformer = options.transformer}));
  explicit Bounded(const BoundedOptions& o) : options(o) {}
  Tensor forward(const Tensor& ids) override { return tanh(gpt(ids) * 0.2) * 5.0; }
};
streams::Layout layout_of(const Bounded& model) { return streams::Layout().with("gpt", streams::layout_of(model.gpt)); }
struct BoundedConfig final : training::ConfigOf<BoundedConfig, Bounded> {
  void fields(training::Fields& f) override { f("vocab", options.vocab), f("context", options.context); }
  int64_t stream_rows() const override { return 2 * options.vocab + options.context; }
  bool enters(std::string_view name) const override { return name == "gpt.token.weight"; }
};
constexpr training::ModelRow kBounded = training::row_of<BoundedConfig>({.name = "bounded",
                                                                         .title = "Bounded",
                                                                         .noun = "language model with bounded logits",
                                                                         .input = training::Input::text,
                                                                         .causal = true});

// x / (1 + |x|), where |x| is the root mean square of the centred row: shrinks large rows and keeps small ones. Each
// form of the stream computes this length in its own coordinates (2305.14858, section 3.2).
struct SoftNorm : nn::Connection {
  SoftNorm(int64_t width, const nn::ConnectionOptions& o) : Connection(width, {.kind = o.kind}) {}
  Tensor read(nn::Residual& r) override {
    const NormKind kind = spec().kind;  // which describes the rows
    const Tensor x = kind == NormKind::layer ? recentre(r.settle(), -1) : r.settle();
    Tensor squares = sum(square(x), {-1}, true);
    if (kind == NormKind::crms) squares = squares + square(sum(x, {-1}, true));
    return x / (sqrt(squares / static_cast<double>(width()) + spec().eps) + 1.0);
  }
  void join(nn::Residual& r, const Tensor& branch) override { r.pending = branch; }
};
const nn::Arrangement kSoftNorm{"soft_norm", nn::block_of<SoftNorm>, nn::last_of<SoftNorm>};

int main() try {
  training::TrainingOptions o;
  o.model = {kBounded, {.width = 16, .depth = 2, .heads = 2, .connection = kSoftNorm}, {{"context", 8}}};
  o.optimizer = &kSoftSign, o.lr = 3e-3, o.steps = 20, o.batch = 4;
  const equivalence::ProofResult proof = equivalence::prove({.training = o});
  std::printf("%s\n%s\n\n", proof.manifest.command.c_str(), closing(document_of(proof)).c_str());

  equivalence::TableOptions grid;
  grid.connection = kSoftNorm, grid.seeds = 1;
  grid.columns = {{.name = "soft_sign", .title = "soft sign", .optimizer = &kSoftSign, .lr = 3e-3}};
  const equivalence::TableResult table = equivalence::table(grid);
  std::printf("%-31s %-10s %-10s %s\n", title_of(grid.columns[0]).c_str(), "expected", "observed", "because");
  for (const equivalence::Cell& cell : table.cells)
    std::printf("%-31s %-10s %-10s %s\n", cell.variant.name, name_of(cell.expected), name_of(cell.observed),
                cell.because.c_str());
  return proof.equivalent() && table.as_expected() ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "14_from_outside: %s\n", e.what()), 1;
}
