// The comparisons of equivalence/ on a device, and a training on a device compared with the CPU's.
#include <algorithm>

#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/state.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/text/proof_text.h"
#include "equivalence/verify/verify.h"
#include "gpu/recorder.h"
#include "lab/certificate/certificate.h"
#include "lab/papers/experiment.h"
#include "nn/gpt.h"
#include "streams/stream.h"
#include "training/steps/loop.h"
#include "tests/support/catch.h"
#include "tests/support/device.h"
#include "training/model_options.h"

using namespace isonorm;
using namespace isonorm::papers;
using namespace isonorm::equivalence;
using Catch::Matchers::Contains;
using test::kCuda, test::kCuda1;

namespace {

ProofOptions small_proof() {
  ProofOptions o;
  o.training.model = {training::kGpt, {.width = 8, .depth = 1, .heads = 2}, {{"context", 6}}};
  o.training.steps = 20, o.training.batch = 4, o.controls = 2;
  return o;
}

}  // namespace

TEST_CASE("questions about a checkpoint's tensors are answered on any device") {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8}) {
    const Tensor here = full({2, 3}, 1, {dtype}), there = to(here, kCuda);
    CHECK(same_bytes(transpose(there, 0, 1), transpose(here, 0, 1)));
    CHECK(training::is_finite(there));
    fill(as_strided(there, {1}, {1}, 4), is_floating(dtype) ? NAN : 0);
    CHECK_FALSE(same_bytes(there, here));
    TensorMap state;
    state.add("weight", there);
    CHECK(training::not_finite(state) == (is_floating(dtype) ? "weight" : ""));
    CHECK_FALSE(identical(state, TensorMap()));
  }
}

TEST_CASE("a proof on a device: every form follows Pre-LN, and the losses equal the CPU's up to rounding") {
  ProofOptions o = small_proof();
  const ProofResult on_cpu = prove(o);
  o.training.device = kCuda;
  const ProofResult there = prove(o);
  CHECK(there.equivalent());
  CHECK_THAT(there.manifest.command, Contains("--device cuda:0"));
  REQUIRE(there.reference.losses.size() == on_cpu.reference.losses.size());
  for (size_t t = 0; t < there.reference.losses.size(); ++t)
    CHECK(there.reference.losses[t] == Approx(on_cpu.reference.losses[t]).epsilon(1e-10));
}

TEST_CASE("the CPU's training is the device's, by the criterion of a proof") {
  ProofOptions o = small_proof();
  o.forms = {"rms_norm"};
  o.against = kCuda;
  const ProofResult p = prove(o);
  CHECK(p.equivalent());
  const RunResult& there = p.runs.at(1);
  CHECK(run_name(there) == "layer_norm on cuda:0");
  CHECK(there.verdict == Verdict::equivalent);
  CHECK(there.largest.gradient > 0);  // the device sums in another order
  CHECK(there.horizon.steps == 20);
  CHECK_THAT(closing(document_of(p)), Contains("layer_norm on cuda:0"));
  CHECK_THAT(p.manifest.command, Contains("--against cuda:0"));
}

TEST_CASE("a training on a device is held against the CPU's, test pass and all") {
  ProofOptions o = small_proof();
  o.training.device = kCuda, o.training.model.transformer().branch.dropout = 0.1, o.against = kCpu, o.forms.clear();
  const ProofResult p = prove(o);
  CHECK(p.equivalent());
  CHECK(run_name(p.runs.at(0)) == "layer_norm on cpu");
  o.against = kCuda;
  CHECK_THROWS_WITH(prove(o), Contains("prove: against cuda:0, where the reference is trained"));
}

TEST_CASE("two devices of one kind train to the same bits, which is no comparison with itself", "[two devices]") {
  ProofOptions o = small_proof();
  o.training.device = kCuda, o.against = kCuda1, o.forms.clear();
  const ProofResult p = prove(o);
  CHECK(p.equivalent());
  CHECK(p.runs.at(0).largest.gradient == 0);
}

TEST_CASE("cells of the grid come out on a device as theory says") {
  TableOptions o;
  o.steps = 20, o.seeds = 1, o.controls = 2, o.device = kCuda;
  o.rows = {raw_variant(streams::Form::rms_norm), variant("a2")};
  o.columns = {recipe("adam")};
  const TableResult r = table(o);
  CHECK(r.as_expected());
  CHECK(std::ranges::count(r.manifest.options, std::pair<std::string, std::string>("device", "cuda:0")) == 1);
  o.device = kCpu;
  const TableResult here = table(o);
  int other_bits = 0;  // the device sums in another order; still, a large deviation may have the same bits
  for (size_t i = 0; i < r.cells.size(); ++i) {
    CHECK(r.cells[i].observed == here.cells[i].observed);
    other_bits += r.cells[i].deviation.gradient != here.cells[i].deviation.gradient;
  }
  CHECK(other_bits > 0);
}

TEST_CASE("a certificate is drawn up on a device") {
  CertificateOptions o;
  o.architectures = {architecture("gpt1")};
  o.negative_controls.resize(1), o.negative_controls[0].architecture = "gpt1";
  o.regimes.clear(), o.resolved.clear();
  o.steps = 6, o.controls = 1, o.points = 1;
  const CertificateResult here = certify(o);
  o.device = kCuda;
  const CertificateResult there = certify(o);
  CHECK_THAT(there.manifest.command, Contains("--device cuda:0"));
  REQUIRE(there.trajectories.size() == here.trajectories.size());
  for (size_t i = 0; i < there.trajectories.size(); ++i) {
    const Trajectory &a = there.trajectories[i], &b = here.trajectories[i];
    INFO(a.architecture.name << " in " << name_of(a.dtype));
    CHECK(a.verdict == b.verdict);
    CHECK(a.runs[0].largest.gradient != b.runs[0].largest.gradient);  // the sums come from another machine
  }
  CHECK(there.negatives[0].as_expected);
  CHECK(there.negatives[0].excess != here.negatives[0].excess);
  for (size_t i = 0; i < there.gradients.size(); ++i) {
    REQUIRE(there.gradients[i].forms[0].size() == here.gradients[i].forms[0].size());
    // The same errors are drawn on both. In f64 they are no larger than the reference's own rounding.
    if (there.gradients[i].dtype == DType::f64) continue;
    CHECK(there.gradients[i].forms[0][0].predicted[0] ==
          Approx(here.gradients[i].forms[0][0].predicted[0]).epsilon(0.01));
  }
}

TEST_CASE("files are one function on a device, and a wrong entry is seen there") {
  manual_seed(3);
  nn::Gpt model({.vocab = 31, .context = 16, .transformer = {.width = 24, .depth = 1, .heads = 2}});
  model.to(DType::f64);
  const training::ModelFile file{model.state_dict(), training::describe(model)};
  const ModelConversion c = convert_model(file, streams::Form::crms_norm);
  training::ModelFile converted{c.conversion.state, c.description};
  const Verification there = verify_models(file, converted, {}, kCuda), here = verify_models(file, converted);
  CHECK(there.equivalent());
  CHECK(there.outputs.at(0).control == Approx(here.outputs.at(0).control).epsilon(0.1));
  CHECK(there.outputs.at(0).size != here.outputs.at(0).size);
  const Tensor w = converted.state.at("head.weight");
  w.mutable_data<double>()[0] += 1e-6;
  CHECK_FALSE(verify_models(file, converted, {}, kCuda).outputs.at(0).explained());
}

TEST_CASE("a claim is measured on a device") {
  const gpu::Recorder recorder;
  const ExperimentResult there = invariance({.device = kCuda});
  INFO(there.measured);
  CHECK(there.confirmed);
  CHECK(recorder.count(gpu::Recorded::Kind::launch) > 100);
}
