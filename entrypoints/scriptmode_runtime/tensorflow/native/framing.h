// How a stream is cut into records, and what becomes of records that are damaged.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "problem.h"
#include "record.h"
#include "window.h"

namespace scriptmode {

class Framing {
 public:
  // `skipped` damaged records one after another are passed over.
  explicit Framing(int64_t skipped) : may_skip_(skipped) {}
  virtual ~Framing() = default;

  // Takes the next record out of the window. False: it needs more bytes, or there is none where the window ended.
  bool Next(Window& window, Record* record) {
    if (!Cut(window, record)) return false;
    in_a_row_ = 0;
    ++count_;
    return true;
  }

  int64_t count() const { return count_; }

 protected:
  virtual bool Cut(Window& window, Record* record) = 0;

  // Counts a damaged record; throws where one more is too many.
  void Damage(uint64_t position, const std::string& what) {
    if (in_a_row_ >= may_skip_) {
      throw Problem(kDataLoss, "record " + std::to_string(count_ + skipped_) + ", at byte " + std::to_string(position) +
                                   " of the stream, " + what);
    }
    ++in_a_row_;
    ++skipped_;
  }

 private:
  const int64_t may_skip_;
  int64_t in_a_row_ = 0;
  int64_t count_ = 0;
  int64_t skipped_ = 0;
};

// Records that begin with a header of `kSize` bytes, by which the next one is found after a damaged one.
template <size_t kSize>
class HeadedRecords : public Framing {
 public:
  using Framing::Framing;

 protected:
  static constexpr size_t kHeader = kSize;

  virtual bool IsHeader(const uint8_t* at) const = 0;

  // Passes over a damaged record's first `count` bytes: its length may be wrong, so the next one may be within it.
  void Lose(Window& window, size_t count) {
    window.Skip(count);
    searching_ = true;
  }

  // After a damaged record, passes over bytes up to a header. False: there is none yet.
  bool Find(Window& window) {
    for (; searching_ && window.size() >= kHeader; window.Skip(1)) {
      if (IsHeader(window.begin())) {
        searching_ = false;
        return true;
      }
    }
    if (searching_ && window.ended) window.Skip(window.size());
    return !searching_;
  }

  // What the stream is instead, if its first record has no header; `other` is a guess of the format, or "".
  static std::string WhatElse(const Window& window, const char* own, const char* other) {
    if (window.position() > 0) return "";
    if (window.begin()[0] == 0x1f && window.begin()[1] == 0x8b)
      return ": the stream is gzip: give the channel compression='Gzip'";
    if (*other) return std::string(": the stream is ") + other + ", and record_format has to say so";
    return std::string(": is the stream ") + own + "? record_format says what it is";
  }

 private:
  bool searching_ = false;
};

// Lines; what ends them, "\n" or "\r\n", is no part of them. The last one needs no end.
class TextLines : public Framing {
 public:
  using Framing::Framing;

 protected:
  bool Cut(Window& window, Record* record) override {
    const uint8_t* begin = window.begin();
    const void* found = nullptr;
    if (window.size() > searched_) found = std::memchr(begin + searched_, '\n', window.size() - searched_);
    if (found == nullptr) {
      searched_ = window.size();
      if (!window.ended || searched_ == 0) return false;
    }
    size_t size = found ? static_cast<size_t>(static_cast<const uint8_t*>(found) - begin) : window.size();
    size_t kept = found && size > 0 && begin[size - 1] == '\r' ? size - 1 : size;
    *record = Record::Copy(begin, kept);
    window.Skip(found ? size + 1 : size);
    searched_ = 0;
    return true;
  }

 private:
  size_t searched_ = 0;
};

}  // namespace scriptmode
