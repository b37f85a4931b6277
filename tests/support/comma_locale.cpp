// A program that preloads this library has ISONORM_TEST_LOCALE as its C and C++ locale before main() begins, like a
// program that sets the user's language at startup.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>

__attribute__((constructor)) static void set_locale() {
  const char* name = std::getenv("ISONORM_TEST_LOCALE");
  if (!name) return;
  if (!std::setlocale(LC_ALL, name)) {
    std::fputs("comma_locale: there is no such locale\n", stderr);
    std::_Exit(9);
  }
  std::locale::global(std::locale(name));
}
