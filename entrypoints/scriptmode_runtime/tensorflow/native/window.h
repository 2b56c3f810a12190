// The bytes that were read and belong to no record yet.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace scriptmode {

class Window {
 public:
  // What one read asks for. Small enough that a record is still in the CPU's cache when it is copied.
  static constexpr size_t kRead = size_t{256} << 10;
  // Records up to this size are awaited here and copied; larger ones are read to where they stay.
  static constexpr size_t kAwaited = size_t{32} << 10;

  const uint8_t* begin() const { return bytes_.data() + begin_; }
  size_t size() const { return end_ - begin_; }
  uint64_t position() const { return position_; }

  void Skip(size_t count) {
    begin_ += count;
    position_ += count;
  }

  // Gives room for the next read.
  uint8_t* Room(size_t* room) {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), begin(), size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (bytes_.size() < end_ + kRead) bytes_.resize(end_ + (end_ > kRead ? end_ : kRead) + kAwaited);
    *room = bytes_.size() - end_;
    return bytes_.data() + end_;
  }

  void Filled(size_t count) { end_ += count; }

  // Counts bytes of the stream that a read put elsewhere.
  void Passed(size_t count) { position_ += count; }

  bool ended = false;

 private:
  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t position_ = 0;  // of begin_ in the stream
};

}  // namespace scriptmode
