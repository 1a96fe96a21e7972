// Operations against slow versions written from their definitions, over all operands.
#include "../core/cpu6507.h"
#include "check.h"

using namespace scanline;

namespace {

// ALE's two conversion tables stand one behind the other in memory, and an index into the second
// may be negative.
struct DecimalTables {
  u8 bytes[512];
  DecimalTables() {
    for (int t = 0; t < 256; ++t) {
      bytes[t] = u8((t >> 4) * 10 + (t & 15));
      bytes[256 + t] = u8((((t % 100) / 10) << 4) | (t % 10));
    }
  }
  int value(int byte) const { return bytes[byte]; }
  u8 digits(int number) const { return bytes[256 + number]; }
};

Registers with(u8 a, u8 carry, u8 decimal) {
  Registers r{};
  r.a = a;
  r.carry = carry;
  r.decimal = decimal;
  return r;
}

bool has(const Registers& r, u8 a, bool carry, bool overflow) {
  return r.a == a && r.carry == carry && r.overflow == overflow && is_zero(r) == (a == 0) &&
         is_negative(r) == (a >= 128);
}

bool signed_overflow(int sum) { return sum > 127 || sum < -128; }

void test_binary(int a, int m, int carry) {
  Registers r = with(u8(a), u8(carry), 0);
  adc(r, u8(m));
  CHECK(has(r, u8(a + m + carry), a + m + carry > 255, signed_overflow(i8(a) + i8(m) + carry)));
  r = with(u8(a), u8(carry), 0);
  sbc(r, u8(m));
  const int borrow = 1 - carry;
  CHECK(has(r, u8(a - m - borrow), a - m - borrow >= 0, signed_overflow(i8(a) - i8(m) - borrow)));
}

void test_decimal(const DecimalTables& tables, int a, int m, int carry) {
  Registers r = with(u8(a), u8(carry), 1);
  adc(r, u8(m));
  const int sum = tables.value(a) + tables.value(m) + carry;
  u8 result = tables.digits(sum & 255);
  CHECK(has(r, result, sum > 99, ((a ^ result) & 0x80) && ((result ^ m) & 0x80)));

  r = with(u8(a), u8(carry), 1);
  sbc(r, u8(m));
  int difference = tables.value(a) - tables.value(m) - (1 - carry);
  if (difference < 0) difference += 100;
  result = tables.digits(difference);
  CHECK(has(r, result, a >= m + (1 - carry), ((a ^ result) & 0x80) && ((result ^ m) & 0x80)));
}

void test_compare_and_bit(int a, int m) {
  Registers r = with(u8(a), 0, 0);
  cmp(r, u8(m));
  CHECK(r.carry == (a >= m) && is_zero(r) == (a == m) && is_negative(r) == (((a - m) & 0x80) != 0));
  bit(r, u8(m));
  CHECK(is_zero(r) == ((a & m) == 0) && is_negative(r) == (m >= 128) &&
        r.overflow == ((m >> 6) & 1));
}

void test_shifts(int m, int carry) {
  Registers r = with(0, u8(carry), 0);
  CHECK(asl(r, u8(m)) == u8(m * 2) && r.carry == m / 128);
  r.carry = u8(carry);
  CHECK(lsr(r, u8(m)) == m / 2 && r.carry == m % 2);
  r.carry = u8(carry);
  CHECK(rol(r, u8(m)) == u8(m * 2 + carry) && r.carry == m / 128);
  r.carry = u8(carry);
  CHECK(ror(r, u8(m)) == m / 2 + 128 * carry && r.carry == m % 2);
}

void test_undocumented(int a, int m) {
  Registers r = with(u8(a), 0, 0);
  r.x = 0x5A;
  CHECK(dcp(r, u8(m)) == u8(m - 1) && r.carry == (a >= u8(m - 1)) && r.a == a);
  r = with(u8(a), 1, 0);
  CHECK(isb(r, u8(m)) == u8(m + 1) && r.a == u8(a - u8(m + 1)));
  r = with(u8(a), 0, 0);
  r.x = 0x5A;
  sbx(r, u8(m));
  CHECK(r.x == u8((a & 0x5A) - m) && r.carry == ((a & 0x5A) >= m));
  r = with(u8(a), 0, 0);
  lxa(r, u8(m));
  CHECK(r.a == ((a | 0xEE) & m) && r.x == r.a);
}

void test_status() {
  for (int p = 0; p < 256; ++p) {
    Registers r{};
    unpack_status(r, u8(p));
    CHECK(pack_status(r) == (p | 0x30));
    CHECK(is_zero(r) == ((p & 2) != 0) && is_negative(r) == ((p & 0x80) != 0));
  }
}

}  // namespace

int main() {
  const DecimalTables tables;
  test_status();
  for (int a = 0; a < 256; ++a) {
    for (int m = 0; m < 256; ++m) {
      for (int carry = 0; carry < 2; ++carry) {
        test_binary(a, m, carry);
        test_decimal(tables, a, m, carry);
      }
      test_compare_and_bit(a, m);
      test_undocumented(a, m);
    }
    test_shifts(a, 0);
    test_shifts(a, 1);
  }
  return check::result("cpu6507");
}
