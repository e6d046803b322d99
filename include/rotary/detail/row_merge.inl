// Some pairs of one row put into another. Part of every backend.

/// Replaces the pairs whose mask has all bits set. The bits of `sign` are changed in the sines.
inline void merge_row(const merge_job& job) {
  const double* const from_cos = job.from.cos;
  const double* const from_sin = job.from.sin;
  const std::uint64_t* const masks = job.mask;
  double* const to_cos = job.cos;
  double* const to_sin = job.sin;
  const std::uint64_t sign = job.sign;
  const std::size_t end = job.end;
  std::size_t j = job.begin;
#if ROTARY_GNU
  constexpr std::size_t W = widest<double>;
  using bits = vec_t<std::uint64_t, W>;
  for (; j + W <= end; j += W) {
    const bits mask = load_bytes<std::uint64_t, W>(masks + j);
    const bits cos = load_bytes<std::uint64_t, W>(from_cos + j), sin = load_bytes<std::uint64_t, W>(from_sin + j);
    const bits old_cos = load_bytes<std::uint64_t, W>(to_cos + j), old_sin = load_bytes<std::uint64_t, W>(to_sin + j);
    const bits new_cos = (cos & mask) | (old_cos & ~mask);
    const bits new_sin = ((sin ^ sign) & mask) | (old_sin & ~mask);
    std::memcpy(to_cos + j, &new_cos, sizeof new_cos);
    std::memcpy(to_sin + j, &new_sin, sizeof new_sin);
  }
#endif
  for (; j < end; ++j) {
    if (masks[j] == 0) continue;
    to_cos[j] = from_cos[j];
    to_sin[j] = bit_cast<double>(bit_cast<std::uint64_t>(from_sin[j]) ^ sign);
  }
}
