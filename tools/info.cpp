// isonorm info FILE: what a file holds, without a look at its numbers.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "hub/folder.h"
#include "tools/training_start.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/records/manifest.h"

namespace isonorm::tools {
namespace {

struct InfoOptions {
  std::string file;
};

// Tensors by the parts of their names.
struct Branch {
  std::vector<std::pair<std::string, std::unique_ptr<Branch>>> children;
  std::string tensors;  // its own: "weight [64, 32], bias [64]"
  int64_t count = 0;    // of numbers, in all below it
};

struct Line {
  std::string name, count, tensors;
  bool operator==(const Line&) const = default;
};

std::string with_commas(int64_t n) {
  std::string s = text(n);
  for (int64_t at = std::ssize(s) - 3; at > 0; at -= 3) s.insert(static_cast<size_t>(at), ",");
  return s;
}

constexpr int kMostLevels = 16;  // of the tree; what a name has beyond is one part

// -1 where it is none.
int64_t number(const std::string& s) {
  const bool digits = !s.empty() && s.size() < 18 && s.find_first_not_of("0123456789") == s.npos;
  return digits ? std::stoll(s) : -1;
}

void add(Branch& root, const std::string& name, const std::string& shape, int64_t count) {
  Branch* at = &root;
  at->count += count;
  size_t begin = 0, dot = 0;
  for (int level = 0; level < kMostLevels && (dot = name.find('.', begin)) != name.npos; ++level, begin = dot + 1) {
    const std::string part = printable(name.substr(begin, dot - begin), 60);
    auto child = std::ranges::find_if(at->children, [&](const auto& c) { return c.first == part; });
    if (child == at->children.end()) {  // numbers in their order
      child = std::ranges::find_if(at->children, [&](const auto& c) { return number(c.first) > number(part); });
      child = at->children.insert(number(part) < 0 ? at->children.end() : child, {part, std::make_unique<Branch>()});
    }
    at = child->second.get();
    at->count += count;
  }
  at->tensors += text(at->tensors.empty() ? "" : ", ", printable(name.substr(begin), 60), ' ', shape);
}

// What is below a branch; neighbours by number that are alike stand in one line: "0 to 11".
std::vector<Line> lines_of(const Branch& b) {
  std::vector<Line> lines;
  std::vector<std::vector<Line>> below;
  for (const auto& [_, child] : b.children) below.push_back(lines_of(*child));
  for (size_t i = 0, next; i < b.children.size(); i = next) {
    const auto& [name, child] = b.children[i];
    for (next = i + 1; next < b.children.size(); ++next) {
      const Branch& other = *b.children[next].second;
      const int64_t n = number(b.children[next - 1].first), after = number(b.children[next].first);
      if (n < 0 || after != n + 1 || other.count != child->count || other.tensors != child->tensors ||
          below[next] != below[i])
        break;
    }
    const bool several = next > i + 1;
    lines.push_back({several ? text(name, " to ", b.children[next - 1].first) : name,
                     text(several ? "each " : "", with_commas(child->count)), child->tensors});
    for (const Line& line : below[i]) lines.push_back({text("  ", line.name), line.count, line.tensors});
  }
  return lines;
}

void print_tree(const TensorMap& outline, const io::ForeignTypes& foreign) {
  std::set<std::string> dtypes;
  for (const auto& [name, tensor] : outline)
    dtypes.insert(foreign.contains(name) ? foreign.at(name) : text(tensor.dtype()));
  Branch root;
  for (const auto& [name, tensor] : outline) {
    const std::string dtype = foreign.contains(name) ? foreign.at(name) : text(tensor.dtype());
    add(root, name, text(tensor.shape(), dtypes.size() > 1 ? text(" ", dtype) : ""), tensor.numel());
  }
  std::vector<Line> lines = lines_of(root);
  lines.insert(lines.begin(), {text(outline.size(), " tensors of ",
                                    dtypes.size() > 1 ? "several dtypes"
                                    : dtypes.empty()  ? "none"
                                                      : dtypes.begin()->c_str()),
                               with_commas(root.count), root.tensors});
  size_t name = 0, count = 0;
  for (const Line& line : lines) name = std::max(name, line.name.size()), count = std::max(count, line.count.size());
  for (const Line& line : lines)
    std::printf("%-*s  %*s  %s\n", static_cast<int>(name), line.name.c_str(), static_cast<int>(count),
                line.count.c_str(), line.tensors.c_str());
}

void say(const char* what, const std::string& words) { std::printf("%-12s%s\n", what, words.c_str()); }

// Options that are not the defaults, as the command line has them.
void print_model(const Metadata& description) {
  const training::ModelOptions model(description);
  training::ModelOptions given = model, defaults(model.row());
  say("model", text(model.row().title, ", ", name_of(model.stream().form), ", ", model.value("storage"), " weights"));
  std::string sizes;
  for (const char* size : {"image", "patch", "classes", "vocab", "context", "width", "depth", "heads"})
    if (model.has(size)) sizes += text(sizes.empty() ? "" : ", ", size, ' ', model.value(size));
  say("sizes", sizes);
  say("options", text("--model ", model.row().name, training::said(given.options(), defaults.options())));
}

void print_training(const Metadata& values) {
  TrainOptions given, defaults;
  set_as_trained(given, values);
  training::Fields of_given, of_defaults;
  fields(given.training, of_given), fields(given, of_given);
  fields(defaults.training, of_defaults), fields(defaults, of_defaults);
  say("training", text("after step ", text_at(values, "step"), training::said(of_given.options, of_defaults.options)));
}

int run(const InfoOptions& o) {
  const std::string& path = o.file;
  LazyState state;
  io::ForeignTypes foreign;
  if (std::filesystem::is_directory(path)) {
    const hub::Folder folder = hub::open_folder(path);
    state = folder.state, foreign = folder.foreign;
    say("folder", printable(path));
    if (const std::string type = folder.config.word("model_type"); !type.empty()) say("model", printable(type, 80));
  } else {
    const training::OpenModelFile file = training::open_model_file(path);
    const Scope scope(path);
    state = file.state, foreign = file.foreign;
    say("file",
        text(printable(path), ", ", with_commas(static_cast<int64_t>(std::filesystem::file_size(path))), " bytes"));
    if (!file.description.empty()) print_model(file.description);
    if (is_checkpoint(file.file->metadata())) print_training(checkpoint_values(*file.file));
    if (const data::Alphabet alphabet = training::alphabet_of(*file.file); !alphabet.empty())
      say("characters", text(alphabet.size()));
    for (const auto& [key, value] : file.other)
      if (key != training::kCharacters) say("says", printable(text(key, " = ", value), 200));
  }
  std::printf("\n");
  print_tree(state.outline, foreign);
  return kOk;
}

}  // namespace

Verb add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Print what a file holds: model, options, step, tensors");
  auto o = std::make_shared<InfoOptions>();
  command->add_option("FILE", o->file, "a checkpoint, a safetensors file, or a folder of the hub")->required();
  command->footer("Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
