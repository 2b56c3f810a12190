// CRC-32C (Castagnoli), the checksum of TFRecord: by the CPU's instruction where it has one, else by a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(SCRIPTMODE_CRC_BY_TABLE)
// For tests, on a CPU that has the instruction.
#elif defined(__x86_64__)
#include <nmmintrin.h>
#define SCRIPTMODE_CRC_IS_THERE __builtin_cpu_supports("sse4.2")
#define SCRIPTMODE_CRC_OF_8_BYTES _mm_crc32_u64
#define SCRIPTMODE_CRC_OF_BYTE _mm_crc32_u8
#if defined(__clang__)  // GCC before 11 does not know crc32 as a target.
#define SCRIPTMODE_CRC_TARGET __attribute__((target("sse4.2,crc32")))
#else
#define SCRIPTMODE_CRC_TARGET __attribute__((target("sse4.2")))
#endif
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define SCRIPTMODE_CRC_IS_THERE (getauxval(AT_HWCAP) & (1 << 7))  // HWCAP_CRC32
#if defined(__clang__)
#define SCRIPTMODE_CRC_TARGET __attribute__((target("crc")))
#define SCRIPTMODE_CRC_OF_8_BYTES __builtin_arm_crc32cd
#define SCRIPTMODE_CRC_OF_BYTE __builtin_arm_crc32cb
#else
#define SCRIPTMODE_CRC_TARGET __attribute__((target("+crc")))
#define SCRIPTMODE_CRC_OF_8_BYTES __builtin_aarch64_crc32cx
#define SCRIPTMODE_CRC_OF_BYTE __builtin_aarch64_crc32cb
#endif
#endif

namespace scriptmode {

template <typename Number>
Number Load(const void* from) {
  Number value;
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
#if defined(SCRIPTMODE_CRC_TARGET)
    in_hardware_ = SCRIPTMODE_CRC_IS_THERE;
#endif
  }

  uint32_t ByTable(uint32_t crc, const uint8_t* from, size_t size) const {
    for (; size > 0; ++from, --size) crc = crc >> 8 ^ table_[(crc ^ *from) & 255];
    return crc;
  }

#if defined(SCRIPTMODE_CRC_TARGET)
  SCRIPTMODE_CRC_TARGET static uint32_t ByHardware(uint32_t crc, const uint8_t* from, size_t size) {
    for (; size >= 8; from += 8, size -= 8) {
      crc = static_cast<uint32_t>(SCRIPTMODE_CRC_OF_8_BYTES(crc, Load<uint64_t>(from)));
    }
    for (; size > 0; ++from, --size) crc = SCRIPTMODE_CRC_OF_BYTE(crc, *from);
    return crc;
  }
#endif

  uint32_t table_[256];
  bool in_hardware_ = false;
};

}  // namespace scriptmode
