#include "distributed/group.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/kernels/copy.h"
#include "core/kernels/reduce.h"
#include "core/memory/bytes.h"
#include "core/memory/link.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "distributed/transport.h"

namespace isonorm::distributed {
namespace {

// A call that a rank announces; all ranks compare it before they act.
struct Announced {
  int64_t number, call, kind, count, parts, root;
  bool operator==(const Announced&) const = default;
};
struct Announcement {
  Announced call;
  int64_t device;  // index of the GPU that holds the tensors (may differ between ranks); -1: not all on one GPU
};

constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",   "barrier",
                                  "on_first",   "check_same",     "split",      "nothing more"};

std::string words_of(const Announced& a) {
  const bool known = a.call >= 0 && a.call < std::ssize(kNames);
  std::string words = text(known ? kNames[a.call] : "?", " (its call ", a.number, ')');
  if (a.count >= 0) words += text(" of ", a.count, a.kind < 0 ? " bytes" : " numbers");
  if (a.kind >= 0) words += text(" of ", static_cast<DType>(a.kind));
  if (a.parts > 1) words += text(" in ", a.parts, " parts");
  if (a.root > 0) words += text(" from rank ", a.root);
  return words;
}

uint64_t mixed(uint64_t h, const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (; bytes > 0;) {
    uint64_t word = 0;
    const size_t n = std::min<size_t>(bytes, sizeof word);
    std::memcpy(&word, p, n), p += n, bytes -= n;
    h = (h ^ word) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  }
  return h;
}

// x on that device, contiguous.
Tensor moved(const Tensor& x, Device device) {
  if (x.device() == device && x.is_contiguous()) return x;
  const Tensor copy = empty(x.shape(), {x.dtype(), device});
  copy_into(copy, x);
  return copy;
}

DType common_dtype(std::span<const Tensor> tensors, const char* what) {
  for (const Tensor& x : tensors) {
    check(x.dtype() == tensors[0].dtype(), what, ": tensors of ", tensors[0].dtype(), " and of ", x.dtype());
    check(x.dtype() != DType::u8, what, ": dtype is u8, expected f32, f64, bf16 or i64");
    check(x.is_contiguous(), what, ": a tensor has shape ", x.shape(), " and strides ", x.strides(),
          ", expected a contiguous one");
  }
  return tensors[0].dtype();
}

// The device of all tensors; the CPU if they are on several.
Device common_device(std::span<const Tensor> tensors) {
  const auto elsewhere = [&](const Tensor& x) { return x.device() != tensors[0].device(); };
  return tensors.empty() || std::ranges::any_of(tensors, elsewhere) ? kCpu : tensors[0].device();
}

int64_t count_of(std::span<const Tensor> tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), int64_t{0},
                         [](int64_t n, const Tensor& x) { return n + x.numel(); });
}

// pack() copies the tensors into `flat`, one after the other, from element `at` on. unpack() copies them back.
void pack(const Tensor& flat, std::span<const Tensor> tensors, int64_t at = 0) {
  for (const Tensor& x : tensors) copy_into(as_strided(flat, x.shape(), x.strides(), at), x), at += x.numel();
}
void unpack(std::span<const Tensor> tensors, const Tensor& flat) {
  int64_t at = 0;
  for (const Tensor& x : tensors) copy_into(x, as_strided(flat, x.shape(), x.strides(), at)), at += x.numel();
}

// Splits at ", " and at newlines.
std::vector<std::string> parts_of(const std::string& words) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min({words.find(", ", at), words.find('\n', at), words.size()});
    parts.push_back(words.substr(at, end - at));
    at = end + (words.compare(end, 2, ", ") == 0 ? 2 : 1);
  }
  return parts;
}

// During its lifetime, calls wait for other ranks without a time limit.
class Unlimited {
 public:
  explicit Unlimited(Transport& transport) : transport_(transport), limit_(transport.limit()) {
    transport_.set_limit(std::numeric_limits<double>::infinity());
  }
  ~Unlimited() { transport_.set_limit(limit_); }
  Unlimited(const Unlimited&) = delete;
  Unlimited& operator=(const Unlimited&) = delete;

 private:
  Transport& transport_;
  const double limit_;
};

thread_local int64_t calls_of_thread = 0;

}  // namespace

int64_t calls_of_this_thread() { return calls_of_thread; }

double time_limit() {
  const char* wish = std::getenv("ISONORM_TIMEOUT");
  double seconds = 600;
  check((!wish || read_number(wish, seconds)) && seconds > 0 && seconds < 1e9, "ISONORM_TIMEOUT is ",
        Shown{wish ? wish : ""}, ", expected seconds above 0");
  return seconds;
}

// The NCCL connection, if there is one.
struct Group::Linked {
  std::vector<int> devices;    // each rank's GPU when the link was made; empty: no call with GPU tensors yet
  std::unique_ptr<Link> link;  // null: no link
  std::string why_by_host;
};

Group::Group() : linked_(std::make_shared<Linked>()) {}
Group::Group(std::unique_ptr<Transport> transport) : Group() {
  transport_ = std::move(transport), rank_ = transport_->rank(), size_ = transport_->size();
  if (size_ == 1) transport_ = nullptr;
}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

std::string Group::name_of(int rank) const { return transport_ ? transport_->name_of(rank) : text("rank ", rank); }

void Group::exchange(Device where, const void* send, void* receive, int64_t bytes, const char* what) {
  where == kCpu ? transport_->exchange(send, receive, static_cast<size_t>(bytes), what)
                : linked_->link->exchange(send, receive, bytes, what);
  bytes_sent_ += (size_ - 1) * bytes;
}

void Group::gather(Device where, const void* own, void* all, int64_t bytes, const char* what) {
  where == kCpu ? transport_->gather(own, all, static_cast<size_t>(bytes), what)
                : linked_->link->gather(own, all, bytes, what);
  bytes_sent_ += (size_ - 1) * bytes;
}

// Announces a call and compares it with the other ranks' calls, so that all ranks throw the same error or continue the
// same way. Returns the device that the tensors must be on for transport.
Device Group::match(Call call, int64_t kind, int64_t count, Device device, int64_t parts, int64_t root) {
  ++calls_of_thread;
  const Announcement own{{++calls_, static_cast<int64_t>(call), kind, count, parts, root},
                         device == kCpu ? -1 : device.index};
  std::vector<Announcement> all(static_cast<size_t>(size_));
  transport_->gather(&own, all.data(), sizeof own, kNames[own.call.call]);
  std::vector<int> devices;
  for (int r = 0; r < size_; ++r) {
    const Announced &a = all[0].call, &b = all[static_cast<size_t>(r)].call;
    if (!(a == b)) throw Disagreement(text(name_of(r), " calls ", words_of(b), ", ", name_of(0), ' ', words_of(a)), 0);
    devices.push_back(static_cast<int>(all[static_cast<size_t>(r)].device));
  }
  return count > 0 ? linked(devices) : kCpu;
}

// This rank's GPU if the link joins all ranks' GPUs, else the CPU. All ranks have the same input, so they decide
// alike.
Device Group::linked(const std::vector<int>& devices) {
  if (std::ranges::count(devices, -1) > 0) return kCpu;
  const Device own{DeviceKind::cuda, devices[static_cast<size_t>(rank_)]};
  if (linked_->devices.empty()) make_link(own), linked_->devices = devices;
  return linked_->link && linked_->devices == devices ? own : kCpu;
}

void Group::make_link(Device device) {
  const LinkOffer own = links->offer(device, rank_ == 0);
  std::vector<LinkOffer> all(static_cast<size_t>(size_));
  transport_->gather(&own, all.data(), sizeof own, "NCCL begins");
  std::string& why = linked_->why_by_host;
  why.clear();
  for (size_t r = 0; r < all.size() && why.empty(); ++r) {
    if (all[r].why_none[0] != 0) why = text("rank ", r, ": ", all[r].why_none.data());
    for (size_t q = 0; q < r && why.empty(); ++q)
      if (all[q].device == all[r].device) why = text("ranks ", q, " and ", r, " have one GPU");
  }
  if (!why.empty()) return;
  linked_->link =
      links->make(device, all[0], rank_, size_, {transport_->limit(), [host = transport_] { host->look(); }});
}

void Group::all_reduce(std::span<const std::vector<Tensor>> parts) {
  if (size_ == 1 && parts.size() == 1) return;
  check(!parts.empty(), "all_reduce: there are no parts");
  const int64_t k = std::ssize(parts), count = count_of(parts[0]), block = (count + size_ - 1) / size_;
  if (parts[0].empty()) return;
  const DType dtype = common_dtype(parts[0], "all_reduce");
  Device where = common_device(parts[0]);
  for (const std::vector<Tensor>& p : parts) {
    check(p.size() == parts[0].size() && count_of(p) == count && common_dtype(p, "all_reduce") == dtype,
          "all_reduce: the parts have different tensors");
    if (common_device(p) != where) where = kCpu;
  }
  if (size_ > 1) where = match(Call::reduce, static_cast<int64_t>(dtype), count, where, k);
  if (count == 0) return;
  const int64_t bytes = block * size_of(dtype);
  const Tensor flat = empty({size_ * block}, {dtype, where}), blocks = empty({k * size_ * block}, {dtype, where});
  kernels::fill(detached::narrow(flat, 0, count, size_ * block - count), 0);
  for (int64_t p = 0; p < k; ++p) {
    pack(size_ > 1 ? flat : blocks, parts[static_cast<size_t>(p)], size_ > 1 ? 0 : p * block);
    if (size_ > 1) exchange(where, bytes_of(flat), mutable_bytes_of(blocks) + p * size_ * bytes, bytes, "a sum");
  }
  const Tensor sum = detached::narrow(blocks, 0, 0, block);
  kernels::sum_blocks.on(where, sum, blocks, k, size_);
  if (size_ > 1) gather(where, bytes_of(sum), mutable_bytes_of(flat), bytes, "a sum");
  unpack(parts[0], size_ > 1 ? flat : sum);
}

Tensor Group::reduce_scatter(const Tensor& x) {
  if (size_ == 1) return detached::clone(x);
  check(x.rank() >= 1 && x.size(0) % size_ == 0, "reduce_scatter: shape ", x.shape(), " on ", size_,
        " ranks, expected rows that they share evenly");
  const DType dtype = common_dtype({&x, 1}, "reduce_scatter");
  const Device where = match(Call::scatter, static_cast<int64_t>(dtype), x.numel(), x.device());
  Dims shape = x.shape();
  shape[0] /= size_;
  const Tensor own = empty(shape, {dtype, where});
  if (x.numel() > 0) {
    const Tensor blocks = empty({x.numel()}, {dtype, where});
    exchange(where, bytes_of(moved(x, where)), mutable_bytes_of(blocks), byte_size(own), "reduce_scatter");
    kernels::sum_blocks.on(where, own, blocks, 1, size_);
  }
  return moved(own, x.device());
}

Tensor Group::all_gather(const Tensor& x) {
  if (size_ == 1) return detached::clone(x);
  check(x.rank() >= 1, "all_gather: shape ", x.shape(), ", expected rows");
  const DType dtype = common_dtype({&x, 1}, "all_gather");
  const Device where = match(Call::gather, static_cast<int64_t>(dtype), x.numel(), x.device());
  Dims shape = x.shape();
  shape[0] *= size_;
  const Tensor all = empty(shape, {dtype, where});
  if (x.numel() > 0) gather(where, bytes_of(moved(x, where)), mutable_bytes_of(all), byte_size(x), "all_gather");
  return moved(all, x.device());
}

// A scatter from the root and then an all-gather, so that no rank sends more than twice the bytes.
void Group::broadcast(std::span<const Tensor> tensors, int root) {
  check(root >= 0 && root < size_, "broadcast: from rank ", root, " of ", size_);
  if (size_ == 1 || tensors.empty()) return;
  const DType dtype = common_dtype(tensors, "broadcast");
  const int64_t count = count_of(tensors), block = (count + size_ - 1) / size_;
  const Device where = match(Call::broadcast, static_cast<int64_t>(dtype), count, common_device(tensors), 1, root);
  if (count == 0) return;
  const Tensor flat = empty({size_ * block}, {dtype, where});
  pack(flat, tensors);
  const int64_t bytes = block * size_of(dtype);
  const Tensor parts = empty({size_ * block}, {dtype, where});
  exchange(where, bytes_of(flat), mutable_bytes_of(parts), bytes, "broadcast");
  gather(where, bytes_of(parts) + root * bytes, mutable_bytes_of(flat), bytes, "broadcast");
  if (rank_ != root) unpack(tensors, flat);
}

bool Group::any(bool here) {
  if (size_ == 1) return here;
  const Tensor ranks = from_vector(std::vector{int64_t{here}}, {1});
  all_reduce(ranks);
  return ranks.data<int64_t>()[0] > 0;
}

void Group::barrier() {
  if (size_ > 1) match(Call::barrier, -1, -1);
}

void Group::on_first(const std::function<void()>& work) {
  if (rank_ == 0) work();
  if (size_ == 1) return;
  std::optional<Unlimited> waits;
  if (rank_ != 0) waits.emplace(*transport_);
  match(Call::first, -1, -1);
}

void Group::check_same(const TensorMap& tensors, const char* what, const char* advice) {
  if (size_ == 1 || tensors.empty()) return;
  match(Call::same, -1, std::ssize(tensors));
  std::vector<uint64_t> own, all(tensors.size() * static_cast<size_t>(size_));
  for (const auto& [_, x] : tensors) {
    const Tensor here = moved(x, kCpu);
    own.push_back(mixed(
        mixed(static_cast<uint64_t>(x.dtype()), x.shape().begin(), static_cast<size_t>(x.rank()) * sizeof(int64_t)),
        bytes_of(here), static_cast<size_t>(byte_size(here))));
  }
  gather(kCpu, own.data(), all.data(), std::ssize(own) * int64_t{sizeof(uint64_t)}, "check_same");
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == all[i % own.size()]) continue;
    const auto& [name, x] = tensors.begin()[static_cast<std::ptrdiff_t>(i % own.size())];
    throw Disagreement(text(name_of(static_cast<int>(i / own.size())), " has another ", what, " than ", name_of(0),
                            ": ", printable(name), ", on rank 0 ", x.dtype(), ' ', x.shape(), advice),
                       0);
  }
}

void Group::check_same(const std::string& words, const char* what) {
  if (size_ == 1) return;
  match(Call::same, -1, -1);
  std::vector<size_t> sizes(static_cast<size_t>(size_));
  const size_t size = words.size();
  gather(kCpu, &size, sizes.data(), sizeof size, "check_same");
  const size_t most = std::ranges::max(sizes);
  std::string own = words, all(most * sizes.size(), '\0');
  own.resize(most);
  gather(kCpu, own.data(), all.data(), static_cast<int64_t>(most), "check_same");
  const auto words_of = [&](size_t r) { return parts_of(all.substr(r * most, sizes[r])); };
  const std::vector<std::string> first = words_of(0);
  for (size_t r = 1; r < sizes.size(); ++r) {
    const std::vector<std::string> theirs = words_of(r);
    size_t i = 0;
    while (i < first.size() && i < theirs.size() && first[i] == theirs[i]) ++i;
    if (i == first.size() && i == theirs.size()) continue;
    const auto part = [i](const std::vector<std::string>& of) {
      return i < of.size() ? printable(of[i], 100) : std::string("nothing");
    };
    throw Disagreement(text(name_of(static_cast<int>(r)), " has another ", what, " than ", name_of(0), ": ",
                            part(theirs), ", on rank 0 ", part(first)),
                       0);
  }
}

Group Group::split(int colour, int key) {
  check(colour >= 0, "split: colour is ", colour, ", expected 0 or more");
  if (size_ == 1) return {};
  match(Call::split, -1, -1);
  return Group(transport_->split(colour, key));
}

Group& Group::background() {
  if (size_ == 1) return *this;
  if (!background_) {
    background_ = std::make_unique<Group>(split(0, rank_));
    background_->linked_ = linked_;
  }
  return *background_;
}

const std::string& Group::why_by_host() const { return linked_->why_by_host; }

void Group::end() {
  if (size_ > 1) match(Call::end, -1, -1);
}

void Group::abort(const std::string& why, int code) noexcept {
  if (transport_) transport_->abort(why, code);
}

}  // namespace isonorm::distributed
