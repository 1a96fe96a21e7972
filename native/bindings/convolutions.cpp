// convolutions.cpp -- the Python classes of a network's convolutions and the layers behind them:
// checks shapes, holds no logic.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include <memory>
#include <optional>

#include "../layers/pass_pool.h"
#include "dense_layers.h"
#include "images.h"

namespace nb = nanobind;

namespace scanline {

// `weights` alternate between weights and biases: first of the convolutions, then optionally of a
// dense layer that reads their features, then optionally of output layers that read its rows.
// `rows` are the results: the features; or the rows of the dense layer, followed by those of every
// output layer.
class PyConvPass {
 public:
  explicit PyConvPass(std::shared_ptr<PassPool> pool)
      : pool_(std::move(pool)), pass_(pool_->acquire()) {}
  PyConvPass(PyConvPass&&) = default;
  ~PyConvPass() {
    if (pass_) pool_->release(std::move(pass_));
  }

  void clear() { pass_->clear(); }

  // `keep` is false for images without a backward pass. `finite`: whether all weights are; it is
  // read with the first images of a pass.
  void forward(const Images& images, const Spans& weights, const Spans& rows, bool keep,
               bool finite) {
    Call call = call_of(num_of(images), weights, rows);
    call.convs.are_finite = finite;
    const DenseWeights* const dense = call.dense.units ? &call.dense : nullptr;
    nb::gil_scoped_release release;
    if (keep) {
      pass_->forward(images.frames, call.num, call.convs, dense, floats(rows[0]));
    } else {
      pass_->infer(images.frames, call.num, call.convs, dense, floats(rows[0]));
    }
    if (call.outputs) call.outputs->forward();
  }

  // `out_gradients` are those of the output layers, else of the dense layer, else of the features.
  // `gradients` have the order of the weights.
  void backward(const Spans& weights, const Spans& rows, const Spans& out_gradients,
                const Spans& gradients) {
    const Call call = call_of(pass_->num_images(), weights, rows);
    check_weights(gradients, weights);
    const Spans for_outputs = from(gradients, num_conv_arrays() + 2);
    if (call.outputs) {
      call.outputs->check_gradients(out_gradients, for_outputs);
    } else if (out_gradients.size() != 1 || out_gradients[0].second != rows[0].second) {
      throw_value_error("there must be a gradient for every row.");
    }
    if (call.dense.units && pass_->num_dense_images() != pass_->num_images())
      throw_value_error("not all images of this pass went through a dense layer.");
    nb::gil_scoped_release release;
    const float* row_gradients = floats(out_gradients[0]);
    if (call.outputs) {
      row_gradients_.resize(rows[0].second);
      call.outputs->backward(out_gradients, row_gradients_.data(), for_outputs);
      row_gradients = row_gradients_.data();
    }
    backward_convs(call, rows[0], row_gradients, gradients);
  }

 private:
  struct Call {
    i32 num;
    ConvPass::Weights convs;
    DenseWeights dense;  // 0 units if there is none
    std::optional<DenseLayers> outputs;
  };

  Call call_of(i32 num, const Spans& weights, const Spans& rows) const {
    const size_t end = num_conv_arrays(), behind_dense = end + 2;
    check_convolutions(weights);
    Call call{num, conv_arrays<ConvPass::Weights>(weights), {nullptr, nullptr, 0}, std::nullopt};
    if (weights.size() > end) call.dense = dense_of(weights);
    const size_t num_rows =
        weights.size() > behind_dense ? 1 + (weights.size() - behind_dense) / 2 : 1;
    if (rows.size() != num_rows)
      throw_value_error("there must be rows for every layer that gives some.");
    check_size(rows[0], num, call.dense.units ? call.dense.units : num_features(), "rows");
    if (weights.size() > behind_dense)
      call.outputs.emplace(rows[0], from(weights, behind_dense), from(rows, 1),
                           /*relu=*/false);
    return call;
  }

  void backward_convs(const Call& call, const Span& rows, const float* row_gradients,
                      const Spans& gradients) {
    const auto for_convs = conv_arrays<ConvPass::Gradients>(gradients);
    if (!call.dense.units) {
      pass_->backward(call.convs, row_gradients, for_convs);
      return;
    }
    const size_t end = num_conv_arrays();
    pass_->backward(call.convs,
                    {call.dense,
                     floats(rows),
                     row_gradients,
                     {floats(gradients[end]), floats(gradients[end + 1])}},
                    for_convs);
  }

  i32 num_of(const Images& images) const {
    const ConvShape& first = pool_->shapes().front();
    if (images.shape[1] != first.channels || images.shape[2] != first.height ||
        images.shape[3] != first.width)
      throw_value_error("images do not have the sizes of the first convolution.");
    return static_cast<i32>(images.shape[0]);
  }

  i32 num_features() const { return feature_floats(pool_->shapes()); }

  // Weight and bias arrays of all convolutions.
  size_t num_conv_arrays() const { return 2 * pool_->shapes().size(); }

  static Spans from(const Spans& spans, size_t first) {
    return spans.size() > first
               ? Spans(spans.begin() + static_cast<std::ptrdiff_t>(first), spans.end())
               : Spans();
  }

  DenseWeights dense_of(const Spans& spans) const {
    const size_t end = num_conv_arrays();
    const i32 units = spans.size() > end + 1 ? static_cast<i32>(spans[end + 1].second) : 0;
    if (units == 0 || units % 16 != 0)
      throw_value_error("a dense layer behind convolutions has a multiple of 16 units.");
    check_size(spans[end], units, num_features(), "weights of the dense layer");
    return {floats(spans[end]), floats(spans[end + 1]), units};
  }

  // Filters and biases of the convolutions.
  template <class Arrays>
  Arrays conv_arrays(const Spans& spans) const {
    Arrays arrays;
    for (size_t i = 0; i < num_conv_arrays(); i += 2) {
      arrays.filters.push_back(floats(spans[i]));
      arrays.biases.push_back(floats(spans[i + 1]));
    }
    return arrays;
  }

  void check_convolutions(const Spans& spans) const {
    const std::vector<ConvShape>& shapes = pool_->shapes();
    if (spans.size() < num_conv_arrays() || spans.size() % 2 != 0)
      throw_value_error("there must be filters and biases for every convolution.");
    for (size_t l = 0; l < shapes.size(); ++l)
      if (spans[2 * l].second != static_cast<size_t>(shapes[l].num_weights()) ||
          spans[2 * l + 1].second != static_cast<size_t>(shapes[l].filters))
        throw_value_error("weights do not have the sizes of convolution " + std::to_string(l) +
                          ".");
  }

  static void check_weights(const Spans& gradients, const Spans& weights) {
    bool fits = gradients.size() == weights.size();
    for (size_t i = 0; fits && i < weights.size(); ++i)
      fits = gradients[i].second == weights[i].second;
    if (!fits) throw_value_error("there must be a gradient of the same size for every weight.");
  }

  std::shared_ptr<PassPool> pool_;
  std::unique_ptr<ConvPass> pass_;
  std::vector<float> row_gradients_;  // of the dense layer, if output layers follow
};

class PyConvStack {
 public:
  using Sizes = std::vector<std::vector<i32>>;

  explicit PyConvStack(const Sizes& sizes)
      : pool_(std::make_shared<PassPool>(supported(shapes_from(sizes)))) {}

  static std::vector<ConvShape> supported(std::vector<ConvShape> shapes) {
    if (const char* reason = convolutions_refusal(shapes)) throw_value_error(reason);
    return shapes;
  }

  static std::vector<ConvShape> shapes_from(const Sizes& sizes) {
    std::vector<ConvShape> shapes;
    for (const std::vector<i32>& s : sizes) {
      if (s.size() != 10) throw_value_error("a convolution has ten sizes.");
      shapes.push_back({s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9]});
    }
    return shapes;
  }

  i32 num_features() const { return feature_floats(pool_->shapes()); }
  PyConvPass begin() const { return PyConvPass(pool_); }

 private:
  std::shared_ptr<PassPool> pool_;
};

void bind_convolutions(nb::module_& m) {
  nb::class_<Images>(m, "Images")
      .def(nb::init<uintptr_t, bool, Images::Four, Images::Four, float, float>(),
           nb::arg("address"), nb::arg("bytes"), nb::arg("shape"), nb::arg("strides"),
           nb::arg("scale"), nb::arg("offset"));
  nb::class_<PyConvStack>(m, "ConvStack")
      .def(nb::init<const PyConvStack::Sizes&>(), nb::arg("sizes"))
      .def_static("refusal",
                  [](const PyConvStack::Sizes& sizes) {
                    return convolutions_refusal(PyConvStack::shapes_from(sizes));
                  })
      .def_prop_ro("feature_floats", &PyConvStack::num_features)
      .def("begin", &PyConvStack::begin);
  nb::class_<PyConvPass>(m, "ConvPass")
      .def("clear", &PyConvPass::clear)
      .def("forward", &PyConvPass::forward, nb::arg("pictures"), nb::arg("weights"),
           nb::arg("rows"), nb::arg("keeps") = true, nb::arg("finite") = true)
      .def("backward", &PyConvPass::backward, nb::arg("weights"), nb::arg("rows"),
           nb::arg("out_gradients"), nb::arg("gradients"));
}

}  // namespace scanline
