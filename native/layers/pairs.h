// pairs.h -- which outputs of the last convolution stand at which places of a picture.
//
// Takes pictures as numbers of outputs, place by place; gives every different pair of place and
// number an id, in the order in which they came. Knows no weights and no values.
//
// A dense layer has weights of its own for every place: what it makes of an output depends on both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class Pairs {
 public:
  explicit Pairs(i32 num_places)
      : num_places_(num_places), ids_at_(static_cast<size_t>(num_places)) {}

  void clear() {
    num_known_ = 0;
    numbers_.clear();
    slots_.clear();
    for (std::vector<i32>& ids : ids_at_) ids.clear();
  }

  // Pictures first .. first + num, each a row of numbers from 1 to `most_number`; those that were
  // there before are replaced.
  void add(const i32* pictures, i32 first, i32 num, i32 most_number) {
    know_numbers(most_number);
    const i64 begin = static_cast<i64>(first) * num_places_;
    of_pictures_.resize(static_cast<size_t>(begin + static_cast<i64>(num) * num_places_));
    i32* to = of_pictures_.data() + begin;
    for (i32 i = 0; i < num; ++i)
      for (i32 place = 0; place < num_places_; ++place) *to++ = id_of(place, *pictures++);
  }

  i32 num_places() const { return num_places_; }
  i32 num() const { return static_cast<i32>(numbers_.size()); }
  const i32* of_picture(i32 picture) const {
    return of_pictures_.data() + static_cast<i64>(picture) * num_places_;
  }
  // Of every id: its output, and its position among the ids of its place.
  const i32* numbers() const { return numbers_.data(); }
  i32 slot(i32 id) const { return slots_[static_cast<size_t>(id)]; }
  // Rising ids.
  const std::vector<i32>& at(i32 place) const { return ids_at_[static_cast<size_t>(place)]; }

 private:
  void know_numbers(i32 most) {
    const size_t places = static_cast<size_t>(num_places_);
    const size_t needed = (static_cast<size_t>(most) + 1) * places;
    if (known_.size() < needed) known_.resize(needed + needed / 2);
    if (most < num_known_) return;
    std::fill(known_.data() + static_cast<size_t>(num_known_) * places, known_.data() + needed, 0);
    num_known_ = most + 1;
  }

  i32 id_of(i32 place, i32 number) {
    i32& known = known_[static_cast<size_t>(number) * static_cast<size_t>(num_places_) +
                        static_cast<size_t>(place)];
    if (known == 0) {
      std::vector<i32>& ids = ids_at_[static_cast<size_t>(place)];
      slots_.push_back(static_cast<i32>(ids.size()));
      ids.push_back(num());
      numbers_.push_back(number);
      known = num();
    }
    return known - 1;
  }

  const i32 num_places_;
  i32 num_known_ = 0;       // numbers that have a row in `known_`
  std::vector<i32> known_;  // per number and place: id + 1, or 0
  std::vector<i32> numbers_, slots_;
  std::vector<std::vector<i32>> ids_at_;
  std::vector<i32> of_pictures_;
};

}  // namespace scanline
