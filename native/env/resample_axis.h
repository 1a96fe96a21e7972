// resample_axis.h -- the weights of one axis of a resize, for each kind of filter.
//
// Takes source and target lengths; gives, for every target cell, the first source cell and one
// weight per tap (missing taps weigh 0, which changes no sum of non-negative terms). Built once per
// environment kind, on the host. Knows nothing of pixels. The rules are those of OpenCV's
// INTER_AREA and INTER_LINEAR and of Pillow's BILINEAR and NEAREST, because an observation must
// equal theirs to the last bit: area weights are float32 computed in double, linear weights are
// 11-bit and Pillow's 22-bit fixed point.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/types.h"

namespace scanline {

template <class Weight>
struct ResampleAxis {
  i32 source = 0;
  i32 target = 0;
  i32 padded = 0;              // target rounded up to a multiple of kLanes; the rest weighs 0
  i32 num_taps = 0;            // the same for every target cell
  std::vector<i32> first;      // [padded], first + num_taps may reach beyond the source
  std::vector<Weight> weight;  // [num_taps][padded]
  static constexpr i32 kLanes = 8;

  Weight at(i32 cell, i32 tap) const { return weight[static_cast<size_t>(tap * padded + cell)]; }
};

using AreaAxis = ResampleAxis<float>;
using FixedAxis = ResampleAxis<i32>;

// One target cell while its axis is being built.
template <class Weight>
struct ResampleCell {
  i32 first;
  std::vector<Weight> weights;
};

template <class Weight>
ResampleAxis<Weight> packed_axis(i32 source, const std::vector<ResampleCell<Weight>>& cells) {
  ResampleAxis<Weight> axis;
  axis.source = source;
  axis.target = static_cast<i32>(cells.size());
  axis.padded = (axis.target + axis.kLanes - 1) / axis.kLanes * axis.kLanes;
  for (const auto& cell : cells) {
    axis.num_taps = std::max(axis.num_taps, static_cast<i32>(cell.weights.size()));
  }
  axis.first.assign(static_cast<size_t>(axis.padded), cells.empty() ? 0 : cells.back().first);
  axis.weight.assign(static_cast<size_t>(axis.num_taps * axis.padded), Weight(0));
  for (size_t i = 0; i < cells.size(); ++i) {
    axis.first[i] = cells[i].first;
    for (size_t tap = 0; tap < cells[i].weights.size(); ++tap) {
      axis.weight[tap * static_cast<size_t>(axis.padded) + i] = cells[i].weights[tap];
    }
  }
  return axis;
}

// OpenCV's INTER_AREA: the share of every source cell that the target cell covers. A share below a
// thousandth of a cell is dropped, as there.
inline ResampleCell<float> area_cell(i32 source, double scale, i32 i) {
  const double low = i * scale;
  const double high = low + scale;
  const double width = std::fmin(scale, source - low);
  i32 last = std::min(static_cast<i32>(std::floor(high)), source - 1);
  const i32 begin = std::min(static_cast<i32>(std::ceil(low)), last);
  ResampleCell<float> cell{begin, {}};
  if (begin - low > 1e-3) {
    cell.first = begin - 1;
    cell.weights.push_back(static_cast<float>((begin - low) / width));
  }
  for (i32 k = begin; k < last; ++k) cell.weights.push_back(static_cast<float>(1.0 / width));
  if (high - last > 1e-3) {
    const double share = std::fmin(std::fmin(high - last, 1.0), width);
    cell.weights.push_back(static_cast<float>(share / width));
  }
  return cell;
}

inline AreaAxis area_axis(i32 source, i32 target) {
  const double scale = static_cast<double>(source) / target;
  std::vector<ResampleCell<float>> cells;
  for (i32 i = 0; i < target; ++i) cells.push_back(area_cell(source, scale, i));
  return packed_axis(source, cells);
}

// OpenCV's INTER_LINEAR for bytes: two neighbours of the cell's centre, weights of 11 bits.
inline FixedAxis linear_axis(i32 source, i32 target) {
  const double scale = static_cast<double>(source) / target;
  std::vector<ResampleCell<i32>> cells;
  for (i32 i = 0; i < target; ++i) {
    float position = static_cast<float>((i + 0.5) * scale - 0.5);
    i32 first = static_cast<i32>(std::floor(position));
    float fraction = position - static_cast<float>(first);
    if (first < 0) first = 0, fraction = 0;
    if (first >= source - 1) first = source - 1, fraction = 0;
    const i32 right = static_cast<i32>(std::lrint(fraction * 2048.0f));
    const i32 left = static_cast<i32>(std::lrint((1.0f - fraction) * 2048.0f));
    cells.push_back({first, {left, right}});
  }
  return packed_axis(source, cells);
}

// Pillow's BILINEAR: a triangle as wide as the reduction, normalised, weights of 22 bits.
inline ResampleCell<i32> triangle_cell(i32 source, double scale, i32 i) {
  const double support = std::fmax(scale, 1.0);
  const double centre = (i + 0.5) * scale;
  const i32 begin = std::max(static_cast<i32>(centre - support + 0.5), 0);
  const i32 end = std::min(static_cast<i32>(centre + support + 0.5), source);
  std::vector<double> shares;
  double sum = 0;
  for (i32 k = begin; k < end; ++k) {
    const double distance = std::fabs((k - centre + 0.5) * (1.0 / support));
    shares.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
    sum += shares.back();
  }
  ResampleCell<i32> cell{begin, {}};
  for (double share : shares) {
    cell.weights.push_back(static_cast<i32>(share / sum * (1 << 22) + 0.5));
  }
  return cell;
}

inline FixedAxis triangle_axis(i32 source, i32 target) {
  const double scale = static_cast<double>(source) / target;
  std::vector<ResampleCell<i32>> cells;
  for (i32 i = 0; i < target; ++i) cells.push_back(triangle_cell(source, scale, i));
  return packed_axis(source, cells);
}

// Pillow's NEAREST: positions are summed, not multiplied, and the sum is what gets truncated.
inline FixedAxis nearest_axis(i32 source, i32 target) {
  const double scale = static_cast<double>(source) / target;
  std::vector<ResampleCell<i32>> cells;
  double position = scale * 0.5;
  for (i32 i = 0; i < target; ++i, position += scale) {
    cells.push_back({static_cast<i32>(position), {1}});
  }
  return packed_axis(source, cells);
}

}  // namespace scanline
