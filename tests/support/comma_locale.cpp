// Preloaded into a program, the C and the C++ locale are that of ISONORM_TEST_LOCALE before main() begins, as in a program
// that shows a user interface in the user's language.
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
