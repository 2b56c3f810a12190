// How a stream is cut into records.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "crc32c.h"
#include "problem.h"
#include "record.h"
#include "window.h"

namespace scriptmode {

class Framing {
 public:
  virtual ~Framing() = default;

  // Takes the next record out of the window. False: it needs more bytes, or there is none where the window ended.
  bool Next(Window& window, Record* record) {
    if (!Cut(window, record)) return false;
    ++count_;
    return true;
  }

  // Where a read may put what comes next without a copy; its room is 0 for nowhere.
  Body& body() { return body_; }

 protected:
  virtual bool Cut(Window& window, Record* record) = 0;

  [[noreturn]] void Damage(uint64_t position, const std::string& what) const {
    throw Problem(kDataLoss, "record " + std::to_string(count_) + ", at byte " + std::to_string(position) +
                                 " of the stream, " + what);
  }

  // What a stream that does not begin as the `given` record_format is, as far as its beginning tells.
  static std::string WhatElse(const Window& window, const std::string& given) {
    const uint8_t* begin = window.begin();
    if (window.position() > 0) return "";
    if (begin[0] == 0x1f && begin[1] == 0x8b) return ": the stream is gzip: give the channel compression='Gzip'";
    std::string found;
    if (Load<uint32_t>(begin) == kRecordIo) found = "RecordIO";
    if (window.size() >= 12 && Crc32c::Masked(begin, 8) == Load<uint32_t>(begin + 8)) found = "TFRecord";
    if (!found.empty()) return ": the stream is " + found + ", and record_format has to say so";
    return ": is the stream " + given + "? record_format says what it is";
  }

  // Takes what is there of a body; true once it is whole.
  bool Collect(Window& window) {
    size_t part = body_.missing() < window.size() ? body_.missing() : window.size();
    body_.Append(window.begin(), part);
    window.Skip(part);
    return body_.missing() == 0;
  }

  // What each part of a RecordIO stream begins with.
  static constexpr uint32_t kRecordIo = 0xced7230au;

  Body body_;

 private:
  int64_t count_ = 0;
};

// Lines; what ends them, "\n" or "\r\n", is no part of them. The last one needs no end.
class TextLines : public Framing {
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
