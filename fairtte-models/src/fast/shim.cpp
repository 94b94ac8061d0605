// Three gradients of ATen that the crate tch does not offer, because their masks are C++ arrays of flags.
//
// Each function gives 0 and writes owned tensors (null: not asked for), or gives 1 and copies the reason into `reason`.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

using at::Tensor;

namespace {

Tensor* owned(const Tensor& tensor) { return tensor.defined() ? new Tensor(tensor) : nullptr; }

template <class Body>
int guarded(char* reason, size_t capacity, Body body) {
    try {
        body();
        return 0;
    } catch (const std::exception& error) {
        std::strncpy(reason, error.what(), capacity - 1);
        reason[capacity - 1] = 0;
        return 1;
    }
}

}  // namespace

extern "C" int fairtte_convolution_gradients(const Tensor* gradient, const Tensor* x, const Tensor* weight,
                                             const int64_t* stride, const int64_t* padding, size_t dimensions,
                                             int64_t groups, const bool* needed, Tensor** results, char* reason,
                                             size_t capacity) {
    return guarded(reason, capacity, [&] {
        const std::vector<int64_t> ones(dimensions, 1), zeros(dimensions, 0);
        const at::IntArrayRef strides(stride, dimensions), paddings(padding, dimensions);
        const auto [dx, dw, db] =
            at::convolution_backward(*gradient, *x, *weight, at::IntArrayRef({weight->size(0)}), strides, paddings, ones,
                                     false, zeros, groups, {needed[0], needed[1], needed[2]});
        results[0] = owned(dx);
        results[1] = owned(dw);
        results[2] = owned(db);
    });
}

extern "C" int fairtte_batch_norm_gradients(const Tensor* gradient, const Tensor* x, const Tensor* gamma,
                                            const Tensor* mean, const Tensor* inverse_deviation, double epsilon,
                                            Tensor** results, char* reason, size_t capacity) {
    return guarded(reason, capacity, [&] {
        const auto [dx, dgamma, dbeta] =
            at::native_batch_norm_backward(*gradient, *x, *gamma, std::nullopt, std::nullopt, *mean, *inverse_deviation,
                                           true, epsilon, {true, true, true});
        results[0] = owned(dx);
        results[1] = owned(dgamma);
        results[2] = owned(dbeta);
    });
}

extern "C" int fairtte_layer_norm_gradients(const Tensor* gradient, const Tensor* x, const Tensor* gamma,
                                            const Tensor* beta, const Tensor* mean, const Tensor* inverse_deviation,
                                            Tensor** results, char* reason, size_t capacity) {
    return guarded(reason, capacity, [&] {
        const auto [dx, dgamma, dbeta] = at::native_layer_norm_backward(
            *gradient, *x, gamma->sizes(), *mean, *inverse_deviation, *gamma, *beta, {true, true, true});
        results[0] = owned(dx);
        results[1] = owned(dgamma);
        results[2] = owned(dbeta);
    });
}
