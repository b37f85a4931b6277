#include "training/run/saved_training.h"

#include <algorithm>
#include <climits>
#include <map>
#include <set>

#include "core/random.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "io/checkpoint.h"

namespace isonorm::training {
namespace {

// Names in a file. A named content has the value "content.<name>": its kind, and its text after a space. Its tensors
// have the prefix "<name>.", models and tensors among the weights, all others among the optimizer's.
constexpr std::string_view kContent = "content.";
constexpr const char *kModel = "model", *kTensor = "tensor", *kOptimizer = "optimizer", *kBest = "best";

struct FileContent {
  std::string kind;
  ContentState state = {};
};
using FileContents = std::map<std::string, FileContent>;

FileContents named_contents(const Checkpoint& c) {
  FileContents found;
  for (const auto& [key, value] : c.values) {
    if (!key.starts_with(kContent)) continue;
    const size_t space = value.find(' ');
    FileContent& content = found[key.substr(kContent.size())];
    content.kind = value.substr(0, space);
    if (space != value.npos) content.state.text = value.substr(space + 1);
  }
  if (found.empty()) return found;
  for (const TensorMap* section : {&c.weights, &c.optimizer})
    for (const auto& [name, tensor] : *section) {
      const size_t dot = name.find('.');
      const auto content = found.find(name.substr(0, dot));
      check(content != found.end(), "saved training: unknown tensor ", Shown{name});
      content->second.state.tensors.add(dot == name.npos ? "" : name.substr(dot + 1), tensor);
    }
  return found;
}

// The contents of a file, for a training with the contents `mine`.
FileContents contents_of(const Checkpoint& c, const std::vector<Content>& mine) {
  if (FileContents found = named_contents(c); !found.empty()) return found;
  FileContents found;
  found[kModel] = {"model", {c.weights, {}}};
  found[kOptimizer] = {text_at(c.values, kOptimizer), {c.optimizer, {}}};
  if (const auto tests = c.values.find(kTests); tests != c.values.end())
    found[kBest] = {"best", {{}, tests->second}};
  else if (std::ranges::any_of(mine, [](const Content& own) { return own.kind() == kBest; }))
    found[kBest] = {"best"};
  return found;
}

void check_contents(const FileContents& found, const std::vector<Content>& mine) {
  ShortList faults;
  std::set<std::string_view> names;
  for (const Content& c : mine) {
    names.insert(c.name());
    const auto at = found.find(c.name());
    if (at == found.end())
      faults.add(c.kind(), " '", c.name(), "' is missing");
    else if (at->second.kind != c.kind())
      faults.add("'", c.name(), "' is ", Shown{at->second.kind}, ", expected ", c.kind());
  }
  for (const auto& [name, content] : found)
    if (!names.contains(name)) faults.add(printable(content.kind, 80), ' ', Shown{name}, " is unexpected");
  check(faults.empty(), "saved training: other contents: ", faults);
}

// Each content takes its state from the file at `path`, or none does.
void load_all(const std::vector<Content>& contents, const FileContents& found, const std::string& path) {
  std::vector<std::pair<const Content*, ContentState>> before;
  try {
    for (const Content& c : contents) {
      const std::string where = text(path, ": ", c.kind(), " '", c.name(), "'");
      const Scope scope(where);
      ContentState own = c.state();
      if (&c != &contents.back()) own.tensors = detached::clone(own.tensors);
      c.load(found.at(c.name()).state);
      before.emplace_back(&c, std::move(own));
    }
  } catch (...) {
    for (const auto& [content, state] : before) content->load(state);
    throw;
  }
}

bool is_weights(const Content& c) { return c.kind() == kModel || c.kind() == kTensor; }
bool has_weights(const Content& c) { return c.kind() == kModel ? !c.state().tensors.empty() : c.kind() == kTensor; }

// Models come last: the old state of the last content need not be copied.
std::vector<Content> ordered(std::vector<Content> contents) {
  std::stable_partition(contents.begin(), contents.end(), [](const Content& c) { return c.kind() != kModel; });
  for (auto c = contents.begin(); c != contents.end(); ++c)
    check(std::none_of(contents.begin(), c, [&](const Content& other) { return other.name() == c->name(); }),
          "saved training: two contents have the name '", c->name(), "'");
  ShortList names;
  for (const Content& c : contents) names.add(c.kind(), " '", c.name(), "'");
  check(std::ranges::any_of(contents, has_weights), "saved training: a checkpoint needs a model with parameters or a ",
        "tensor, the contents are ", names.empty() ? "none" : names.str());
  return contents;
}

}  // namespace

SavedTraining::SavedTraining(const std::string& path, std::vector<Content> contents)
    : SavedTraining(path, std::move(contents), true) {}

SavedTraining::SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer)
    : SavedTraining(path, {{kModel, model}, {kOptimizer, optimizer}}, false) {}

SavedTraining::SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer, BestLoss& best)
    : SavedTraining(path, {{kModel, model}, {kOptimizer, optimizer}, {kBest, best}}, false) {}

SavedTraining::SavedTraining(const std::string& path, std::vector<Content> contents, bool named)
    : SavedTraining(path, ordered(std::move(contents)), named, checkpoint_to_go_on_from(path)) {}

SavedTraining::SavedTraining(const std::string& path, std::vector<Content> contents, bool named,
                             const std::optional<NewestCheckpoint>& newest)
    : contents_(std::move(contents)), named_(named), file_(path, newest) {
  if (!newest) return;
  const auto& [checkpoint, from] = *newest;
  int64_t step = 0;
  Generator random;
  FileContents found;
  {
    const Scope scope(from);
    step = integer_at(checkpoint.values, "step");
    check(step >= 0 && step <= INT_MAX, "it is after step ", step);
    random.seed = static_cast<uint64_t>(integer_at(checkpoint.values, "random seed"));
    random.offset = static_cast<uint64_t>(integer_at(checkpoint.values, "random offset"));
    found = contents_of(checkpoint, contents_);
    check_contents(found, contents_);
  }
  load_all(contents_, found, from);
  default_generator() = random;
  done_ = static_cast<int>(step);
}

void SavedTraining::save(int step) {
  check(step >= 0, "saved training: save(", step, "), expected the number of steps done");
  const Generator& random = default_generator();
  Checkpoint c;
  c.values = {{"step", text(step)},
              {"random seed", text(static_cast<int64_t>(random.seed))},
              {"random offset", text(static_cast<int64_t>(random.offset))}};
  for (const Content& content : contents_) {
    const auto& [tensors, words] = content.state();
    TensorMap& section = is_weights(content) ? c.weights : c.optimizer;
    for (const auto& [name, tensor] : tensors)
      section.add(!named_ ? name : name.empty() ? content.name() : text(content.name(), '.', name), tensor);
    if (named_)
      c.values.emplace(text(kContent, content.name()), text(content.kind(), words.empty() ? "" : " ", words));
    else if (content.name() == kOptimizer)
      c.values.emplace(kOptimizer, content.kind());
    else if (!words.empty())
      c.values.emplace(kTests, words);
  }
  file_.save(c);
}

TensorMap saved_tensors(const std::string& path, const std::string& content) {
  const NewestCheckpoint newest = load_newest_checkpoint(path);
  const Scope scope(newest.path);
  FileContents found = contents_of(newest.checkpoint, {});
  ShortList names;
  for (const auto& [name, _] : found) names.add(printable(name, 80));
  check(found.contains(content), "saved training: there is no content ", Shown{content}, " among ", names);
  return std::move(found[content].state.tensors);
}

}  // namespace isonorm::training
