// RecordIO: uint32 magic, uint32 part << 29 | length, the bytes, zeros up to a multiple of 4; little-endian.
// A record with the magic at a multiple of 4 is split there, and the magic left out.
#pragma once

#include <string>

#include "crc32c.h"
#include "framing.h"

namespace scriptmode {

class RecordIo : public HeadedRecords<8> {
 public:
  using HeadedRecords::HeadedRecords;

 protected:
  bool Cut(Window& window, Record* record) override {
    while (Find(window)) {
      const uint8_t* at = window.begin() + parts_;
      size_t present = window.size() - parts_;
      if (present < kHeader) return End(window, present);
      uint32_t part = Load32(at + 4) >> 29;
      if (Load32(at) != kMagic || part > kLast) {
        bool is_tfrecord = present >= 12 && Crc32c::Masked(at, 8) == Load32(at + 8);
        Damage(window.position() + parts_,
               Load32(at) == kMagic ? "is no part that RecordIO knows: " + std::to_string(part)
                                    : "does not begin with RecordIO's magic number" +
                                          WhatElse(window, "RecordIO", is_tfrecord ? "TFRecord" : ""));
        Lose(window, parts_ + 1);
        parts_ = 0;
        continue;
      }
      if (present < Padded(at) && !window.ended) return false;
      bool goes_on = part == kMiddle || part == kLast;
      if (goes_on != (parts_ > 0) && !(goes_on && is_lost_)) {
        Damage(window.position() + parts_,
               goes_on ? "has no first part" : "follows one whose last part is missing");
        Drop(window);
      }
      is_lost_ = goes_on && parts_ == 0;
      if (present < Padded(at)) {
        size_t length = Length(at), came = present - kHeader;
        Damage(window.position() + parts_, "is cut: the stream ends after " +
                                               std::to_string(came < length ? came : length) + " of the " +
                                               std::to_string(length) + " bytes of a part and its padding");
        Lose(window, parts_ + kHeader);
        parts_ = 0;
        continue;
      }
      parts_ += Padded(at);
      if (is_lost_) {
        Drop(window);
      } else if (part == kOnly || part == kLast) {
        *record = Joined(window.begin());
        Drop(window);
        return true;
      }
    }
    return false;
  }

  bool IsHeader(const uint8_t* at) const override { return Load32(at) == kMagic && Load32(at + 4) >> 29 <= kLast; }

 private:
  static constexpr uint32_t kMagic = 0xced7230au;
  enum Part { kOnly, kFirst, kMiddle, kLast };

  static size_t Length(const uint8_t* part) { return Load32(part + 4) & ((1u << 29) - 1); }
  // With the header, and the zeros after the bytes.
  static size_t Padded(const uint8_t* part) { return kHeader + ((Length(part) + 3) & ~size_t{3}); }

  // Fewer bytes than a header has: at the end, a record was cut.
  bool End(Window& window, size_t present) {
    if (!window.ended) return false;
    if (present > 0 || parts_ > 0) {
      Damage(window.position() + parts_,
             present > 0 ? "is cut: the stream ends within its header" : "is cut: the stream ends between its parts");
    }
    window.Skip(window.size());
    parts_ = 0;
    return false;
  }

  void Drop(Window& window) {
    window.Skip(parts_);
    parts_ = 0;
  }

  // The record of the parts from `begin` on, with the magic between them.
  Record Joined(const uint8_t* begin) const {
    size_t size = 0;
    for (const uint8_t* part = begin; part < begin + parts_; part += Padded(part)) {
      size += Length(part) + (part > begin ? sizeof(kMagic) : 0);
    }
    Record record = Record::OfSize(size);
    char* to = record.bytes();
    for (const uint8_t* part = begin; part < begin + parts_; part += Padded(part)) {
      if (part > begin) {
        std::memcpy(to, &kMagic, sizeof(kMagic));
        to += sizeof(kMagic);
      }
      std::memcpy(to, part + kHeader, Length(part));
      to += Length(part);
    }
    return record;
  }

  size_t parts_ = 0;  // the bytes of the record's parts that are in the window as a whole, with their headers
  bool is_lost_ = false;
};

}  // namespace scriptmode
