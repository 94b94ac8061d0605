// Functions of LibTorch that the crate tch does not offer: gradients with a mask of what is wanted, a step of AdamW in one kernel, the layout
// of tensors, and the memory of a GPU. Called by foreign.rs alone, which says what each takes.
//
// Every function returns a null pointer, or the message of the exception that ended it, valid until the thread calls another one.

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <string>
#include <vector>

using at::Tensor;

namespace {

thread_local std::string message;

template <class Function>
const char *guarded(Function compute) {
    try {
        compute();
        return nullptr;
    } catch (const std::exception &error) {
        message = error.what();
    } catch (...) {
        message = "an exception of unknown type";
    }
    return message.c_str();
}

// A tensor of its own for the caller, or a null pointer for one that was not computed.
Tensor *owned(Tensor tensor) {
    return tensor.defined() ? new Tensor(std::move(tensor)) : nullptr;
}

template <class Tuple, size_t... N>
void give(Tuple found, Tensor **places, std::index_sequence<N...>) {
    ((places[N] = owned(std::move(std::get<N>(found)))), ...);
}

template <class... Tensors>
void give(std::tuple<Tensors...> found, Tensor **places) {
    give(std::move(found), places, std::index_sequence_for<Tensors...>{});
}

} // namespace

extern "C" {

const char *fairtte_aten_convolution_backward(
    const Tensor *gradient, const Tensor *x, const Tensor *weight, const int64_t *stride, const int64_t *padding, int64_t axes,
    int64_t groups, const bool *wanted, Tensor **found) {
    return guarded([&] {
        const std::vector<int64_t> ones(axes, 1), zeros(axes, 0), of_bias{weight->size(0)};
        give(
            at::convolution_backward(
                *gradient, *x, *weight, of_bias, at::IntArrayRef(stride, axes), at::IntArrayRef(padding, axes), ones, false, zeros,
                groups,
                {wanted[0], wanted[1], wanted[2]}),
            found);
    });
}

const char *fairtte_aten_batch_norm_backward(
    const Tensor *gradient, const Tensor *x, const Tensor *gamma, const Tensor *mean, const Tensor *inverse_deviation, double epsilon,
    Tensor **found) {
    return guarded([&] {
        give(
            at::native_batch_norm_backward(
                *gradient, *x, *gamma, {}, {}, *mean, *inverse_deviation, true, epsilon, {true, true, true}),
            found);
    });
}

const char *fairtte_aten_layer_norm_backward(
    const Tensor *gradient, const Tensor *x, const Tensor *gamma, const Tensor *mean, const Tensor *inverse_deviation,
    Tensor **found) {
    return guarded([&] {
        // Of beta only whether there is one is read.
        give(
            at::native_layer_norm_backward(
                *gradient, *x, gamma->sizes(), *mean, *inverse_deviation, *gamma, *gamma, {true, true, true}),
            found);
    });
}

const char *fairtte_aten_adamw(
    Tensor *parameter, const Tensor *gradient, Tensor *first, Tensor *second, const Tensor *time, double learning_rate, double beta_1,
    double beta_2, double epsilon, double weight_decay) {
    return guarded([&] {
        at::_fused_adamw_(
            {*parameter}, {*gradient}, {*first}, {*second}, {}, {*time}, learning_rate, beta_1, beta_2, weight_decay, epsilon,
            /*amsgrad=*/false, /*maximize=*/false);
    });
}

const char *fairtte_aten_channels_last(const Tensor *x, Tensor **found) {
    return guarded([&] {
        const auto format = x->dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
        *found = owned(x->contiguous(format));
    });
}

const char *fairtte_aten_reserved(int8_t index, int64_t *bytes) {
    return guarded([&] {
        const auto whole = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        *bytes = c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(index).reserved_bytes[whole].peak;
    });
}

}
