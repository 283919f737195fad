"""The table makes operators of several frameworks comparable: names as profilers write them."""

from __future__ import annotations

import pytest

from steptime.core.inspection import BETWEEN, IDLE
from steptime.tasks.profile.classes import OTHER, class_of

CUDNN = (
    "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_{}_optimized_f16_64x64_32x5_nhwc_align8>"
    "(Params)"
)
NAMES = {
    "convolution": [
        "aten::convolution_backward",
        "aten::mkldnn_convolution",
        "aten::cudnn_convolution",
        "Conv",
        "FusedConv",
        "_MklNativeFusedConv2D",
        "_MklNativeConv2DBackpropFilterWithBias",
        "conv_general_dilated",
        "Convolution",
        "sm80_xmma_fprop_implicit_gemm_f16f16",
        "cudnn_infer_ampere_scudnn_winograd_128x128",
        CUDNN.format("f16_s16816fprop"),
        CUDNN.format("f16_s16816dgrad"),
        CUDNN.format("s16816wgrad"),
    ],
    "matrix product": [
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::linear",
        "MatMul",
        "_MklMatMul",
        "FusedGemm",
        "dot_general",
        "FullyConnected",
        "ampere_sgemm_128x64_nn",
        "void cutlass::Kernel2<cutlass_80_tensorop>",
        "dot",
        "nvjet_sm90_hsh_128x128_64x6_1x2_h_bz_coopA_TNN",
        "nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_TNN",
    ],
    "attention": [
        "aten::_scaled_dot_product_flash_attention",
        "aten::_flash_attention_backward",
        "fmha_cutlassF_f16",
    ],
    "normalisation": [
        "aten::native_batch_norm",
        "aten::native_batch_norm_backward",
        "aten::native_layer_norm",
        "FusedBatchNormV3",
        "LayerNormalization",
        "aten::cudnn_batch_norm",
    ],
    "pooling": [
        "aten::max_pool2d_with_indices_backward",
        "MaxPool",
        "_MklNativeMaxPoolGrad",
        "reduce_window_max",
    ],
    "softmax and loss": [
        "aten::_log_softmax",
        "aten::nll_loss_forward",
        "aten::_log_softmax_backward_data",
        "Softmax",
    ],
    "elementwise": [
        "aten::relu_",
        "aten::threshold_backward",
        "aten::clamp_min_",
        "aten::add_",
        "aten::mul",
        "ReluGrad",
        "Relu",
        "BiasAddGrad",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>",
        "aten::gelu",
    ],
    "recurrent": [
        "aten::lstm",
        "aten::_thnn_fused_lstm_cell",
        "aten::mkldnn_rnn_layer",
        "aten::gru",
    ],
    "embedding, gather and scatter": [
        "aten::embedding_dense_backward",
        "Gather",
        "ResourceGather",
        "scatter-add",
    ],
    "random and dropout": ["aten::bernoulli_", "aten::native_dropout", "RandomUniform"],
    "optimizer": [
        "aten::_fused_adam_",
        "aten::_fused_sgd_",
        "aten::_foreach_add_",
        "ResourceApplyAdam",
    ],
    "reduction": ["aten::sum", "aten::mean", "ReduceMean", "reduce_sum"],
    "layout, copy and cast": [
        "aten::copy_",
        "aten::view",
        "aten::t",
        "aten::as_strided_",
        "aten::_to_copy",
        "Transpose",
        "ReorderOutput",
        "_MklTranspose",
        "transpose_copy_fusion",
        "Memcpy HtoD (Pinned -> Device)",
        "concatenate",
        "Flatten",
    ],
    "memory": ["aten::empty", "aten::fill_", "aten::zero_", "aten::resize_", "Memset (Device)"],
    "communication": ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all-reduce"],
    "fused, generated code": ["CompiledFxGraph", "graph_0_cpp_fused_0", "fusion"],
    "framework overhead": [
        BETWEEN,
        "autograd::engine::evaluate_function: ConvolutionBackward0",
        "torch::autograd::AccumulateGrad",
        "Optimizer.step#Adam.step",
        "TorchDynamo Cache Lookup",
        "CompiledFunctionBackward",
    ],
    "waiting": [IDLE],
    OTHER: ["frobnicate"],
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names]
)
def test_class_of_maps_profiler_names(kind: str, name: str) -> None:
    assert class_of(name) == kind
