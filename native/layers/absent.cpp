// absent.cpp -- where the compiler knows no AVX2: every layer is refused, PyTorch does the work.
#include "conv_stack.h"
#include "dense.h"

namespace scanline {

static const char* const kReason = "this build has kernels for x86-64 only";

const char* ConvStack::refusal(const std::vector<ConvShape>&) { return kReason; }
class ConvPass::Segment {};
ConvPass::ConvPass(std::vector<ConvShape> shapes) : shapes_(std::move(shapes)) {}
ConvPass::~ConvPass() = default;
void ConvPass::clear() {}
void ConvPass::forward(const Frames&, i32, const Weights&, const DenseWeights*, float*) {}
void ConvPass::peek(const Frames&, i32, const Weights&, const DenseWeights*, float*) {}
void ConvPass::backward(const Weights&, const float*, const Gradients&) {}
void ConvPass::backward(const Weights&, DenseWay, const Gradients&) {}

const char* dense_refusal(i32) { return kReason; }
void dense_forward(const DenseShape&, const float*, const float*, const float*, float*) {}
void dense_backward(const DenseShape&, const float*, const float*, const float*, const float*,
                    RowGradients, float*, float*) {}

}  // namespace scanline
