// convolutions.cpp -- the convolutions of a network and the layers behind them for Python: checks
// shapes, holds no logic.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include <memory>
#include <optional>

#include "../layers/pass_pool.h"
#include "dense_layers.h"
#include "pictures.h"

namespace nb = nanobind;

namespace scanline {

// Weights and biases of the convolutions, in turn; after them may come those of a dense layer that
// reads their features, and after that those of output layers that read its rows. `rows` are what
// the last two give: features alone, rows of the dense layer alone, or these and every output.
class PyConvPass {
 public:
  explicit PyConvPass(std::shared_ptr<PassPool> pool)
      : pool_(std::move(pool)), pass_(pool_->take()) {}
  PyConvPass(PyConvPass&&) = default;
  ~PyConvPass() {
    if (pass_) pool_->give_back(std::move(pass_));
  }

  void clear() { pass_->clear(); }

  // `keeps` is false for pictures that nobody will go back from. `finite` says whether all weights
  // are; it is asked with the first pictures of a pass.
  void forward(const Pictures& pictures, const Spans& weights, const Spans& rows, bool keeps,
               bool finite) {
    Way way = way_of(num_of(pictures), weights, rows);
    way.convs.are_finite = finite;
    const DenseWeights* const dense = way.dense.units ? &way.dense : nullptr;
    nb::gil_scoped_release release;
    if (keeps) {
      pass_->forward(pictures.frames, way.num, way.convs, dense, floats(rows[0]));
    } else {
      pass_->peek(pictures.frames, way.num, way.convs, dense, floats(rows[0]));
    }
    if (way.outputs) way.outputs->forward();
  }

  // `out_gradients` belong to the last of the three. Gradients come in the order of the weights.
  void backward(const Spans& weights, const Spans& rows, const Spans& out_gradients,
                const Spans& gradients) {
    const Way way = way_of(pass_->num_pictures(), weights, rows);
    check_weights(gradients, weights);
    const Spans for_outputs = behind(gradients, num_convs() + 2);
    if (way.outputs) {
      way.outputs->check_gradients(out_gradients, for_outputs);
    } else if (out_gradients.size() != 1 || out_gradients[0].second != rows[0].second) {
      refuse_layers("there must be a gradient for every row.");
    }
    if (way.dense.units && pass_->num_dense() != pass_->num_pictures())
      refuse_layers("not all pictures of this pass went through a dense layer.");
    nb::gil_scoped_release release;
    const float* row_gradients = floats(out_gradients[0]);
    if (way.outputs) {
      row_gradients_.resize(rows[0].second);
      way.outputs->backward(out_gradients, row_gradients_.data(), for_outputs);
      row_gradients = row_gradients_.data();
    }
    go_back(way, rows[0], row_gradients, gradients);
  }

 private:
  struct Way {
    i32 num;
    ConvPass::Weights convs;
    DenseWeights dense;  // no units where there is none
    std::optional<DenseLayers> outputs;
  };

  Way way_of(i32 num, const Spans& weights, const Spans& rows) const {
    const size_t end = num_convs(), behind_dense = end + 2;
    check_convolutions(weights);
    Way way{num, pairs_of<ConvPass::Weights>(weights), {nullptr, nullptr, 0}, std::nullopt};
    if (weights.size() > end) way.dense = dense_of(weights);
    const size_t num_rows =
        weights.size() > behind_dense ? 1 + (weights.size() - behind_dense) / 2 : 1;
    if (rows.size() != num_rows)
      refuse_layers("there must be rows for every layer that gives some.");
    check_size(rows[0], num, way.dense.units ? way.dense.units : num_features(), "rows");
    if (weights.size() > behind_dense)
      way.outputs.emplace(rows[0], behind(weights, behind_dense), behind(rows, 1),
                          /*rectified=*/false);
    return way;
  }

  void go_back(const Way& way, const Span& rows, const float* row_gradients,
               const Spans& gradients) {
    const auto for_convs = pairs_of<ConvPass::Gradients>(gradients);
    if (!way.dense.units) {
      pass_->backward(way.convs, row_gradients, for_convs);
      return;
    }
    const size_t end = num_convs();
    pass_->backward(way.convs,
                    {way.dense,
                     floats(rows),
                     row_gradients,
                     {floats(gradients[end]), floats(gradients[end + 1])}},
                    for_convs);
  }

  i32 num_of(const Pictures& pictures) const {
    const ConvShape& first = pool_->stack().shapes().front();
    if (pictures.shape[1] != first.channels || pictures.shape[2] != first.height ||
        pictures.shape[3] != first.width)
      refuse_layers("pictures do not have the sizes of the first convolution.");
    return static_cast<i32>(pictures.shape[0]);
  }

  i32 num_features() const { return feature_floats(pool_->stack().shapes()); }

  // Arrays of all convolutions.
  size_t num_convs() const { return 2 * pool_->stack().shapes().size(); }

  static Spans behind(const Spans& spans, size_t first) {
    return spans.size() > first
               ? Spans(spans.begin() + static_cast<std::ptrdiff_t>(first), spans.end())
               : Spans();
  }

  DenseWeights dense_of(const Spans& spans) const {
    const size_t end = num_convs();
    const i32 units = spans.size() > end + 1 ? static_cast<i32>(spans[end + 1].second) : 0;
    if (units == 0 || units % 16 != 0)
      refuse_layers("a dense layer behind convolutions has a multiple of 16 units.");
    check_size(spans[end], units, num_features(), "weights of the dense layer");
    return {floats(spans[end]), floats(spans[end + 1]), units};
  }

  // Filters and biases of the convolutions.
  template <class Pairs>
  Pairs pairs_of(const Spans& spans) const {
    Pairs pairs;
    for (size_t i = 0; i < num_convs(); i += 2) {
      pairs.filters.push_back(floats(spans[i]));
      pairs.biases.push_back(floats(spans[i + 1]));
    }
    return pairs;
  }

  void check_convolutions(const Spans& spans) const {
    const std::vector<ConvShape>& shapes = pool_->stack().shapes();
    if (spans.size() < num_convs() || spans.size() % 2 != 0)
      refuse_layers("there must be filters and biases for every convolution.");
    for (size_t l = 0; l < shapes.size(); ++l)
      if (spans[2 * l].second != static_cast<size_t>(shapes[l].weights()) ||
          spans[2 * l + 1].second != static_cast<size_t>(shapes[l].filters))
        refuse_layers("weights do not have the sizes of convolution " + std::to_string(l) + ".");
  }

  static void check_weights(const Spans& gradients, const Spans& weights) {
    bool fits = gradients.size() == weights.size();
    for (size_t i = 0; fits && i < weights.size(); ++i)
      fits = gradients[i].second == weights[i].second;
    if (!fits) refuse_layers("there must be a gradient of the same size for every weight.");
  }

  std::shared_ptr<PassPool> pool_;
  std::unique_ptr<ConvPass> pass_;
  std::vector<float> row_gradients_;  // of the dense layer, where outputs follow
};

class PyConvStack {
 public:
  using Sizes = std::vector<std::vector<i32>>;

  explicit PyConvStack(const Sizes& sizes)
      : pool_(std::make_shared<PassPool>(supported(shapes_from(sizes)))) {}

  static std::vector<ConvShape> supported(std::vector<ConvShape> shapes) {
    if (const char* reason = ConvStack::refusal(shapes)) refuse_layers(reason);
    return shapes;
  }

  static std::vector<ConvShape> shapes_from(const Sizes& sizes) {
    std::vector<ConvShape> shapes;
    for (const std::vector<i32>& s : sizes) {
      if (s.size() != 10) refuse_layers("a convolution has ten sizes.");
      shapes.push_back({s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9]});
    }
    return shapes;
  }

  i32 num_features() const { return feature_floats(pool_->stack().shapes()); }
  PyConvPass begin() const { return PyConvPass(pool_); }

 private:
  std::shared_ptr<PassPool> pool_;
};

void bind_convolutions(nb::module_& m) {
  nb::class_<Pictures>(m, "Pictures")
      .def(nb::init<uintptr_t, bool, Pictures::Four, Pictures::Four, float, float>(),
           nb::arg("address"), nb::arg("bytes"), nb::arg("shape"), nb::arg("strides"),
           nb::arg("scale"), nb::arg("offset"));
  nb::class_<PyConvStack>(m, "ConvStack")
      .def(nb::init<const PyConvStack::Sizes&>(), nb::arg("sizes"))
      .def_static("refusal",
                  [](const PyConvStack::Sizes& sizes) {
                    return ConvStack::refusal(PyConvStack::shapes_from(sizes));
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
