// settings_from.h -- a Python mapping as EnvSettings.
//
// Every key must be a field of EnvSettings and every value of its kind and range; what is missing
// keeps its default. The table below is the list that the test compares with protocols.py.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "../env/settings.h"

namespace scanline {

namespace nb = nanobind;

[[noreturn]] inline void refuse(const std::string& sentence) {
  throw nb::value_error(sentence.c_str());
}

inline std::string shown(nb::handle value) { return nb::repr(value).c_str(); }

inline i32 whole_number(const char* field, nb::handle value, i32 low, i32 high) {
  long long number = 0;
  if (!PyLong_Check(value.ptr()) || !nb::try_cast<long long>(value, number) || number < low ||
      number > high) {
    refuse(std::string(field) + "=" + shown(value) + " must be a whole number from " +
           std::to_string(low) + " to " + std::to_string(high) + ".");
  }
  return static_cast<i32>(number);
}

inline double probability(const char* field, nb::handle value) {
  double number = -1.0;
  if (!nb::try_cast<double>(value, number) || !(number >= 0.0 && number <= 1.0)) {
    refuse(std::string(field) + "=" + shown(value) + " must be a probability from 0 to 1.");
  }
  return number;
}

inline u8 choice_of(const char* field, nb::handle value) {
  for (const ChoiceNames& choices : kChoiceNames) {
    if (std::string(choices.field) != field) continue;
    std::string allowed;
    for (u8 i = 0; i < 8 && choices.names[i] != nullptr; ++i) {
      if (nb::isinstance<nb::str>(value) && nb::cast<std::string>(value) == choices.names[i])
        return i;
      allowed += (i == 0 ? "'" : ", '") + std::string(choices.names[i]) + "'";
    }
    refuse(std::string(field) + "=" + shown(value) + " is unknown; choose one of " + allowed + ".");
  }
  refuse(std::string(field) + " has no choices.");
}

struct SettingField {
  const char* name;
  void (*set)(EnvSettings&, const char* name, nb::handle value);
};

#define SCANLINE_NUMBER(field, low, high) \
  {#field,                                \
   [](EnvSettings& s, const char* n, nb::handle v) { s.field = whole_number(n, v, low, high); }}
#define SCANLINE_CHOICE(field, Type)                         \
  {#field, [](EnvSettings& s, const char* n, nb::handle v) { \
     s.field = static_cast<Type>(choice_of(n, v));           \
   }}

inline const std::vector<SettingField>& setting_fields() {
  static const std::vector<SettingField> fields = {
      SCANLINE_NUMBER(frame_skip, 1, 1000),
      SCANLINE_NUMBER(frame_skip_min, 1, 1000),
      {"sticky", [](EnvSettings& s, const char* n, nb::handle v) { s.sticky = probability(n, v); }},
      SCANLINE_CHOICE(pooling, Pooling),
      SCANLINE_CHOICE(colour, FrameColour),
      SCANLINE_CHOICE(resize, Resize),
      SCANLINE_NUMBER(height, 1, 1024),
      SCANLINE_NUMBER(width, 1, 1024),
      SCANLINE_CHOICE(crop, Crop),
      SCANLINE_NUMBER(stack, 1, 64),
      SCANLINE_CHOICE(stack_padding, StackPadding),
      {"full_action_space",
       [](EnvSettings& s, const char* n, nb::handle v) {
         if (!PyBool_Check(v.ptr())) refuse(std::string(n) + "=" + shown(v) + " must be a bool.");
         s.full_action_space = v.is(nb::handle(Py_True));
       }},
      SCANLINE_NUMBER(noop_min, 0, 1000000),
      SCANLINE_NUMBER(noop_max, 0, 1000000),
      SCANLINE_CHOICE(noop_unit, NoopUnit),
      SCANLINE_CHOICE(fire_reset, FireReset),
      SCANLINE_CHOICE(life_loss, LifeLoss),
      SCANLINE_CHOICE(terminal_frame, TerminalFrame),
      SCANLINE_CHOICE(reward_clip, RewardClip),
      SCANLINE_NUMBER(episode_limit_frames, 0, 2000000000),
      SCANLINE_CHOICE(reset, ResetKind),
      SCANLINE_NUMBER(reset_cache_states, 1, 100000),
      SCANLINE_CHOICE(random_stream, RandomStream),
      SCANLINE_CHOICE(autoreset, Autoreset),
  };
  return fields;
}
#undef SCANLINE_NUMBER
#undef SCANLINE_CHOICE

inline void check_ranges(const EnvSettings& s) {
  if (s.frame_skip_min > s.frame_skip)
    refuse("frame_skip_min=" + std::to_string(s.frame_skip_min) +
           " must not exceed frame_skip=" + std::to_string(s.frame_skip) + ".");
  if (s.noop_min > s.noop_max)
    refuse("noop_min=" + std::to_string(s.noop_min) +
           " must not exceed noop_max=" + std::to_string(s.noop_max) + ".");
}

inline EnvSettings settings_from(nb::dict given) {
  EnvSettings settings;
  for (auto [key, value] : given) {
    const std::string name = nb::str(key).c_str();
    bool found = false;
    for (const SettingField& field : setting_fields()) {
      if (name != field.name) continue;
      field.set(settings, field.name, value);
      found = true;
    }
    if (!found) refuse("there is no setting named '" + name + "'.");
  }
  check_ranges(settings);
  return settings;
}

}  // namespace scanline
