// test_episode.cpp -- which buttons are pressed, which frames are seen, and what is reported.
#include "../env/episode.h"
#include "check.h"
#include "fake_env.h"

using namespace scanline;

namespace {

// One environment with its row of results.
struct Bench {
  explicit Bench(const EnvSettings& settings, i32 lives = 3, i32 frames_per_life = 50)
      : observer(settings, FakeEnv::kHeight, FakePalette().view()),
        rules(fake_rules(settings, observer)),
        env(lives, frames_per_life),
        episode(env, *rules, nullptr) {
    episode.seed(5, EnvStream{{1, 2}, 7});
  }

  StepRow row() {
    return {frame,  &depth,      &reward,         &raw_reward, &terminated, &truncated, &life_lost,
            &lives, final_frame, start_frames[0], nullptr,     nullptr,     &total,     &steps};
  }
  void reset() { episode.reset(row(), scratch); }
  void step(u32 action) { episode.step(action, row(), scratch); }
  std::string taken() {
    std::string log;
    std::swap(log, env.log);
    return log;
  }
  // Shades of the stack after a reset, oldest first; each frame has one all over.
  std::string stack() const {
    std::string shades;
    for (const auto& start : start_frames) {
      CHECK(start[0] == start[84 * 84 - 1]);
      shades += std::to_string(start[0]) + " ";
    }
    return shades + std::to_string(frame[0]);
  }

  Observer observer;
  std::shared_ptr<EpisodeRules> rules;
  FakeEnv env;
  Episode<FakeEnv> episode;
  Observer::Scratch scratch;
  u8 frame[84 * 84] = {}, final_frame[84 * 84] = {}, start_frames[3][84 * 84] = {};
  u8 depth = 0;
  float reward = 0, raw_reward = 0, total = 0;
  bool terminated = false, truncated = false, life_lost = false;
  i32 lives = 0, steps = 0;
};

EnvSettings plain() {
  EnvSettings s;
  s.noop_min = s.noop_max = 0;
  return s;
}

void test_a_step_is_four_frames_of_which_two_are_seen() {
  Bench b(plain());
  b.reset();
  CHECK(b.taken() == "R");
  CHECK(b.depth == 1);
  b.step(2);
  CHECK(b.taken() == "333*3*");
  CHECK(b.depth == 2);
  CHECK(b.raw_reward == 0.0f);                   // 0 + 1 - 1 + 0
  CHECK(b.frame[0] == 8 && b.frame[7055] == 8);  // the brighter of frames 3 and 4
}

void test_buttons_after_a_reset() {
  EnvSettings s = plain();
  s.noop_min = s.noop_max = 3;
  const auto pressed = [&](FireReset rule) {
    s.fire_reset = rule;
    Bench b(s);
    b.reset();
    return b.taken();
  };
  CHECK(pressed(FireReset::kNone) == "RNNN");
  CHECK(pressed(FireReset::kBeforeNoops) == "RFNN");
  CHECK(pressed(FireReset::kAfterNoops) == "RNNF");
  CHECK(pressed(FireReset::kNoopFireUp) == "RNFUNNN");
  CHECK(pressed(FireReset::kFireThenSecond) == "RNNNFFFF3333");
  CHECK(pressed(FireReset::kFireStep) == "RFFFFNNN");
  s.noop_unit = NoopUnit::kAgentSteps;
  s.noop_min = s.noop_max = 2;
  CHECK(pressed(FireReset::kNone) == "RNNNNNNNN");
  CHECK(pressed(FireReset::kFireStep) == "RFFFFNNNNNNNN");
}

EnvSettings filled(StackPadding padding, i32 num_noops = 0) {
  EnvSettings s = plain();
  s.stack_padding = padding;
  s.noop_min = s.noop_max = num_noops;
  s.autoreset = Autoreset::kSameStep;
  return s;
}

// A shade is twice the number of the frame; a step shows the brighter of its last two.
void test_noop_steps_fill_the_stack() {
  Bench every(filled(StackPadding::kNoopSteps, 1));
  every.reset();
  CHECK(every.taken() == "R" + std::string(17, 'N') && every.depth == 1);
  CHECK(every.stack() == "10 18 26 34");
  Bench later(filled(StackPadding::kStartAndNoopSteps, 1));
  later.reset();
  CHECK(later.taken() == "R" + std::string(13, 'N') && later.depth == 1);
  CHECK(later.stack() == "2 10 18 26");
  later.step(2);
  CHECK(later.depth == 2 && later.frame[0] == 34);
}

void test_a_stack_of_one_frame_takes_the_newest() {
  EnvSettings s = filled(StackPadding::kNoopSteps, 1);
  s.stack = 1;
  Bench every(s);
  every.reset();
  CHECK(every.taken() == "RNNNNN" && every.frame[0] == 10 && every.start_frames[0][0] == 0);
  s.stack_padding = StackPadding::kStartAndNoopSteps;
  Bench later(s);
  later.reset();
  CHECK(later.taken() == "RN" && later.frame[0] == 2);
}

void test_no_frame_of_an_ended_game_is_in_the_stack() {
  Bench b(filled(StackPadding::kNoopSteps), 1, 10);  // ends in the third NOOP step
  b.reset();
  CHECK(b.taken() == "RNNNNNNNNNNRNNNN" && b.stack() == "20 20 20 8");
  Bench last(filled(StackPadding::kNoopSteps), 1, 14);  // in the last one
  last.reset();
  CHECK(last.stack() == "28 28 28 28");
}

void test_a_stack_that_a_lost_life_clears_is_filled_again() {
  EnvSettings s = filled(StackPadding::kStartAndNoopSteps);
  s.life_loss = LifeLoss::kNoopStep;
  Bench b(s, 3, 16);
  b.reset();  // 12 frames
  b.taken();
  b.step(2);
  CHECK(b.life_lost && b.taken() == "333*3*" + std::string(16, 'N') && b.depth == 1);
  CHECK(b.stack() == "40 48 56 64");
}

void test_an_end_fills_the_next_stack() {
  Bench b(filled(StackPadding::kNoopSteps), 1, 18);
  b.reset();  // 16 frames
  b.step(2);
  CHECK(b.terminated && b.final_frame[0] == 36 && b.depth == 1);
  CHECK(b.stack() == "8 16 24 32");
}

// The shade of a fake picture is twice its number modulo 100: frame 99 is brighter than frame 100.
void test_the_picture_after_a_step_of_fire_is_pooled_like_any_other() {
  EnvSettings s = plain();
  s.fire_reset = FireReset::kFireStep;
  s.frame_skip = s.frame_skip_min = 100;
  Bench b(s, 3, 500);
  b.reset();
  CHECK(b.frame[0] == 198 && b.depth == 1);
}

void test_the_number_of_noops_covers_its_range() {
  EnvSettings s = plain();
  s.noop_min = 1;
  s.noop_max = 5;
  for (RandomStream stream : {RandomStream::kCounter, RandomStream::kAle}) {
    s.random_stream = stream;
    Bench b(s);
    i32 seen[8] = {};
    for (i32 i = 0; i < 400; ++i) {
      b.reset();
      ++seen[b.taken().size() - 1];
    }
    CHECK(seen[0] == 0 && seen[6] == 0);
    for (i32 n = 1; n <= 5; ++n) CHECK(seen[n] > 40);
  }
}

// First numbers of std::uniform_int_distribution(0, 29) over mt19937(seed), libstdc++.
void test_ales_draws() {
  const auto first = [](u32 seed) { return AleDraws(seed, 0).below(30); };
  CHECK(first(0) == 16 && first(1) == 12 && first(2) == 13 && first(42) == 11);
  AleDraws all(7, 0);
  all.below(30);
  const u32 second = all.below(30);
  CHECK(AleDraws(7, 1).below(30) == second);
}

void test_a_lost_life() {
  EnvSettings s = plain();
  s.autoreset = Autoreset::kSameStep;
  const auto after_loss = [&](LifeLoss rule) {
    s.life_loss = rule;
    Bench b(s, 3, 7);
    b.reset();
    b.step(2);
    b.taken();
    b.step(2);  // the life is lost in the third of these frames
    CHECK(b.life_lost == (rule != LifeLoss::kFullReset));
    CHECK(b.terminated == (rule == LifeLoss::kFullReset));
    CHECK(b.lives == (rule == LifeLoss::kFullReset ? 3 : 2));
    return b.taken() + "/" + std::to_string(b.depth);
  };
  CHECK(after_loss(LifeLoss::kIgnore) == "333*3*/3");
  CHECK(after_loss(LifeLoss::kEndReturn) == "333*3*/3");
  CHECK(after_loss(LifeLoss::kNoopStep) == "333*3*NNNN/1");
  CHECK(after_loss(LifeLoss::kNoopFireUp) == "333*3*NFU/1");
  CHECK(after_loss(LifeLoss::kFire) == "333*F*/3");
  CHECK(after_loss(LifeLoss::kFullReset) == "333*R/1");
  s.noop_min = s.noop_max = 2;
  s.fire_reset = FireReset::kAfterNoops;
  CHECK(after_loss(LifeLoss::kNoopsAgain) == "333*3*NF/4");
}

// FIRE takes the place of the frame that follows the loss, in this step or the next.
void test_fire_after_a_lost_life() {
  EnvSettings s = plain();
  s.life_loss = LifeLoss::kFire;
  Bench b(s, 3, 8);
  b.reset();
  b.step(2);
  b.step(2);  // the life is lost in the last of these frames
  CHECK(b.life_lost && b.episode.state.fires == 1);
  b.taken();
  b.step(2);
  CHECK(b.taken() == "F33*3*" && !b.life_lost && b.depth == 4);
  b.step(2);
  CHECK(b.life_lost);
  b.reset();
  b.taken();
  b.step(2);
  CHECK(b.taken() == "333*3*");
  b.rules->has_fire = false;
  b.step(2);
  b.taken();
  b.step(2);
  CHECK(b.taken() == "333*3*");
}

void test_next_step_autoreset_ignores_one_action() {
  Bench b(plain(), 1, 5);
  b.reset();
  b.step(2);
  b.step(2);
  CHECK(b.terminated && b.raw_reward == 1.0f && b.reward == 1.0f);
  CHECK(b.total == 1.0f && b.steps == 2);
  CHECK(b.frame[0] == 10);
  b.taken();
  b.step(2);
  CHECK(b.taken() == "R" && !b.terminated && b.raw_reward == 0.0f && b.depth == 1);
  b.step(2);
  CHECK(b.taken() == "333*3*");
}

void test_same_step_autoreset_keeps_the_last_frame_aside() {
  EnvSettings s = plain();
  s.autoreset = Autoreset::kSameStep;
  s.noop_min = s.noop_max = 1;
  Bench b(s, 1, 6);
  b.reset();
  b.step(2);
  b.step(2);
  CHECK(b.terminated && b.final_frame[0] == 12 && b.frame[0] == 2 && b.depth == 1);
  CHECK(b.lives == 1 && b.steps == 2);
}

// Frames 1 2 3 4 | 5 6 ...: the game ends in frame `end`.
u8 picture_of_end(TerminalFrame policy, i32 end) {
  EnvSettings s = plain();
  s.terminal_frame = policy;
  Bench b(s, 1, end);
  b.reset();
  b.step(2);
  b.step(2);
  CHECK(b.terminated);
  return b.frame[0] / 2;
}

void test_the_picture_of_an_end() {
  for (i32 end = 5; end <= 8; ++end) {
    CHECK(picture_of_end(TerminalFrame::kReal, end) == end);
    CHECK(picture_of_end(TerminalFrame::kStale, end) == (end == 8 ? 7 : 4));
    CHECK(picture_of_end(TerminalFrame::kLastTwo, end) == (end >= 7 ? end : 4));
  }
}

void test_the_limit_truncates() {
  EnvSettings s = plain();
  s.episode_limit_frames = 6;
  Bench b(s);
  b.reset();
  b.step(2);
  CHECK(!b.truncated);
  b.taken();
  b.step(2);
  CHECK(b.truncated && !b.terminated && b.taken() == "33");
}

void test_clipping_and_random_skip() {
  EnvSettings s = plain();
  s.frame_skip = 4;
  s.frame_skip_min = 2;
  s.reward_clip = RewardClip::kNone;
  Bench b(s, 100, 1000);
  b.reset();
  i32 lengths[6] = {};
  i32 before = 0;
  for (i32 i = 0; i < 300; ++i) {
    b.step(2);
    CHECK(b.reward == b.raw_reward);
    ++lengths[b.env.total_frames - before];
    before = b.env.total_frames;
  }
  CHECK(lengths[1] == 0 && lengths[2] > 60 && lengths[3] > 60 && lengths[4] > 60);
}

void test_cached_starts_are_drawn_from_the_cache() {
  EnvSettings s = plain();
  s.noop_min = 1;
  s.noop_max = 20;
  Bench b(s);
  StartCache<FakeEnv> starts;
  for (i32 i = 0; i < 5; ++i) {
    auto start = std::make_unique<CachedStart<FakeEnv>>();
    b.episode.save_start(*start, b.scratch);
    starts.push_back(std::move(start));
  }
  b.taken();
  Episode<FakeEnv> episode(b.env, *b.rules, &starts);
  episode.seed(0, EnvStream{{3, 3}, 1});
  i32 chosen[5] = {};
  for (i32 i = 0; i < 200; ++i) {
    episode.reset(b.row(), b.scratch);
    for (size_t k = 0; k < 5; ++k) {
      if (starts[k]->env.frames == b.env.frames) ++chosen[k];
    }
    CHECK(b.frame[0] == b.env.shade() && b.depth == 1 && b.lives == 3);
  }
  CHECK(b.taken() == std::string(200, 'C'));
  for (i32 count : chosen) CHECK(count > 10);
}

void test_a_cached_start_has_its_whole_stack() {
  Bench b(filled(StackPadding::kNoopSteps, 1));
  StartCache<FakeEnv> starts;
  auto start = std::make_unique<CachedStart<FakeEnv>>();
  b.episode.save_start(*start, b.scratch);
  starts.push_back(std::move(start));
  Episode<FakeEnv> episode(b.env, *b.rules, &starts);
  episode.seed(0, EnvStream{{3, 3}, 1});
  b.taken();
  episode.reset(b.row(), b.scratch);
  CHECK(b.taken() == "C" && b.stack() == "10 18 26 34" && b.depth == 1);
}

void test_ram_observations() {
  EnvSettings s = plain();
  s.colour = FrameColour::kRam;
  Bench b(s);
  b.reset();
  b.step(1);
  CHECK(b.frame[0] == 4);
  CHECK(b.observer.frame_bytes() == 128);
}

}  // namespace

int main() {
  test_a_step_is_four_frames_of_which_two_are_seen();
  test_buttons_after_a_reset();
  test_the_picture_after_a_step_of_fire_is_pooled_like_any_other();
  test_noop_steps_fill_the_stack();
  test_a_stack_of_one_frame_takes_the_newest();
  test_no_frame_of_an_ended_game_is_in_the_stack();
  test_a_stack_that_a_lost_life_clears_is_filled_again();
  test_an_end_fills_the_next_stack();
  test_the_number_of_noops_covers_its_range();
  test_ales_draws();
  test_a_lost_life();
  test_fire_after_a_lost_life();
  test_next_step_autoreset_ignores_one_action();
  test_same_step_autoreset_keeps_the_last_frame_aside();
  test_the_picture_of_an_end();
  test_the_limit_truncates();
  test_clipping_and_random_skip();
  test_cached_starts_are_drawn_from_the_cache();
  test_a_cached_start_has_its_whole_stack();
  test_ram_observations();
  return check::result("test_episode");
}
