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

  static size_t Capacity(size_t size) { return (size + 16) / 16 * 16 - 1; }

  static Record Copy(const void* bytes, size_t size) {
    Record record;
    if (size <= kSmall) {
      record.small.size = static_cast<uint8_t>(size << 2);
      std::memcpy(record.small.bytes, bytes, size);
      record.small.bytes[size] = 0;
      return record;
    }
    size_t capacity = Capacity(size);
    char* copy = static_cast<char*>(std::malloc(capacity + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, bytes, size);
    return Adopt(copy, size, capacity);
  }

  // Takes memory of `capacity` + 1 bytes from malloc.
  static Record Adopt(char* bytes, size_t size, size_t capacity) {
    Record record;
    bytes[size] = 0;
    record.large = {size << 2 | kLarge, capacity, bytes};
    return record;
  }

  void Free() {
    if (small.size & kLarge) std::free(large.bytes);
  }
};
static_assert(sizeof(Record) == 24, "TF_TString has 24 bytes");

// A record that arrives in pieces: what a read may fill directly.
class Body {
 public:
  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() { std::free(bytes_); }

  // Lets `size` more bytes come.
  void Expect(size_t size) {
    wanted_ += size;
    Grow();
  }

  void Append(const void* bytes, size_t size) {
    const char* from = static_cast<const char*>(bytes);
    while (size > 0) {
      size_t part = size < room() ? size : room();
      std::memcpy(rest(), from, part);
      Filled(part);
      from += part;
      size -= part;
    }
  }

  void Filled(size_t size) {
    filled_ += size;
    Grow();
  }

  Record Take() {
    bool is_small = filled_ <= Record::kSmall;
    Record record = is_small ? Record::Copy(bytes_ ? bytes_ : "", filled_) : Record::Adopt(bytes_, filled_, capacity_);
    if (!is_small) bytes_ = nullptr;
    Drop();
    return record;
  }

  void Drop() {
    std::free(bytes_);
    bytes_ = nullptr;
    filled_ = wanted_ = capacity_ = 0;
  }

  char* rest() const { return bytes_ + filled_; }
  size_t room() const { return (wanted_ < capacity_ ? wanted_ : capacity_) - filled_; }
  size_t missing() const { return wanted_ - filled_; }
  const char* bytes() const { return bytes_; }
  size_t size() const { return filled_; }

 private:
  // A length may be any number: memory comes as bytes do.
  static constexpr size_t kStep = size_t{64} << 20;

  void Grow() {
    if (wanted_ <= capacity_ || filled_ < capacity_) return;
    size_t target = capacity_ + (capacity_ > kStep ? capacity_ : kStep);
    size_t capacity = Record::Capacity(wanted_ < target ? wanted_ : target);
    char* grown = static_cast<char*>(std::realloc(bytes_, capacity + 1));
    if (grown == nullptr) throw std::bad_alloc();
    bytes_ = grown;
    capacity_ = capacity;
  }

  char* bytes_ = nullptr;
  size_t filled_ = 0;
  size_t wanted_ = 0;
  size_t capacity_ = 0;
};

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
