#include "lab/papers/experiment.h"

#include <mutex>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "equivalence/lockstep/share_out.h"
#include "training/options/rows.h"
#include "training/records/manifest.h"
#include "training/training_options.h"

namespace isonorm::papers {
namespace {

constexpr Experiment kExperiments[] = {
    {"invariance",
     "LayerNorm is invariant to the scale of the weights and of the data, and to a shift common to all rows of the "
     "weights; RMSNorm is invariant to the scales; with both, the gradient of a weight matrix shrinks as the matrix "
     "grows.",
     "Zhang and Sennrich, Root Mean Square Layer Normalization, 1910.07467, table 1 and section 4", invariance,
     kOnDevice},
    {"trajectories",
     "A Transformer trained as Pre-LN, Pre-RMSNorm and Pre-CRMSNorm from the same raw weights stays the same model: "
     "the trainings differ by as much as trainings whose initial weights differ by one unit in the last place.",
     "Jiang et al., Pre-RMSNorm and Pre-CRMSNorm Transformers, 2305.14858, figures 6 and 7", trajectories,
     kReadsData | kOnDevice},
    {"paper-curves",
     "The loss curves of a ViT and of a GPT, each trained as Pre-LN, Pre-RMSNorm and Pre-CRMSNorm, are the same curve "
     "up to rounding.",
     "Jiang et al., Pre-RMSNorm and Pre-CRMSNorm Transformers, 2305.14858, figures 6 and 7", paper_curves,
     kTakesFull | kOnDevice},
    {"norm-cost", "RMSNorm and CRMSNorm take less time than LayerNorm of the same width, forward and backward.",
     "Zhang and Sennrich, 1910.07467, section 4; Jiang et al., 2305.14858, section 4.2", norm_cost,
     kTakesFull | kUntested},
    {"paper-speed",
     "A Transformer without norms takes less time than Pre-RMSNorm, and Pre-RMSNorm less than Pre-LN, in inference and "
     "in training, recentring included.",
     "Jiang et al., Pre-RMSNorm and Pre-CRMSNorm Transformers, 2305.14858, tables 3 to 5, figures 4b and 5",
     paper_speed, kTakesFull | kUntested | kOnDevice},
    {"conversion",
     "With any weights, a ViT and a GPT give the same logits and the same gradients of the raw weights in every form.",
     "Jiang et al., Pre-RMSNorm and Pre-CRMSNorm Transformers, 2305.14858, sections 3.1 to 3.5", conversion, kOnDevice},
    {"peri-ln", "Peri-LN has an exact RMSNorm form; P acts after its gains, too.",
     "Kim et al., Peri-LN, 2502.02732; derived in docs/connections.md", peri_ln_forms, kOnDevice},
    {"olmo2-order",
     "OLMo 2's order has an exact RMSNorm form: the table is not mapped, and P acts once before the last norm.",
     "OLMo 2, 2501.00656; derived in docs/connections.md", olmo2_forms, kOnDevice},
    {"hyper-connections",
     "Hyper-connections have an exact RMSNorm form for any matrices if no coefficient depends on the mean of a row.",
     "Zhu et al., Hyper-Connections, 2409.19606; Xie et al., mHC, 2512.24880; derived in docs/connections.md",
     hyper_connection_forms, kOnDevice},
    {"qk-norm",
     "Norms of queries and keys have an exact RMSNorm form and an isometric form with one number less per head; the "
     "coordinates of crms_norm do not keep the scores.",
     "Dehghani et al., 2302.05442; derived in docs/connections.md", qk_norm_forms, kOnDevice},
    {"dyt", "DyT and Derf see the mean of a row: they have no exact RMSNorm form.",
     "Zhu et al., Transformers without Normalization, 2503.10622; Derf, 2512.10938", pointwise_forms, kOnDevice},
    {"sharded-norms",
     "If ranks share the entries of a row, LayerNorm needs two reductions in its forward, one after the other; "
     "RMSNorm, CRMSNorm and isometric CRMSNorm need one reduction, of one, two and one number per row. Each norm needs "
     "one reduction in its backward.",
     "derived in lab/papers/ranks/sharded_norms.cpp; Korthikanti et al., Reducing Activation Recomputation, "
     "2205.05198, for ranks that share rows",
     sharded_norms, 0},
    {"tensor-parallel",
     "A GPT whose heads, hidden entries and rows are shared by four ranks equals the GPT in one process, in every "
     "form; ranks send the stored numbers of a row, d or d - 1.",
     "Shoeybi et al., Megatron-LM, 1909.08053; Korthikanti et al., 2205.05198; derived in "
     "lab/papers/ranks/tensor_parallel.cpp",
     tensor_parallel, 0},
    {"zero-memory", "In each stage of ZeRO, a rank's memory and the bytes that it sends follow the formulas.",
     "Rajbhandari et al., ZeRO, 1910.02054, figure 1", zero_memory, 0},
    {"controls",
     "A bound of 30 times the deviation of four controls plus 64 eps rejects a training that differs only by rounding "
     "in at most one proof in a thousand.",
     "docs/equivalence.md, the criterion of this program", controls, kTakesSeeds | kOnDevice},
    {"precision",
     "A Transformer whose products are bf16 and whose weights and optimizer stay f32 trains as in f32, without loss "
     "scaling: its losses differ less from f32's than the losses of f32 from other initial weights do.",
     "Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, 1905.12322, section 4", precision},
    {"last-gradient",
     "At the initial weights the gradient of the last block does not depend on the depth in Post-LN, and falls with "
     "the root of the depth in Pre-LN, with LayerNorm and with RMSNorm.",
     "Xiong et al., On Layer Normalization in the Transformer Architecture, 2002.04745, theorem 1", last_gradient},
    {"first-gradient",
     "At the initial weights ResiDual's gradient of the first block does not fall below Pre-LN's however many blocks "
     "follow; DeepNorm's falls with the root of their number.",
     "Xie et al., ResiDual: Transformer with Dual Residual Connections, 2304.14802, section 3", first_gradient},
    {"gradient-profile",
     "At the initial weights gradients fall from the first block to the last in Pre-LN and are even in DeepNorm.",
     "Xiong et al., 2002.04745, section 3.3; Wang et al., DeepNet, 2203.00555, section 4; Li et al., Mix-LN, "
     "2412.13795",
     gradient_profile, kTakesFull},
    {"stream-growth",
     "At the initial weights the stream's mean square grows in Pre-LN like the number of blocks, in LayerNorm Scaling "
     "like its logarithm, and is 1 in Post-LN.",
     "Xiong et al., 2002.04745, lemma 2; Sun et al., The Curse of Depth in Large Language Models, 2502.05795",
     stream_growth},
    {"collapse",
     "At the initial weights a block of Pre-LN changes the normalised stream the less the later it comes, like the "
     "inverse root of its number; a block of Post-LN does not.",
     "Xie et al., 2304.14802, section 2.2", collapse},
    {"bounded-update",
     "One step of SGD changes DeepNorm's output by the same amount at every depth, Post-LN's at least in proportion to "
     "depth, and Pre-LN's less than in proportion.",
     "Wang et al., 2203.00555, section 3; Wang et al., Foundation Transformers, 2210.06423, section 3", bounded_update,
     kTakesFull},
    {"stop-gradient",
     "GPAS scales the stream down and keeps the size of the first block's gradient: without its stop-gradient every "
     "scaling would multiply that gradient by its factor.",
     "Chen et al., GPAS, 2506.22049, section 3", stop_gradient},
    {"warm-up", "At a high rate Post-LN learns with warm-up only; Pre-LN learns with and without.",
     "Xiong et al., 2002.04745, section 3.2", warm_up},
    {"perplexity",
     "Small language models with Mix-LN, LayerNorm Scaling and GPAS have a lower perplexity than the model with "
     "Pre-LN, trained alike.",
     "Li et al., 2412.13795, table 1; Sun et al., 2502.05795, table 1; Chen et al., 2506.22049, table 1", perplexity,
     kReadsData | kTakesFull | kUntested},
    {"recurrent-norms", "A GRU learns with RMSNorm as fast as with LayerNorm, and with either faster than without.",
     "Zhang and Sennrich, 1910.07467, section 6.1", recurrent_norms, kTakesFull},
    {"recurrent-centre",
     "LayerNorm in a GRU is invariant to a constant shift of all weights, in training as well; RMSNorm and no norm are "
     "not.",
     "Zhang and Sennrich, 1910.07467, section 4 and figure 4", recurrent_centre, kTakesFull},
    {"translator-norms", "An encoder-decoder with RMSNorm gets no more words wrong than one with LayerNorm.",
     "Zhang and Sennrich, 1910.07467, section 6.1", translator_norms, kTakesFull | kOnDevice},
    {"cnn-norms", "A convolutional network whose layers have RMSNorm makes no more errors than one with LayerNorm.",
     "Zhang and Sennrich, 1910.07467, section 6.4 and table 8", image_norms,
     kReadsData | kTakesFull | kOnDevice | kUntested},
    {"zoo",
     "On one task, at a learning rate at which Pre-LN learns at once, Post-LN needs a warm-up. The tables show which "
     "other connections do, and the gradients and streams of each.",
     "Xiong et al., 2002.04745, section 3; docs/connections.md", zoo, kTakesFull | kUntested},
};

std::string command_of(const Experiment& e, const ExperimentOptions& o) {
  return text("isonorm experiment ", e.name, " --seed ", o.seed,
              o.data.empty() ? "" : text(" --data ", shell_word(o.data)), o.seeds > 0 ? text(" --seeds ", o.seeds) : "",
              o.full ? " --full" : "", o.device != kCpu ? text(" --device ", o.device) : "");
}

struct Finding {
  const Experiment& experiment;
  const ExperimentResult& result;

  const char* verdict() const { return result.undecided ? "Undecided" : result.confirmed ? "Confirmed" : "Refuted"; }
  std::string sentence() const { return text(result.measured, " It would have been refuted by ", result.refuted, "."); }
};

const reports::Schema<Finding>& experiment_schema() {
  static const reports::Schema<Finding> schema{
      "experiment", "The claim of a paper, and whether `isonorm experiment` confirmed it.",
      reports::Fields<Finding>()
          .add(
              "experiment", [](const Finding& f) { return f.experiment.name; }, "its name")
          .add(
              "claim", [](const Finding& f) { return f.experiment.claim; }, "a sentence")
          .add(
              "source", [](const Finding& f) { return f.experiment.source; }, "the paper")
          .add(
              "verdict",
              [](const Finding& f) {
                return f.result.undecided ? "undecided" : f.result.confirmed ? "confirmed" : "refuted";
              },
              "`confirmed`, `refuted` or `undecided`")
          .add("sentence", &Finding::sentence, "the finding with the numbers that decide")
          .add(
              "tables", [](const Finding& f) { return f.result.tables; }, "the measurements", reports::table_fields())
          .add(
              "figures", [](const Finding& f) { return f.result.figures; }, "its curves", reports::figure_fields())};
  return schema;
}

}  // namespace

const reports::Description& experiment_description() { return experiment_schema(); }

void ExperimentOptions::train_all(size_t count, const std::function<void(size_t)>& train) const {
  std::mutex mutex;
  size_t done = 0;
  equivalence::share_out(count, [&](size_t i) {
    go_on();
    train(i);
    const std::lock_guard lock(mutex);
    tell(text("trained ", ++done, "/", count));
  });
}

ExperimentResult Experiment::run(const ExperimentOptions& options) const {
  try {
    return measure(options);
  } catch (const ExperimentOptions::Stopped&) {
    return {.interrupted = true};
  }
}

std::span<const Experiment> experiments() { return kExperiments; }

const Experiment& find_experiment(std::string_view name) {
  return training::row_named(kExperiments, name, "experiment");
}

reports::Document document_of(const Experiment& e, const ExperimentOptions& o, const ExperimentResult& r,
                              double seconds) {
  training::TrainingOptions machine;
  machine.seed = o.seed;
  training::Manifest manifest = manifest_of(machine);
  manifest.data_sha256 = r.data_sha256;
  manifest.options.clear();
  const Finding finding{e, r};
  reports::Document d{.title = e.claim,
                      .about = e.source,
                      .tone = r.undecided   ? reports::Tone::plain
                              : r.confirmed ? reports::Tone::good
                                            : reports::Tone::bad,
                      .verdict = finding.verdict(),
                      .sentence = finding.sentence(),
                      .tables = r.tables,
                      .figures = r.figures,
                      .environment = environment_of(manifest, seconds),
                      .result = experiment_schema()(finding)};
  d.environment.command = command_of(e, o);
  return d;
}

}  // namespace isonorm::papers
