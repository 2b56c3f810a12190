// CRC-32C (Castagnoli), the checksum of TFRecord: by the CPU's instruction where it has one, else by a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(SCRIPTMODE_CRC_BY_TABLE)
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
    if (instance.in_hardware_) return ~ByHardware(~0u, from, size);
#endif
    return ~instance.ByTable(~0u, from, size);
  }

  // As TFRecord writes it: a checksum of bytes that hold checksums would be weak.
  static uint32_t Masked(const void* bytes, size_t size) {
    uint32_t crc = Of(bytes, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  }

 private:
  static constexpr uint32_t kPolynomial = 0x82f63b78u;

  Crc32c() {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t crc = value;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
      table_[value] = crc;
    }
#if !defined(SCRIPTMODE_CRC_TARGET)
    in_hardware_ = false;
#elif defined(__x86_64__)
    in_hardware_ = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    in_hardware_ = getauxval(AT_HWCAP) & (1 << 7);  // HWCAP_CRC32
#endif
  }

  uint32_t ByTable(uint32_t crc, const uint8_t* from, size_t size) const {
    for (; size > 0; ++from, --size) crc = crc >> 8 ^ table_[(crc ^ *from) & 255];
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

  SCRIPTMODE_CRC_TARGET static uint32_t ByHardware(uint32_t crc, const uint8_t* from, size_t size) {
    for (; size >= 8; from += 8, size -= 8) crc = Step(crc, Load64(from));
    for (; size > 0; ++from, --size) crc = Step(crc, *from);
    return crc;
  }
#endif

  uint32_t table_[256];
  bool in_hardware_ = false;
};

}  // namespace scriptmode
