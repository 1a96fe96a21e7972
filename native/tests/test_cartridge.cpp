// Bank switching, SuperChip RAM and the DPC's fetchers, access by access.
#include <vector>

#include "../core/cartridge_dpc.h"
#include "check.h"

using namespace scanline;

namespace {

// Every byte tells its bank of 1 KB; bytes 0xFE0 and up of the image stay distinct enough.
std::vector<u8> numbered_image(u32 size) {
  std::vector<u8> image(size);
  for (u32 i = 0; i < size; ++i) image[i] = u8(i / 0x400);
  return image;
}

template <class Cartridge>
struct Slot {
  std::vector<u8> image;
  MachineState machine{};
  CartridgeState own{};
  u32 cycles = 0;

  explicit Slot(u32 size) : image(numbered_image(size)) { Cartridge::reset(machine, own); }
  u8 read(u16 address) {
    return Cartridge::read({image.data(), machine, own, cycles, {}}, address);
  }
  void write(u16 address, u8 value) {
    Cartridge::write({image.data(), machine, own, cycles, {}}, address, value);
  }
};

void test_f8() {
  Slot<CartridgeF8> slot(8192);
  CHECK(slot.read(0xF000) == 4);  // powers up in bank 1
  CHECK(slot.read(0xFFF8) == 3);  // the access itself already sees the new bank
  CHECK(slot.read(0x1000) == 0);
  slot.write(0x1FF9, 0);
  CHECK(slot.read(0xF400) == 5);
  slot.read(0xFFFA);
  CHECK(slot.read(0xF000) == 4);
}

void test_f6() {
  Slot<CartridgeF6> slot(16384);
  CHECK(slot.read(0xF000) == 0);
  for (u16 bank = 0; bank < 4; ++bank) {
    slot.read(u16(0xFFF6 + bank));
    CHECK(slot.read(0xF000) == bank * 4);
  }
  slot.read(0xFFF5);
  CHECK(slot.read(0xF000) == 12);
}

void test_super_chip() {
  Slot<CartridgeF8SC> slot(8192);
  for (u32 i = 0; i < 128; ++i) slot.write(u16(0xF000 + i), u8(200 - i));
  for (u32 i = 0; i < 128; ++i) CHECK(slot.read(u16(0xF080 + i)) == u8(200 - i));
  slot.write(0xF085, 1);  // the read port is no RAM to write
  CHECK(slot.read(0xF085) == 195);
  CHECK(slot.read(0xF005) == 4 && slot.own.ram[5] == 195);  // the write port shows ROM
}

void test_e0() {
  Slot<CartridgeE0> slot(8192);
  for (u16 i = 0; i < 4; ++i) CHECK(slot.read(u16(0xF000 + 0x400 * i)) == 4 + i);
  slot.read(0xFFE2), slot.write(0xFFEB, 0), slot.read(0xFFF1);
  CHECK(slot.read(0xF000) == 2 && slot.read(0xF400) == 3 && slot.read(0xF800) == 1);
  CHECK(slot.read(0xFC00) == 7);
  slot.read(0xFFF8);
  CHECK(slot.read(0xFC00) == 7);
}

void test_fe() {
  Slot<CartridgeFE> slot(8192);
  CHECK(slot.read(0xF000) == 0 && slot.read(0xD000) == 4);
}

void test_small() {
  Slot<Cartridge2K> slot(2048);
  CHECK(slot.read(0xF400) == 1 && slot.read(0xFC00) == 1);
}

// The shift register as a row of bits, shifted in by the inverted parity of taps 7, 5, 4, 3.
u8 next_random(u8 r) {
  const int ones = (r >> 7 & 1) + (r >> 5 & 1) + (r >> 4 & 1) + (r >> 3 & 1);
  return u8(r << 1 | (ones % 2 == 0));
}

void test_dpc() {
  Slot<CartridgeDPC> slot(10240);
  for (u32 i = 0; i < 2048; ++i) slot.image[8192 + i] = u8(i * 7);
  slot.own.shift_register = 1;
  u8 expected = 1;
  for (int i = 0; i < 300; ++i) {
    expected = next_random(expected);
    CHECK(slot.read(0xF000) == expected);
  }
  slot.read(0xF100);
  CHECK(slot.own.shift_register == expected);          // plain ROM does not clock it
  slot.write(0xF052, 0x34), slot.write(0xF05A, 0x02);  // counter of fetcher 2 = 0x234
  CHECK(slot.read(0xF00A) == slot.image[8192 + 2047 - 0x234]);
  CHECK(slot.read(0xF00A) == slot.image[8192 + 2047 - 0x233]);
  slot.write(0xF070, 0);
  CHECK(slot.own.shift_register == 1);
}

// Half of the counts are above the bottom: the amplitude of one voice is a square wave.
void test_dpc_music() {
  Slot<CartridgeDPC> slot(10240);
  slot.write(0xF045, 99), slot.write(0xF04D, 49), slot.write(0xF05D, 0x10);
  int num_loud = 0;
  for (int i = 0; i < 4000; ++i) {
    slot.cycles += 76;  // about one clock of the oscillator
    num_loud += slot.read(0xF005) == 0x04;
  }
  CHECK(num_loud > 1950 && num_loud < 2050);
}

}  // namespace

int main() {
  test_f8();
  test_f6();
  test_super_chip();
  test_e0();
  test_fe();
  test_small();
  test_dpc();
  test_dpc_music();
  return check::result("cartridge");
}
