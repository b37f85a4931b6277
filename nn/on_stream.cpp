#include "nn/on_stream.h"

namespace isonorm::nn {
namespace {

class Writes : public Parametrisation {
 public:
  Writes(const Stream& stream, int dim) : stream_(stream), dim_(dim) {}
  Tensor operator()(const Tensor& stored) const override { return stream_.write(stored, dim_); }
  Role role() const override { return Role::writer; }
  int stream_dim() const override { return dim_; }

 private:
  Stream stream_;
  int dim_;
};

// A table, whose rows are written each by itself.
class WritesRows : public Parametrisation {
 public:
  explicit WritesRows(const Stream& stream) : stream_(stream) {}
  Tensor operator()(const Tensor& rows) const override { return stream_.write(rows, -1); }
  bool by_rows() const override { return true; }
  Role role() const override { return Role::writer; }
  int stream_dim() const override { return 1; }

 private:
  Stream stream_;
};

class Reads : public Parametrisation {
 public:
  explicit Reads(const Connection& through) : through(through) {}
  Tensor operator()(const Tensor& stored) const override { return through.reader_weight(stored); }
  std::vector<Tensor> reads() const override { return through.parameters(); }
  Role role() const override { return Role::reader; }
  int stream_dim() const override { return 1; }

  const Connection& through;
};

// The bias beside such a weight, which may be made of nothing.
class ReadsBias : public Parametrisation {
 public:
  ReadsBias(const Connection& through, const Tensor& weight) : through_(through), weight_(weight) {}
  Tensor operator()(const Tensor& stored) const override { return through_.reader_bias(weight_, stored); }
  std::vector<Tensor> reads() const override {
    std::vector<Tensor> all = through_.parameters();
    all.push_back(weight_);
    return all;
  }

 private:
  const Connection& through_;
  Tensor weight_;  // the stored one
};

// The mapped table of a stream as a reader.
class ReadsTable : public Parametrisation {
 public:
  explicit ReadsTable(const Stream& stream) : stream_(stream) {}
  Tensor operator()(const Tensor& stored) const override { return stream_.read_table(stored); }

 private:
  Stream stream_;
};

void check_width(const char* what, int64_t width, const Stream& stream) {
  check(width == stream.parameter_width(), what, width, ", the stream's parameters have ", stream.parameter_width());
}

}  // namespace

Linear read_by(const Connection& through, int64_t out, bool bias) {
  const Connection* maps = through.maps_readers();
  const Stream& stream = through.stream();
  return reads(Linear(maps ? stream.parameter_width() : stream.width(), out, {.bias = bias}), maps);
}

Linear written_to(const Stream& stream, int64_t in, bool bias) {
  return writes(Linear(in, stream.parameter_width(), {.bias = bias}), &stream);
}

Linear reads(Linear reader, const Connection* through) {
  if (!through) return reader;
  check_width("linear: a reader has inputs ", reader.weight.size(1), through->stream());
  reader.weight.parametrize(std::make_shared<Reads>(*through));
  reader.bias.parametrize(std::make_shared<ReadsBias>(*through, reader.weight));
  return reader;
}

void writes(Parameter& parameter, const Stream& stream, int dim) {
  check_width("stream: a writer has width ", parameter.size(dim), stream);
  parameter.parametrize(std::make_shared<Writes>(stream, dim));
}

Linear writes(Linear writer, const Stream* stream) {
  if (!stream) return writer;
  writes(writer.weight, *stream, 0);
  if (writer.bias.defined()) writes(writer.bias, *stream, 0);
  return writer;
}

Embedding writes(Embedding table, const Stream* stream) {
  if (!stream) return table;
  check_width("embedding: a table has width ", table.weight.size(1), *stream);
  table.weight.parametrize(std::make_shared<WritesRows>(*stream));
  return table;
}

const Connection* read_through(const Parameter& parameter) {
  const auto* reads = dynamic_cast<const Reads*>(parameter.parametrisation());
  return reads ? &reads->through : nullptr;
}

TiedHead::TiedHead(const Parameter& table, const Connection& norm) : weight(table.stored()) {
  if (!norm.maps_readers()) return;
  const Stream& stream = norm.stream();
  if (stream.storage() == StreamStorage::mapped && stream.centres()) {
    weight.parametrize(std::make_shared<ReadsTable>(stream));
    return;
  }
  weight.parametrize(std::make_shared<Reads>(norm));
  bias.parametrize(std::make_shared<ReadsBias>(norm, weight));
}

}  // namespace isonorm::nn
