// test_log_sink.cpp -- pictures rendered from a log equal pictures drawn at once.
//
// Renders rows in order and each row on its own, and forces logs to overflow.
#include <cstring>
#include <memory>
#include <vector>

#include "../core/log_sink.h"
#include "../core/tia_masks.h"
#include "check.h"
#include "random_program.h"

using namespace scanline;

namespace {

void render_in_order(const PictureLog& log, u8* picture) {
  Visual visual = log.keyframes[0];
  for (i32 row = 0; row <= log.end_row; ++row)
    render_row(log, row, visual, picture + row * kWidth, IndexMap());
}

void render_each_row(const PictureLog& log, u8* picture) {
  for (i32 row = log.end_row; row >= 0; --row) {
    Visual visual = visual_at_row(log, row);
    render_row(log, row, visual, picture + row * kWidth, IndexMap());
  }
}

void grey(const PictureLog& log, u8* picture) {
  for (i32 i = log.grey_row * kWidth; i < log.grey_end * kWidth; ++i)
    picture[i] = (picture[i] & 0x0F) >> 1;
}

struct Counts {
  long frames = 0, overflows = 0, words = 0;
};

// Both consoles skip attempts that continue a frame, since a log holds one attempt only.
Counts logs_equal_pixels(std::uint64_t seed, u32 capacity) {
  const Properties properties;
  MachineState drawn{}, logged{};
  std::vector<u8> expected(2 * kPictureBytes), ordered(2 * kPictureBytes),
      single(2 * kPictureBytes);
  auto log = std::make_unique<PictureLog>();
  RandomProgram program(seed);
  Counts counts;
  for (int frame = 0; frame < 40; ++frame) {
    const std::vector<Access> accesses = program.frame();
    drawn.partial = logged.partial = 0;
    MaskTia<Pixels<>> drawn_tia(drawn, properties, Pixels<>(expected.data()));
    std::memset(static_cast<void*>(log.get()), 0xAA, sizeof(PictureLog));
    MaskTia<Log> logged_tia(logged, properties, Log(log.get(), capacity));
    CHECK(run_accesses(drawn_tia, drawn, accesses) == run_accesses(logged_tia, logged, accesses));
    CHECK(std::memcmp(&drawn, &logged, sizeof(MachineState)) == 0);
    const u32 which = drawn.buffer_parity;
    ++counts.frames;
    counts.words += log->num_words;
    if (log->overflow) {
      ++counts.overflows;
      CHECK(log->num_words == capacity);
      ordered = single = expected;
      continue;
    }
    render_in_order(*log, ordered.data() + which * kPictureBytes);
    render_each_row(*log, single.data() + which * kPictureBytes);
    grey(*log, ordered.data() + which * kPictureBytes);
    grey(*log, single.data() + which * kPictureBytes);
    CHECK(ordered == expected);
    CHECK(single == expected);
  }
  return counts;
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Counts counts = logs_equal_pixels(seed, kLogWords);
    CHECK(counts.words > 0);
  }
  long overflows = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    overflows += logs_equal_pixels(seed, 100).overflows;
  CHECK(overflows > 50);
  return check::result("log_sink");
}
