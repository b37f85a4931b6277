// The Philox generator: published vectors, state, threads.
#include "core/random.h"

#include <array>
#include <thread>

#include "core/formulas/philox.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("Philox4x32-10 gives the published blocks") {
  // kat_vectors of the Random123 library: counter, key, result.
  const auto block = [](uint64_t counter, uint64_t stream, uint64_t seed) {
    const PhiloxBlock b = philox(seed, counter, stream);
    return std::array<uint32_t, 4>{b.word[0], b.word[1], b.word[2], b.word[3]};
  };
  using Words = std::array<uint32_t, 4>;
  CHECK(block(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(block(~0ull, ~0ull, ~0ull) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(block(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every element of a fill has a place of its own") {
  for (int parts : {2, 4}) {
    for (int64_t n : {1, 64, 65, 511, 512, 513, 5000}) {
      std::vector<int> used(philox_blocks(n, parts) * parts);
      for (int64_t e = 0; e < n; ++e) {
        const PhiloxPlace p = philox_place(e, parts);
        ++used.at(p.block * parts + p.part);
      }
      CHECK(*std::max_element(used.begin(), used.end()) == 1);
    }
  }
}

TEST_CASE("uniform numbers stay below 1") {
  CHECK(unit_interval(0) == 0);
  CHECK(unit_interval(~0ull) == 1 - 0x1p-53);
}

TEST_CASE("each thread has a default generator of its own, at the beginning") {
  manual_seed(5);
  default_generator().take(10);
  CHECK(default_generator() == Generator{5, 10});
  Generator other{1, 1};
  std::thread([&] { other = default_generator(); }).join();
  CHECK(other == Generator{0, 0});
  manual_seed(5);
  CHECK(default_generator() == Generator{5, 0});
}
