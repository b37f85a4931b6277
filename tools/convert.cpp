// isonorm convert IN OUT: a checkpoint in the coordinates of another form, verified before it is written.
#include "tools/convert.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "autograd/ops/create.h"
#include "core/printed.h"
#include "equivalence/convert/convertible.h"
#include "equivalence/verify/file_conversion.h"
#include "equivalence/reference/reference.h"
#include "equivalence/reference/stream_sum.h"
#include "hub/folder.h"
#include "hub/llama.h"
#include "streams/stream.h"
#include "tools/interrupt.h"
#include "tools/model_data.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;
using streams::Form;

// What the user asked for, found in the file or not.
void check_form(const std::string& asked, const std::string& form, bool raw, const std::string& file) {
  if (asked.empty() || asked == form || (raw && asked == "layer_norm")) return;
  check(false, file, ": its form is ", form, raw ? " with raw weights" : "", ", not ", asked);
}

void check_eps(const streams::Placement& layout, double eps) {
  for (const streams::NormPlace& n : layout.norms)
    check(eps == 0 || n.eps == eps, "convert: norm '", n.name, "' has eps ", n.eps, ", asked for is ", eps,
          ": another eps is another function");
}

std::string shape_text(const std::optional<Dims>& shape) { return shape ? text(*shape) : "-"; }

// In a cell of the table.
std::string shown(const std::string& name) { return printable(name, 200); }

void print_table(const FileConversion& c) {
  size_t name = 6, before = 6, after = 5, what = 13;
  for (const TensorChange& t : c.changes()) {
    name = std::max(name, shown(t.name).size()), what = std::max(what, shown(t.what).size());
    before = std::max(before, shape_text(t.before).size()), after = std::max(after, shape_text(t.after).size());
  }
  const auto row = [&](const std::string& a, const std::string& b, const std::string& d, const std::string& e,
                       const std::string& f) {
    std::printf("%-*s  %-*s  %-*s  %-*s  %s\n", static_cast<int>(name), a.c_str(), static_cast<int>(before), b.c_str(),
                static_cast<int>(after), d.c_str(), static_cast<int>(what), e.c_str(), f.c_str());
  };
  row("tensor", "before", "after", "what happened", "deviation");
  for (const TensorChange& t : c.changes()) {
    char deviation[16] = "";
    const auto& of = c.exact().deviations;
    if (const auto at = of.find(t.name); at != of.end()) std::snprintf(deviation, sizeof deviation, "%.1e", at->second);
    row(shown(t.name), shape_text(t.before), shape_text(t.after), shown(t.what), deviation);
  }
  std::printf("\n");
}

class Run {
 public:
  explicit Run(const ConvertOptions& o) : o_(o), form_(o.to) {
    if (!std::filesystem::is_directory(o.in)) {
      file_ = training::open_model_file(o.in);
      return;
    }
    folder_ = hub::open_folder(o.in);
    const bool converted = !folder_->config.text_of("isonorm").empty();
    check(!converted || rotates(), o.in, ": config.json says that it was converted already");
    check(converted || !rotates(), o.in,
          ": config.json does not say that it was converted; isonorm convert --to rms_norm comes first");
    hub::check_new_folder(o.out, o.in);
    file_.state = folder_->state, file_.foreign = folder_->foreign;
    const Scope scope(o.in);
    said_ = hub::converted(folder_->config), said_form_ = said_.form;
    config_ = o.as.empty() ? folder_->config.values() : hub::llama_config(folder_->config);
  }

  int run() {
    if (!folder_ && o_.spec.empty() && !rotates() && exports()) return export_raw();
    FileConversion conversion = folder_ || !o_.spec.empty() ? by_spec() : by_model();
    if (!o_.reference.empty() && !held_to_reference(conversion.layout())) return kNotEquivalent;
    if (!conversion.check([] { return !interrupted(); })) return stop();
    if (plan_) conversion.complete(plan_->outline, dtype().value_or(coarsest(file_.state.outline)));
    judge(conversion);
    if (interrupted()) return stop();
    if (!o_.quiet) print_table(conversion);
    for (const std::string& line : figures_) std::printf("%s\n", printable(line).c_str());
    if (!same_) {
      std::printf(
          "Not verified: %s was not written.%s\n", o_.out.c_str(),
          exact_ ? " The result in f64 is the same; rounding to the stored dtype loses too much: see --dtype." : "");
      return kNotEquivalent;
    }
    write(o_.unit_gains || !o_.as.empty() ? with_unit_gains(conversion.result()) : conversion.result());
    return kOk;
  }

 private:
  bool rotates() const { return !o_.basis.empty(); }
  Form to() const { return streams::form_named(form_); }
  std::optional<DType> dtype() const {
    for (DType d : {DType::f32, DType::f64, DType::bf16})
      if (o_.dtype == name_of(d)) return d;
    return {};
  }

  int stop() const {
    std::fprintf(stderr, "isonorm convert: interrupted; %s was not written\n", o_.out.c_str());
    return kInterrupted;
  }

  void write(const LazyState& result) const {
    std::vector<io::TensorEntry> entries;
    for (const auto& [name, tensor] : result.outline) {
      const auto foreign = file_.foreign.find(name);
      entries.push_back(
          {name, tensor.dtype(), tensor.shape(), 0, 0, foreign == file_.foreign.end() ? "" : foreign->second});
    }
    if (folder_) {
      // A rotation makes no bias: the class lacks those that the conversion made.
      const std::vector<std::string> biases = rotates() ? said_.biases : new_biases(result);
      hub::write_folder(o_.out, *folder_,
                        {entries, result.read, config_, form_, rotates() ? said_.fold : o_.fold, layout_.width,
                         layout_.norms, biases, said_.rotation + (said_.rotation.empty() ? "" : ", ") + o_.basis},
                        o_.shard);
      say_loader(biases);
    } else {
      save_safetensors(o_.out, entries, metadata_, result.read);
    }
    const bool own_code = folder_ && folder_->config.own_code();
    const bool described = !o_.spec.empty(), known = !described && !own_code;
    const std::string verdict =
        known || (!o_.reference.empty() && unchecked_.empty()) ? "verified."
        : !o_.reference.empty()
            ? text("converted as the description says; the description is checked in part: ", unchecked_, ".")
        : rotates() ? "rotated as the description says; the description itself is unchecked."
        : described ? "converted as the description says; the description itself is unchecked (--reference checks it)."
                    : "converted as its family is; config.json names code of its own (auto_map), which is unchecked.";
    std::printf("%s: %s, %zu tensors, %s\n", o_.out.c_str(), form_.c_str(), entries.size(), printable(verdict).c_str());
  }

  // The norms whose gain and bias went into their readers have ones and zeros in their place, where they had a gain and a
  // bias; as a LLaMA, each has a gain.
  LazyState with_unit_gains(LazyState result) const {
    std::map<std::string, double> unit;
    for (const streams::NormPlace& n : layout_.norms) {
      if (!n.folds) continue;
      if (!n.weight.empty() || !o_.as.empty()) unit[n.name + ".weight"] = n.plus_one ? 0 : 1;
      if (!n.bias.empty()) unit[n.bias] = 0;
    }
    const Tensor values = outline({layout_.width}, dtype().value_or(coarsest(file_.state.outline)));
    for (const auto& [name, _] : unit) result.outline.add(name, values);
    result.read = [unit, values, read = result.read](const std::string& name) {
      const auto at = unit.find(name);
      return at == unit.end() ? read(name) : full(values.shape(), at->second, {values.dtype()});
    };
    return result;
  }

  std::vector<std::string> new_biases(const LazyState& result) const {
    std::vector<std::string> names;
    for (const auto& [name, _] : result.outline)
      if (!file_.state.outline.find(name) && name.ends_with(".bias")) names.push_back(name);
    return names;
  }

  // Stock classes have a place for an untied head, and pass over biases that they have none for.
  void say_loader(const std::vector<std::string>& biases) const {
    if (o_.fold == "none" || !o_.as.empty()) return;
    std::string names;
    for (size_t i = 0; i < biases.size() && i < 3; ++i) names += text(i == 0 ? "" : ", ", biases[i]);
    if (biases.size() > 3) names += text(" and ", biases.size() - 3, " more");
    if (!biases.empty())
      std::printf("new: %s. A class of transformers that has no place for them passes over them.\n",
                  printable(names).c_str());
    std::printf("%s/isonorm_torch.py: load(FOLDER) gives that class, with what it lacks.\n", printable(o_.out).c_str());
  }

  // Whether the file holds raw weights, which are the Pre-LN model's, of a model that runs in another form.
  bool exports() const {
    if (file_.description.empty() || to() != Form::layer_norm) return false;
    const training::ModelOptions options(file_.description);
    const Form form = options.stream().form;
    return training::stored_form(options) == Form::layer_norm && form != Form::layer_norm;
  }

  // The Pre-LN model of the same weights.
  int export_raw() {
    training::ModelOptions options(file_.description);
    check_form(o_.from, name_of(options.stream().form), true, o_.in);
    options.check_size(file_.state.outline);
    options.stream().form = Form::layer_norm, options.stream().centre_readers = false;
    metadata_ = options.description();
    LazyState result = file_.state;
    if (const auto dtype = this->dtype()) {
      result.outline = {};
      for (const auto& [name, tensor] : file_.state.outline) result.outline.add(name, outline(tensor.shape(), *dtype));
      result.read = [this, dtype](const std::string& name) { return file_.state.read(name).to(*dtype); };
    }
    const Tensor inputs = options.inputs(kRandomRows, 1);
    const Agreement logits = compare_models(file_.description, file_.state, metadata_, result, inputs);
    std::printf("%s holds raw weights: those of the Pre-LN model, which its %s form maps as it runs.\n%s\n",
                o_.in.c_str(), name_of(training::ModelOptions(file_.description).stream().form),
                agreement_text("as stored, logits of random inputs", logits).c_str());
    if (interrupted()) return stop();
    if (logits.same()) {
      write(result);
      return kOk;
    }
    std::printf("Not verified: %s was not written.\n", o_.out.c_str());
    return kNotEquivalent;
  }

  FileConversion by_model() {
    check(!file_.description.empty(), o_.in, ": it does not say what model it holds; describe it with --spec FILE");
    const training::ModelOptions options(file_.description);
    const bool raw = options.stream().storage == streams::Stored::raw;
    check_form(o_.from, name_of(options.stream().form), raw, o_.in);
    const Form form = rotates() ? rotated_form(training::stored_form(options)) : to();
    plan_ = plan_conversion(file_.description, file_.state.outline, form, o_.inference);
    metadata_ = plan_->description;
    if (rotates()) rotate(plan_->layout);
    return conversion(plan_->layout);
  }

  FileConversion by_spec() {
    const auto form = file_.other.find(streams::kStreamForm);
    if (form != file_.other.end()) said_form_ = form->second;
    if (o_.from.empty() && !folder_ && said_form_.empty())
      throw UsageError("--spec needs --from: the file alone does not say what form it has");
    if (!said_form_.empty()) check_form(o_.from, said_form_, false, o_.in);
    const bool converted = !said_form_.empty() || !file_.description.empty();
    const std::string from = !o_.from.empty() ? o_.from : !said_form_.empty() ? said_form_ : "layer_norm";
    streams::Placement layout = described_placement(o_.spec.empty() ? o_.in : o_.spec, file_.state.outline, converted,
                                                    streams::form_named(from));
    if (o_.fold == "none")
      for (streams::NormPlace& n : layout.norms) n.folds = false;
    layout_ = layout;
    check_described(file_.description, layout);
    if (rotates()) rotate(layout);
    metadata_ = file_.other;
    metadata_[streams::kStreamForm] = form_;
    return conversion(layout);
  }

  // What a rotation makes of a form: rows that were zero-mean have a mean then.
  static Form rotated_form(Form form) { return form == Form::rms_norm ? Form::uncentred_rms_norm : form; }

  // What is rotated is a model whose norms take the length of a row, whatever its mean.
  void rotate(streams::Placement& layout) {
    check_rotatable(layout);
    layout.form = rotated_form(layout.form), form_ = name_of(layout.form);
    check_layout(file_.state.outline, layout);  // before a matrix of its width is made
    layout.rotation = basis_rotation(o_.basis, layout.stored_width());
  }

  // Whether the source, as the description has it, gives what the program computed that it came from.
  bool held_to_reference(const streams::Placement& layout) {
    const TensorMap reference = load_reference(o_.reference);
    const Scope scope(o_.reference);
    const LazyState state = with_gains(file_.state, layout);
    const ReferenceFindings f = check_reference(state, layout, reference);
    const StreamSum sum = check_stream_sum(state, layout, reference);
    std::string why = sum.wrong;
    if (!f.agrees())
      why = text("the output of '", f.tensor, "' is off by ", scientific(f.deviation),
                 " of its largest entry, rounding explains ", scientific(f.bound));
    else if (!f.same())
      why = text("the output of '", f.unseen, "' would agree ", f.reading, ", too (", printed("%.2g", f.power),
                 " of the bound): these rows do not show what is right");
    if (!why.empty()) {
      std::printf("%s\n",
                  printable(text("Not verified: ", o_.out, " was not written: in the reference ", why)).c_str());
      return false;
    }
    say(text("reference: ", f.readers_held, " of ", f.readers, " readers, ", f.writers_held, " of ", f.writers,
             " writers agree, at most ", printed("%.2g", f.share), " of the bound",
             std::isinf(f.power) ? "" : printed("; with another dim, norm or bias at least %.2g of it", f.power)),
        true, true);
    say(text("reference: ", sum.summed, " of ", sum.readers, " readers read the sum of what writers wrote, ", sum.seen,
             " of ", sum.writers, " of these are seen there"),
        true, true);
    unchecked_ = sum.open;
    return true;
  }

  FileConversion conversion(const streams::Placement& layout) const {
    check_dtypes(layout, file_.foreign);
    check_eps(layout, o_.eps);
    return FileConversion(file_.state, layout, to(), dtype());
  }

  void say(const std::string& figure, bool same, bool exactly) {
    figures_.push_back(figure);
    same_ = same_ && same;
    if (exactly) exact_ = exact_ && same;
  }

  // The conversion itself in f64, then what was rounded: every entry, what the readers see of random rows, logits.
  void judge(const FileConversion& c) {
    judge(c, "in f64, ", c.exact(), c.result_in_f64(), true);
    if (c.stored() && !interrupted()) judge(c, "as stored, ", *c.stored(), c.result(), false);
  }

  void judge(const FileConversion& c, const std::string& when, const ConversionFindings& found, const LazyState& result,
             bool exactly) {
    say(entries_text(when + "entries", found.entries),
        found.entries.relation == EntryComparison::Relation::second_rounded, exactly);
    const auto output = [&](const std::string& what, const Agreement& a) {
      say(agreement_text(when + what, a), a.same(), exactly);
    };
    output("readers of random rows", found.readers);
    if (!plan_) return;
    const auto logits = [&](const char* what, const Tensor& inputs) {
      output(what, compare_models(file_.description, c.before(), metadata_, result, inputs));
    };
    logits("logits of random inputs", training::ModelOptions(file_.description).inputs(kRandomRows, 1));
    if (!o_.data.empty() && !interrupted()) logits("logits of data", data_inputs(file_.description, o_.data));
  }

  const ConvertOptions& o_;
  training::OpenModelFile file_;
  std::optional<hub::Folder> folder_;  // of the hub, where IN is one
  json config_;                        // of the folder that is written
  hub::SaidOfConversion said_;         // by that folder
  streams::Placement layout_;          // of a description
  std::string form_, said_form_;       // of the result; of what was converted before
  std::optional<ModelPlan> plan_;      // where the file says what model it holds
  Metadata metadata_;
  std::vector<std::string> figures_;
  std::string unchecked_;  // what the reference does not show of the description
  bool same_ = true, exact_ = true;
};

}  // namespace

int run_convert(const ConvertOptions& o) {
  const bool folder = std::filesystem::is_directory(o.in), described = folder || !o.spec.empty();
  if (!described && !o.reference.empty()) throw UsageError("--reference needs --spec, which it is to check");
  if (!described && o.fold != "all") throw UsageError("--fold needs --spec: a described model has no place for gains");
  const bool gains = o.unit_gains || !o.as.empty();
  if (gains && !folder) throw UsageError("--unit-gains and --as need IN to be a folder");
  if (gains && (o.to != "rms_norm" || o.fold != "all"))
    throw UsageError("--unit-gains and --as need --to rms_norm and --fold all: a narrower stream has no stock class");
  if (o.shard < 1) throw UsageError("--max-shard-size: expected at least one byte");
  if (described && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  check_outputs({{"OUT", folder ? "" : o.out}}, {{"IN", o.in},
                                                 {"--spec", o.spec},
                                                 {"--reference", o.reference},
                                                 data_input(o.data),
                                                 {"--basis", basis_file(o.basis)}});
  catch_interrupt();
  return Run(o).run();
}

}  // namespace isonorm::tools
