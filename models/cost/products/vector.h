// Products by a vector: gemv kernels, which wait for the matrix and for nothing else.
#pragma once

#include "models/cost/products/time.h"

namespace foretrace::products {

/// s, beside the start: the matrix, `bytes` in all, out of the level-2 cache, of which `fits` is
/// found there, or out of memory; as fast as single elements of half precision can be loaded; and
/// where a thread goes along its row in steps, for them. From 168 such rows of
/// reports/measured/products on both GPUs.
double vector_time(const Shape& shape, double bytes, const Speeds& speeds, double fits);

}  // namespace foretrace::products
