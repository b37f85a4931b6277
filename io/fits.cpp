#include "io/fits.h"

#include <unistd.h>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::io {

void check_fits(int64_t bytes, std::string_view what) {
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  check(bytes <= memory, printable(what, 200), " takes ", bytes, " bytes, this machine has ", memory);
}

}  // namespace isonorm::io
