#include "io/data/published_sets.h"

#include <zlib.h>

#include <algorithm>

#include "core/dims.h"

namespace isonorm::data {
namespace {

// The bytes of an idx file in order, decompressed if the file begins like gzip. A gzip file is a series of members (RFC
// 1952, section 2.2); zero bytes after a member are padding.
class Input {
 public:
  explicit Input(const Bytes& file) : file_(file) {
    uint8_t magic[2] = {};
    file.read(0, magic, std::min<int64_t>(file.size, 2));
    compressed_ = magic[0] == 0x1f && magic[1] == 0x8b;
    // 15 + 16: the largest window, and a gzip wrapper whose checksum zlib verifies.
    if (compressed_) check(inflateInit2(&z_, 15 + 16) == Z_OK, "idx: zlib cannot start");
  }
  ~Input() {
    if (compressed_) inflateEnd(&z_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Upper bound for the number of bytes still to come. Deflate packs at most 258 bytes into 2 bits, about 1032 : 1.
  int64_t capacity() const { return compressed_ ? checked_mul(file_.size, 1032, "idx") : file_.size - position_; }

  // Fills `to` as far as the data goes and returns the number of bytes.
  int64_t read(uint8_t* to, int64_t n) {
    if (!compressed_) {
      n = std::min(n, file_.size - position_);
      file_.read(position_, to, n);
      position_ += n;
      return n;
    }
    int64_t done = 0;
    while (done < n && !finished_) {
      const int64_t piece = std::min<int64_t>(n - done, 1 << 30);
      z_.next_out = to + done;
      z_.avail_out = static_cast<uInt>(piece);
      inflate_once();
      done += piece - z_.avail_out;
    }
    return done;
  }

  // Verifies that the data ends here: no further byte, and for gzip complete trailers and only padding after the last
  // one.
  void finish() {
    uint8_t extra;
    check(read(&extra, 1) == 0, "idx: more data than its header declares");
    check(!compressed_ || finished_, "idx: the compressed data is cut off");
    check(position_ == file_.size && z_.avail_in == 0, "idx: ", file_.size - position_ + z_.avail_in,
          " bytes after the end of the data");
  }

 private:
  // Gives zlib the next bytes of the file if its input is used up. Returns false at the end of the file.
  bool has_input() {
    if (z_.avail_in > 0) return true;
    const int64_t n = std::min<int64_t>(sizeof buffer_, file_.size - position_);
    file_.read(position_, buffer_, n);
    position_ += n;
    z_.next_in = buffer_;
    z_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  void inflate_once() {
    check(has_input(), "idx: the compressed data is cut off");
    const int status = inflate(&z_, Z_NO_FLUSH);
    check(status == Z_STREAM_END || status == Z_OK || status == Z_BUF_ERROR,
          "idx: damaged compression: ", z_.msg ? z_.msg : zError(status));
    if (status == Z_STREAM_END) begin_member();
  }

  // Begins the next member, if there is one.
  void begin_member() {
    while (has_input() && *z_.next_in == 0) ++z_.next_in, --z_.avail_in;
    finished_ = !has_input() || *z_.next_in != 0x1f;
    if (!finished_) check(inflateReset(&z_) == Z_OK, "idx: zlib cannot start");
  }

  const Bytes& file_;
  int64_t position_ = 0;  // next byte of the file
  bool compressed_ = false, finished_ = false;
  z_stream z_{};
  uint8_t buffer_[1 << 16];
};

Dims read_header(Input& in) {
  uint8_t head[4];
  check(in.read(head, 4) == 4, "idx: shorter than a header");
  check(head[0] == 0 && head[1] == 0, "idx: the magic number begins with ", int{head[0]}, ", ", int{head[1]},
        ", expected 0, 0");
  check(head[2] == 0x08, "idx: element type ", int{head[2]}, ", expected 8 (unsigned byte)");
  check(head[3] >= 1 && head[3] <= kMaxRank, "idx: rank ", int{head[3]}, ", expected 1 to ", kMaxRank);
  Dims shape;
  for (int i = 0; i < head[3]; ++i) {
    uint8_t b[4];
    check(in.read(b, 4) == 4, "idx: the header is cut off");
    shape.push_back(int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]);
  }
  return shape;
}

}  // namespace

Tensor read_idx(const Bytes& file) {
  const Scope scope(file.name);
  Input in(file);
  const Dims shape = read_header(in);
  const int64_t n = numel(shape);
  check(n <= kIdxLimit, "idx: shape ", shape, " declares ", n, " elements, over the limit of ", kIdxLimit);
  check(n <= in.capacity(), "idx: shape ", shape, " declares ", n, " elements, a file of ", file.size,
        " bytes holds at most ", in.capacity());
  Tensor out = empty(shape, {DType::u8});
  const int64_t got = in.read(out.mutable_data<uint8_t>(), n);
  check(got == n, "idx: shape ", shape, " declares ", n, " elements, the data has ", got);
  in.finish();
  return out;
}

Tensor read_idx(const std::string& path) { return read_idx(open_bytes(path)); }

}  // namespace isonorm::data
