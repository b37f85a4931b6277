// Small texts that a verb reads are read up to a limit, and an input that never ends is refused at once.
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

TEST_CASE("an endless or too large text is refused, with the limit") {
  const Folder f;
  f.succeeds("train +small -q --steps 1 --checkpoint @c");
  fs::create_directory(f.path / "hub");
  fs::create_directory(f.path / "tok");
  // The file of each line that is endless, and then too large.
  const std::pair<const char*, const char*> lines[] = {
      {"train +small --steps 1 --config @config.toml", "config.toml"},
      {"convert @c @out --to rms_norm --spec @spec.json --from layer_norm", "spec.json"},
      {"hooks @spec.json", "spec.json"},
      {"compare @c @c2 --spec @spec.json", "spec.json"},
      {"compare @c @c2 --map @map.json", "map.json"},
      {"spec @hub", "hub/config.json"},
      {"tokenize @tok @text.txt @out", "tok/tokenizer.json"},
      {"tokenize @t.json @text.txt @out", "t.json"}};
  fs::copy_file(f / "c", f / "c2");
  for (const auto& [line, file] : lines) {
    INFO(line);
    fs::create_symlink("/dev/zero", f.path / file);
    CHECK(contains(f.gives(4, line).err, "regular file"));
    fs::remove(f / file);
    write_text(f / file, "");
    fs::resize_file(f / file, std::uintmax_t{1} << 40);  // without a block on the disk
    const ChildResult r = f.gives(3, line);
    CHECK(contains(r.err, "the file has 1099511627776 bytes, over the limit of "));
    fs::remove(f / file);
  }
  CHECK(contains(f.gives(3, "plot /dev/zero").err, "a line has more than 16777216 bytes"));
}
