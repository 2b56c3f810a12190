// How a stream is cut into records.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

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

  // Takes what is there of a body; true once it is whole.
  bool Collect(Window& window) {
    size_t part = body_.missing() < window.size() ? body_.missing() : window.size();
    body_.Append(window.begin(), part);
    window.Skip(part);
    return body_.missing() == 0;
  }

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
