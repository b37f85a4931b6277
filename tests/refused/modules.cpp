// Modules that have names are not moved, and constructors with other arguments say the right form.
#include "nn/attention.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/parameter_free.h"
#include "nn/recurrent/recurrent.h"

using namespace isonorm;

// A case is one line, which run.sh reads.
// clang-format off

struct Wide : nn::Module {
  explicit Wide(int width) : width(width) {}
  int width;
};

void use([[maybe_unused]] nn::Sequential& net, [[maybe_unused]] const nn::Sequential& fixed,
         [[maybe_unused]] nn::Linear& head, [[maybe_unused]] nn::ModuleList<nn::Linear>& list,
         [[maybe_unused]] Wide& wide) {
#if REFUSED == 1  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  nn::Sequential actor(net, nn::Linear(3, 3));
#elif REFUSED == 2  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  auto copy = nn::Sequential(net);
#elif REFUSED == 3  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  [net] { (void)net; }();
#elif REFUSED == 4  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  net.append(head);
#elif REFUSED == 5  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  list.append(head);
#elif REFUSED == 6  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  net.replace("0", head);
#elif REFUSED == 7  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  net.append(std::move(fixed));
#elif REFUSED == 8  // give std::move(m), nn::clone(m) or nn::shared(m)
  auto copy = fixed;
#elif REFUSED == 9  // the argument is not an nn::Module; write nn::Relu() for relu
  net.append(relu);
#elif REFUSED == 10  // nn::MultiheadAttention(12, {.heads = 3})
  nn::MultiheadAttention attention(12, 3);
#elif REFUSED == 11  // nn::Gru({.inputs = 8, .hidden = 32})
  nn::Gru gru(8, 32);
#elif REFUSED == 12  // nn::Lstm({.inputs = 8, .hidden = 32})
  nn::Lstm lstm(8, 32);
#elif REFUSED == 13  // give them, nn::clone(m, 3, 4)
  (void)nn::clone(wide);
#elif REFUSED == 15  // a list has the class of its modules: nn::ModuleList<nn::Linear>
  nn::ModuleList layers;
#endif
}

struct Named : nn::Module {
  nn::Linear layer{3, 3};
#if REFUSED == 14  // give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)
  Named() { add("l", layer); }
#endif
};
