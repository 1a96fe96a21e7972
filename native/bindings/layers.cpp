// layers.cpp -- the layers of a network on the CPU for Python: checks shapes, holds no logic.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "../layers/actor_critic.h"
#include "../layers/conv_stack.h"
#include "../layers/dense.h"
#include "../layers/draw.h"
#include "../layers/normalise.h"
#include "../layers/optimise.h"
#include "../layers/workers.h"

namespace nb = nanobind;

namespace scanline {

// Arrays come as address and number of floats (scanline.spans): the caller keeps them alive and
// without gaps, sizes are checked here.
using Span = std::pair<uintptr_t, size_t>;
using Spans = std::vector<Span>;

static float* floats(const Span& span) { return reinterpret_cast<float*>(span.first); }

[[noreturn]] static void refuse_layers(const std::string& why) {
  throw nb::value_error(why.c_str());
}

static void check_size(const Span& span, i32 num, i32 each, const char* what) {
  if (span.second != static_cast<size_t>(num) * static_cast<size_t>(each))
    refuse_layers(std::string(what) + " has " + std::to_string(span.second) + " floats, but " +
                  std::to_string(num) + " rows need " + std::to_string(each) + " each.");
}

// Pictures [num, planes, height, width] of bytes or floats, wherever each plane lies.
struct Pictures {
  using Four = std::array<i64, 4>;

  Pictures(uintptr_t address, bool bytes, Four shape, Four strides, float scale, float offset)
      : frames{
            reinterpret_cast<const void*>(address), bytes, strides[0], strides[1], scale, offset},
        shape(shape) {
    if (strides[3] != 1 || strides[2] != shape[3])
      refuse_layers("a plane of a picture must be contiguous.");
  }

  Frames frames;
  Four shape;
};

// Passes that nobody uses keep their memory for the next one.
class PassPool {
 public:
  explicit PassPool(std::vector<ConvShape> shapes) : stack_(std::move(shapes)) {}

  const ConvStack& stack() const { return stack_; }

  std::unique_ptr<ConvPass> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<ConvPass>(stack_.shapes());
    std::unique_ptr<ConvPass> pass = std::move(free_.back());
    free_.pop_back();
    return pass;
  }

  void give_back(std::unique_ptr<ConvPass> pass) {
    pass->clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < kMostFree) free_.push_back(std::move(pass));
  }

 private:
  static constexpr size_t kMostFree = 4;
  const ConvStack stack_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ConvPass>> free_;
};

class PyConvPass {
 public:
  explicit PyConvPass(std::shared_ptr<PassPool> pool)
      : pool_(std::move(pool)), pass_(pool_->take()) {}
  PyConvPass(PyConvPass&&) = default;
  ~PyConvPass() {
    if (pass_) pool_->give_back(std::move(pass_));
  }

  void clear() { pass_->clear(); }

  // Gives features, or with the weights and biases of a dense layer its rows. `keeps` is false for
  // pictures that nobody will go back from.
  void forward(const Pictures& pictures, const Spans& weights, const Spans& dense, const Span& rows,
               bool keeps) {
    const i32 num = num_of(pictures);
    check_weights(weights);
    const DenseWeights layer = dense_of(dense);
    check_size(rows, num, dense.empty() ? num_features() : layer.units, "rows");
    const ConvPass::Weights pairs = pairs_of<ConvPass::Weights>(weights);
    const DenseWeights* const wanted = dense.empty() ? nullptr : &layer;
    nb::gil_scoped_release release;
    if (keeps) {
      pass_->forward(pictures.frames, num, pairs, wanted, floats(rows));
    } else {
      pass_->peek(pictures.frames, num, pairs, wanted, floats(rows));
    }
  }

  void backward(const Spans& weights, const Span& feature_gradients, const Spans& gradients) {
    check_weights(weights);
    check_weights(gradients);
    check_size(feature_gradients, pass_->num_pictures(), num_features(), "feature_gradients");
    nb::gil_scoped_release release;
    pass_->backward(pairs_of<ConvPass::Weights>(weights), floats(feature_gradients),
                    pairs_of<ConvPass::Gradients>(gradients));
  }

  void backward_dense(const Spans& weights, const Spans& dense, const Span& rows,
                      const Span& row_gradients, const Spans& gradients,
                      const Spans& dense_gradients) {
    check_weights(weights);
    check_weights(gradients);
    const DenseWeights layer = dense_of(dense);
    (void)dense_of(dense_gradients);
    if (layer.units == 0 || dense_gradients.size() != dense.size())
      refuse_layers("there must be weights and biases of a dense layer, and their gradients.");
    if (pass_->num_dense() != pass_->num_pictures())
      refuse_layers("not all pictures of this pass went through a dense layer.");
    check_size(rows, pass_->num_pictures(), layer.units, "rows");
    check_size(row_gradients, pass_->num_pictures(), layer.units, "row_gradients");
    nb::gil_scoped_release release;
    pass_->backward(pairs_of<ConvPass::Weights>(weights),
                    {layer,
                     floats(rows),
                     floats(row_gradients),
                     {floats(dense_gradients[0]), floats(dense_gradients[1])}},
                    pairs_of<ConvPass::Gradients>(gradients));
  }

 private:
  i32 num_of(const Pictures& pictures) const {
    const ConvShape& first = pool_->stack().shapes().front();
    if (pictures.shape[1] != first.channels || pictures.shape[2] != first.height ||
        pictures.shape[3] != first.width)
      refuse_layers("pictures do not have the sizes of the first convolution.");
    return static_cast<i32>(pictures.shape[0]);
  }

  i32 num_features() const { return feature_floats(pool_->stack().shapes()); }

  // Weights and biases, or nothing.
  DenseWeights dense_of(const Spans& spans) const {
    if (spans.empty()) return {nullptr, nullptr, 0};
    const i32 units = spans.size() == 2 ? static_cast<i32>(spans[1].second) : 0;
    if (units == 0 || units % 16 != 0)
      refuse_layers("a dense layer behind convolutions has a multiple of 16 units.");
    check_size(spans[0], units, num_features(), "weights of the dense layer");
    return {floats(spans[0]), floats(spans[1]), units};
  }

  // Filters and biases in turn.
  template <class Pairs>
  static Pairs pairs_of(const Spans& spans) {
    Pairs pairs;
    for (size_t i = 0; i < spans.size(); i += 2) {
      pairs.filters.push_back(floats(spans[i]));
      pairs.biases.push_back(floats(spans[i + 1]));
    }
    return pairs;
  }

  void check_weights(const Spans& spans) const {
    const std::vector<ConvShape>& shapes = pool_->stack().shapes();
    if (spans.size() != 2 * shapes.size())
      refuse_layers("there must be filters and biases for every convolution.");
    for (size_t l = 0; l < shapes.size(); ++l)
      if (spans[2 * l].second != static_cast<size_t>(shapes[l].weights()) ||
          spans[2 * l + 1].second != static_cast<size_t>(shapes[l].filters))
        refuse_layers("weights do not have the sizes of convolution " + std::to_string(l) + ".");
  }

  std::shared_ptr<PassPool> pool_;
  std::unique_ptr<ConvPass> pass_;
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

static DenseShape dense_shape(const Span& rows, const Span& weights, const Span& biases,
                              const Span& out, bool rectified) {
  const size_t units = biases.second, inputs = units ? weights.second / units : 0;
  const size_t num = inputs ? rows.second / inputs : 0;
  const DenseShape shape{static_cast<i32>(num), static_cast<i32>(inputs), static_cast<i32>(units),
                         rectified};
  if (weights.second != units * inputs || rows.second != num * inputs)
    refuse_layers("rows, weights and biases do not have the sizes of one layer.");
  if (const char* reason = dense_refusal(shape.inputs)) refuse_layers(reason);
  check_size(out, shape.num, shape.units, "out");
  return shape;
}

// Weights and biases of layers that read the same rows, in turn.
static void check_pairs(const Spans& weights, size_t num_layers) {
  if (num_layers == 0 || weights.size() != 2 * num_layers)
    refuse_layers("there must be weights and biases for every layer.");
}

static void py_dense_forward(const Span& rows, const Spans& weights, const Spans& outs,
                             bool rectified) {
  check_pairs(weights, outs.size());
  std::vector<DenseShape> shapes;
  for (size_t l = 0; l < outs.size(); ++l)
    shapes.push_back(dense_shape(rows, weights[2 * l], weights[2 * l + 1], outs[l], rectified));
  nb::gil_scoped_release release;
  for (size_t l = 0; l < outs.size(); ++l)
    dense_forward(shapes[l], floats(rows), floats(weights[2 * l]), floats(weights[2 * l + 1]),
                  floats(outs[l]));
}

// Gradients of weights and biases come in turn too; those of the rows are the sum over all layers.
static void py_dense_backward(const Span& rows, const Spans& weights, const Spans& outs,
                              const Spans& out_gradients, const Span& row_gradients,
                              const Spans& gradients, bool rectified) {
  check_pairs(weights, outs.size());
  check_pairs(gradients, outs.size());
  check_pairs(weights, out_gradients.size());
  const bool wanted = row_gradients.second != 0;
  std::vector<DenseShape> shapes;
  for (size_t l = 0; l < outs.size(); ++l) {
    shapes.push_back(dense_shape(rows, weights[2 * l], weights[2 * l + 1], outs[l], rectified));
    const DenseShape& shape = shapes.back();
    check_size(out_gradients[l], shape.num, shape.units, "out_gradients");
    check_size(gradients[2 * l], shape.units, shape.inputs, "weight_gradients");
    check_size(gradients[2 * l + 1], shape.units, 1, "bias_gradients");
    if (wanted) check_size(row_gradients, shape.num, shape.inputs, "row_gradients");
  }
  nb::gil_scoped_release release;
  for (size_t l = 0; l < outs.size(); ++l)
    dense_backward(shapes[l], floats(rows), floats(weights[2 * l]), floats(outs[l]),
                   floats(out_gradients[l]),
                   {wanted ? floats(row_gradients) : nullptr, /*adds=*/l > 0},
                   floats(gradients[2 * l]), floats(gradients[2 * l + 1]));
}

// Arrays of one size that are dense in the same order, whatever it is; `means` may be empty.
static void py_rmsprop(const Spans& gradients, const Spans& parameters, const Spans& squares,
                       const Spans& means, float decay, float epsilon, bool epsilon_inside_root,
                       float learning_rate, float gradient_scale) {
  std::vector<RmspropArrays> arrays;
  const size_t num = gradients.size();
  bool fits = parameters.size() == num && squares.size() == num;
  fits = fits && (means.empty() || means.size() == num);
  for (size_t i = 0; fits && i < num; ++i) {
    const size_t size = gradients[i].second;
    fits = parameters[i].second == size && squares[i].second == size &&
           (means.empty() || means[i].second == size);
    arrays.push_back({static_cast<i64>(size), floats(gradients[i]), floats(parameters[i]),
                      floats(squares[i]), means.empty() ? nullptr : floats(means[i])});
  }
  if (!fits) refuse_layers("gradient, parameter and averages must have one size.");
  nb::gil_scoped_release release;
  rmsprop({decay, epsilon, epsilon_inside_root, learning_rate, gradient_scale}, arrays);
}

static double py_squared_norm(const Spans& spans) {
  std::vector<FloatArray> arrays;
  for (const Span& span : spans) arrays.push_back({static_cast<i64>(span.second), floats(span)});
  nb::gil_scoped_release release;
  return squared_norm(arrays);
}

static void py_normalise(const Pictures& pictures, const Span& mean, const Span& scale,
                         const Span& out) {
  const i32 num = static_cast<i32>(pictures.shape[0]);
  const i32 num_planes = static_cast<i32>(pictures.shape[1]);
  const i32 num_pixels = static_cast<i32>(pictures.shape[2] * pictures.shape[3]);
  if (!pictures.frames.bytes) refuse_layers("only pictures of bytes are normalised.");
  check_size(mean, 1, num_pixels, "mean");
  check_size(scale, 1, num_pixels, "scale");
  check_size(out, num, num_planes * num_pixels, "out");
  nb::gil_scoped_release release;
  normalise(pictures.frames, num, num_planes, num_pixels, {floats(mean), floats(scale)},
            floats(out));
}

// Uniforms are the first of every row, `actions` 64-bit integers.
static void py_draw_categorical(const Span& logits, const Span& uniforms, const Span& actions) {
  const i32 num = static_cast<i32>(actions.second);
  if (num == 0) return;
  if (logits.second % actions.second != 0 || uniforms.second % actions.second != 0)
    refuse_layers("logits, uniforms and actions do not have the sizes of one batch.");
  draw_categorical(num, static_cast<i32>(logits.second / actions.second), floats(logits),
                   floats(uniforms), static_cast<i64>(uniforms.second / actions.second),
                   reinterpret_cast<i64*>(actions.first));
}

// Actions are 64-bit integers; gives the sums of the policy's, the entropy's and the value's term.
static std::array<double, 3> py_actor_critic(const Span& logits, const Span& values,
                                             const Span& returns, const Span& actions,
                                             const Span& logit_gradients,
                                             const Span& value_gradients, double entropy_coef,
                                             double value_coef, double scale) {
  const size_t num = values.second, num_actions = num ? logits.second / num : 0;
  if (logits.second != num * num_actions || returns.second != num || actions.second != num ||
      logit_gradients.second != logits.second || value_gradients.second != num)
    refuse_layers("logits, values, returns and actions do not have the sizes of one batch.");
  const i64* const taken = reinterpret_cast<const i64*>(actions.first);
  for (size_t i = 0; i < num; ++i)
    if (taken[i] < 0 || taken[i] >= static_cast<i64>(num_actions))
      refuse_layers("an action is none of those that have logits.");
  const ActorCriticSums sums = actor_critic(
      {static_cast<i32>(num), static_cast<i32>(num_actions), floats(logits), floats(values),
       floats(returns), taken},
      entropy_coef, value_coef, scale, floats(logit_gradients), floats(value_gradients));
  return {sums.policy, sums.entropy, sums.value};
}

// Gradients come and go with every update: their pages need not be made anew each time.
static void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

void bind_layers(nb::module_& m) {
  m.def("actor_critic", &py_actor_critic, nb::arg("logits"), nb::arg("values"), nb::arg("returns"),
        nb::arg("actions"), nb::arg("logit_gradients"), nb::arg("value_gradients"),
        nb::arg("entropy_coef"), nb::arg("value_coef"), nb::arg("scale"));
  m.def("keep_freed_memory", &keep_freed_memory);
  m.def("rmsprop", &py_rmsprop);
  m.def("squared_norm", &py_squared_norm);
  m.def("layer_threads", &layer_threads);
  m.def("set_layer_threads", [](i32 num_threads) {
    if (num_threads < 1) refuse_layers("there must be at least one thread.");
    set_layer_threads(num_threads);
  });
  m.def("draw_categorical", &py_draw_categorical, nb::arg("logits"), nb::arg("uniforms"),
        nb::arg("actions"));
  m.def("dense_refusal", &dense_refusal);
  m.def("dense_forward", &py_dense_forward, nb::arg("rows"), nb::arg("weights"), nb::arg("outs"),
        nb::arg("rectified"));
  m.def("dense_backward", &py_dense_backward, nb::arg("rows"), nb::arg("weights"), nb::arg("outs"),
        nb::arg("out_gradients"), nb::arg("row_gradients"), nb::arg("gradients"),
        nb::arg("rectified"));
  nb::class_<Pictures>(m, "Pictures")
      .def(nb::init<uintptr_t, bool, Pictures::Four, Pictures::Four, float, float>(),
           nb::arg("address"), nb::arg("bytes"), nb::arg("shape"), nb::arg("strides"),
           nb::arg("scale"), nb::arg("offset"));
  m.def("normalise", &py_normalise, nb::arg("pictures"), nb::arg("mean"), nb::arg("scale"),
        nb::arg("out"));
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
           nb::arg("dense"), nb::arg("rows"), nb::arg("keeps") = true)
      .def("backward", &PyConvPass::backward, nb::arg("weights"), nb::arg("feature_gradients"),
           nb::arg("gradients"))
      .def("backward_dense", &PyConvPass::backward_dense, nb::arg("weights"), nb::arg("dense"),
           nb::arg("rows"), nb::arg("row_gradients"), nb::arg("gradients"),
           nb::arg("dense_gradients"));
}

}  // namespace scanline
