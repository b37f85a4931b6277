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

void check_contents(const SavedContents& found, const std::vector<Content>& mine) {
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
void load_all(const std::vector<Content>& contents, const SavedContents& found, const std::string& path) {
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

bool has_weights(const Content& c) { return c.kind() == kModel ? !c.state().tensors.empty() : c.kind() == "tensor"; }

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
    : SavedTraining(path, ordered(std::move(contents)), checkpoint_to_go_on_from(path)) {}

SavedTraining::SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer)
    : SavedTraining(path, {{kModel, model}, {kOptimizer, optimizer}}) {}

SavedTraining::SavedTraining(const std::string& path, nn::Module& model, optim::Optimizer& optimizer, BestLoss& best)
    : SavedTraining(path, {{kModel, model}, {kOptimizer, optimizer}, {kBest, best}}) {}

SavedTraining::SavedTraining(const std::string& path, std::vector<Content> contents,
                             const std::optional<NewestCheckpoint>& newest)
    : contents_(std::move(contents)), file_(path, newest) {
  if (!newest) return;
  const auto& [checkpoint, from] = *newest;
  int64_t step = 0;
  Generator random;
  SavedContents found;
  {
    const Scope scope(from);
    step = integer_at(checkpoint.values, "step");
    check(step >= 0 && step <= INT_MAX, "it is after step ", step);
    random.seed = static_cast<uint64_t>(integer_at(checkpoint.values, "random seed"));
    random.offset = static_cast<uint64_t>(integer_at(checkpoint.values, "random offset"));
    found = contents_of(checkpoint);
    for (const Content& c : contents_)  // without tensors and without test passes, they are not in the file
      if (c.kind() == c.name() && (c.name() == kModel || c.name() == kBest) && !found.contains(c.name()))
        found[c.name()] = {c.kind()};
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
  std::map<std::string, size_t> sizes;
  for (const Content& content : contents_) {
    const ContentState state = content.state();
    add_content(c, content.name(), {content.kind(), state});
    if (state.tensors.size() > 0) sizes[content.name()] = state.tensors.size();
  }
  for (const auto& [name, content] : contents_of(c))
    check(content.state.tensors.size() == sizes[name], "saved training: '", name,
          "' is the name of a content and of a part of another one");
  file_.save(c);
}

TensorMap saved_tensors(const std::string& path, const std::string& content) {
  const NewestCheckpoint newest = load_newest_checkpoint(path);
  const Scope scope(newest.path);
  SavedContents found = contents_of(newest.checkpoint);
  ShortList names;
  for (const auto& [name, _] : found) names.add(printable(name, 80));
  check(found.contains(content), "saved training: there is no content ", Shown{content}, " among ", names);
  return std::move(found[content].state.tensors);
}

}  // namespace isonorm::training
