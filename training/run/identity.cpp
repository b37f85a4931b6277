#include "training/run/identity.h"

#include <algorithm>

#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/sha256.h"
#include "training/fields.h"
#include "training/records/training_result.h"
#include "training/run/content.h"

namespace isonorm::training {

namespace {

constexpr const char *kEarlier = "earlier", *kTestData = "test_data";

}  // namespace

ModelOptions model_of(const Metadata& values) {
  Metadata description;
  for (const auto& entry : values)
    if (entry.first.starts_with(kOptionPrefix)) description.insert(entry);
  return ModelOptions(description);
}

// Older trainings read a file as text, or with --token-vocab as ids, whose width followed from the vocabulary.
void complete(Metadata& values) {
  const ModelOptions model = model_of(values);
  for (const auto& [key, value] : model.description()) values[key] = value;  // completes sizes that follow from others
  for (const auto& [name, value] : kNewOptions) values.try_emplace(name, value);
  int64_t tokens = 0;
  if (const auto at = values.find("token_vocab"); at != values.end()) read_number(at->second, tokens);
  values.try_emplace("text", model.row().input == Input::text && tokens == 0 ? "true" : "false");
  values.try_emplace("ids", tokens == 0 ? "" : name_of(tokens > 1 << 16 ? data::IdWidth::u32 : data::IdWidth::u16));
}

Metadata identity(const TrainerOptions& o, const Source& source) {
  Metadata m = source.options().model.description();
  for (const auto& [name, value] : manifest_of(o, source).options)
    if (is_of_identity(name) && name != "init" && name != "model" && !m.contains(text(kOptionPrefix, name)))
      m.emplace(name, value);
  m.emplace(kTrainingData, "sha256:" + source.sha256());  // independent of its path
  if (!o.training.test_data.empty()) m.emplace(kTestData, "sha256:" + source.test_sha256());
  // A checkpoint already has this, so a resumed training does not need the file.
  if (file_exists(o.init)) m.emplace("init", "sha256:" + io::sha256_of_files({o.init}));
  return m;
}

Metadata kept(const TrainerOptions& o) {
  TrainerOptions shown = o;
  Fields own;
  fields(shown, own);
  Metadata values;
  for (const Option& option : own.options)
    if (is_kept(option.name)) values.emplace(option.name, option.text());
  return values;
}

Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainerOptions& o,
                   Metadata asked) {
  const auto before = [&](const std::string& key) {
    const auto at = checkpoint.values.find(key);
    return at == checkpoint.values.end() || at->second.empty() ? "nothing" : printable(at->second, 80);
  };
  const auto differs = [&](const std::string& key) {
    return asked.contains(key) && (!checkpoint.values.contains(key) || checkpoint.values.at(key) != asked.at(key));
  };
  std::string changed;
  const auto hold = [&](const std::string& name, const std::string& key) {
    if (!differs(key)) return;
    const bool may = std::ranges::count(kExtendable, name) > 0;
    check(may && o.extend, path, ": was trained with ", word_of(name), " ", before(key), ", not ", asked[key],
          may ? "; --extend continues with that" : "");
    changed += text(" ", word_of(name), " ", before(key));
  };
  hold("model", "model.kind");
  check(!differs("data"), path, ": was trained on other data: checksum ", before("data"), ", --data has ",
        asked["data"]);
  check(!differs(kTestData) && checkpoint.values.contains(kTestData) == asked.contains(kTestData), path,
        ": was trained with other test data: checksum ", before(kTestData), ", --test-data has ",
        asked.contains(kTestData) ? asked[kTestData] : "nothing");
  const bool other_weights = !o.init.empty() && !checkpoint.values.contains("init");
  check(!other_weights && !differs("init"), path,
        ": did not begin with the weights of --init; --init is only for a new checkpoint");
  // In the order of the options: an option on which others depend (such as the head's width) is named first.
  ModelOptions model = o.training.model;
  for (const Option& option : model.options()) hold(option.name, text(kOptionPrefix, option.name));
  for (const auto& [key, value] : asked) hold(key, key);
  for (const auto& [key, value] : checkpoint.values)
    check(asked.contains(key) || is_kept(key) || key == "step" || key == "init" || key == kEarlier || key == kTests ||
              is_spec_entry(key) || is_removed(key, value),
          path, ": it was trained with ", Shown{key}, ", which this program does not know");
  for (const char* kept : {"init", kEarlier})
    if (const auto at = checkpoint.values.find(kept); at != checkpoint.values.end()) asked.insert(*at);
  if (changed.empty()) return asked;
  std::string& earlier = asked[kEarlier];
  earlier += text(earlier.empty() ? "" : "; ", "to step ", step, " with", changed);
  return asked;
}

}  // namespace isonorm::training
