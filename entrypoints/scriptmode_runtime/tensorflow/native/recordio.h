// RecordIO: uint32 magic, uint32 part << 29 | length, the bytes, zeros up to a multiple of 4; little-endian.
// A record with the magic at a multiple of 4 is split there, and the magic left out.
#pragma once

#include <string>

#include "framing.h"

namespace scriptmode {

class RecordIo : public Framing {
 protected:
  bool Cut(Window& window, Record* record) override {
    for (;;) {
      if (in_part_) {
        if (!Collect(window) && !window.ended) return false;
        if (window.size() < padding_ && !window.ended) return false;
        if (EndPart(window, record)) return true;
        continue;
      }
      if (window.size() < kHeader) return Remainder(window);
      if (Load<uint32_t>(window.begin()) != kRecordIo) {
        Damage(window.position(), "does not begin with RecordIO's magic number" + WhatElse(window, "RecordIO"));
      }
      uint32_t word = Load<uint32_t>(window.begin() + 4);
      size_t padded = (word + size_t{3}) & ~size_t{3};
      if (word >> 29 == kOnly && !is_open_ && window.size() - kHeader >= padded) {
        *record = Record::Copy(window.begin() + kHeader, word);
        window.Skip(kHeader + padded);
        return true;
      }
      Begin(window, word);
    }
  }

 private:
  static constexpr size_t kHeader = 8;
  enum Part { kOnly, kFirst, kMiddle, kLast };

  bool Remainder(const Window& window) const {
    if (!window.ended) return false;
    if (window.size() > 0) Damage(window.position(), "is cut: the stream ends within its header");
    if (is_open_) Damage(window.position(), "is cut: the stream ends between its parts");
    return false;
  }

  void Begin(Window& window, uint32_t word) {
    if (word >> 29 > kLast) {
      Damage(window.position(), "is no part that RecordIO knows: " + std::to_string(word >> 29));
    }
    Part part = static_cast<Part>(word >> 29);
    bool goes_on = part == kMiddle || part == kLast;
    if (goes_on != is_open_) {
      Damage(window.position(), goes_on ? "has no first part" : "follows one whose last part is missing");
    }
    began_ = window.position();
    window.Skip(kHeader);
    if (goes_on) {
      body_.Expect(sizeof(kRecordIo));
      body_.Append(&kRecordIo, sizeof(kRecordIo));
    }
    kept_ = body_.size();
    size_t length = word & ((1u << 29) - 1);
    body_.Expect(length);
    padding_ = (4 - length % 4) % 4;
    is_open_ = part == kFirst || part == kMiddle;
    in_part_ = true;
  }

  // The part, or what the stream has of it, was taken; true if a record is whole.
  bool EndPart(Window& window, Record* record) {
    in_part_ = false;
    if (body_.missing() > 0 || window.size() < padding_) {
      Damage(began_, "is cut: the stream ends after " + std::to_string(body_.size() - kept_) + " of the " +
                         std::to_string(body_.size() - kept_ + body_.missing()) + " bytes of a part and its padding");
    }
    window.Skip(padding_);
    if (is_open_) return false;
    *record = body_.Take();
    return true;
  }

  bool in_part_ = false;
  bool is_open_ = false;
  size_t padding_ = 0;
  size_t kept_ = 0;  // of the body, from earlier parts
  uint64_t began_ = 0;
};

}  // namespace scriptmode
