// CRC-32C (Castagnoli), the checksum of TFRecord: by the CPU's instruction where it has one, else by tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(SCRIPTMODE_CRC_BY_TABLES)
// For tests, on a CPU that has the instruction.
#elif defined(__x86_64__)
#include <nmmintrin.h>
#if defined(__clang__)  // GCC before 11 does not know crc32 as a target.
#define SCRIPTMODE_CRC_TARGET __attribute__((target("sse4.2,crc32")))
#else
#define SCRIPTMODE_CRC_TARGET __attribute__((target("sse4.2")))
#endif
#elif defined(__aarch64__)
#include <sys/auxv.h>
#if defined(__clang__)
#define SCRIPTMODE_CRC_TARGET __attribute__((target("crc")))
#define __builtin_aarch64_crc32cx __builtin_arm_crc32cd
#define __builtin_aarch64_crc32cb __builtin_arm_crc32cb
#else
#define SCRIPTMODE_CRC_TARGET __attribute__((target("+crc")))
#endif
#endif

namespace scriptmode {

inline uint32_t Load32(const void* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline uint64_t Load64(const void* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

class Crc32c {
 public:
  static uint32_t Of(const void* bytes, size_t size) {
    static const Crc32c instance;
    const uint8_t* from = static_cast<const uint8_t*>(bytes);
#if defined(SCRIPTMODE_CRC_TARGET)
    if (instance.in_hardware_) return ~instance.ByHardware(~0u, from, size);
#endif
    return ~instance.ByTables(~0u, from, size);
  }

  // As TFRecord writes it: a checksum of bytes that hold checksums would be weak.
  static uint32_t Masked(const void* bytes, size_t size) {
    uint32_t crc = Of(bytes, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  }

 private:
  static constexpr uint32_t kPolynomial = 0x82f63b78u;
  // Three streams of so many bytes each: the instruction takes three cycles, and one can start in each.
  static constexpr size_t kLong = 1024;
  static constexpr size_t kShort = 128;

  using Table = uint32_t[256];
  // What a register becomes when so many zero bytes follow, one table for each of its bytes.
  struct Shift {
    Table of[4];
    uint32_t operator()(uint32_t crc) const {
      return of[0][crc & 255] ^ of[1][crc >> 8 & 255] ^ of[2][crc >> 16 & 255] ^ of[3][crc >> 24];
    }
  };

  Crc32c() {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t crc = value;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
      slices_[0][value] = crc;
    }
    for (int slice = 1; slice < 8; ++slice) {
      for (uint32_t value = 0; value < 256; ++value) {
        uint32_t before = slices_[slice - 1][value];
        slices_[slice][value] = before >> 8 ^ slices_[0][before & 255];
      }
    }
    MakeShift(kLong, &long_);
    MakeShift(kShort, &short_);
#if !defined(SCRIPTMODE_CRC_TARGET)
    in_hardware_ = false;
#elif defined(__x86_64__)
    in_hardware_ = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    in_hardware_ = getauxval(AT_HWCAP) & (1 << 7);  // HWCAP_CRC32
#endif
  }

  void MakeShift(size_t zeros, Shift* shift) const {
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; ++bit) {
      uint32_t crc = 1u << bit;
      for (size_t n = 0; n < zeros; ++n) crc = crc >> 8 ^ slices_[0][crc & 255];
      of_bit[bit] = crc;
    }
    for (uint32_t index = 0; index < 4 * 256; ++index) {
      uint32_t crc = 0;
      for (int bit = 0; bit < 8; ++bit) {
        if (index >> bit & 1) crc ^= of_bit[index / 256 * 8 + static_cast<uint32_t>(bit)];
      }
      shift->of[index / 256][index % 256] = crc;
    }
  }

  uint32_t ByTables(uint32_t crc, const uint8_t* from, size_t size) const {
    for (; size >= 8; from += 8, size -= 8) {
      uint32_t low = Load32(from) ^ crc, high = Load32(from + 4);
      crc = slices_[7][low & 255] ^ slices_[6][low >> 8 & 255] ^ slices_[5][low >> 16 & 255] ^
            slices_[4][low >> 24] ^ slices_[3][high & 255] ^ slices_[2][high >> 8 & 255] ^
            slices_[1][high >> 16 & 255] ^ slices_[0][high >> 24];
    }
    for (; size > 0; ++from, --size) crc = crc >> 8 ^ slices_[0][(crc ^ *from) & 255];
    return crc;
  }

#if defined(SCRIPTMODE_CRC_TARGET)
#if defined(__x86_64__)
  SCRIPTMODE_CRC_TARGET static uint32_t Step(uint32_t crc, uint64_t word) {
    return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
  }
  SCRIPTMODE_CRC_TARGET static uint32_t Step(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
#else
  SCRIPTMODE_CRC_TARGET static uint32_t Step(uint32_t crc, uint64_t word) {
    return __builtin_aarch64_crc32cx(crc, word);
  }
  SCRIPTMODE_CRC_TARGET static uint32_t Step(uint32_t crc, uint8_t byte) {
    return __builtin_aarch64_crc32cb(crc, byte);
  }
#endif

  template <size_t kBlock>
  SCRIPTMODE_CRC_TARGET static uint32_t Interleaved(const Shift& shift, uint32_t crc, const uint8_t** from,
                                                    size_t* size) {
    for (; *size >= 3 * kBlock; *from += 3 * kBlock, *size -= 3 * kBlock) {
      uint32_t second = 0, third = 0;
      for (const uint8_t *at = *from, *end = at + kBlock; at < end; at += 8) {
        crc = Step(crc, Load64(at));
        second = Step(second, Load64(at + kBlock));
        third = Step(third, Load64(at + 2 * kBlock));
      }
      crc = shift(shift(crc) ^ second) ^ third;
    }
    return crc;
  }

  SCRIPTMODE_CRC_TARGET uint32_t ByHardware(uint32_t crc, const uint8_t* from, size_t size) const {
    crc = Interleaved<kLong>(long_, crc, &from, &size);
    crc = Interleaved<kShort>(short_, crc, &from, &size);
    for (; size >= 8; from += 8, size -= 8) crc = Step(crc, Load64(from));
    for (; size > 0; ++from, --size) crc = Step(crc, *from);
    return crc;
  }
#endif

  Table slices_[8];
  Shift long_;
  Shift short_;
  bool in_hardware_ = false;
};

}  // namespace scriptmode
