// Rows of a table by complex products. Part of every backend.

// Stored is Row, or streamed<Row>.
template <class Stored, class Row>
ROTARY_INLINE void multiply_rows_as(const product_job& job, Row* to_cos, Row* to_sin) {
  using V = lanes<double, widest<double>>;
  const double sign = job.conjugate ? -1.0 : 1.0;
  for (std::size_t r = 0; r < job.rows; ++r) {
    const double* low_cos = job.low_cos + r * job.pairs;
    const double* low_sin = job.low_sin + r * job.pairs;
    Stored* cos = reinterpret_cast<Stored*>(to_cos + static_cast<std::ptrdiff_t>(r) * job.row_stride);
    Stored* sin = reinterpret_cast<Stored*>(to_sin + static_cast<std::ptrdiff_t>(r) * job.row_stride);
    std::size_t j = 0;
    for (; j + V::size <= job.pairs; j += V::size) {
      const V a = V::load(job.high_cos + j), b = V::load(job.high_sin + j);
      const V c = V::load(low_cos + j), s = V::load(low_sin + j);
      multiply_subtract(a, c, b, s).store(cos + j);
      V y = multiply_add(b, c, a, s);
      if (job.conjugate) y = multiply(y, V::all(sign));
      y.store(sin + j);
    }
    for (; j < job.pairs; ++j) {
      const double a = job.high_cos[j], b = job.high_sin[j], c = low_cos[j], s = low_sin[j];
      store_scalar<double>(cos + j, a * c - b * s);
      store_scalar<double>(sin + j, (b * c + a * s) * sign);
    }
  }
}

/// Complex products in double, rounded once into the rows of a table.
template <class Row>
void multiply_rows(const product_job& job, Row* to_cos, Row* to_sin) {
  if (job.stream) {
    multiply_rows_as<streamed<Row>>(job, to_cos, to_sin);
  } else {
    multiply_rows_as<Row>(job, to_cos, to_sin);
  }
}
