// isonorm convert IN OUT: a checkpoint in the coordinates of another form, verified before it is written.
#include <algorithm>
#include <cstdio>

#include "equivalence/stream_check.h"
#include "tools/interrupt.h"
#include "tools/model_data.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;
using nn::StreamForm;

struct ConvertOptions {
  std::string in, out, from, to, spec, dtype, data;
  double eps = 0;  // 0: not asked for
  bool inference = false, quiet = false;
};

// What the user asked for, found in the file or not.
void check_form(const std::string& asked, const std::string& form, bool raw, const std::string& file) {
  if (asked.empty() || asked == form || (raw && asked == "layer_norm")) return;
  check(false, file, ": its form is ", form, raw ? " with raw weights" : "", ", not ", asked);
}

void check_eps(const Layout& layout, double eps) {
  for (const NormPlace& n : layout.norms)
    check(eps == 0 || n.eps == eps, "convert: norm '", n.name, "' has eps ", n.eps, ", asked for is ", eps,
          ": another eps is another function");
}

std::string shape_text(const std::optional<Dims>& shape) { return shape ? text(*shape) : "-"; }

void print_table(const Conversion& c, const std::map<std::string, double>& deviations) {
  size_t name = 6, before = 6, after = 5, what = 13;
  for (const TensorChange& t : c.changes) {
    name = std::max(name, printable(t.name).size()), what = std::max(what, printable(t.what).size());
    before = std::max(before, shape_text(t.before).size()), after = std::max(after, shape_text(t.after).size());
  }
  const auto row = [&](const std::string& a, const std::string& b, const std::string& d, const std::string& e,
                       const std::string& f) {
    std::printf("%-*s  %-*s  %-*s  %-*s  %s\n", static_cast<int>(name), a.c_str(), static_cast<int>(before), b.c_str(),
                static_cast<int>(after), d.c_str(), static_cast<int>(what), e.c_str(), f.c_str());
  };
  row("tensor", "before", "after", "what happened", "deviation");
  for (const TensorChange& t : c.changes) {
    char deviation[16] = "";
    if (const auto at = deviations.find(t.name); at != deviations.end())
      std::snprintf(deviation, sizeof deviation, "%.1e", at->second);
    row(printable(t.name), shape_text(t.before), shape_text(t.after), printable(t.what), deviation);
  }
  std::printf("\n");
}

class Run {
 public:
  explicit Run(const ConvertOptions& o) : o_(o), file_(load_model_file(o.in)) {}

  int run() {
    if (o_.spec.empty())
      by_model();
    else
      by_spec();
    if (interrupted()) return stop();
    verify();
    if (interrupted()) return stop();
    if (!o_.quiet) print_table(conversion_, deviations_);
    for (const std::string& line : figures_) std::printf("%s\n", printable(line).c_str());
    if (!same_) {
      std::printf(
          "Not verified: %s was not written.%s\n", o_.out.c_str(),
          exact_ ? " The result in f64 is the same; rounding to the stored dtype loses too much: see --dtype." : "");
      return kNotEquivalent;
    }
    save_safetensors(o_.out, conversion_.state, metadata_);
    std::printf("%s: %s, %zu tensors, verified.\n", o_.out.c_str(), o_.to.c_str(), conversion_.state.size());
    return kOk;
  }

 private:
  StreamForm to() const { return nn::stream_form(o_.to); }
  std::optional<DType> dtype() const {
    for (DType d : {DType::f32, DType::f64, DType::bf16})
      if (o_.dtype == name_of(d)) return d;
    return {};
  }

  int stop() const {
    std::fprintf(stderr, "isonorm convert: interrupted; %s was not written\n", o_.out.c_str());
    return kInterrupted;
  }

  void by_model() {
    check(!file_.description.empty(), o_.in, ": it does not say what model it holds; describe it with --spec FILE");
    const ModelOptions options(file_.description);
    const bool raw = options.transformer().storage == nn::StreamStorage::raw;
    check_form(o_.from, nn::name_of(options.transformer().stream), raw, o_.in);
    options.check_size(file_.state);
    layout_ = layout_of(*options.build());
    check_eps(layout_, o_.eps);
    ModelConversion c = convert_model(file_, to(), {.dtype = dtype(), .inference = o_.inference});
    conversion_ = std::move(c.conversion);
    metadata_ = std::move(c.description);
  }

  void by_spec() {
    if (o_.from.empty()) throw UsageError("--spec needs --from: the file alone does not say what form it has");
    if (const auto form = file_.other.find(kStreamForm); form != file_.other.end())
      check_form(o_.from, form->second, false, o_.in);
    layout_ = described_layout(o_.spec, file_, nn::stream_form(o_.from));
    check_described(file_, layout_);
    check_eps(layout_, o_.eps);
    conversion_ = convert(file_.state, layout_, to(), dtype());
    metadata_ = file_.other;
    metadata_[kStreamForm] = o_.to;
  }

  void judge(const std::string& figure, bool same, bool exactly) {
    figures_.push_back(figure);
    same_ = same_ && same;
    if (exactly) exact_ = exact_ && same;
  }

  // The conversion itself in f64, then what was rounded: every entry, what the readers see of random rows, logits.
  void verify() {
    const TensorMap before = centred(file_.state, layout_);
    compare("in f64, ", before, conversion_.exact, true, &deviations_);
    if (coarsest(conversion_.state) != DType::f64 && !interrupted())
      compare("as stored, ", before, conversion_.state, false, nullptr);
  }

  void compare(const std::string& when, const TensorMap& before, const TensorMap& after, bool exactly,
               std::map<std::string, double>* deviations) {
    const EntryComparison entries = compare_entries(before, layout_, after, conversion_.layout);
    judge(entries_text(when + "entries", entries), entries.relation == EntryComparison::Relation::second_rounded,
          exactly);
    const auto output = [&](const std::string& what, const Agreement& a) {
      judge(agreement_text(when + what, a), a.same(), exactly);
    };
    output("readers of random rows", compare_streams(before, layout_, after, conversion_.layout, deviations));
    if (!o_.spec.empty()) return;
    const auto logits = [&](const char* what, const Tensor& inputs) {
      output(what, compare_models(file_.description, before, metadata_, after, inputs));
    };
    logits("logits of random inputs", ModelOptions(file_.description).inputs(kRandomRows, 1));
    if (!o_.data.empty() && !interrupted()) logits("logits of data", data_inputs(file_.description, o_.data));
  }

  const ConvertOptions& o_;
  ModelFile file_;
  Layout layout_;
  Conversion conversion_;
  Metadata metadata_;
  std::map<std::string, double> deviations_;
  std::vector<std::string> figures_;
  bool same_ = true, exact_ = true;
};

int run(const ConvertOptions& o) {
  if (!o.spec.empty() && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  check_outputs({{"OUT", o.out}}, {{"IN", o.in}, {"--spec", o.spec}, {"--data", o.data}});
  catch_interrupt();
  return Run(o).run();
}

CLI::Validator form_name(bool any) {
  return CLI::Validator(
      [any](const std::string& name) {
        for (const char* known : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric"})
          if (name == known) return std::string();
        if (any && name.empty()) return std::string();
        return text("\"", name, "\" is not one of layer_norm, rms_norm, crms_norm, crms_isometric");
      },
      "FORM");
}

}  // namespace

Verb add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand("convert", "Convert a checkpoint to another form of its residual stream");
  auto o = std::make_shared<ConvertOptions>();
  command->add_option("IN", o->in, "a checkpoint of isonorm train, or a safetensors file")->required();
  command->add_option("OUT", o->out, "the safetensors file to write; it appears whole and verified, or not")
      ->required();
  command->add_option("--from", o->from, "form of IN (default: what IN says)")->check(form_name(false));
  command->add_option("--to", o->to, "form of OUT")->required()->check(form_name(false));
  command->add_option("--spec", o->spec,
                      "JSON file that says which tensors read and write the stream, for other "
                      "frameworks' files (docs/conversion.md)");
  command->add_option("--dtype", o->dtype, "of the tensors of OUT (default: as in IN)")
      ->check(CLI::IsMember({"f32", "f64", "bf16"}));
  command->add_option("--eps", o->eps, "refuse norms with another eps than this one")->check(CLI::PositiveNumber);
  command->add_option("--data", o->data, "also compare logits on these data: as --data of isonorm train");
  command->add_flag("--inference", o->inference, "leave out dropout on branches, which acts in training alone");
  command->add_flag("-q,--quiet", o->quiet, "no table");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
