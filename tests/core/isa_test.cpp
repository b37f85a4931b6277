// The choice of the kernels' instruction set, by a table of machines.
#include "core/kernels/isa_choice.h"

#include <fstream>
#include <sstream>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

constexpr int kTiles = 1, kNoGrant = 2;  // AMX: granted; present but refused

Processor cpu(const char* vendor, int family, int model, Isa has, int amx = 0) {
  return {vendor,   family,       model, has >= Isa::avx2, has >= Isa::avx512, has >= Isa::avx512_bf16,
          amx != 0, amx == kTiles};
}

// The value of the first line of /proc/cpuinfo with this name.
std::string cpuinfo(const std::string& name) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with(name + "\t")) return line.substr(line.find(": ") + 2);
  return "";
}

}  // namespace

TEST_CASE("instruction set: each machine has its own") {
  const struct {
    Processor processor;
    Isa isa;
    const char* reason;
  } machines[] = {
      {{}, Isa::base, "the best of this CPU"},
      {cpu("GenuineIntel", 6, 23, Isa::base), Isa::base, "the best of this CPU"},       // Core 2
      {cpu("GenuineIntel", 6, 60, Isa::avx2), Isa::avx2, "the best of this CPU"},       // Haswell
      {cpu("AuthenticAMD", 25, 1, Isa::avx2), Isa::avx2, "the best of this CPU"},       // EPYC, Zen 3
      {cpu("GenuineIntel", 6, 85, Isa::avx512), Isa::avx512, "the best of this CPU"},   // Skylake-X
      {cpu("GenuineIntel", 6, 106, Isa::avx512), Isa::avx512, "the best of this CPU"},  // Ice Lake
      // Emerald Rapids: vdpbf16ps was slower than widening.
      {cpu("GenuineIntel", 6, 207, Isa::avx512_bf16, kTiles), Isa::amx_bf16, "grants AMX's tiles"},
      {cpu("GenuineIntel", 6, 207, Isa::avx512_bf16, kNoGrant), Isa::avx512, "refuses AMX's tiles"},
      {cpu("GenuineIntel", 6, 207, Isa::avx512_bf16), Isa::avx512, "GenuineIntel family 6 model 207"},
      {cpu("GenuineIntel", 6, 143, Isa::avx512_bf16, kTiles), Isa::amx_bf16, "grants AMX's tiles"},  // Sapphire Rapids
      {cpu("GenuineIntel", 6, 85, Isa::avx512_bf16), Isa::avx512, "not known to beat"},         // Cooper Lake: no log
      {cpu("AuthenticAMD", 25, 17, Isa::avx512_bf16), Isa::avx512, "not known to beat"},        // EPYC, Zen 4: no log
      {cpu("AuthenticAMD", 26, 2, Isa::avx512_bf16), Isa::avx512_bf16, "benchmarks/results/"},  // EPYC, Zen 5
      {cpu("AuthenticAMD", 26, 2, Isa::avx512), Isa::avx512,
       "the best of this CPU"},  // its hypervisor hides AVX512_BF16
      {cpu("GenuineIntel", 26, 2, Isa::avx512_bf16), Isa::avx512, "not known to beat"},
  };
  for (const auto& [processor, isa, reason] : machines) {
    INFO(name_of(processor));
    const IsaChoice choice = choose_isa(processor);
    CHECK(name_of(choice.isa) == std::string(name_of(isa)));
    CHECK_THAT(choice.reason, Contains(reason));
  }
}

TEST_CASE("instruction set: ISONORM_ISA takes the place of the choice") {
  const Processor with_tiles = cpu("GenuineIntel", 6, 207, Isa::avx512_bf16, kTiles),
                  without = cpu("GenuineIntel", 6, 207, Isa::avx512_bf16, kNoGrant),
                  plain = cpu("GenuineIntel", 6, 60, Isa::avx2);
  for (const Isa asked : {Isa::base, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    const IsaChoice choice = choose_isa(with_tiles, name_of(asked));
    CHECK(choice.isa == asked);
    CHECK(choice.reason == text("ISONORM_ISA=", name_of(asked)));
    CHECK(choose_isa(without, name_of(asked)).isa == std::min(asked, Isa::avx512_bf16));
    CHECK(choose_isa(plain, name_of(asked)).isa == std::min(asked, Isa::avx2));
  }
  CHECK_THROWS_WITH(choose_isa(plain, "AVX2"),
                    Contains("\"AVX2\" is not one of base, avx2, avx512, avx512_bf16, amx_bf16"));
}

TEST_CASE("instruction set: a build for a single set uses no other") {
  const Processor with_tiles = cpu("GenuineIntel", 6, 207, Isa::avx512_bf16, kTiles);
  CHECK(choose_isa(with_tiles, "", Isa::avx2, Isa::avx2).isa == Isa::avx2);
  CHECK(choose_isa(with_tiles, "amx_bf16", Isa::avx2, Isa::avx2).isa == Isa::avx2);
  CHECK(choose_isa(with_tiles, "", Isa::avx512, Isa::amx_bf16).isa == Isa::amx_bf16);
  CHECK_THROWS_WITH(choose_isa(with_tiles, "base", Isa::avx2, Isa::avx2),
                    Contains("this build has no base, only avx2"));
  CHECK_THROWS_WITH(choose_isa(cpu("GenuineIntel", 6, 60, Isa::avx2), "", Isa::avx512, Isa::amx_bf16),
                    Contains("this build is for machines with avx512, this one has avx2"));
}

TEST_CASE("instruction set: a CPU of the table of fast vdpbf16ps has a log that names it") {
  for (const MeasuredCpu& row : kFastPairs) {
    INFO(row.log);
    CHECK_THAT(test::read_text(row.log),
               Contains(text(row.vendor, " family ", row.family, " model ", row.model)) && Contains("avx512_bf16"));
  }
}

TEST_CASE("instruction set: family and model are the displayed ones") {
  const struct {
    unsigned eax;
    int family, model;
  } cpus[] = {{0x000c06f2, 6, 207}, {0x000806f8, 6, 143}, {0x00050657, 6, 85}, {0x00000f43, 15, 4},
              {0x00b00f21, 26, 2},  {0x00a10f11, 25, 17}, {0x00000543, 5, 4}};
  for (const auto& [eax, family, model] : cpus) {
    const FamilyAndModel found = family_and_model(eax);
    CHECK(found.family == family);
    CHECK(found.model == model);
  }
}

#ifdef __x86_64__
TEST_CASE("instruction set: the detected processor agrees with /proc/cpuinfo") {
  const Processor& here = this_processor();
  if (cpuinfo("vendor_id").empty()) return;
  CHECK(name_of(here) == cpuinfo("vendor_id") + " family " + cpuinfo("cpu family") + " model " + cpuinfo("model"));
  const std::string flags = " " + cpuinfo("flags") + " ";
  const auto has = [&](const char* flag) { return flags.find(std::string(" ") + flag + " ") != flags.npos; };
  CHECK(here.avx2 == (has("avx2") && has("fma")));
  CHECK(here.avx512_bf16 == has("avx512_bf16"));
  CHECK(here.amx_bf16 >= has("amx_bf16"));  // /proc/cpuinfo hides a flag if the kernel does not save its registers
}
#endif
