// Preloaded into a program under test, it makes the system refuse what ISONORM_REFUSE says:
//   threads   no thread can be created
//   memory    from main() on, at every operator new that is called by a new chain of functions (its six return
//             addresses), a copy of the process (fork) gets std::bad_alloc and runs to its end. The file
//             ISONORM_REFUSE_REPORT gets a line for each copy that ends neither with 0 nor with 70 and a line on
//             stderr. Its last line is the number of copies.
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace {

using Main = int (*)(int, char**, char**);
Main program = nullptr;
bool armed = false;  // main() runs, and allocations are tried
bool copy = false;   // this process is a copy in which an allocation was refused
int tried = 0;
FILE* report = nullptr;

const char* wish() {
  const char* s = getenv("ISONORM_REFUSE");
  return s ? s : "";
}

void finish() {
  if (!armed || copy) return;
  armed = false;
  fprintf(report, "%d tried\n", tried);
  fclose(report);
}

int started(int argc, char** argv, char** environment) {
  if (strcmp(wish(), "memory") == 0) {
    const rlimit no_dumps = {0, 0};
    setrlimit(RLIMIT_CORE, &no_dumps);
    report = fopen(getenv("ISONORM_REFUSE_REPORT"), "we");
    armed = report != nullptr && setvbuf(report, nullptr, _IONBF, 0) == 0;  // copies must not inherit a buffer
  }
  const int code = program(argc, argv, environment);
  finish();
  return code;
}

// Returns true if the calling functions have allocated a block before.
bool seen() {
  constexpr size_t room = 1 << 16;
  static size_t known[room];
  void* callers[6] = {};
  backtrace(callers, 6);
  size_t key = 0;
  for (void* caller : callers) key = (key ^ reinterpret_cast<size_t>(caller)) * 0x9e3779b97f4a7c15;
  size_t at = key % room;
  while (known[at] != 0 && known[at] != key) at = (at + 1) % room;
  return std::exchange(known[at], key) == key;
}

// True in a copy of the process in which this block is refused.
bool refused(size_t bytes) {
  if (!armed || copy || seen()) return false;
  ++tried;
  int said[2];
  if (pipe(said) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    copy = true;
    dup2(said[1], 2);
    close(said[0]), close(said[1]);
    return true;
  }
  close(said[1]);
  char text[512] = {}, more[512];
  size_t length = 0;
  for (ssize_t n; (n = read(said[0], text + length, sizeof text - 1 - length)) > 0;) length += static_cast<size_t>(n);
  while (read(said[0], more, sizeof more) > 0) {  // drain the pipe, or the copy would end by SIGPIPE
  }
  close(said[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code != 0 && (code != 70 || strchr(text, '\n') == nullptr))
    fprintf(report, "allocation %d of %zu bytes: exit %d: %s\n", tried, bytes, code, text);
  return false;
}

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

void* block(size_t bytes, size_t alignment) {
  if (refused(bytes)) throw std::bad_alloc();
  void* p = nullptr;
  if (posix_memalign(&p, alignment, bytes ? bytes : 1) != 0) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t bytes) { return block(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t a) { return block(bytes, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { free(p); }

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*end)(), void* stack) {
  program = main;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start>("__libc_start_main")(started, argc, argv, init, fini, end, stack);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (strcmp(wish(), "threads") == 0) return EAGAIN;
  return next<decltype(&pthread_create)>("pthread_create")(thread, attributes, body, argument);
}

// Copies do not change the files, which the process still needs.
int unlink(const char* path) { return copy ? 0 : next<decltype(&unlink)>("unlink")(path); }
int rename(const char* from, const char* to) { return copy ? 0 : next<decltype(&rename)>("rename")(from, to); }

}  // extern "C"
