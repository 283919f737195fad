"""Which class an operator belongs to: one table for the names of all frameworks and CUDA kernels.

A name is split into words first (`_MklNativeFusedConv2D` is `mkl native fused conv2 d`). The
first line that matches wins, so special lines come before general ones. Backward operators carry
the name of their forward operator."""

from __future__ import annotations

import re
from functools import cache

# Of the table. Shares of two versions are not comparable line by line.
VERSION = 2
OTHER = "other"
TABLE = (
    ("waiting", r"^\(device waits\)$"),
    (
        "framework overhead",
        r"^\(between operators\)$|^autograd|accumulate grad|^torch |dynamo|aot ?dispatcher|"
        r"^compiled function|torch compiled|^optimizer |^profiler|^cuda (launch|stream|event|"
        r"device)|^(executor|thunk executor|pjit function|model run|while|call|tuple|"
        r"parameter|constant|const|no op|identity)\b",
    ),
    (
        "communication",
        r"\b(nccl|gloo|all ?reduce|all ?gather|reduce ?scatter|all ?to ?all|send|recv)\b",
    ),
    (
        "optimizer",
        r"\bfused (sgd|adam|adamw)|\bforeach\b|multi tensor apply|resource (sparse )?apply|"
        r"\bassign\b|\bassign (add|sub)",
    ),
    ("attention", r"attention|\bsdpa\b|\bflash\b|\bfmha\b|scaled dot product"),
    ("recurrent", r"\b(\w*lstm\w*|gru\w*|rnn\w*|mkldnn rnn\w*)\b"),
    ("convolution", r"\bconv\w*|winograd|fprop|dgrad|wgrad|implicit (convolve|gemm)|im2col|col2im"),
    ("pooling", r"\w*pool\w*|reduce window|select and scatter"),
    ("normalisation", r"\w*norm(alization)?\w*\b|\bbn (fw|bw)\w*|\blrn\b|moments"),
    (
        "matrix product",
        r"\b\w*mm\b|mat ?mul|\w*gemm\w*|\w*gemv\w*|\blinear\b|\bdot( general)?\b|"
        r"inner product|einsum|cublas|cutlass|nvjet|fully connected|\bouter\b|\bger\b",
    ),
    ("softmax and loss", r"softmax|\bnll\b|cross entropy|\bloss\b|log sum exp|logsumexp"),
    (
        "random and dropout",
        r"dropout|bernoulli|random|\brand\w*|philox|threefry|\brng\b|\buniform\b|\bnormal\b",
    ),
    (
        "embedding, gather and scatter",
        r"embedding|gather|scatter|\bindex\w*|one ?hot|\btake\b|\bsort\b|top ?k",
    ),
    (
        "elementwise",
        r"\b(relu\w*|threshold|gelu|erf|sigmoid|tanh|clamp\w*|clip|hardtanh|leaky|silu|swish|"
        r"add\w*|sub|mul\w*|div\w*|real div|neg|abs|exp|log\w*|sqrt|rsqrt|square|pow|where|"
        r"select|maximum|minimum|bias \w+|eq|ne|gt|ge|lt|le|equal|greater|less|not|and|or|"
        r"compare|elementwise\w*|eltwise\w*|poi|iota|range|is finite)\b|relu",
    ),
    (
        "reduction",
        r"\b(sum|mean|reduce\w*|argmax|arg max|max|min|prod|cumsum|norm|any|all|per|red)\b",
    ),
    (
        "layout, copy and cast",
        r"\b(copy\w*|transpose\w*|permute|contiguous|clone|to|cast|convert|bitcast\w*|"
        r"concat\w*|cat|pad\w*|slice\w*|strided\w*|dynamic|update|split\w*|stack|pack|unpack|"
        r"expand\w*|repeat|tile|flatten|reshape\w*|view\w*|squeeze\w*|unsqueeze|narrow|"
        r"unbind|detach|alias|as|t|reverse|reorder\w*|memcpy\w*|quantize\w*|dequantize\w*|"
        r"item|local|read variable op|lift|broadcast\w*|shape|unfold)\b",
    ),
    (
        "memory",
        r"\b(empty\w*|resize\w*|fill\w*|zero\w*|ones\w*|full|memset\w*|alloc\w*|free|malloc|"
        r"new|set)\b",
    ),
    ("fused, generated code", r"fx ?graph|fused|fusion|triton"),
    ("framework overhead", r"backward\d*$|\bstep\b"),
)
PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in TABLE)
# Between the words of a name: at a change to upper case, or at punctuation.
BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|[_:./\-\s#,<>]+")


@cache
def class_of(name: str) -> str:
    text = name
    if not name.startswith("("):
        text = " ".join(filter(None, BOUNDARY.split(name))).lower()
    text = text.removeprefix("aten ").removeprefix("void at native ")
    for class_name, pattern in PATTERNS:
        if pattern.search(text):
            return class_name
    return OTHER
