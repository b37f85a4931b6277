// Logs and descriptions of models from outside: what they claim is bounded before it is believed.
#include <chrono>
#include <sstream>

#include "core/error.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "tests/support/catch.h"
#include "training/model_options.h"
#include "training/records/manifest.h"
#include "training/records/training_log.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

std::string nested(const std::string& before, int depth, const std::string& after) {
  std::string s = before;
  for (int i = 0; i < depth; ++i) s += "{\"a\":";
  s += "1";
  return s + std::string(static_cast<size_t>(depth), '}') + after;
}

}  // namespace

TEST_CASE("foreign logs: lines nested 100,000 deep are passed over") {
  const Manifest manifest = manifest_of(TrainingOptions{});
  const std::string own = log_manifest(manifest), step = log_step({.step = 1, .lr = 0.5, .loss = 2});
  for (const std::string& line :
       {nested("{\"manifest\":{\"options\":", 100'000, "}}\n"), nested("{\"manifest\":", 100'000, "}\n"),
        nested("{\"step\":", 100'000, "}\n"), std::string(100'000, '[') + "\n"}) {
    std::istringstream course(own + step + line), bytes(own + step + line);
    CHECK(logged_course(course, manifest, 5).steps.size() == 1);
    CHECK(course.eof());
    CHECK(logged_bytes(bytes, manifest, 5) == std::ssize(own + step + line));
  }
  Manifest odd = manifest;  // an option's value is read as JSON, too
  odd.options.emplace_back("init", std::string(100'000, '['));
  CHECK(log_manifest(odd).size() > 100'000);
  odd.options = {{"seed", "18446744073709551615"}, {"lr", "0.5"}};
  CHECK_THAT(log_manifest(odd),
             Contains(R"("seed":18446744073709551615)") && Contains(R"("lr":0.5)"));  // no digit lost
}

TEST_CASE("foreign logs: a line without an end is refused, a test before the first step is none") {
  const Manifest manifest = manifest_of(TrainingOptions{});
  const std::string endless = log_manifest(manifest) + std::string(size_t{1} << 25, ' ');
  for (auto read : {+[](std::istream&log, const Manifest&m) { logged_course(log, m, 1); },
                    +[](std::istream&log, const Manifest&m) { logged_bytes(log, m, 1); }}) {
    std::istringstream log(endless);
    CHECK_THROWS_WITH(read(log, manifest), Contains("a line has more than 16777216 bytes: this is not a log"));
  }
  std::istringstream log(log_manifest(manifest) +
                         log_evaluation({.step = -5, .loss = 1, .predictions = 1}, Input::images));
  CHECK(logged_course(log, manifest, 1).evaluations.empty());
}

TEST_CASE("foreign models: any option of any size is refused before there is work for it") {
  const nn::TransformerOptions small{.width = 8, .depth = 1, .heads = 2};
  const nn::EncoderDecoder translator({.vocab = 9, .context = 4, .transformer = small});
  const nn::Gpt gpt({.vocab = 9, .context = 4, .transformer = small});
  for (const nn::Module* module : {static_cast<const nn::Module*>(&translator), static_cast<const nn::Module*>(&gpt)}) {
    const Metadata description = describe(*module);
    const TensorMap state = module->state_dict();
    ModelOptions(description).check_size(state);
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& [name, value] : description) {
      if (value.find_first_not_of("0123456789") != value.npos) continue;
      for (const char* forged :
           {"9223372036854775807", "4611686018427387904", "1000000000000", "-1", "-9223372036854775808"}) {
        Metadata other = description;
        other[name] = forged;
        INFO(name << " " << forged);
        try {
          const ModelOptions options(other);
          options.check_size(state);
          options.build();
        } catch (const Error& e) {
          CHECK(e.kind() == ErrorKind::invalid);
        }
      }
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(600));  // checks that it ends, not its speed
  }
  Metadata deep = describe(translator);
  deep["model.decoder_depth"] = "9223372036854775807";
  CHECK_THROWS_WITH(ModelOptions(deep).check_size(translator.state_dict()), Contains("model file: size"));
  deep["model.decoder_depth"] = "1000";
  CHECK_THROWS_WITH(ModelOptions(deep).check_size(translator.state_dict()),
                    Contains("has 1001 blocks, the file holds"));
  deep["model.decoder_depth"] = "0", deep["model.depth"] = "600";  // as many again
  CHECK_THROWS_WITH(ModelOptions(deep).check_size(translator.state_dict()),
                    Contains("has 1200 blocks, the file holds"));
  deep["model.decoder_depth"] = "ten";
  deep["model.kind"] = "a\x1b[31m" + std::string(1'000'000, 'x');
  try {
    ModelOptions{deep};
    FAIL("taken");
  } catch (const Error& e) {
    const std::string said = e.what();
    CHECK(said.size() < 300);
    CHECK(said.find('\x1b') == said.npos);
  }
}
