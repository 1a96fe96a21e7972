// test_tia_masks.cpp -- MaskTia against PlainTia: states, pictures and everything read.
//
// First each mask against its per-pixel definition, then whole frames of random accesses.
#include <cstring>
#include <vector>

#include "../core/tia_masks.h"
#include "../core/tia_plain.h"
#include "check.h"
#include "random_program.h"

using namespace scanline;

namespace {

template <class At>
bool mask_equals(const Bits160& mask, At at) {
  for (int x = 0; x < 160; ++x) {
    if (((mask.chunk(x / 32) >> (x % 32)) & 1) != (at(x) ? 1u : 0u)) return false;
  }
  return true;
}

void masks_equal_single_pixels() {
  check::Random random(5);
  for (int trial = 0; trial < 30000; ++trial) {
    const u8 pattern = u8(random.below(256));
    const u32 nusiz = u32(random.below(64));
    const u8 pf[3] = {u8(random.below(256)), u8(random.below(256)), u8(random.below(256))};
    const u32 bits = playfield_bits(pf[0], pf[1], pf[2]);
    const i32 pos = random.below(160), width = random.below(4) ? narrow_width(nusiz) : 0;
    const bool flag = random.one_in(2);
    CHECK(mask_equals(player_mask(reverse_bits(pattern), nusiz, pos, flag),
                      [&](i32 x) { return player_at(pattern, nusiz, pos, flag, x); }));
    CHECK(mask_equals(missile_mask(nusiz, width, pos),
                      [&](i32 x) { return missile_at(nusiz, width, pos, x); }));
    CHECK(mask_equals(ball_mask(narrow_width(nusiz), pos),
                      [&](i32 x) { return ball_at(narrow_width(nusiz), pos, x); }));
    CHECK(mask_equals(playfield_mask(pf[0], pf[1], pf[2], flag),
                      [&](i32 x) { return playfield_at(bits, flag, x); }));
  }
}

void painting_equals_the_priority_of_each_pixel() {
  check::Random random(6);
  for (int trial = 0; trial < 20000; ++trial) {
    Bits160 masks[kNumObjects];
    for (Bits160& mask : masks)
      mask = Bits160::place({random.bits(), u32(random.bits())}, random.below(160));
    const u32 enabled = random.one_in(4) ? 32u : u32(random.below(64));
    const Priority priority = priority_of(u32(random.below(8)), enabled);
    const u8 colours[4] = {10, 20, 30, 40};
    const i32 begin = random.below(160), end = begin + random.below(161 - begin);
    u8 painted[160], portable[160], expected[160];
    for (int x = 0; x < 160; ++x) {
      u32 objects = 0;
      for (u32 object = 0; object < kNumObjects; ++object)
        objects |= ((masks[object].chunk(x / 32) >> (x % 32)) & 1) << object;
      painted[x] = portable[x] = expected[x] = u8(200 + x % 50);
      if (x >= begin && x < end)
        expected[x] = colours[colour_at(priority, objects & enabled, x < 80)];
    }
    for (u32 object = 0; object < kNumObjects; ++object)
      if ((enabled & object_bit(object)) == 0) masks[object] = Bits160::none();
    const Layers layers = layers_of(priority, masks);
    paint(painted, begin, end, Brush(layers), colours);
    paint_portably(portable, begin, end, layers, colours);
    CHECK(std::memcmp(painted, expected, 160) == 0);
    CHECK(std::memcmp(portable, expected, 160) == 0);
  }
}

struct Console {
  MachineState state{};
  std::vector<u8> pictures = std::vector<u8>(2 * kPictureBytes);
};

bool same_state(const Console& a, const Console& b) {
  return std::memcmp(&a.state, &b.state, sizeof(MachineState)) == 0;
}

void print_difference(const Console& a, const Console& b) {
#define SCALAR(type, name, bound)   \
  if (a.state.name != b.state.name) \
    std::printf("  " #name ": %d, %d\n", int(a.state.name), int(b.state.name));
#define ARRAY(type, name, count, bound)     \
  for (int i = 0; i < count; ++i)           \
    if (a.state.name[i] != b.state.name[i]) \
      std::printf("  " #name "[%d]: %d, %d\n", i, int(a.state.name[i]), int(b.state.name[i]));
  SCANLINE_STATE_FIELDS(SCALAR, ARRAY)
#undef SCALAR
#undef ARRAY
}

Properties random_properties(check::Random& random) {
  Properties properties;
  properties.pal = random.one_in(4);
  properties.hmove_blanks = !random.one_in(4);
  properties.y_start = random.one_in(3) ? 26 : 34;
  properties.height = properties.pal ? 250 : (random.one_in(3) ? 230 : 210);
  return properties;
}

// Three consoles, one program: plain with pixels, masks with pixels, masks without.
void random_frames_are_equal(std::uint64_t seed, int num_frames) {
  check::Random random(seed);
  const Properties properties = random_properties(random);
  Console plain, drawn, unseen;
  RandomProgram program(seed);
  for (int frame = 0; frame < num_frames; ++frame) {
    if (random.one_in(20)) {
      for (Console* console : {&plain, &drawn, &unseen}) {
        console->state.cycles = 0;
        reset_tia(console->state);
      }
    }
    const std::vector<Access> accesses = program.frame();
    PlainTia<Pixels<>> plain_tia(plain.state, properties, Pixels<>(plain.pictures.data()));
    MaskTia<Pixels<>> drawn_tia(drawn.state, properties, Pixels<>(drawn.pictures.data()));
    MaskTia<NoPixels> unseen_tia(unseen.state, properties, NoPixels());
    const std::vector<u8> reads = run_accesses(plain_tia, plain.state, accesses);
    CHECK(run_accesses(drawn_tia, drawn.state, accesses) == reads);
    CHECK(run_accesses(unseen_tia, unseen.state, accesses) == reads);
    const bool equal = same_state(plain, drawn) && same_state(plain, unseen);
    CHECK(equal);
    CHECK(plain.pictures == drawn.pictures);
    if (equal) continue;
    std::printf("seed %d frame %d\n", int(seed), frame);
    print_difference(plain, drawn);
    print_difference(plain, unseen);
    return;
  }
}

}  // namespace

int main() {
  masks_equal_single_pixels();
  painting_equals_the_priority_of_each_pixel();
  for (std::uint64_t seed = 0; seed < 60; ++seed) random_frames_are_equal(seed, 25);
  return check::result("tia_masks");
}
