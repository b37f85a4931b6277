#include "tests/support/device.h"

#include "core/memory/storage.h"
#include "tests/support/fallback.h"
#include "tests/support/slots.h"

namespace isonorm::test {
namespace {
std::vector<std::string> by_fallback;
}

void start_devices() {
  start_cuda();
  for_all_slots([]<auto & slot>() {
    if (bind_fallback<slot>()) by_fallback.push_back(name_of_slot<slot>());
  });
}

const std::vector<std::string>& fallback_slots() { return by_fallback; }

}  // namespace isonorm::test
