// Internal: transfers of tensors between ranks that each have a GPU of their own. The devices'
// library carries the bytes, in the devices' streams. The ranks negotiate through the host first
// (distributed/transport.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device.h"

namespace isonorm {

// A rank's description of its device. Ranks send it to each other as bytes.
struct LinkOffer {
  std::array<char, 256> why_none{};  // reason why it cannot be linked, ends with 0; empty: it can
  std::array<char, 16> device{};     // identifies the GPU among all GPUs
  std::array<char, 128> id{};        // id of the link, if one was asked for
};

// How a link waits for other ranks.
struct LinkWait {
  double limit;                // seconds
  std::function<void()> look;  // throws if another rank has ended
};

// One rank's end of a link. All ranks make the same calls in the same order. A call runs in the device's own stream and
// returns when it is done there. Throws if the library or the device fails or the time limit passes, and passes on
// exceptions of LinkWait::look. After that the link is unusable, and every call throws the reason.
class Link {
 public:
  virtual ~Link() = default;

  // Like the functions of Transport, with device addresses.
  virtual void exchange(const void* send, void* receive, int64_t bytes, const char* what) = 0;
  virtual void gather(const void* own, void* all, int64_t bytes, const char* what) = 0;
};

// Set by start_cuda(). Null: no tensor can be on a GPU.
struct Links {
  LinkOffer (*offer)(Device device, bool with_id) noexcept;
  // Every rank calls it with its own device and with the offer of the rank that made the id. Throws like the calls of a
  // Link.
  std::unique_ptr<Link> (*make)(Device device, const LinkOffer& first, int rank, int size, LinkWait wait);
};
inline constinit const Links* links = nullptr;

}  // namespace isonorm
