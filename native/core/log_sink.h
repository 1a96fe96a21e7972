// log_sink.h -- a picture as a list of visible changes, for a renderer that runs elsewhere.
//
// Takes the spans a TIA would draw; writes a word for each visual field that differs from the span
// before it. Rows can be rendered independently: the log knows each row's first word, and every
// sixteenth row has all fields written out. Bounded: a log that overflows says so, and its frame
// must be drawn from the state at its start. Host and device.
#pragma once

#include "sinks.h"
#include "visual.h"

namespace scanline {

constexpr u32 kLogWords = 2048;
constexpr i32 kKeyframeRows = 16;
constexpr i32 kNumKeyframes = (kPictureLines + kKeyframeRows - 1) / kKeyframeRows;

// Bits 0-7 value, 8-13 field, 16-23 x.
struct LogWord {
  u32 bits;
  SCANLINE_HD u8 value() const { return static_cast<u8>(bits); }
  SCANLINE_HD u32 field() const { return (bits >> 8) & 0x3F; }
  SCANLINE_HD i32 x() const { return static_cast<i32>((bits >> 16) & 0xFF); }
};

struct PictureLog {
  u32 num_words;
  i32 end_row;  // drawing stopped at this pixel
  i32 end_x;
  i32 grey_row;  // rows from here to grey_end are greyed afterwards
  i32 grey_end;
  u16 overflow;                       // words are missing
  u16 first_word[kPictureLines + 1];  // of each row; rows up to end_row + 1 are valid
  Visual keyframes[kNumKeyframes];    // fields at the start of every sixteenth row
  LogWord words[kLogWords];
};

class Log {
 public:
  static constexpr bool kDraws = true;
  static constexpr bool kPaints = false;

  // `capacity` below kLogWords is for tests.
  SCANLINE_HD explicit Log(PictureLog* log, u32 capacity = kLogWords)
      : log_(log), capacity_(capacity) {}

  // Begins a new frame; the log of a frame that goes on is begun anew too, at its current row.
  SCANLINE_HD void select(u32) {
    log_->num_words = 0;
    log_->end_row = log_->end_x = log_->grey_row = log_->grey_end = 0;
    log_->overflow = 0;
    log_->first_word[0] = 0;
    for (u8& field : visual_.fields) field = 0;
    log_->keyframes[0] = visual_;
    row_ = 0;
  }

  SCANLINE_HD void put(i32, i32, u8) {}

  SCANLINE_HD void draw(const MachineState& state, Span span, const Brush&) {
    reach(span.row);
    const Visual now = visual_of(state, span.enabled);
    for (u32 field = 0; field < kNumVisualFields; ++field)
      if (now.fields[field] != visual_.fields[field]) append(span.begin, field, now.fields[field]);
    visual_ = now;
  }

  SCANLINE_HD void repeat_row(i32 row) { reach(row); }

  SCANLINE_HD void end(i32 row, i32 x) {
    reach(row + 1);
    log_->end_row = row;
    log_->end_x = x;
  }

  SCANLINE_HD void grey(i32 first_row, i32 end_row) {
    log_->grey_row = first_row;
    log_->grey_end = end_row;
  }

 private:
  // Rows begin where their predecessors' words end.
  SCANLINE_HD void reach(i32 row) {
    while (row_ < row && row_ < kPictureLines) {
      ++row_;
      log_->first_word[row_] = static_cast<u16>(log_->num_words);
      if (row_ % kKeyframeRows == 0 && row_ < kPictureLines)
        log_->keyframes[row_ / kKeyframeRows] = visual_;
    }
  }

  SCANLINE_HD void append(i32 x, u32 field, u8 value) {
    if (log_->num_words == capacity_) {
      log_->overflow = 1;
      return;
    }
    log_->words[log_->num_words++].bits = value | (field << 8) | (static_cast<u32>(x) << 16);
  }

  PictureLog* log_;
  u32 capacity_;
  i32 row_;        // row being logged
  Visual visual_;  // fields at the last span
};

// Fields at the start of a row.
SCANLINE_HD inline Visual visual_at_row(const PictureLog& log, i32 row) {
  const i32 keyframe = row / kKeyframeRows;
  Visual visual = log.keyframes[keyframe];
  for (u32 i = log.first_word[keyframe * kKeyframeRows]; i < log.first_word[row]; ++i)
    visual.fields[log.words[i].field()] = log.words[i].value();
  return visual;
}

// Renders one row of a log that has not overflowed; `visual` are its fields at the row's start and
// becomes those at its end. Pixels at and behind the log's end are left as they are.
template <class Map>
SCANLINE_HD inline void render_row(const PictureLog& log, i32 row, Visual& visual, u8* pixels,
                                   Map map) {
  if (row > log.end_row) return;
  const i32 end = row == log.end_row ? (log.end_x < kWidth ? log.end_x : kWidth) : kWidth;
  i32 x = 0;
  for (u32 i = log.first_word[row]; i < log.first_word[row + 1]; ++i) {
    const LogWord word = log.words[i];
    paint_visual(pixels, x, word.x(), visual, map);
    x = word.x();
    visual.fields[word.field()] = word.value();
  }
  paint_visual(pixels, x, end, visual, map);
}

}  // namespace scanline
