// layers.cpp -- the Python functions of dense layers, optimiser, loss, returns and draws: checks
// shapes, holds no logic.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <array>

#include "../layers/actor_critic.h"
#include "../layers/draw.h"
#include "../layers/normalise.h"
#include "../layers/optimise.h"
#include "../layers/parallel_for.h"
#include "../layers/returns.h"
#include "dense_layers.h"
#include "images.h"

namespace nb = nanobind;

namespace scanline {

static void py_dense_forward(const Span& rows, const Spans& weights, const Spans& outs, bool relu) {
  const DenseLayers layers(rows, weights, outs, relu);
  nb::gil_scoped_release release;
  layers.forward();
}

// Gradients of the rows are the sum over all layers; with an empty span they are not computed.
static void py_dense_backward(const Span& rows, const Spans& weights, const Spans& outs,
                              const Spans& out_gradients, const Span& row_gradients,
                              const Spans& gradients, bool relu) {
  const DenseLayers layers(rows, weights, outs, relu);
  layers.check_gradients(out_gradients, gradients);
  const bool wanted = row_gradients.second != 0;
  if (wanted && row_gradients.second != rows.second)
    throw_value_error("there must be a gradient for every row.");
  nb::gil_scoped_release release;
  layers.backward(out_gradients, wanted ? floats(row_gradients) : nullptr, gradients);
}

// All arrays of a parameter have one size and one memory order, without gaps; `means` may be empty.
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
  if (!fits) throw_value_error("gradient, parameter and averages must have one size.");
  nb::gil_scoped_release release;
  rmsprop({decay, epsilon, epsilon_inside_root, learning_rate, gradient_scale}, arrays);
}

static std::vector<FloatArray> arrays_of(const Spans& spans) {
  std::vector<FloatArray> arrays;
  for (const Span& span : spans) arrays.push_back({static_cast<i64>(span.second), floats(span)});
  return arrays;
}

static double py_squared_norm(const Spans& spans) {
  const std::vector<FloatArray> arrays = arrays_of(spans);
  nb::gil_scoped_release release;
  return squared_norm(arrays);
}

static bool py_are_finite(const Spans& spans) {
  const std::vector<FloatArray> arrays = arrays_of(spans);
  nb::gil_scoped_release release;
  return are_finite(arrays);
}

static void py_normalise(const Images& images, const Span& mean, const Span& scale,
                         const Span& out) {
  const i32 num = static_cast<i32>(images.shape[0]);
  const i32 num_planes = static_cast<i32>(images.shape[1]);
  const i32 num_pixels = static_cast<i32>(images.shape[2] * images.shape[3]);
  if (!images.frames.bytes) throw_value_error("only images of bytes are normalised.");
  check_size(mean, 1, num_pixels, "mean");
  check_size(scale, 1, num_pixels, "scale");
  check_size(out, num, num_planes * num_pixels, "out");
  nb::gil_scoped_release release;
  normalise(images.frames, num, num_planes, num_pixels, {floats(mean), floats(scale)}, floats(out));
}

// Of every row of `uniforms` the first is used; `actions` are 64-bit integers.
static void py_draw_categorical(const Span& logits, const Span& uniforms, const Span& actions) {
  const i32 num = static_cast<i32>(actions.second);
  if (num == 0) return;
  if (logits.second == 0 || uniforms.second == 0 || logits.second % actions.second != 0 ||
      uniforms.second % actions.second != 0)
    throw_value_error("logits, uniforms and actions do not have the sizes of one batch.");
  draw_categorical(num, static_cast<i32>(logits.second / actions.second), floats(logits),
                   floats(uniforms), static_cast<i64>(uniforms.second / actions.second),
                   reinterpret_cast<i64*>(actions.first));
}

// Actions are 64-bit integers; gives the sums of the policy, entropy and value terms.
static std::array<double, 3> py_actor_critic(const Span& logits, const Span& values,
                                             const Span& returns, const Span& actions,
                                             const Span& logit_gradients,
                                             const Span& value_gradients, double entropy_coef,
                                             double value_coef, double scale) {
  const size_t num = values.second, num_actions = num ? logits.second / num : 0;
  if (logits.second != num * num_actions || returns.second != num || actions.second != num ||
      logit_gradients.second != logits.second || value_gradients.second != num)
    throw_value_error("logits, values, returns and actions do not have the sizes of one batch.");
  const i64* const taken = reinterpret_cast<const i64*>(actions.first);
  for (size_t i = 0; i < num; ++i)
    if (taken[i] < 0 || taken[i] >= static_cast<i64>(num_actions))
      throw_value_error("an action is none of those that have logits.");
  const ActorCriticSums sums = actor_critic(
      {static_cast<i32>(num), static_cast<i32>(num_actions), floats(logits), floats(values),
       floats(returns), taken},
      entropy_coef, value_coef, scale, floats(logit_gradients), floats(value_gradients));
  return {sums.policy, sums.entropy, sums.value};
}

// `terminal` and `truncated` are bytes, 0 or 1.
static void py_n_step_returns(const Span& rewards, const Span& terminal, const Span& truncated,
                              const Span& final_values, const Span& last_values, float discount,
                              const Span& returns) {
  const size_t num = rewards.second, num_envs = last_values.second;
  const size_t num_steps = num_envs ? num / num_envs : 0;
  if (num != num_steps * num_envs || terminal.second != num || truncated.second != num ||
      final_values.second != num || returns.second != num)
    throw_value_error("rewards, ends, values and returns do not have the sizes of one rollout.");
  const auto bytes = [](const Span& span) { return reinterpret_cast<const u8*>(span.first); };
  n_step_returns({static_cast<i32>(num_steps), static_cast<i32>(num_envs), floats(rewards),
                  bytes(terminal), bytes(truncated), floats(final_values), floats(last_values)},
                 discount, floats(returns));
}

// Gradients are allocated and freed with every update: the allocator keeps their pages.
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
  m.def("n_step_returns", &py_n_step_returns, nb::arg("rewards"), nb::arg("terminal"),
        nb::arg("truncated"), nb::arg("final_values"), nb::arg("last_values"), nb::arg("discount"),
        nb::arg("returns"));
  m.def("rmsprop", &py_rmsprop);
  m.def("squared_norm", &py_squared_norm);
  m.def("are_finite", &py_are_finite, nb::arg("arrays"));
  m.def("layer_threads", &layer_threads);
  m.def("set_layer_threads", [](i32 num_threads) {
    if (num_threads < 1) throw_value_error("there must be at least one thread.");
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
  m.def("normalise", &py_normalise, nb::arg("pictures"), nb::arg("mean"), nb::arg("scale"),
        nb::arg("out"));
}

}  // namespace scanline
