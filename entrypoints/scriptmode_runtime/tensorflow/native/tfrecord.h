// TFRecord: uint64 length, its checksum, the bytes, their checksum; all little-endian.
#pragma once

#include <string>

#include "crc32c.h"
#include "framing.h"

namespace scriptmode {

class TfRecords : public Framing {
 public:
  using Framing::Framing;

 protected:
  bool Cut(Window& window, Record* record) override {
    for (;;) {
      if (in_body_) {
        if (!Collect(window) && !window.ended) return false;
        Ending ending = EndBody(window, record);
        if (ending != kLost) return ending == kWhole;
        continue;
      }
      if (searching_ && !Search(window)) return false;
      if (window.size() < kHeader) return Remainder(window);
      if (!IsHeader(window.begin())) {
        Damage(window.position(), "has a wrong checksum of its length" + WhatElse(window));
        window.Skip(1);
        searching_ = true;
        continue;
      }
      uint64_t length = Load64(window.begin());
      if (length >> 48) throw Problem(kDataLoss, "a record says it has " + std::to_string(length) + " bytes");
      if (length <= Window::kAwaited || window.size() - kHeader >= length + kFooter) {
        Ending ending = Whole(window, static_cast<size_t>(length), record);
        if (ending != kLost) return ending == kWhole;
        continue;
      }
      began_ = window.position();
      window.Skip(kHeader);
      body_.Expect(static_cast<size_t>(length));
      in_body_ = true;
    }
  }

 private:
  static constexpr size_t kHeader = 12;
  static constexpr size_t kFooter = 4;
  enum Ending { kWhole, kMore, kLost };

  static bool IsHeader(const uint8_t* at) { return Crc32c::Masked(at, 8) == Load32(at + 8); }

  // Whether what follows `offset` bytes may be the next record: then only this one is damaged.
  static bool Follows(const Window& window, size_t offset) {
    return window.size() == offset || (window.size() >= offset + kHeader && IsHeader(window.begin() + offset));
  }

  // Passes over bytes up to a header; false if there is none yet.
  bool Search(Window& window) {
    while (window.size() >= kHeader) {
      if (IsHeader(window.begin())) {
        searching_ = false;
        return true;
      }
      window.Skip(1);
    }
    if (window.ended) window.Skip(window.size());
    return false;
  }

  // Fewer bytes than a header has: at the end, a record was cut.
  bool Remainder(Window& window) {
    if (!window.ended || window.size() == 0) return false;
    Damage(window.position(), "is cut: the stream ends within its length");
    window.Skip(window.size());
    return false;
  }

  // A record that is awaited in the window.
  Ending Whole(Window& window, size_t length, Record* record) {
    size_t total = kHeader + length + kFooter;
    if (window.size() < total) {
      if (!window.ended) return kMore;
      Damage(window.position(), "is cut: the stream ends after " + std::to_string(window.size() - kHeader) +
                                    " of its " + std::to_string(length) + " bytes and checksum");
      return Lost(window, 1);
    }
    const uint8_t* bytes = window.begin() + kHeader;
    if (Crc32c::Masked(bytes, length) == Load32(bytes + length)) {
      *record = Record::Copy(bytes, length);
      window.Skip(total);
      return kWhole;
    }
    if (window.size() < total + kHeader && !window.ended) return kMore;
    Damage(window.position(), "has a wrong checksum");
    if (!Follows(window, total)) return Lost(window, 1);
    window.Skip(total);
    return kLost;
  }

  Ending Lost(Window& window, size_t skipped) {
    window.Skip(skipped);
    searching_ = true;
    return kLost;
  }

  Ending EndBody(Window& window, Record* record) {
    bool is_cut = body_.missing() > 0 || window.size() < kFooter;
    if (is_cut && !window.ended) return kMore;
    if (!is_cut && Crc32c::Masked(body_.bytes(), body_.size()) == Load32(window.begin())) {
      window.Skip(kFooter);
      *record = body_.Take();
      in_body_ = false;
      return kWhole;
    }
    if (!is_cut && window.size() < kFooter + kHeader && !window.ended) return kMore;
    Damage(began_, is_cut ? "is cut: the stream ends after " + std::to_string(body_.size()) + " of its " +
                                std::to_string(body_.size() + body_.missing()) + " bytes and checksum"
                          : "has a wrong checksum");
    in_body_ = false;
    if (!is_cut && Follows(window, kFooter)) {
      window.Skip(kFooter);
    } else {
      // Its length may have taken the records after it in.
      window.Unread(body_.bytes(), body_.size());
      searching_ = true;
    }
    body_.Drop();
    return kLost;
  }

  static std::string WhatElse(const Window& window) {
    if (window.position() > 0) return "";
    if (Load32(window.begin()) == 0xced7230au) return ": the stream is RecordIO, and record_format has to say so";
    if (window.begin()[0] == 0x1f && window.begin()[1] == 0x8b)
      return ": the stream is gzip: give the channel compression='Gzip'";
    return ": is the stream TFRecord? record_format says what it is";
  }

  bool searching_ = false;
  bool in_body_ = false;
  uint64_t began_ = 0;
};

}  // namespace scriptmode
