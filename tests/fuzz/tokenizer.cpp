// The input is tokenizer.json (up to a byte 0) and a text. Encoding and decoding must return the text, unless the file
// normalizes or strips white space.
#include "io/tokenizers/tokenizer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.h"

using namespace isonorm;
namespace fs = std::filesystem;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fs::path file = fs::temp_directory_path() / text("isonorm_fuzz_tokenizer_", getpid(), ".json");
  static const int removed_at_the_end = std::atexit([] { fs::remove(file); });
  require(removed_at_the_end == 0);
  return fuzz(data, size, [&](const Bytes&) {
    const std::string_view all(reinterpret_cast<const char*>(data), size),
        json = all.substr(0, all.find('\0')), words = all.substr(std::min(size, json.size() + 1));
    std::ofstream(file) << json;
    tokenizers::Tokenizer tokenizer(file);
    const std::string back = tokenizer.decode(tokenizer.encode(words));
    const bool exact = json.find("NFC") == json.npos && json.find("strip") == json.npos && json.find('\\') == json.npos;
    require(!exact || back == words);
  });
}
