// Internal: the C library's numbers in the C locale, whatever locale the program has set.
#pragma once

#include <locale.h>

namespace isonorm {

// While it lives, strtod and localeconv of this thread use a decimal point, for libraries that read numbers with them.
class CNumbers {
 public:
  [[nodiscard]] CNumbers() : before_(uselocale(c_locale())) {}
  ~CNumbers() { uselocale(before_); }
  CNumbers(const CNumbers&) = delete;
  CNumbers& operator=(const CNumbers&) = delete;

 private:
  static locale_t c_locale() {
    static const locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
    return c;
  }
  locale_t before_;
};

}  // namespace isonorm
