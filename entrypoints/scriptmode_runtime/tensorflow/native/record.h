// One record as TensorFlow keeps a string in a tensor: 24 bytes that hold up to 22 of them, or point to more.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace scriptmode {

// The layout of TF_TString (tsl/platform/ctstring_internal.h, the same since TensorFlow 2.4): records are laid into
// the output without another copy. The memory is malloc's, for TensorFlow gives it to free.
struct Record {
  static constexpr size_t kSmall = 22;
  static constexpr size_t kLarge = 1;  // the two low bits of the size say where the bytes are

  union {
    struct {
      uint8_t size;
      char bytes[kSmall + 1];
    } small;
    struct {
      size_t size;
      size_t capacity;
      char* bytes;
    } large;
  };

  // A record whose bytes are still to be written.
  static Record OfSize(size_t size) {
    Record record;
    if (size <= kSmall) {
      record.small.size = static_cast<uint8_t>(size << 2);
    } else {
      size_t capacity = (size + 16) / 16 * 16 - 1;
      record.large = {size << 2 | kLarge, capacity, static_cast<char*>(std::malloc(capacity + 1))};
      if (record.large.bytes == nullptr) throw std::bad_alloc();
    }
    record.bytes()[size] = 0;
    return record;
  }

  static Record Copy(const void* bytes, size_t size) {
    Record record = OfSize(size);
    std::memcpy(record.bytes(), bytes, size);
    return record;
  }

  char* bytes() { return small.size & kLarge ? large.bytes : small.bytes; }

  void Free() {
    if (small.size & kLarge) std::free(large.bytes);
  }
};
static_assert(sizeof(Record) == 24, "TF_TString has 24 bytes");

// Records that are not handed over yet.
class Records {
 public:
  Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  ~Records() {
    for (Record& record : records_) record.Free();
  }

  void Add(const Record& record) { records_.push_back(record); }
  size_t size() const { return records_.size(); }

  // Moves the first `count` of them into a tensor's memory.
  void MoveTo(void* target, size_t count) {
    std::memcpy(target, static_cast<const void*>(records_.data()), count * sizeof(Record));
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  std::vector<Record> records_;
};

}  // namespace scriptmode
