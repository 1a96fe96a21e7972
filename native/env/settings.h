// settings.h -- everything an agent step can mean, as one plain struct.
//
// The same list, with the same names, as `Protocol` in src/scanline/protocols.py (a test compares
// the two), and what belongs to the engine rather than to the protocol. Read by env/ and
// cpu/; filled by the binding. Knows no console. Frames are raw frames, 1/60 s each.
#pragma once

#include "../core/types.h"

namespace scanline {

// Order of the enumerators is the order of the literals in protocols.py: the binding maps names by
// position in the lists below.
enum class Pooling : u8 { kNone, kGrey, kRgb };
enum class FrameColour : u8 { kGrey, kLuma, kRgb, kRam, kAsIs };
enum class Resize : u8 { kNone, kArea, kLinear, kBilinear, kNearest, kHalf };
enum class Crop : u8 { kNone, kBottomTwo, kBothEnds, kFirst210 };
enum class StackPadding : u8 { kZeros, kRepeat, kNoopSteps, kStartAndNoopSteps };
enum class NoopUnit : u8 { kFrames, kAgentSteps };
enum class FireReset : u8 {
  kNone,
  kBeforeNoops,
  kAfterNoops,
  kFireThenSecond,
  kNoopFireUp,
  kFireStep
};
enum class LifeLoss : u8 {
  kIgnore,
  kEndReturn,
  kNoopStep,
  kNoopsAgain,
  kNoopFireUp,
  kFullReset,
  kFire
};
enum class TerminalFrame : u8 { kReal, kStale, kLastTwo };
enum class RewardClip : u8 { kNone, kSign, kClamp };
enum class ResetKind : u8 { kAle, kCached };
enum class RandomStream : u8 { kCounter, kAle };
enum class Autoreset : u8 { kNextStep, kSameStep, kDisabled };

// Fields are ordered by width, so that no padding disturbs a comparison of bytes.
struct EnvSettings {
  double sticky = 0.0;     // chance, on every frame, that the previous action is repeated
  i32 frame_skip = 4;      // frames one action lasts; the upper end of a random skip
  i32 frame_skip_min = 4;  // lower end of a random skip
  i32 height = 84;         // rows of an observation
  i32 width = 84;          // columns of an observation
  i32 stack = 4;           // frames per observation; the reader builds it
  i32 noop_min = 0;        // fewest NOOPs after a reset
  i32 noop_max = 30;       // most NOOPs after a reset
  i32 episode_limit_frames = 108000;  // frames after which an episode is truncated; 0: never
  i32 reset_cache_states = 30;        // start states in the cache, per game and mode
  Pooling pooling = Pooling::kGrey;   // maximum over the last two frames: none, grey, or colours
  FrameColour colour = FrameColour::kGrey;             // what a pixel of the observation is
  Resize resize = Resize::kArea;                       // whose resampling
  Crop crop = Crop::kNone;                             // rows dropped before the resize
  StackPadding stack_padding = StackPadding::kRepeat;  // what fills the stack after a reset
  bool full_action_space = false;           // all 18 actions instead of the game's minimal set
  NoopUnit noop_unit = NoopUnit::kFrames;   // whether a NOOP lasts a frame or an agent step
  FireReset fire_reset = FireReset::kNone;  // buttons pressed after a reset
  LifeLoss life_loss = LifeLoss::kIgnore;   // what a lost life does
  TerminalFrame terminal_frame = TerminalFrame::kReal;  // the picture of a step that ended early
  RewardClip reward_clip = RewardClip::kSign;  // learner's reward; the raw one is always kept
  // What belongs to the engine rather than to the protocol, with reset_cache_states.
  ResetKind reset = ResetKind::kAle;                    // ALE's reset, or a state from a cache
  RandomStream random_stream = RandomStream::kCounter;  // Philox by environment, or ALE's MT19937
  Autoreset autoreset = Autoreset::kNextStep;           // when an ended episode starts anew
  u8 unused[6] = {};
};
static_assert(sizeof(EnvSettings) == 8 + 9 * 4 + 14 + 6, "no padding");

// Frames of a new stack that are of no step: those before the newest, where NOOP steps fill it.
SCANLINE_HD inline i32 num_start_frames(const EnvSettings& s) {
  return s.stack_padding == StackPadding::kNoopSteps ||
                 s.stack_padding == StackPadding::kStartAndNoopSteps
             ? s.stack - 1
             : 0;
}

#if !SCANLINE_DEVICE
// Names for the binding and for error messages: field, then its choices in enumerator order.
struct ChoiceNames {
  const char* field;
  const char* names[8];
};
inline constexpr ChoiceNames kChoiceNames[] = {
    {"pooling", {"none", "grey", "rgb"}},
    {"colour", {"grey", "luma", "rgb", "ram", "as-is"}},
    {"resize", {"none", "area", "linear", "bilinear", "nearest", "half"}},
    {"crop", {"none", "bottom-2", "both-ends", "first-210"}},
    {"stack_padding", {"zeros", "repeat", "noop-steps", "start-and-noop-steps"}},
    {"noop_unit", {"frames", "agent-steps"}},
    {"fire_reset",
     {"none", "before-noops", "after-noops", "fire-then-second", "noop-fire-up", "fire-step"}},
    {"life_loss",
     {"ignore", "end-return", "noop-step", "noops-again", "noop-fire-up", "full-reset", "fire"}},
    {"terminal_frame", {"real", "stale", "last-two"}},
    {"reward_clip", {"none", "sign", "clamp"}},
    {"reset", {"ale", "cached"}},
    {"random_stream", {"counter", "ale"}},
    {"autoreset", {"next-step", "same-step", "disabled"}},
};
#endif

}  // namespace scanline
