// arrays.h -- arrays as arguments from Python: checked, never converted.
//
// Takes any object; gives the address of its numbers if it is an array on the CPU of the right type
// and shape without gaps, and raises a TypeError or ValueError with what is wanted otherwise. A
// converted array would be another one: what is written into it is lost, what is kept of it
// dangles. Every binding that takes an array takes it from here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <type_traits>
#include <vector>

#include "../core/types.h"

namespace scanline {

namespace nb = nanobind;

template <class T>
const char* dtype_name() {
  using Number = std::remove_const_t<T>;
  if (std::is_same_v<Number, bool>) return "bool";
  if (std::is_same_v<Number, u8>) return "uint8";
  if (std::is_same_v<Number, float>) return "float32";
  if (std::is_same_v<Number, i32>) return "int32";
  static_assert(std::is_same_v<Number, bool> || std::is_same_v<Number, u8> ||
                std::is_same_v<Number, float> || std::is_same_v<Number, i32> ||
                std::is_same_v<Number, i64>);
  return "int64";
}

inline std::string shown_shape(const std::vector<size_t>& shape) {
  std::string text;
  for (const size_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

// An array that a call reads (T is const) or writes; its memory stays while this lives.
template <class T>
class Array {
 public:
  using Shape = std::vector<size_t>;

  Array(nb::handle given, const char* name) : name_(name) {
    if (!nb::try_cast(given, array_, /*convert=*/false)) {
      const std::string sentence = std::string(name_) + " must be a " +
                                   (std::is_const_v<T> ? "" : "writable, ") + "C-contiguous " +
                                   dtype_name<T>() + " array on the CPU.";
      throw nb::type_error(sentence.c_str());
    }
    for (size_t i = 0; i < array_.ndim(); ++i) shape_.push_back(array_.shape(i));
  }
  Array(nb::handle given, const char* name, const Shape& wanted) : Array(given, name) {
    if (shape_ != wanted) refuse("must have shape " + shown_shape(wanted));
  }

  T* data() const { return array_.data(); }
  size_t size() const { return array_.size(); }
  const Shape& shape() const { return shape_; }

  // Its data, if the first axis counts rows of so many numbers each.
  T* rows(size_t num, size_t row_numbers) const {
    if (shape_.size() < 2 || shape_[0] != num || size() != num * row_numbers)
      refuse("must have " + std::to_string(num) + " rows of " + std::to_string(row_numbers) +
             " numbers");
    return data();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const std::string sentence =
        std::string(name_) + " " + what + ", but has " + shown_shape(shape_) + ".";
    throw nb::value_error(sentence.c_str());
  }

  const char* name_;
  nb::ndarray<T, nb::c_contig, nb::device::cpu> array_;
  Shape shape_;
};

// One number per environment.
template <class T>
Array<T> entries(nb::handle given, const char* name, i32 num) {
  return Array<T>(given, name, {static_cast<size_t>(num)});
}

// A tuple of so many entries.
inline nb::tuple tuple_of(nb::handle given, size_t num, const char* what) {
  if (!nb::isinstance<nb::tuple>(given) || nb::len(given) != num)
    throw nb::type_error((std::string(what) + ".").c_str());
  return nb::borrow<nb::tuple>(given);
}

}  // namespace scanline
