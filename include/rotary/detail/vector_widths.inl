// From a vector to the next narrower one. Part of every backend.

/// Stands for no vector.
struct no_vector {
  static constexpr std::size_t size = 0;
};

/// Half the lanes, then from twins to plain lanes, down to 16 bytes.
template <class V>
struct narrower;
template <class C, std::size_t W>
struct narrower<lanes<C, W>> {
  using type = std::conditional_t<W * sizeof(C) >= 32, lanes<C, W / 2>, no_vector>;
};
template <std::size_t W>
struct narrower<twin<W>> {
  using type = std::conditional_t<W >= 8, twin<W / 2>, lanes<float, W>>;
};
template <class V>
struct narrower<two_vectors<V>> {
  using type = V;
};
