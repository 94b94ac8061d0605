// A gradient of ATen that the crate tch does not offer, because its mask is a C++ array of flags.
//
// Gives 0 and writes owned tensors (null: not asked for), or gives 1 and copies the reason into `reason`.
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

using at::Tensor;

namespace {

Tensor* owned(const Tensor& tensor) { return tensor.defined() ? new Tensor(tensor) : nullptr; }

}  // namespace

extern "C" int fairtte_convolution_gradients(const Tensor* gradient, const Tensor* x, const Tensor* weight,
                                             const int64_t* stride, const int64_t* padding, size_t dimensions,
                                             const bool* needed, Tensor** results, char* reason, size_t capacity) {
    try {
        const std::vector<int64_t> ones(dimensions, 1), zeros(dimensions, 0);
        const at::IntArrayRef strides(stride, dimensions), paddings(padding, dimensions);
        const auto [dx, dw, db] =
            at::convolution_backward(*gradient, *x, *weight, at::IntArrayRef({weight->size(0)}), strides, paddings, ones,
                                     false, zeros, 1, {needed[0], needed[1], needed[2]});
        results[0] = owned(dx);
        results[1] = owned(dw);
        results[2] = owned(db);
        return 0;
    } catch (const std::exception& error) {
        std::strncpy(reason, error.what(), capacity - 1);
        reason[capacity - 1] = 0;
        return 1;
    }
}
