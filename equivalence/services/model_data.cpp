#include "equivalence/services/model_data.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "equivalence/convert/state.h"
#include "exchange/hub/family.h"
#include "streams/stream.h"
#include "training/run/given.h"
#include "training/source.h"
#include "training/text_data.h"

namespace isonorm::services {

using namespace equivalence;

namespace {
constexpr int64_t kSpecLimit = int64_t{1} << 20;  // bytes
}  // namespace

Description description_of(const hub::Folder& folder) {
  const Scope scope(folder.path);
  return {hub::describe(folder), folder.path};
}

Description description_at(const std::string& path) {
  if (std::filesystem::is_directory(path)) return description_of(hub::open_folder(path));
  return {read_text(path, kSpecLimit), path};
}

std::vector<streams::FileStream> described_streams(const Description& description, const training::OpenModelFile& file,
                                                   streams::Form form, bool converted, bool folds) {
  const Scope scope(description.path);
  return streams::streams_in(streams::Layout::streams_from_json(description.json), file.state.outline, form, converted,
                             folds, file.foreign);
}

Tensor data_inputs(const Metadata& description, const std::string& path) {
  const training::ModelOptions model(description);
  training::TrainingOptions o;
  o.model = model, o.data = path, o.batch = 16;
  check_data(o);
  if (model.row().input == training::Input::text)
    o.token_vocab = training::token_vocab_of({}, model.number("vocab"), path);
  if (model.row().input == training::Input::text)  // names no option, since the commands have none for texts
    training::reading_of(open_bytes(path), {.token_vocab = o.token_vocab, .command = {}});
  training::Source source(o);
  const training::ModelShape data = source.options().model.shape(), shape = model.shape();
  if (model.row().input != training::Input::images)
    check(data.vocab == shape.vocab, path, ": the text has ", data.vocab, " tokens, the model's vocabulary ",
          shape.vocab);
  else
    check(data.image == shape.image && data.channels == shape.channels, path, ": the images are ", data.image, " x ",
          data.image, " x ", data.channels, ", the model takes ", shape.image, " x ", shape.image, " x ",
          shape.channels);
  return source.batch(0).inputs;
}

std::string deviation_text(const std::string& when, const Deviation& d) {
  return text(when, d.what,
              printed(" differ by %.1e = %.1f eps of %s; one ulp of every weight does %.1e, allowed %.1e", d.size,
                      d.size / epsilon(d.format), name_of(d.format), d.control, d.bound),
              d.explained() ? ": equivalent" : ": different");
}

std::string entries_text(const std::string& where, const EntryComparison& e) {
  if (!e.equivalent()) return text(where, " differ: ", e.reason, ": different");
  if (e.relation == EntryComparison::Relation::identical) return text(where, " are equal to the last bit: equivalent");
  return text(where, " differ by at most ", std::ceil(100 * e.share), " % of what rounding explains: equivalent");
}

void print_changes(const FileConversion& c, const std::function<void(const std::string&)>& print) {
  const auto shape_text = [](const std::optional<Dims>& shape) { return shape ? text(*shape) : "-"; };
  const auto shown = [](const std::string& name) { return printable(name, 200); };  // in a table cell
  size_t name = 6, before = 6, after = 5, what = 13;
  for (const TensorChange& t : c.changes()) {
    name = std::max(name, shown(t.name).size()), what = std::max(what, shown(t.what).size());
    before = std::max(before, shape_text(t.before).size()), after = std::max(after, shape_text(t.after).size());
  }
  const auto cell = [](std::string s, size_t width) { return s.resize(std::max(s.size(), width), ' '), s + "  "; };
  const auto row = [&](const std::string& a, const std::string& b, const std::string& d, const std::string& e,
                       const std::string& f) {
    print(text(cell(a, name), cell(b, before), cell(d, after), cell(e, what), f));
  };
  row("tensor", "before", "after", "what happened", "deviation");
  for (const TensorChange& t : c.changes()) {
    const auto& of = c.exact().deviations;
    const auto at = of.find(t.name);
    row(shown(t.name), shape_text(t.before), shape_text(t.after), shown(t.what),
        at == of.end() ? "" : printed("%.1e", at->second));
  }
  print_line("");
}

}  // namespace isonorm::services
