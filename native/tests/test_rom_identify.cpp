// Digests against the test suite of RFC 1321, and the type of synthetic cartridges.
#include <cstring>
#include <vector>

#include "../core/rom_identify.h"
#include "check.h"

using namespace scanline;

namespace {

bool digest_is(const char* text, u64 high, u64 low) {
  const Md5Digest md5 = md5_of(reinterpret_cast<const u8*>(text), u32(std::strlen(text)));
  return md5.high == high && md5.low == low;
}

void test_md5() {
  CHECK(digest_is("", 0xd41d8cd98f00b204, 0xe9800998ecf8427e));
  CHECK(digest_is("abc", 0x900150983cd24fb0, 0xd6963f7d28e17f72));
  CHECK(digest_is("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                  0xd174ab98d277d9f5, 0xa5611c2c9f419d9f));
  CHECK(
      digest_is("1234567890123456789012345678901234567890123456789012345678901234567890123456789"
                "0",
                0x57edf4a22be3c955, 0xac49da2e2107b67a));
}

// Bytes without accidental patterns: a counter with a stride, offset per 4 KB.
std::vector<u8> image_of(u32 size) {
  std::vector<u8> image(size);
  for (u32 i = 0; i < size; ++i) image[i] = u8((i * 5 + i / 256 * 3 + i / 4096) | 1);
  return image;
}

CartridgeType type_of(const std::vector<u8>& image) {
  return identify_rom(image.data(), u32(image.size())).type;
}

CartridgeType type_with(u32 size, std::vector<u8> pattern, int times = 1) {
  std::vector<u8> image = image_of(size);
  for (int t = 0; t < times; ++t) {
    std::memcpy(&image[1000 + 100 * size_t(t)], pattern.data(), pattern.size());
  }
  return type_of(image);
}

void test_sizes() {
  CHECK(type_of(image_of(2048)) == CartridgeType::k2K);
  CHECK(type_of(image_of(4096)) == CartridgeType::k4K);
  CHECK(type_of(image_of(8192)) == CartridgeType::kF8);
  CHECK(type_of(image_of(10240)) == CartridgeType::kDPC);
  CHECK(type_of(image_of(16384)) == CartridgeType::kF6);
  CHECK(type_of(image_of(12288)) == CartridgeType::kFASC);
  CHECK(type_of(image_of(8448)) == CartridgeType::kAR);
  CHECK(type_of(image_of(5000)) == CartridgeType::kUnknown);
  CHECK(type_of({}) == CartridgeType::kUnknown);
}

void test_patterns() {
  CHECK(type_with(8192, {0x8D, 0xE0, 0x1F}) == CartridgeType::kE0);
  CHECK(type_with(8192, {0x20, 0x00, 0xD0, 0xC6, 0xC5}) == CartridgeType::kFE);
  CHECK(type_with(8192, {0x85, 0x3F}, 1) == CartridgeType::kF8);
  CHECK(type_with(8192, {0x85, 0x3F}, 2) == CartridgeType::k3F);
  CHECK(type_with(4096, {0x99, 0x00, 0xF4}) == CartridgeType::kCV);
  std::vector<u8> image = image_of(16384);
  for (u32 bank = 0; bank < 4; ++bank) std::memset(&image[bank * 0x1000], 0xFF, 256);
  CHECK(type_of(image) == CartridgeType::kF6SC);
  image.assign(8192, 0);
  const std::vector<u8> half = image_of(4096);
  std::memcpy(&image[0], half.data(), 4096), std::memcpy(&image[4096], half.data(), 4096);
  CHECK(type_of(image) == CartridgeType::k4K);
}

void test_names() {
  CHECK(std::strcmp(cartridge_type_name(CartridgeType::kF6SC), "F6SC") == 0);
  CHECK(std::strcmp(cartridge_type_name(CartridgeType::kUnknown), "Unknown") == 0);
  CHECK(is_supported(CartridgeType::kDPC) && !is_supported(CartridgeType::k3E));
}

}  // namespace

int main() {
  test_md5();
  test_sizes();
  test_patterns();
  test_names();
  return check::result("rom_identify");
}
