// RecordIO: uint32 magic, uint32 part << 29 | length, the bytes, zeros up to a multiple of 4; little-endian.
// A record with the magic at a multiple of 4 is split there, and the magic left out.
#pragma once

#include <string>

#include "crc32c.h"
#include "framing.h"

namespace scriptmode {

class RecordIo : public Framing {
 public:
  using Framing::Framing;

 protected:
  bool Cut(Window& window, Record* record) override {
    for (;;) {
      if (in_part_) {
        if (!Collect(window) && !window.ended) return false;
        if (window.size() < padding_ && !window.ended) return false;
        if (EndPart(window, record)) return true;
        continue;
      }
      if (searching_ && !Search(window)) return false;
      if (window.size() < kHeader) return Remainder(window);
      if (Load32(window.begin()) != kMagic) {
        Damage(window.position(), "does not begin with RecordIO's magic number" + WhatElse(window));
        Drop();
        window.Skip(1);
        searching_ = true;
        continue;
      }
      uint32_t word = Load32(window.begin() + 4);
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
  static constexpr uint32_t kMagic = 0xced7230au;
  static constexpr size_t kHeader = 8;
  enum Part { kOnly, kFirst, kMiddle, kLast, kSkipped };

  // Passes over bytes up to the magic; false if there is none yet.
  bool Search(Window& window) {
    for (; window.size() >= kHeader; window.Skip(1)) {
      if (Load32(window.begin()) == kMagic && Load32(window.begin() + 4) >> 29 <= kLast) {
        searching_ = false;
        return true;
      }
    }
    if (window.ended) window.Skip(window.size());
    return false;
  }

  bool Remainder(Window& window) {
    if (!window.ended) return false;
    if (window.size() > 0) {
      Damage(window.position(), "is cut: the stream ends within its header");
      window.Skip(window.size());
    } else if (is_open_) {
      Damage(window.position(), "is cut: the stream ends between its parts");
    }
    Drop();
    return false;
  }

  void Drop() {
    body_.Drop();
    is_open_ = false;
  }

  void Begin(Window& window, uint32_t word) {
    part_ = word >> 29 <= kLast ? static_cast<Part>(word >> 29) : kSkipped;
    size_t length = word & ((1u << 29) - 1);
    if (part_ == kSkipped) {
      Damage(window.position(), "is no part that RecordIO knows: " + std::to_string(word >> 29));
      Drop();
      window.Skip(1);
      searching_ = true;
      return;
    }
    bool goes_on = part_ == kMiddle || part_ == kLast;
    if (goes_on != is_open_ && !(goes_on && is_lost_)) {
      Damage(window.position(), goes_on ? "has no first part" : "follows one whose last part is missing");
      Drop();
    }
    is_lost_ = goes_on && !is_open_;
    if (is_lost_) part_ = kSkipped;
    began_ = window.position();
    window.Skip(kHeader);
    if (goes_on && is_open_) {
      body_.Expect(sizeof(kMagic));
      body_.Append(&kMagic, sizeof(kMagic));
    }
    kept_ = body_.size();
    body_.Expect(length);
    padding_ = (4 - length % 4) % 4;
    is_open_ = part_ == kFirst || part_ == kMiddle;
    in_part_ = true;
  }

  // The part, or what the stream has of it, was taken; true if a record is whole.
  bool EndPart(Window& window, Record* record) {
    in_part_ = false;
    if (body_.missing() > 0 || window.size() < padding_) {
      Damage(began_, "is cut: the stream ends after " + std::to_string(body_.size() - kept_) + " of the " +
                         std::to_string(body_.size() - kept_ + body_.missing()) + " bytes of a part and its padding");
      // Its length may have taken the records after it in.
      window.Unread(body_.bytes() + kept_, body_.size() - kept_);
      searching_ = true;
      Drop();
      return false;
    }
    window.Skip(padding_);
    if (part_ == kSkipped) body_.Drop();
    if (part_ != kOnly && part_ != kLast) return false;
    *record = body_.Take();
    return true;
  }

  static std::string WhatElse(const Window& window) {
    if (window.position() > 0) return "";
    if (window.begin()[0] == 0x1f && window.begin()[1] == 0x8b)
      return ": the stream is gzip: give the channel compression='Gzip'";
    if (window.size() >= 12 && Crc32c::Masked(window.begin(), 8) == Load32(window.begin() + 8))
      return ": the stream is TFRecord, and record_format has to say so";
    return ": is the stream RecordIO? record_format says what it is";
  }

  Part part_ = kOnly;
  bool in_part_ = false;
  bool is_open_ = false;
  bool is_lost_ = false;
  bool searching_ = false;
  size_t padding_ = 0;
  size_t kept_ = 0;  // of the body, from earlier parts
  uint64_t began_ = 0;
};

}  // namespace scriptmode
