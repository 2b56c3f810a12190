// TFRecord: uint64 length, its checksum, the bytes, their checksum; all little-endian.
#pragma once

#include <string>

#include "framing.h"

namespace scriptmode {

class TfRecords : public Framing {
 protected:
  bool Cut(Window& window, Record* record) override {
    if (!in_body_) {
      if (window.size() < kHeader) return Remainder(window);
      if (Crc32c::Masked(window.begin(), 8) != Load<uint32_t>(window.begin() + 8)) {
        Damage(window.position(), "has a wrong checksum of its length" + WhatElse(window, "TFRecord"));
      }
      uint64_t length = Load<uint64_t>(window.begin());
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
    CheckSum(bytes, length, bytes + length, window.position());
    *record = Record::Copy(bytes, length);
    window.Skip(total);
    return true;
  }

  bool EndBody(Window& window, Record* record) {
    if (body_.missing() > 0 || window.size() < kFooter) {
      if (window.ended) DamageOfEnd(began_, body_.size(), body_.size() + body_.missing());
      return false;
    }
    CheckSum(body_.bytes(), body_.size(), window.begin(), began_);
    window.Skip(kFooter);
    *record = body_.Take();
    in_body_ = false;
    return true;
  }

  void CheckSum(const void* bytes, size_t size, const void* sum, uint64_t position) const {
    if (Crc32c::Masked(bytes, size) != Load<uint32_t>(sum)) Damage(position, "has a wrong checksum");
  }

  [[noreturn]] void DamageOfEnd(uint64_t position, size_t size, size_t length) const {
    Damage(position, "is cut: the stream ends after " + std::to_string(size) + " of its " + std::to_string(length) +
                         " bytes and checksum");
  }

  bool in_body_ = false;
  uint64_t began_ = 0;
};

}  // namespace scriptmode
