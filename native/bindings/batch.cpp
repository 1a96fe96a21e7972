// batch.cpp -- the batch of games for Python.
//
// Checks arguments and turns refusals into Python errors; waiting happens without the GIL. The
// arrays of a step come as one tuple, in the order of StepArrays in records.py:
// frame, depth, reward, raw_reward, terminated, truncated, life_lost, lives, final_frame,
// start_frames; or as a StepTarget that was made of it, so that ten arrays are looked at once.
// Arrays that threads write to are kept alive until they are done.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "../cpu/game_batch.h"
#include "../env/slot_snapshot.h"
#include "arrays.h"
#include "game_choice_from.h"
#include "screens.h"
#include "step_targets.h"

namespace scanline {
namespace {

using Clock = GameBatch::Environments::Clock;
using Claim = GameBatch::Environments::Claim;

[[noreturn]] void raise(PyObject* type, const std::string& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

void check(const Outcome& outcome, i32 group) {
  const std::string env = "Environment " + std::to_string(outcome.env);
  const std::string where = "Group " + std::to_string(group);
  switch (outcome.status) {
    case Status::kOk:
      return;
    case Status::kBusy:
      raise(PyExc_RuntimeError,
            where + " has results in flight or is used by another call; receive them first.");
    case Status::kLate:
      raise(PyExc_RuntimeError, where +
                                    " is in flight: a reset that ran out of time still runs; "
                                    "reset it again, which waits for it.");
    case Status::kNotSent:
      raise(PyExc_RuntimeError, "Nothing was sent to group " + std::to_string(group) +
                                    "; send actions before receiving.");
    case Status::kNotReset:
      raise(PyExc_RuntimeError,
            env + " was never reset, or its last step failed; reset it with a seed first.");
    case Status::kEnded:
      raise(PyExc_RuntimeError, "Environments such as " + std::to_string(outcome.env) +
                                    " have ended and autoreset is disabled; reset them first " +
                                    "with a mask.");
    case Status::kBadAction:
      raise(PyExc_ValueError, env + " was given an action outside of its set.");
    case Status::kTimeout:
      raise(PyExc_TimeoutError, where + " did not finish in time.");
  }
}

class PyBatch {
 public:
  PyBatch(nb::list games, std::vector<i32> games_of_envs, nb::dict settings, int num_groups,
          int num_threads)
      : settings_(settings_from(settings)) {
    const std::vector<GameChoice> choices = choices_from(games);
    check_sizes(games_of_envs, static_cast<i32>(choices.size()), num_groups, num_threads);
    nb::gil_scoped_release release;
    batch_ =
        std::make_unique<GameBatch>(choices, games_of_envs, settings_, num_groups, num_threads);
  }

  ~PyBatch() {
    if (!batch_ || envs().stop()) return;
    std::fputs("A step did not end when its batch did; the batch's memory is left alone.\n",
               stderr);
    (void)batch_.release();
  }

  void reset(int group, nb::handle out, nb::object mask, nb::object seeds, nb::object keys,
             bool resume, double timeout_seconds) {
    check_group(group);
    const StepArrays arrays = arrays_from(out);
    GameBatch::Environments::Reset how;
    std::optional<Array<const bool>> chosen;
    if (!mask.is_none()) {
      chosen.emplace(entries<const bool>(mask, "mask", envs().group_size()));
      how.mask = chosen->data();
    }
    const std::vector<Seed> all = seeds_from(seeds, keys);
    how.seeds = all.empty() ? nullptr : all.data();
    how.resume = resume;
    check(without_gil([&] { return envs().reset(group, arrays, how, deadline(timeout_seconds)); }),
          group);
  }

  void send(int group, nb::handle actions, nb::object out, const StackTarget* target,
            nb::object strengths) {
    check_group(group);
    const auto chosen = entries<const i64>(actions, "actions", envs().group_size());
    const std::optional<Array<const float>> turns = strengths_if_any(strengths);
    const std::optional<StepArrays> arrays = arrays_if_any(out);
    const StepArrays* into = arrays ? &*arrays : nullptr;
    StackArrays stacks;
    if (target != nullptr)
      stacks = target->arrays(envs().group_size(), settings_.stack, envs().row_bytes().frame, into);
    const GameBatch::Environments::Actions all{chosen.data(), turns ? turns->data() : nullptr};
    check(without_gil([&] { return envs().send(group, all, into, stacks); }), group);
  }

  void recv(int group, nb::object out, double timeout_seconds) {
    check_group(group);
    const std::optional<StepArrays> arrays = arrays_if_any(out);
    check(without_gil([&] {
            return envs().recv(group, arrays ? &*arrays : nullptr, deadline(timeout_seconds));
          }),
          group);
  }

  std::vector<i32> poll(double timeout_seconds) {
    std::vector<i32> ready(static_cast<size_t>(envs().num_groups()));
    nb::gil_scoped_release release;
    ready.resize(static_cast<size_t>(envs().poll(ready.data(), deadline(timeout_seconds))));
    return ready;
  }

  nb::bytes snapshot(int env) {
    const Claim claim(envs(), group_of(env));
    check({claim.status(), -1}, group_of(env));
    auto& slot = envs().slot(env);
    if (!slot.env.is_loaded()) raise(PyExc_RuntimeError, "Reset before taking a snapshot.");
    const std::vector<u8> bytes = snapshot_of(slot);
    return nb::bytes(bytes.data(), bytes.size());
  }

  void restore(int env, nb::bytes bytes) {
    const Claim claim(envs(), group_of(env));
    check({claim.status(), -1}, group_of(env));
    refuse_snapshot(scanline::restore(envs().slot(env), reinterpret_cast<const u8*>(bytes.data()),
                                      bytes.size()));
  }

  // Refuses what `restore` would, and changes nothing.
  void check_snapshot(int env, nb::bytes bytes) {
    check_env(env);
    refuse_snapshot(scanline::refusal(envs().slot(env), reinterpret_cast<const u8*>(bytes.data()),
                                      bytes.size()));
  }

  std::vector<u32> actions(int env) {
    check_env(env);
    const StepRules& rules = batch_->rules_of(env);
    return {rules.actions, rules.actions + rules.num_actions};
  }

  // Keeps the pictures of an environment from now on, until its game starts anew.
  void start_recording(int env) {
    const Claim claim(envs(), group_of(env));
    check({claim.status(), -1}, group_of(env));
    if (!envs().slot(env).env.is_loaded()) raise(PyExc_RuntimeError, "Reset before recording.");
    envs().slot(env).env.start_recording();
  }

  // Colours [frames, height, 160, 3] of the pictures kept since the last call.
  Screens take_recorded(int env) {
    const Claim claim(envs(), group_of(env));
    check({claim.status(), -1}, group_of(env));
    GameEnvironment& game = envs().slot(env).env;
    if (!game.is_loaded()) raise(PyExc_RuntimeError, "Reset before recording.");
    const std::vector<u8> indices = game.take_recorded();
    const size_t height = static_cast<size_t>(game.screen_height());
    return coloured(Palette(game.properties().pal), indices.data(),
                    {indices.size() / (160 * height), height, 160});
  }

  // Colours [height, 160, 3] of an environment's newest frame, seen or not.
  Screens screen(int env) {
    const Claim claim(envs(), group_of(env));
    check({claim.status(), -1}, group_of(env));
    GameEnvironment& game = envs().slot(env).env;
    if (!game.is_loaded()) raise(PyExc_RuntimeError, "Reset before asking for the screen.");
    game.show_pictures(1);
    return coloured(Palette(game.properties().pal), game.screen(),
                    {static_cast<size_t>(game.screen_height()), 160});
  }

  // Frame counters of a group: total, and since the game's reset.
  void counters(int group, nb::handle frame_number, nb::handle episode_frame_number) {
    check_group(group);
    const i32 size = envs().group_size();
    const auto total = entries<i32>(frame_number, "frame_number", size);
    const auto of_episode = entries<i32>(episode_frame_number, "episode_frame_number", size);
    const Claim claim(envs(), group);
    check({claim.status(), -1}, group);
    for (i32 i = 0; i < size; ++i) {
      auto& env = envs().slot(group * size + i).env;
      total.data()[i] = env.is_loaded() ? env.frame_number() : 0;
      of_episode.data()[i] = env.is_loaded() ? env.episode_frame_number() : 0;
    }
  }

  nb::tuple frame_shape() {
    if (settings_.colour == FrameColour::kRam) return nb::make_tuple(128);
    if (settings_.colour == FrameColour::kRgb)
      return nb::make_tuple(settings_.height, settings_.width, 3);
    return nb::make_tuple(settings_.height, settings_.width);
  }

  i32 num_threads() { return envs().num_threads(); }
  i32 screen_height() { return batch_->screen_height(); }
  size_t bytes_per_env() {
    return sizeof(Slot<GameEnvironment>) + envs().slot(0).episode.pooled().size() +
           2 * static_cast<size_t>(envs().row_bytes().frame) +
           static_cast<size_t>(envs().row_bytes().start_frames) + 64;
  }

 private:
  GameBatch::Environments& envs() { return batch_->environments(); }

  template <class Action>
  static Outcome without_gil(Action action) {
    nb::gil_scoped_release release;
    return action();
  }

  static Clock::time_point deadline(double seconds) {
    const double bounded = seconds < 0 ? 0 : seconds > 1e6 ? 1e6 : seconds;
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(bounded));
  }

  static std::vector<GameChoice> choices_from(nb::list games) {
    std::vector<GameChoice> choices;
    for (nb::handle entry : games) choices.push_back(game_choice_from(entry));
    return choices;
  }

  static void check_sizes(const std::vector<i32>& games_of_envs, i32 num_games, int num_groups,
                          int num_threads) {
    const i32 num_envs = static_cast<i32>(games_of_envs.size());
    if (num_envs < 1) refuse("at least one environment is needed.");
    if (num_groups < 1 || num_envs % num_groups != 0)
      refuse("num_groups=" + std::to_string(num_groups) + " does not divide " +
             std::to_string(num_envs) + " environments.");
    if (num_threads < 1 || num_threads > 1024)
      refuse("num_threads=" + std::to_string(num_threads) + " must be 1 to 1024.");
    for (i32 game : games_of_envs) {
      if (game < 0 || game >= num_games) refuse("an environment names a game that is not given.");
    }
  }

  void check_group(int group) {
    if (group < 0 || group >= envs().num_groups())
      refuse("group=" + std::to_string(group) + " must be 0 to " +
             std::to_string(envs().num_groups() - 1) + ".");
  }

  void check_env(int env) {
    if (env < 0 || env >= envs().num_envs())
      refuse("env=" + std::to_string(env) + " must be 0 to " +
             std::to_string(envs().num_envs() - 1) + ".");
  }

  static void refuse_snapshot(const std::string& reason) {
    if (!reason.empty()) refuse("This snapshot cannot be restored because " + reason + ".");
  }

  i32 group_of(int env) {
    check_env(env);
    return env / envs().group_size();
  }

  StepArrays arrays_from(nb::handle out) {
    const i32 size = envs().group_size();
    const RowBytes& bytes = envs().row_bytes();
    if (nb::isinstance<StepTarget>(out))
      return nb::cast<const StepTarget&>(out).arrays(size, bytes);
    return StepTarget(out).arrays(size, bytes);
  }

  std::optional<StepArrays> arrays_if_any(const nb::object& out) {
    return out.is_none() ? std::nullopt : std::optional<StepArrays>(arrays_from(out));
  }

  std::optional<Array<const float>> strengths_if_any(const nb::object& given) {
    if (given.is_none()) return std::nullopt;
    const auto strengths = entries<const float>(given, "strengths", envs().group_size());
    for (i32 i = 0; i < envs().group_size(); ++i) {
      if (!(strengths.data()[i] >= 0.0f && strengths.data()[i] <= 1.0f))
        refuse("strengths must lie in 0 to 1.");
    }
    return strengths;
  }

  // `seeds` int64 [b] for ALE's generators; `keys` (low, high, first env id) for ours.
  std::vector<Seed> seeds_from(nb::object seeds, nb::object keys) {
    std::vector<Seed> all;
    if (seeds.is_none()) return all;
    const auto array = entries<const i64>(seeds, "seeds", envs().group_size());
    const nb::tuple key = tuple_of(keys, 3, "key must be a tuple of two words and an env id");
    const u32 first = nb::cast<u32>(key[2]);
    for (i32 i = 0; i < envs().group_size(); ++i) {
      all.push_back(
          {static_cast<u32>(array.data()[i]),
           EnvStream{{nb::cast<u32>(key[0]), nb::cast<u32>(key[1])}, first + static_cast<u32>(i)}});
    }
    return all;
  }

  EnvSettings settings_;
  std::unique_ptr<GameBatch> batch_;
};

}  // namespace

void bind_batch(nb::module_& m) {
  nb::class_<StepTarget>(m, "StepTarget").def(nb::init<nb::handle>(), nb::arg("out"));
  nb::class_<StackTarget>(m, "StackTarget")
      .def(nb::init<nb::handle, int, nb::handle, nb::handle>(), nb::arg("ring"), nb::arg("newest"),
           nb::arg("finals").none(), nb::arg("observations"));
  nb::class_<PyBatch>(m, "Batch")
      .def(nb::init<nb::list, std::vector<i32>, nb::dict, int, int>(), nb::arg("games"),
           nb::arg("games_of_envs"), nb::arg("settings"), nb::arg("num_groups") = 1,
           nb::arg("num_threads") = 1)
      .def("reset", &PyBatch::reset, nb::arg("group"), nb::arg("out"), nb::arg("mask").none(),
           nb::arg("seeds").none(), nb::arg("key").none(), nb::arg("resume") = false,
           nb::arg("timeout_seconds") = 600.0)
      .def("send", &PyBatch::send, nb::arg("group"), nb::arg("actions"),
           nb::arg("out").none() = nb::none(), nb::arg("stacks").none() = nb::none(),
           nb::arg("strengths").none() = nb::none())
      .def("recv", &PyBatch::recv, nb::arg("group"), nb::arg("out").none() = nb::none(),
           nb::arg("timeout_seconds") = 60.0)
      .def("poll", &PyBatch::poll, nb::arg("timeout_seconds"))
      .def("snapshot", &PyBatch::snapshot, nb::arg("env"))
      .def("restore", &PyBatch::restore, nb::arg("env"), nb::arg("snapshot"))
      .def("check_snapshot", &PyBatch::check_snapshot, nb::arg("env"), nb::arg("snapshot"))
      .def("actions", &PyBatch::actions, nb::arg("env"))
      .def("counters", &PyBatch::counters, nb::arg("group"), nb::arg("frame_number"),
           nb::arg("episode_frame_number"))
      .def("start_recording", &PyBatch::start_recording, nb::arg("env"))
      .def("take_recorded", &PyBatch::take_recorded, nb::arg("env"))
      .def("screen", &PyBatch::screen, nb::arg("env"))
      .def_prop_ro("frame_shape", &PyBatch::frame_shape)
      .def_prop_ro("num_threads", &PyBatch::num_threads)
      .def_prop_ro("screen_height", &PyBatch::screen_height)
      .def_prop_ro("bytes_per_env", &PyBatch::bytes_per_env);
}

}  // namespace scanline
