// kernels.cpp -- whether this processor has the instructions that the kernels are compiled for.
#include "kernels.h"

namespace scanline {

const char* kernels_refusal() {
#if defined(SCANLINE_WITH_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
             ? nullptr
             : "the processor has no AVX2 or FMA";
#else
  return "this build has kernels for x86-64 only";
#endif
}

#if !defined(SCANLINE_WITH_AVX2)
// Never called.
void pack_columns(const float*, i32, i64, i32, float*) {}
void pack_rows(const float* const*, i64, i32, float*) {}
void sum_rows(const float*, const float*, i32, float*) {}
void accumulate_rows(i32, i32, i32, const float*, float*) {}
bool compute_outputs(const Taps&, i32, i32, const float*, const float*, const Outputs&) {
  return true;
}
void add_filter_gradients(const Taps&, i32, i32, const FilterTileLists&, const SparseRows&,
                          float*) {}
void scatter_add_columns(const i32*, i64, const float*, i32, i32, const float*, float*) {}
void add_input_gradients(const i32*, const SparseRow*, i64, i32, i32, const float*, float*) {}
void relu_backward_rows(i32, i32, const float*, float*) {}
void dense_units(const DenseUnits&, const float*, const float*, const float*, float*) {}
void row_gradient_panels(i32, i32, i64, const float*, const float*, i32, bool, float*) {}
void weight_gradient_panels(i32, i32, i64, const float*, const float*, i32, float*) {}
void multiply_position(const PositionProducts&, float*, i64) {}
void sum_positions(const i32*, i32, const float*, i64, const float*, i32, float*) {}
void relu_backward_row(i32, const float*, const float*, float*, u64*) {}
void position_weight_gradients(const PositionGradients&, bool, float*) {}
void position_pair_gradients(const PositionGradients&, const float*, float* const*) {}
#endif

}  // namespace scanline
