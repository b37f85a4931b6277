#include "equivalence/services/conversion.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autograd/ops/create.h"
#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "equivalence/judge/result_fields.h"
#include "equivalence/reference/reference.h"
#include "equivalence/convert/state.h"
#include "equivalence/reference/stream_sum.h"
#include "equivalence/verify/file_conversion.h"
#include "equivalence/services/model_data.h"
#include "equivalence/services/named_files.h"
#include "exchange/hub/folder.h"
#include "io/json_text.h"
#include "streams/rotation.h"
#include "streams/stream.h"

namespace isonorm::services {
namespace {

using namespace equivalence;
using streams::Form;

// Throws if the file has another form than the user named.
void check_form(const std::string& asked, const std::string& form, bool raw, const std::string& file) {
  if (asked.empty() || asked == form || (raw && row_of(streams::form_named(asked)).raw())) return;
  check(false, file, ": its form is ", form, raw ? " with raw weights" : "", ", not ", asked);
}

void check_eps(const streams::Plan& plan, double eps) {
  for (const streams::Plan::Norm& n : plan.norms)
    check(eps == 0 || n.eps == eps, "convert: norm '", n.name, "' has eps ", n.eps, ", not ", eps,
          ": another eps gives another function");
}

constexpr std::string_view kHadamard = "hadamard:", kHaar = "haar:";

// The seed in "KIND:SEED"; none if the basis is of another kind.
std::optional<uint64_t> seed_of(std::string_view basis, std::string_view kind) {
  if (!basis.starts_with(kind)) return {};
  uint64_t seed = 0;
  if (!read_number(basis.substr(kind.size()), seed))
    throw UsageError(text("--basis: ", Shown{basis, '"'}, ", expected ", kind, "SEED with a whole number below 2^64"));
  return seed;
}

// The matrix Q [d, d] of "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h).
Tensor basis_rotation(const std::string& basis, int64_t d) {
  if (const auto seed = seed_of(basis, kHadamard)) return streams::hadamard_rotation(d, *seed);
  if (const auto seed = seed_of(basis, kHaar)) return streams::haar_rotation(d, *seed);
  return streams::load_rotation(basis, d);
}

// The file that --basis names; empty if it names a kind of basis and a seed.
std::string basis_file(const std::string& basis) {
  return seed_of(basis, kHadamard) || seed_of(basis, kHaar) ? "" : basis;
}

// Rotates the stream of a plan. Its rows were zero-mean and have a mean then, so the form becomes uncentred(). A model
// can be rotated if its norms divide a row by its length, whatever its mean.
void rotate(streams::Plan& plan, const TensorMap& outline, const std::string& basis) {
  check_rotatable(plan);
  plan.form = streams::uncentred(plan.form);
  check_plan(plan, outline);  // before a matrix of this width is allocated
  plan.rotation = basis_rotation(basis, plan.stored_width());
}

class Converter {
 public:
  explicit Converter(const ConvertOptions& o) : o_(o), form_(o.to), format_(format_named(o.dtype)) {
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
    record_ = hub::conversion_record(folder_->config), stored_form_ = record_.form;
    config_ = o.as.empty() ? folder_->config.values() : hub::llama_config(folder_->config);
  }

  Converted convert() {
    found_.written = converts();
    found_.file = o_.out, found_.form = form_;
    return found_;
  }

 private:
  bool converts() {
    if (!folder_ && o_.spec.empty() && !rotates() && exports()) return export_raw();
    folder_ || !o_.spec.empty() ? by_spec() : by_model();
    if (!o_.reference.empty() && !held_to_reference()) return false;
    for (Stream& s : streams_) {
      if (!s.conversion.check([this] { return !o_.stop(); })) throw Interrupted();
      if (plan_) s.conversion.complete(plan_->outline, made_in());
      judge(s);
      if (o_.stop()) throw Interrupted();
      if (!o_.quiet) print_changes(s.conversion, [this](const std::string& line) { print(line); });
    }
    for (const std::string& line : figures_) print(line);
    if (!same_) {
      if (exact_) found_.likely_cause = "rounding to the stored dtype: the result in f64 is the same";
      print(text(
          "Not verified: ", o_.out, " was not written.",
          exact_ ? " The result in f64 is the same; rounding to the stored dtype loses too much: see --dtype." : ""));
      return false;
    }
    write(o_.unit_gains || !o_.as.empty() ? with_unit_gains(result()) : result());
    return true;
  }

  struct Stream {
    std::string name, of;  // "image", "image: " if the file has several streams
    LazyState state;
    FileConversion conversion;
  };

  // The tensors of every stream.
  LazyState result() const {
    LazyState all;
    std::map<std::string, size_t> stream_of;
    std::vector<LazyState> each;
    for (const Stream& s : streams_) {
      each.push_back(s.conversion.result());
      for (const auto& [name, tensor] : each.back().outline)
        all.outline.add(name, tensor), stream_of[name] = each.size() - 1;
      all.half.insert(each.back().half.begin(), each.back().half.end());
    }
    all.read = [each, stream_of](const std::string& name) { return each[stream_of.at(name)].read(name); };
    return all;
  }

  bool rotates() const { return !o_.basis.empty(); }
  Form to() const { return streams::form_named(form_); }
  NumberFormat made_in() const { return format_.value_or(coarsest(file_.state.outline, file_.state.half)); }

  void write(const LazyState& result) {
    io::FileContent content = io::content_of(result, file_.foreign);
    found_.tensors = content.entries.size();
    content.read = [stop = o_.stop, read = std::move(content.read)](const std::string& name) {
      if (stop()) throw Interrupted();
      return read(name);
    };
    if (folder_) {
      // A rotation adds no biases: the class lacks only biases from an earlier conversion.
      const std::vector<std::string> biases = rotates() ? record_.biases : new_biases(result);
      std::vector<streams::Plan> plans;
      for (const Stream& s : streams_) plans.push_back(s.conversion.plan());
      const std::string rotation = record_.rotation + (record_.rotation.empty() ? "" : ", ") + o_.basis;
      hub::write_folder(o_.out, *folder_, {content, config_, form_, o_.fold, plans, biases, rotation}, o_.shard);
      say_loader(biases);
    } else {
      Metadata metadata = metadata_;
      metadata.merge(training::spec_entries(file_.other));
      save_safetensors(o_.out, content.entries, metadata, content.read);
      training::warn_of_averages(*file_.file, o_.in);
    }
    for (const std::string& norm : identity_)
      print(text("'", norm, "' is in the rows of its table now: the program that runs the result must leave it out."));
    for (const std::string& module : recentred_)
      print(text("recentred once at '", module, "': the program that runs the result must take ",
                 row_of(to()).entry_text, " of the rows that enter it."));
    const bool own_code = folder_ && folder_->config.own_code();
    const bool described = !o_.spec.empty(), known = !described && !own_code;
    const std::string verdict =
        known || (!o_.reference.empty() && unchecked_.empty()) ? "verified."
        : !o_.reference.empty()
            ? text("converted as the description says; the description is checked in part: ", unchecked_, ".")
        : rotates() ? "rotated as the description says; the description itself is unchecked."
        : described ? "converted as the description says; the description itself is unchecked (--reference checks it)."
                    : "converted as its family is; config.json names code of its own (auto_map), which is unchecked.";
    print(text(o_.out, ": ", form_, ", ", content.entries.size(), " tensors, ", verdict));
  }

  // Adds ones for the gains and zeros for the biases that were multiplied into readers. In a LLaMA every norm has a
  // gain.
  LazyState with_unit_gains(LazyState result) const {
    struct Unit {
      double value;
      int64_t width;
    };
    std::map<std::string, Unit> unit;
    for (const Stream& s : streams_) {
      const streams::Plan& plan = s.conversion.plan();
      for (const streams::Plan::Norm& n : plan.norms) {
        if (!n.folds || plan.is_behind_table(n)) continue;
        if (!n.weight.empty() || !o_.as.empty()) unit[n.name + ".weight"] = {n.plus_one ? 0.0 : 1.0, plan.width};
        if (!n.bias.empty()) unit[n.bias] = {0, plan.width};
      }
    }
    const NumberFormat stored = made_in();
    for (const auto& [name, u] : unit) {
      result.outline.add(name, outline({u.width}, stored.dtype));
      if (stored.half) result.half.insert(name);
    }
    result.read = [unit, dtype = stored.dtype, read = result.read](const std::string& name) {
      const auto at = unit.find(name);
      return at == unit.end() ? read(name) : full({at->second.width}, at->second.value, {dtype});
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
  void say_loader(const std::vector<std::string>& biases) {
    if ((o_.fold == "none" && identity_.empty() && recentred_.empty()) || !o_.as.empty()) return;
    ShortList names(", ", 3);
    for (const std::string& bias : biases) names.add(bias);
    if (!biases.empty())
      print(text("new: ", names, ". A class of transformers that has no place for them passes over them."));
    print(text(o_.out, "/isonorm_torch.py: load(FOLDER) gives that class, with what it lacks."));
  }

  // Returns true if the file holds the raw weights of a Pre-LN model that runs in another form.
  bool exports() const {
    if (file_.description.empty() || !row_of(to()).raw()) return false;
    const training::ModelOptions options(file_.description);
    return row_of(training::stored_form(options)).raw() && !row_of(options.stream().form).raw();
  }

  // Writes the Pre-LN model with the same weights.
  bool export_raw() {
    training::ModelOptions options(file_.description);
    check_form(o_.from, name_of(options.stream().form), true, o_.in);
    options.check_size(file_.state.outline);
    options.stream().form = to(), options.stream().centre_readers = false;
    metadata_ = options.description();
    const LazyState result = io::in_format(file_.state, format_);
    const Tensor inputs = options.inputs(kRandomRows, 1);
    const Deviation logits = compare_models(file_.description, file_.state, metadata_, result, inputs,
                                            "as stored, " + random_inputs_text(options));
    print(text(o_.in, " holds raw weights: those of the Pre-LN model, which its ",
               name_of(training::ModelOptions(file_.description).stream().form), " form maps as it runs."));
    say(logits, "", true);
    print(figures_.back());
    if (o_.stop()) throw Interrupted();
    if (logits.explained()) {
      write(result);
      return true;
    }
    print(text("Not verified: ", o_.out, " was not written."));
    return false;
  }

  void by_model() {
    check(!file_.description.empty(), o_.in, ": it does not say what model it holds; describe it with --spec FILE");
    const training::ModelOptions options(file_.description);
    const bool raw = options.stream().storage == streams::Stored::raw;
    check_form(o_.from, name_of(options.stream().form), raw, o_.in);
    if (rotates()) form_ = name_of(streams::uncentred(training::stored_form(options)));
    plan_ = plan_conversion(file_.description, file_.state.outline, to(), o_.inference);
    const Scope scope(o_.in);
    check_dtypes(plan_->source, file_.foreign);
    check_plan(plan_->source, file_.state.outline);
    metadata_ = plan_->description;
    if (rotates()) rotate(plan_->source, file_.state.outline, o_.basis);
    add_stream("", file_.state, plan_->source);
  }

  void by_spec() {
    const auto form = file_.other.find(streams::kStreamForm);
    if (form != file_.other.end()) stored_form_ = form->second;
    if (o_.from.empty() && !folder_ && stored_form_.empty())
      throw UsageError("--spec needs --from: the file alone does not say what form it has");
    if (!stored_form_.empty()) check_form(o_.from, stored_form_, false, o_.in);
    const bool converted = !stored_form_.empty() || !file_.description.empty();
    const std::string from = !o_.from.empty() ? o_.from : !stored_form_.empty() ? stored_form_ : "layer_norm";
    metadata_ = file_.other;
    for (auto& [name, plan, outline] :
         described_streams(o_.spec.empty() ? description_of(*folder_) : description_at(o_.spec), file_,
                           streams::form_named(from), converted, o_.fold != "none")) {
      for (const streams::Plan::Norm& n : plan.norms)
        if (plan.is_behind_table(n)) identity_.push_back(n.name);
      check_described(file_.description, plan);
      if (rotates()) rotate(plan, outline, o_.basis), form_ = name_of(plan.form);
      if (!plan.recentred.empty() && row_of(to()).centres()) recentred_.push_back(plan.recentred);
      LazyState of_stream = file_.state;
      of_stream.outline = outline;
      add_stream(name, of_stream, plan);
    }
    metadata_[streams::kStreamForm] = form_;
    if (!recentred_.empty()) metadata_[streams::kStreamRecentred] = dump(json(recentred_));
  }

  void add_stream(const std::string& name, const LazyState& state, const streams::Plan& plan) {
    const Scope scope(o_.in);
    check_eps(plan, o_.eps);
    streams_.push_back({name, name.empty() ? "" : name + ": ", state, FileConversion(state, plan, to(), format_)});
  }

  // Returns true if the source, read by its description, computes the numbers that the program recorded in the
  // reference.
  bool held_to_reference() {
    const TensorMap reference = load_reference(o_.reference);
    const Scope scope(o_.reference);
    for (const Stream& s : streams_)
      if (!held_to_reference(s, rows_of(s.name, reference))) return false;
    return true;
  }

  // The reference's tensors of a stream. A stream with a name has them as "image/NAME".
  TensorMap rows_of(const std::string& stream, const TensorMap& reference) const {
    if (stream.empty()) return reference;
    TensorMap own;
    for (const auto& [name, tensor] : reference) {
      const std::string of = name.substr(0, name.find('/'));
      check(of != name && std::ranges::any_of(streams_, [&](const Stream& s) { return s.name == of; }), "reference: '",
            name, "' is of no stream of the description, expected STREAM/NAME");
      if (of == stream) own.add(name.substr(of.size() + 1), tensor);
    }
    return own;
  }

  bool held_to_reference(const Stream& s, const TensorMap& reference) {
    const streams::Plan& plan = s.conversion.plan();
    const LazyState state = with_gains(s.state, plan);
    const ReferenceFindings f = check_reference(state, plan, reference);
    const StreamSum sum = check_stream_sum(state, plan, reference);
    std::string why = sum.wrong;
    if (!f.agrees())
      why = text("the output of '", f.furthest.what, "' is off by ", scientific(f.furthest.size),
                 " of its largest entry, rounding explains ", scientific(f.furthest.bound));
    else if (!f.equivalent())
      why = text("the output of '", f.unseen, "' would agree ", f.reading, ", too (", printed("%.2g", f.power),
                 " of the bound): these rows do not show what is right");
    if (!why.empty()) {
      found_.likely_cause = text("the description, as the reference shows: ", s.of, why);
      print(text("Not verified: ", o_.out, " was not written: in the reference ", why));
      return false;
    }
    say(text(s.of, "reference: ", f.readers_held, " of ", f.readers, " readers, ", f.writers_held, " of ", f.writers,
             " writers agree, at most ", printed("%.2g", f.share), " of the bound",
             std::isinf(f.power) ? "" : printed("; with another dim, norm or bias at least %.2g of it", f.power)),
        {s.of + "reference", true, f.share, 1}, true);
    say(text(s.of, "reference: ", sum.summed, " of ", sum.readers, " readers read the sum of what writers wrote, ",
             sum.seen, " of ", sum.writers, " of these are seen there"),
        {s.of + "sums of writers in the reference", true}, true);
    if (unchecked_.empty() && !sum.open.empty()) unchecked_ = s.of + sum.open;
    return true;
  }

  void print(const std::string& line) {
    found_.text += line + "\n";
    o_.print(line);
  }

  void say(const std::string& figure, const Converted::Check& check, bool exactly) {
    figures_.push_back(figure);
    found_.checks.push_back(check);
    same_ = same_ && check.equivalent;
    if (exactly) exact_ = exact_ && check.equivalent;
  }
  void say(const Deviation& output, const std::string& when, bool exactly) {
    found_.detectable = std::max(found_.detectable.value_or(0), output.bound);
    say(deviation_text(when, output), {when + output.what, output.explained(), output.size, output.bound}, exactly);
  }

  // Judges the conversion in f64, then the rounded result: every entry, the readers' outputs on random rows, the
  // logits.
  void judge(const Stream& s) {
    const FileConversion& c = s.conversion;
    judge(c, s.of + "in f64, ", c.exact(), c.result_in_f64(), true);
    if (c.stored() && !o_.stop()) judge(c, s.of + "as stored, ", *c.stored(), c.result(), false);
  }

  void judge(const FileConversion& c, const std::string& when, const ConversionFindings& found, const LazyState& result,
             bool exactly) {
    if (!found_.first_difference) found_.first_difference = found.entries.largest;
    say(entries_text(when + "entries", found.entries),
        {when + "entries", found.entries.relation == EntryComparison::Relation::second_rounded, found.entries.share, 1},
        exactly);
    say(found.readers, when, exactly);
    if (!plan_) return;
    const auto logits = [&](const std::string& what, const Tensor& inputs) {
      say(compare_models(file_.description, c.before(), metadata_, result, inputs, what), when, exactly);
    };
    const training::ModelOptions options(file_.description);
    logits(random_inputs_text(options), options.inputs(kRandomRows, 1));
    if (!o_.data.empty() && !o_.stop()) logits("logits of data", data_inputs(file_.description, o_.data));
  }

  const ConvertOptions& o_;
  training::OpenModelFile file_;
  std::optional<hub::Folder> folder_;   // of the hub, if IN is one
  json config_;                         // config.json of the folder that is written
  hub::ConversionRecord record_;        // by config.json of IN
  std::string form_, stored_form_;      // form of the result; form that IN says it has
  std::optional<NumberFormat> format_;  // of --dtype
  std::vector<Stream> streams_;
  // With a description: norms after tables, which the conversion removes; modules through which rows with a mean enter
  // a stream.
  std::vector<std::string> identity_, recentred_;
  std::optional<ModelPlan> plan_;  // if the file says what model it holds
  Metadata metadata_;
  std::vector<std::string> figures_;
  std::string unchecked_;  // the part of the description that the reference does not check
  bool same_ = true, exact_ = true;
  Converted found_;
};

reports::Fields<Converted> converted_fields() {
  using Check = Converted::Check;
  const auto check =
      reports::Fields<Check>()
          .add("what", &Check::what, "the compared entries or outputs")
          .add("equivalent", &Check::equivalent, "the two agree as far as rounding explains")
          .add("deviation", &Check::deviation, "relative; of entries the share of their bound; null: none")
          .add("bound", &Check::bound, "a larger deviation would be detected; null: none");
  return reports::Fields<Converted>()
      .add(
          "verdict", [](const Converted& c) { return name_of(c.written ? Verdict::equivalent : Verdict::different); },
          "`equivalent`: the result is verified; else `different`")
      .add(
          "sentence",
          [](const Converted& c) {
            const std::string lines = c.text.substr(0, c.text.find_last_not_of('\n') + 1);
            return lines.substr(lines.find_last_of('\n') + 1);
          },
          "the last line of the text")
      .add("written", &Converted::written, "the result is verified and was written")
      .add("file", &Converted::file, "the file or folder that was to be written")
      .add("form", &Converted::form, "form of its residual stream")
      .add("tensors", &Converted::tensors, "number of its tensors; null: it was not written")
      .add("first_difference", &Converted::first_difference,
           "the entry with the largest difference beyond rounding; null: there is none", difference_fields())
      .add(
          "likely_cause", [](const Converted& c) { return if_any(c.likely_cause); }, "null: none was found")
      .add("detectable", &Converted::detectable,
           "a larger deviation of any output is detected; null: no output was compared")
      .add("checks", &Converted::checks, "every comparison", check);
}

}  // namespace

NamedFiles files_of(const ConvertOptions& o) {
  const bool folder = std::filesystem::is_directory(o.in), described = folder || !o.spec.empty();
  if (!described && !o.reference.empty()) throw UsageError("--reference needs --spec, which it is to check");
  if (!described && o.fold != "all") throw UsageError("--fold needs --spec: a described model has no place for gains");
  const bool gains = o.unit_gains || !o.as.empty();
  if (gains && !folder) throw UsageError("--unit-gains and --as need IN to be a folder");
  const streams::FormRow* to = streams::find_row(o.to);
  if (gains && (!to || !to->zero_mean_writers() || o.fold != "all"))
    throw UsageError("--unit-gains and --as need --to rms_norm and --fold all: a narrower stream has no stock class");
  if (described && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  return {{{.option = "OUT", .path = folder ? "" : o.out, .binary = true}},
          {{"IN", o.in},
           {"--spec", o.spec},
           {"--reference", o.reference},
           data_input(o.data),
           {"--basis", basis_file(o.basis)}}};
}

Converted convert(const ConvertOptions& options) { return Converter(options).convert(); }

const reports::Schema<Converted>& convert_schema() {
  static const reports::Schema<Converted> schema{
      "convert", "The conversion of a file, and whether `isonorm convert` verified it.", converted_fields()};
  return schema;
}

const reports::Schema<Converted>& rotate_schema() {
  static const reports::Schema<Converted> schema{
      "rotate", "The rotation of a file, and whether `isonorm rotate` verified it.", converted_fields()};
  return schema;
}

}  // namespace isonorm::services
