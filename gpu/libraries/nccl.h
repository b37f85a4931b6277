// Links between ranks by NCCL, opened at run time (core/memory/link.h). Communicators never block: their state is
// polled until it is ready or the time limit is over.
#pragma once

#include <string>

#include "core/memory/link.h"
#include "gpu/libraries/nccl_api.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

class NcclLink final : public Link {
 public:
  NcclLink(Device device, const LinkOffer& first, int rank, int size, LinkWait wait);
  ~NcclLink() override;

  void exchange(const void* send, void* receive, int64_t bytes, const char* what) override;
  void gather(const void* own, void* all, int64_t bytes, const char* what) override;

 private:
  void must(nccl::Result result, const char* what) const;
  bool settled(const char* what) const;
  void until(const char* what, double limit, const std::function<bool()>& done) const;
  void carry(const char* what, const std::function<nccl::Result()>& calls);
  void leave(nccl::Result (*how)(nccl::Comm)) noexcept;

  const nccl::Api api_;
  const Device device_;
  const int rank_, size_;
  const LinkWait wait_;
  nccl::Comm comm_ = nullptr;
  std::string why_;  // why the communicator was ended
  Event done_;
};

}  // namespace isonorm::gpu
