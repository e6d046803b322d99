// Rows of a table by complex products. Part of every backend.

/// The product of all factors, the last of which is `low`, for Count * V::size pairs from `first` on. Two vectors of
/// doubles make a whole line of floats, since halves of lines are slow past the caches.
template <class V, std::size_t Count, class Stored>
ROTARY_INLINE void multiply_pairs(const product_job& job, phasor_row low, std::size_t first, Stored* cos, Stored* sin) {
  V x[Count], y[Count];
  const phasor_row start = job.high_count == 0 ? low : job.high[0];
  ROTARY_UNROLL
  for (std::size_t i = 0; i < Count; ++i) {
    x[i] = V::load(start.cos + first + i * V::size);
    y[i] = V::load(start.sin + first + i * V::size);
  }
  for (unsigned k = 1; k <= job.high_count; ++k) {
    const phasor_row by = k < job.high_count ? job.high[k] : low;
    ROTARY_UNROLL
    for (std::size_t i = 0; i < Count; ++i) {
      const V c = in_register(V::load(by.cos + first + i * V::size));
      const V s = in_register(V::load(by.sin + first + i * V::size));
      const V next = multiply_subtract(x[i], c, y[i], s);
      y[i] = multiply_add(y[i], c, x[i], s);
      x[i] = next;
    }
  }
  if (job.conjugate) {
    ROTARY_UNROLL
    for (std::size_t i = 0; i < Count; ++i) y[i] = multiply(y[i], V::all(-1.0));
  }
  if constexpr (Count == 1) {
    x[0].store(cos + first);
    y[0].store(sin + first);
  } else {
    ROTARY_UNROLL
    for (std::size_t i = 0; i < Count; i += 2) store_two(cos + first + i * V::size, x[i], x[i + 1]);
    ROTARY_UNROLL
    for (std::size_t i = 0; i < Count; i += 2) store_two(sin + first + i * V::size, y[i], y[i + 1]);
  }
}

// Stored is Row, or streamed<Row>.
template <class Stored, class Row>
ROTARY_INLINE void multiply_rows_as(const product_job& job, Row* to_cos, Row* to_sin) {
  using V = lanes<double, widest<double>>;
  Stored* cos = reinterpret_cast<Stored*>(to_cos);
  Stored* sin = reinterpret_cast<Stored*>(to_sin);
  const std::size_t pairs = job.pairs;  // as the compiler cannot know, no store changes it
  phasor_row low = job.low;
  for (std::size_t r = job.rows; r != 0; --r) {
    std::size_t j = 0;
    for (; j + 4 * V::size <= pairs; j += 4 * V::size) multiply_pairs<V, 4>(job, low, j, cos, sin);
    for (; j + 2 * V::size <= pairs; j += 2 * V::size) multiply_pairs<V, 2>(job, low, j, cos, sin);
    for (; j + V::size <= pairs; j += V::size) multiply_pairs<V, 1>(job, low, j, cos, sin);
    for (; j < pairs; ++j) multiply_pairs<lanes<double, 1>, 1>(job, low, j, cos, sin);
    low.cos += pairs;
    low.sin += pairs;
    cos += job.row_stride;
    sin += job.row_stride;
  }
}

/// Complex products in double, rounded once into the rows of a table.
template <class Row>
void multiply_rows(const product_job& job, Row* to_cos, Row* to_sin) {
  if constexpr (std::is_same<Row, float>::value) {
    if (job.stream) return multiply_rows_as<streamed<Row>>(job, to_cos, to_sin);
  }
  multiply_rows_as<Row>(job, to_cos, to_sin);
}
