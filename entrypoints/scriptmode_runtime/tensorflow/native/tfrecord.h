// TFRecord: uint64 length, its checksum, the bytes, their checksum; all little-endian.
#pragma once

#include <string>

#include "crc32c.h"
#include "framing.h"

namespace scriptmode {

class TfRecords : public HeadedRecords<12> {
 public:
  using HeadedRecords::HeadedRecords;

 protected:
  bool Cut(Window& window, Record* record) override {
    while (Find(window)) {
      if (window.size() < kHeader) {
        if (!window.ended || window.size() == 0) return false;
        Damage(window.position(), "is cut: the stream ends within its length");
        window.Skip(window.size());
        return false;
      }
      if (!IsHeader(window.begin())) {
        bool is_recordio = Load32(window.begin()) == 0xced7230au;
        Damage(window.position(),
               "has a wrong checksum of its length" + WhatElse(window, "TFRecord", is_recordio ? "RecordIO" : ""));
        Lose(window, 1);
        continue;
      }
      uint64_t length = Load64(window.begin());
      if (length >> 48) throw Problem(kDataLoss, "a record says it has " + std::to_string(length) + " bytes");
      size_t total = kHeader + length + kFooter;
      if (window.size() < total) {
        if (!window.ended) return false;
        Damage(window.position(), "is cut: the stream ends after " + std::to_string(window.size() - kHeader) +
                                      " of its " + std::to_string(length) + " bytes and checksum");
        Lose(window, 1);
        continue;
      }
      const uint8_t* bytes = window.begin() + kHeader;
      if (Crc32c::Masked(bytes, length) == Load32(bytes + length)) {
        *record = Record::Copy(bytes, length);
        window.Skip(total);
        return true;
      }
      if (window.size() < total + kHeader && !window.ended) return false;
      Damage(window.position(), "has a wrong checksum");
      // If the next record may follow, only this one is damaged.
      if (window.size() == total || (window.size() >= total + kHeader && IsHeader(window.begin() + total))) {
        window.Skip(total);
      } else {
        Lose(window, 1);
      }
    }
    return false;
  }

  bool IsHeader(const uint8_t* at) const override { return Crc32c::Masked(at, 8) == Load32(at + 8); }

 private:
  static constexpr size_t kFooter = 4;
};

}  // namespace scriptmode
