// If a program preloads this library, its C and C++ locales are ISONORM_TEST_LOCALE before main() begins. A program that
// shows a user interface in the user's language starts in the same way.
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
