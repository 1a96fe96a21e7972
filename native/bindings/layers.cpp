// layers.cpp -- the layers of a network on the CPU for Python: checks shapes, holds no logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "../layers/conv_stack.h"
#include "../layers/dense.h"
#include "../layers/rmsprop.h"
#include "../layers/workers.h"

namespace nb = nanobind;

namespace scanline {

using Pictures = nb::ndarray<nb::ro, nb::ndim<4>, nb::device::cpu>;
using Read = nb::ndarray<const float, nb::device::cpu>;
using Written = nb::ndarray<float, nb::device::cpu>;

[[noreturn]] static void refuse_layers(const std::string& why) {
  throw nb::value_error(why.c_str());
}

class PyConvStack {
 public:
  using Sizes = std::vector<std::vector<i32>>;

  explicit PyConvStack(const Sizes& sizes) : stack_(supported(shapes_from(sizes))) {}

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

  i32 feature_floats() const { return stack_.feature_floats(); }
  i32 kept_floats() const { return stack_.kept_floats(); }

  void forward(Pictures pictures, float scale, float offset, const std::vector<Read>& weights,
               Written kept, Written features) const {
    const Frames frames = frames_of(pictures, scale, offset);
    const i32 num = static_cast<i32>(pictures.shape(0));
    const ConvStack::Weights given = weights_of(weights);
    check_size(features.size(), num, feature_floats(), "features");
    if (kept.size() != 0) check_size(kept.size(), num, kept_floats(), "kept");
    float* const keep = kept.size() != 0 ? kept.data() : nullptr;  // empty: nobody will go back
    nb::gil_scoped_release release;
    stack_.forward(frames, num, given, keep, features.data());
  }

  void backward(Pictures pictures, float scale, float offset, const std::vector<Read>& weights,
                Read kept, Read features, Read feature_gradients,
                const std::vector<Written>& gradients) const {
    const Frames frames = frames_of(pictures, scale, offset);
    const i32 num = static_cast<i32>(pictures.shape(0));
    const ConvStack::Weights given = weights_of(weights);
    check_size(kept.size(), num, kept_floats(), "kept");
    check_size(features.size(), num, feature_floats(), "features");
    check_size(feature_gradients.size(), num, feature_floats(), "feature_gradients");
    ConvStack::Gradients wanted;
    for (size_t l = 0; l < stack_.shapes().size(); ++l) {
      check_weights(gradients.at(2 * l).size(), gradients.at(2 * l + 1).size(), l);
      wanted.filters.push_back(gradients[2 * l].data());
      wanted.biases.push_back(gradients[2 * l + 1].data());
    }
    nb::gil_scoped_release release;
    stack_.backward(frames, num, given, kept.data(), features.data(), feature_gradients.data(),
                    wanted);
  }

 private:
  Frames frames_of(const Pictures& pictures, float scale, float offset) const {
    const ConvShape& first = stack_.shapes().front();
    const bool bytes = pictures.dtype() == nb::dtype<u8>();
    if (!bytes && pictures.dtype() != nb::dtype<float>())
      refuse_layers("pictures must be uint8 or float32.");
    const bool fits = static_cast<i32>(pictures.shape(1)) == first.channels &&
                      static_cast<i32>(pictures.shape(2)) == first.height &&
                      static_cast<i32>(pictures.shape(3)) == first.width;
    if (!fits) refuse_layers("pictures do not have the sizes of the first convolution.");
    if (pictures.stride(3) != 1 || pictures.stride(2) != first.width)
      refuse_layers("a plane of a picture must be contiguous.");
    return {pictures.data(), bytes, pictures.stride(0), pictures.stride(1), scale, offset};
  }

  ConvStack::Weights weights_of(const std::vector<Read>& weights) const {
    ConvStack::Weights given;
    if (weights.size() != 2 * stack_.shapes().size())
      refuse_layers("there must be filters and biases for every convolution.");
    for (size_t l = 0; l < stack_.shapes().size(); ++l) {
      check_weights(weights[2 * l].size(), weights[2 * l + 1].size(), l);
      given.filters.push_back(weights[2 * l].data());
      given.biases.push_back(weights[2 * l + 1].data());
    }
    return given;
  }

  void check_weights(size_t filters, size_t biases, size_t layer) const {
    const ConvShape& conv = stack_.shapes()[layer];
    if (filters != static_cast<size_t>(conv.weights()) ||
        biases != static_cast<size_t>(conv.filters))
      refuse_layers("weights do not have the sizes of convolution " + std::to_string(layer) + ".");
  }

  static void check_size(size_t size, i32 num, i32 each, const char* what) {
    if (size != static_cast<size_t>(num) * static_cast<size_t>(each))
      refuse_layers(std::string(what) + " has " + std::to_string(size) + " floats, but " +
                    std::to_string(num) + " pictures need " + std::to_string(each) + " each.");
  }

  ConvStack stack_;
};

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MatrixOut = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using RowOut = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
void check_shape(const Array& array, size_t rows, size_t columns, const char* what) {
  if (array.shape(0) != rows || array.shape(1) != columns)
    refuse_layers(std::string(what) + " has shape (" + std::to_string(array.shape(0)) + ", " +
                  std::to_string(array.shape(1)) + ") but must have (" + std::to_string(rows) +
                  ", " + std::to_string(columns) + ").");
}

static DenseShape dense_shape(const Matrix& rows, const Matrix& weights, bool rectified) {
  check_shape(weights, weights.shape(0), rows.shape(1), "weights");
  const DenseShape shape{static_cast<i32>(rows.shape(0)), static_cast<i32>(rows.shape(1)),
                         static_cast<i32>(weights.shape(0)), rectified};
  if (const char* reason = dense_refusal(shape.inputs, shape.units)) refuse_layers(reason);
  return shape;
}

static void py_dense_forward(Matrix rows, Matrix weights, Row biases, MatrixOut out,
                             bool rectified) {
  const DenseShape shape = dense_shape(rows, weights, rectified);
  check_shape(out, rows.shape(0), weights.shape(0), "out");
  if (biases.shape(0) != weights.shape(0)) refuse_layers("there must be one bias per unit.");
  nb::gil_scoped_release release;
  dense_forward(shape, rows.data(), weights.data(), biases.data(), out.data());
}

static void py_dense_backward(Matrix rows, Matrix weights, Matrix out, Matrix out_gradients,
                              MatrixOut row_gradients, MatrixOut weight_gradients,
                              RowOut bias_gradients, bool rectified) {
  const DenseShape shape = dense_shape(rows, weights, rectified);
  check_shape(out, rows.shape(0), weights.shape(0), "out");
  check_shape(out_gradients, rows.shape(0), weights.shape(0), "out_gradients");
  check_shape(weight_gradients, weights.shape(0), weights.shape(1), "weight_gradients");
  const bool wanted = row_gradients.size() != 0;
  if (wanted) check_shape(row_gradients, rows.shape(0), rows.shape(1), "row_gradients");
  if (bias_gradients.shape(0) != weights.shape(0))
    refuse_layers("there must be one bias per unit.");
  nb::gil_scoped_release release;
  dense_backward(shape, rows.data(), weights.data(), out.data(), out_gradients.data(),
                 wanted ? row_gradients.data() : nullptr, weight_gradients.data(),
                 bias_gradients.data());
}

// Arrays of one size that are dense in the same order, whatever it is; `mean` may be empty.
static void py_rmsprop(Read gradient, Written parameter, Written square, Written mean, float decay,
                       float epsilon, bool epsilon_inside_root, float learning_rate) {
  const size_t num = gradient.size();
  const bool centred = mean.size() != 0;
  if (parameter.size() != num || square.size() != num || (centred && mean.size() != num))
    refuse_layers("gradient, parameter and averages must have one size.");
  nb::gil_scoped_release release;
  rmsprop({decay, epsilon, epsilon_inside_root, learning_rate}, static_cast<i64>(num),
          gradient.data(), parameter.data(), square.data(), centred ? mean.data() : nullptr);
}

void bind_layers(nb::module_& m) {
  m.def("rmsprop", &py_rmsprop);
  m.def("layer_threads", &layer_threads);
  m.def("set_layer_threads", [](i32 num_threads) {
    if (num_threads < 1) refuse_layers("there must be at least one thread.");
    set_layer_threads(num_threads);
  });
  m.def("dense_refusal", &dense_refusal);
  m.def("dense_forward", &py_dense_forward);
  m.def("dense_backward", &py_dense_backward, nb::arg("rows"), nb::arg("weights"), nb::arg("out"),
        nb::arg("out_gradients"), nb::arg("row_gradients"), nb::arg("weight_gradients"),
        nb::arg("bias_gradients"), nb::arg("rectified"));
  nb::class_<PyConvStack>(m, "ConvStack")
      .def(nb::init<const PyConvStack::Sizes&>(), nb::arg("sizes"))
      .def_static("refusal",
                  [](const PyConvStack::Sizes& sizes) {
                    return ConvStack::refusal(PyConvStack::shapes_from(sizes));
                  })
      .def_prop_ro("feature_floats", &PyConvStack::feature_floats)
      .def_prop_ro("kept_floats", &PyConvStack::kept_floats)
      .def("forward", &PyConvStack::forward, nb::arg("pictures"), nb::arg("scale"),
           nb::arg("offset"), nb::arg("weights"), nb::arg("kept"), nb::arg("features"))
      .def("backward", &PyConvStack::backward, nb::arg("pictures"), nb::arg("scale"),
           nb::arg("offset"), nb::arg("weights"), nb::arg("kept"), nb::arg("features"),
           nb::arg("feature_gradients"), nb::arg("gradients"));
}

}  // namespace scanline
