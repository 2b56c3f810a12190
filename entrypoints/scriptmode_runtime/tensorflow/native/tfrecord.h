// TFRecord: uint64 length, its checksum, the bytes, their checksum; all little-endian.
#pragma once

#include <string>

#include "crc32c.h"
#include "framing.h"

namespace scriptmode {

class TfRecords : public Framing {
 protected:
  bool Cut(Window& window, Record* record) override {
    if (!in_body_) {
      if (window.size() < kHeader) return Remainder(window);
      if (Crc32c::Masked(window.begin(), 8) != Load32(window.begin() + 8)) {
        Damage(window.position(), "has a wrong checksum of its length" + WhatElse(window));
      }
      uint64_t length = Load64(window.begin());
      if (length >> 48) throw Problem(kDataLoss, "a record says it has " + std::to_string(length) + " bytes");
      if (length <= Window::kAwaited || window.size() - kHeader >= length + kFooter) {
        return Whole(window, static_cast<size_t>(length), record);
      }
      began_ = window.position();
      window.Skip(kHeader);
      body_.Expect(static_cast<size_t>(length));
      in_body_ = true;
    }
    if (!Collect(window) && !window.ended) return false;
    return EndBody(window, record);
  }

 private:
  static constexpr size_t kHeader = 12;
  static constexpr size_t kFooter = 4;

  // Fewer bytes than a header has: at the end, a record was cut.
  bool Remainder(const Window& window) const {
    if (window.ended && window.size() > 0) Damage(window.position(), "is cut: the stream ends within its length");
    return false;
  }

  // A record that is awaited in the window.
  bool Whole(Window& window, size_t length, Record* record) {
    size_t total = kHeader + length + kFooter;
    if (window.size() < total) {
      if (window.ended) DamageOfEnd(window.position(), window.size() - kHeader, length);
      return false;
    }
    const uint8_t* bytes = window.begin() + kHeader;
    if (Crc32c::Masked(bytes, length) != Load32(bytes + length)) Damage(window.position(), "has a wrong checksum");
    *record = Record::Copy(bytes, length);
    window.Skip(total);
    return true;
  }

  bool EndBody(Window& window, Record* record) {
    if (body_.missing() > 0 || window.size() < kFooter) {
      if (window.ended) DamageOfEnd(began_, body_.size(), body_.size() + body_.missing());
      return false;
    }
    if (Crc32c::Masked(body_.bytes(), body_.size()) != Load32(window.begin())) Damage(began_, "has a wrong checksum");
    window.Skip(kFooter);
    *record = body_.Take();
    in_body_ = false;
    return true;
  }

  [[noreturn]] void DamageOfEnd(uint64_t position, size_t size, size_t length) const {
    Damage(position, "is cut: the stream ends after " + std::to_string(size) + " of its " + std::to_string(length) +
                         " bytes and checksum");
  }

  static std::string WhatElse(const Window& window) {
    if (window.position() > 0) return "";
    if (Load32(window.begin()) == 0xced7230au) return ": the stream is RecordIO, and record_format has to say so";
    if (window.begin()[0] == 0x1f && window.begin()[1] == 0x8b)
      return ": the stream is gzip: give the channel compression='Gzip'";
    return ": is the stream TFRecord? record_format says what it is";
  }

  bool in_body_ = false;
  uint64_t began_ = 0;
};

}  // namespace scriptmode
