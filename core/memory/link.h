// Internal: how the bytes of tensors on GPUs travel between ranks, each of which has a GPU of its own: the devices' library carries
// them, in their streams. What ranks say to each other before goes by the host (distributed/transport.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device.h"

namespace isonorm {

// What a rank says of its device, as ranks send it.
struct LinkOffer {
  std::array<char, 256> why_none{};  // a line that ends with 0; empty: it can be linked
  std::array<char, 16> device{};     // which GPU of all that there are
  std::array<char, 128> id{};        // of the link, where it was asked for
};

// What a link does while it waits for the other ranks.
struct LinkWait {
  double limit;                // seconds
  std::function<void()> look;  // throws where another rank has ended
};

// Of one rank. All ranks make the same calls in the same order. A call is given to the device's own stream, and returns when it is
// done there. Throws where the library or the device has failed, where the time is over, and what LinkWait::look throws; after that
// the link is of no more use, and every call says why.
class Link {
 public:
  virtual ~Link() = default;

  // As those of Transport, with addresses of the device.
  virtual void exchange(const void* send, void* receive, int64_t bytes, const char* what) = 0;
  virtual void gather(const void* own, void* all, int64_t bytes, const char* what) = 0;
};

// start_cuda() sets it; null: no tensor can be on a GPU.
struct Links {
  LinkOffer (*offer)(Device device, bool with_id) noexcept;
  // All ranks call it, each with its device and with the offer of the one that was asked for an id. Throws as the calls of a link.
  std::unique_ptr<Link> (*make)(Device device, const LinkOffer& first, int rank, int size, LinkWait wait);
};
inline constinit const Links* links = nullptr;

}  // namespace isonorm
