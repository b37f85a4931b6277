#include "equivalence/services/verification.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/system/failures.h"
#include "core/system/terminal.h"
#include "equivalence/judge/result_fields.h"
#include "equivalence/services/model_data.h"
#include "equivalence/services/named_files.h"
#include "exchange/hub/family.h"
#include "io/json_text.h"
#include "streams/stream.h"

namespace isonorm::services {
namespace {

using namespace equivalence;
using streams::Form;

// A file, or a folder of the hub.
struct Input {
  std::string path;
  training::OpenModelFile file = {};
  std::optional<hub::Folder> folder = {};
  Form form = Form::layer_norm;  // of its stream, if the file does not describe its model

  explicit Input(const std::string& p) : path(p) {
    if (!std::filesystem::is_directory(path)) {
      file = training::open_model_file(path);
      const Scope scope(path);
      if (const auto said = file.other.find(streams::kStreamForm); said != file.other.end())
        form = streams::form_named(said->second);
      else if (!file.description.empty())
        form = training::stored_form(training::ModelOptions(file.description));
      return;
    }
    folder = hub::open_folder(path);
    file.state = folder->state, file.foreign = folder->foreign;
    const Scope scope(path);
    if (const std::string said = hub::conversion_record(folder->config).form; !said.empty())
      form = streams::form_named(said);
  }
  bool own_code() const { return folder && folder->config.own_code(); }
};

Verification by_models(const VerifyOptions& o, const Input& a, const Input& b) {
  for (const Input* of : {&a, &b}) {
    const Scope scope(of->path);
    check(!of->file.description.empty(), "it does not say what model it holds; describe it with --spec FILE");
    training::ModelOptions{of->file.description};
  }
  std::vector<std::pair<std::string, Tensor>> more;
  if (!o.data.empty()) more.emplace_back("logits of data", data_inputs(a.file.description, o.data));
  return verify_models(a.file, b.file, more, o.device, !o.up_to.empty());
}

// Tensors that are stored as bytes are compared as bytes, so their dtypes must be equal.
void check_dtypes(const Input& a, const Input& b) {
  const auto look = [](const Input& one, const Input& other) {
    for (const auto& [name, dtype] : one.file.foreign) {
      const auto at = other.file.foreign.find(name);
      check(!other.file.state.outline.find(name) || (at != other.file.foreign.end() && at->second == dtype),
            "verify: '", name, "' has dtype ", dtype, " in ", one.path, " and another in ", other.path);
    }
  };
  look(a, b), look(b, a);
}

// Throws if the file says of its program's duties (recentring, norms) something else than its streams require.
void check_said(const Input& of, const std::vector<streams::FileStream>& streams) {
  std::vector<std::string> recentred;
  size_t norms = 0;
  for (const streams::FileStream& s : streams) {
    if (!s.plan.recentred.empty() && row_of(of.form).centres()) recentred.push_back(s.plan.recentred);
    norms += s.plan.norms.size();
  }
  const Scope scope(of.path);
  const auto check_recentred = [&](const std::string& said) {
    const std::string expected = recentred.empty() ? "" : dump(json(recentred));
    check(said == expected, "it is recentred at ", said.empty() ? "no module" : said, ", by its description at ",
          expected.empty() ? "none" : expected);
  };
  if (const auto at = of.file.other.find(streams::kStreamRecentred);
      at != of.file.other.end() || of.file.other.contains(streams::kStreamForm))
    check_recentred(at == of.file.other.end() ? "" : at->second);
  if (!of.folder) return;
  const hub::ConversionRecord record = hub::conversion_record(of.folder->config);
  if (record.form.empty()) return;
  const auto& modules = record.list("recentred");
  check_recentred(modules.empty() ? "" : dump(json(modules)));
  check(record.norms.size() + record.list("identity").size() == norms, "config.json lists ",
        record.norms.size() + record.list("identity").size(), " norms as converted, the family has ", norms);
}

// The streams by --spec, else by the family of the folder. A file that is compared with a folder has the folder's
// streams.
std::vector<streams::FileStream> streams_of(const VerifyOptions& o, const Input& of, const Input& other) {
  const Description description =
      !o.spec.empty() ? description_at(o.spec) : description_of(*(of.folder ? of : other).folder);
  const bool converted = of.folder ? !hub::conversion_record(of.folder->config).form.empty()
                                   : !of.file.description.empty() || of.file.other.contains(streams::kStreamForm);
  std::vector<streams::FileStream> streams = described_streams(description, of.file, of.form, converted);
  check_said(of, streams);
  return streams;
}

// The findings for each stream, with its name.
std::vector<std::pair<std::string, Verification>> by_layouts(const VerifyOptions& o, const Input& a, const Input& b) {
  const auto of_a = streams_of(o, a, b), of_b = streams_of(o, b, a);
  check(std::ranges::equal(of_a, of_b, {}, &streams::FileStream::name, &streams::FileStream::name), "verify: ", a.path,
        " and ", b.path, " have other streams");
  const auto part = [](training::OpenModelFile file, const streams::FileStream& s) {
    return file.state.outline = s.outline, file;
  };
  std::vector<std::pair<std::string, Verification>> verdicts;
  for (size_t i = 0; i < of_a.size(); ++i) {
    std::optional<Scope> scope;
    if (!of_a[i].name.empty()) scope.emplace(of_a[i].name);
    Verification v =
        verify_streams(part(a.file, of_a[i]), of_a[i].plan, part(b.file, of_b[i]), of_b[i].plan, !o.up_to.empty());
    if (a.folder && b.folder) v.options = hub::different(a.folder->config, b.folder->config);
    verdicts.emplace_back(of_a[i].name, std::move(v));
  }
  return verdicts;
}

// Two streams, A's and B's.
struct StreamVerdict {
  const std::string& stream;
  const Verification& found;

  Judgement judgement = found.judgement();
};

std::vector<StreamVerdict> stream_verdicts(const Verified& v) {
  std::vector<StreamVerdict> all;
  for (const auto& [name, found] : v.streams) all.push_back({name, found});
  return all;
}

const char* relation_name(EntryComparison::Relation relation) {
  constexpr const char* kNames[] = {"identical",    "second_rounded", "first_rounded",
                                    "both_rounded", "through_a_form", "none"};
  return kNames[static_cast<size_t>(relation)];
}

reports::Fields<StreamVerdict> stream_fields() {
  const auto output = reports::Fields<Deviation>()
                          .add("what", &Deviation::what, "which output")
                          .add("equivalent", &Deviation::explained, "rounding explains the deviation")
                          .add("deviation", &Deviation::size, "largest, relative to the largest output")
                          .add("control", &Deviation::control, "deviation if every weight moves by one ulp")
                          .add("detectable", &Deviation::bound, "a larger deviation is detected");
  return reports::Fields<StreamVerdict>()
      .add(
          "stream", [](const StreamVerdict& s) { return s.stream; }, "its name; empty: the file has one")
      .add(
          "verdict", [](const StreamVerdict& s) { return name_of(s.judgement.verdict); }, "as above")
      .add(
          "sentence", [](const StreamVerdict& s) { return s.judgement.sentence(); }, "why")
      .add(
          "relation", [](const StreamVerdict& s) { return relation_name(s.found.entries.relation); },
          "how rounding explains the entries: `identical`, `first_rounded`, `second_rounded`, `both_rounded`, "
          "`through_a_form` or `none`")
      .add(
          "share", [](const StreamVerdict& s) { return s.found.entries.share; },
          "largest share of its bound that an entry uses; above 1: rounding does not explain it")
      .add(
          "first_difference", [](const StreamVerdict& s) { return s.found.entries.largest; },
          "the entry with the largest difference beyond rounding; null: there is none", difference_fields())
      .add(
          "options", [](const StreamVerdict& s) { return if_any(s.found.options); }, "options that differ; null: none")
      .add(
          "rotation", [](const StreamVerdict& s) { return if_any(s.found.rotation); }, "with --up-to; else null")
      .add(
          "outputs", [](const StreamVerdict& s) { return s.found.outputs; }, "of the two models on the same inputs",
          output);
}

}  // namespace

const reports::Schema<Verified>& verify_schema() {
  const auto first = [](const Verified& v) -> std::optional<EntryPlace> {
    for (const auto& [_, found] : v.streams)
      if (found.entries.largest) return found.entries.largest;
    return {};
  };
  static const reports::Schema<Verified> schema{
      "verify", "Two files, and whether they are one function: `isonorm verify`.",
      reports::Fields<Verified>()
          .add(
              "verdict", [](const Verified& v) { return name_of(v.verdict()); },
              "`equivalent`, `different` or `undecided`")
          .add(
              "sentence",
              [](const Verified& v) {
                const std::vector<std::string> lines = v.lines(true);
                std::string all;
                for (const std::string& line : lines) all += (all.empty() ? "" : " ") + line;
                return all;
              },
              "why")
          .add("first_difference", first, "the first of the streams'; null: there is none", difference_fields())
          .add(
              "likely_cause",
              [](const Verified& v) -> std::optional<std::string> {
                for (const auto& [_, found] : v.streams)
                  if (!found.options.empty()) return "their options differ: " + found.options;
                return {};
              },
              "null: none was found")
          .add(
              "detectable",
              [](const Verified& v) {
                std::optional<double> largest;
                for (const auto& [_, found] : v.streams)
                  for (const Deviation& output : found.outputs) largest = larger(largest.value_or(0), output.bound);
                return largest;
              },
              "a larger deviation of any output is detected; null: no output was compared")
          .add("streams", stream_verdicts, "one for each residual stream", stream_fields())};
  return schema;
}

Verdict Verified::verdict() const {
  Verdict worst = Verdict::equivalent;
  for (const auto& [_, found] : streams) worst = std::max(worst, found.judgement().verdict);
  return worst;
}

std::vector<std::string> Verified::lines(bool quiet) const {
  std::vector<std::string> all;
  for (const auto& [stream, v] : streams) {
    const std::string of = stream.empty() ? "" : text(printable(stream), ": ");
    if (!quiet && v.one_kind) {
      if (!v.rotation.empty()) all.push_back(of + printable(v.rotation));
      all.push_back(printable(entries_text(of + "entries", v.entries)));
      for (const Deviation& output : v.outputs) all.push_back(deviation_text(of, output));
    }
    all.push_back(of + printable(v.sentence()));
  }
  if (!remark.empty()) all.push_back(remark);
  return all;
}

std::string Verified::shown(bool quiet) const {
  std::string all;
  for (const std::string& line : lines(quiet)) all += line + "\n";
  return all;
}

NamedFiles files_of(const VerifyOptions& o) {
  return {{}, {{"A", o.a}, {"B", o.b}, {"--spec", o.spec}, data_input(o.data)}};
}

Verified verify(const VerifyOptions& o) {
  const auto opened = [&o](const std::string& path) {
    Input in(path);
    if (o.stop)
      in.file.state.read = [stop = o.stop, read = std::move(in.file.state.read)](const std::string& name) {
        if (stop()) throw Interrupted();
        return read(name);
      };
    return in;
  };
  const Input a = opened(o.a), b = opened(o.b);
  const bool folders = a.folder || b.folder, by_layout = folders || !o.spec.empty();
  if (by_layout && o.device != kCpu) throw UsageError("--device needs a model to run, which --spec does not give");
  if (by_layout && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  check_dtypes(a, b);
  Verified found;
  if (by_layout)
    found.streams = by_layouts(o, a, b);
  else
    found.streams.emplace_back("", by_models(o, a, b));
  if (found.verdict() != Verdict::equivalent) return found;
  if (!o.spec.empty())
    found.remark = "That is so by the description, which is unchecked here (isonorm convert --reference checks it).";
  else if (a.own_code() || b.own_code())
    found.remark = "That is so as the family is; config.json names code of its own (auto_map), which is unchecked.";
  else if (folders)
    found.remark = text(o.b, ": ", name_of(b.form), ", verified.");
  return found;
}

}  // namespace isonorm::services
