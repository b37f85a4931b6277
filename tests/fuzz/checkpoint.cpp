// What the reader accepts is a checkpoint whose checksum holds, so nothing is left to check.
#include "io/checkpoint.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz(data, size, [](const Bytes& file) { load_checkpoint(file); });
}
