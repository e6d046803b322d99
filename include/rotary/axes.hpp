// Which position each pair of channels reads, for tokens that have several: text, height and width of an image, time.
#ifndef ROTARY_AXES_HPP
#define ROTARY_AXES_HPP

#include <utility>

#include "spectrum.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// The angle of pair j is inv_freq[j] * position[map[j]]: a token has a position on each axis, a pair reads one of
/// them. An immutable value. The makers below have the maps of published models; the axes are numbered in the order in
/// which position_planes lists them.
class axis_map {
 public:
  static constexpr std::size_t most_axes = 255;

  /// The axis of each pair, [pairs]. Throws error unless there are 1 to 255 axes and every entry is below `axes`; an
  /// axis that no pair reads is legal.
  explicit axis_map(list<std::uint8_t> axis_of_pair, std::size_t axes)
      : axis_of_pair_(std::move(axis_of_pair)), axes_(axes) {
    if (axes == 0 || axes > most_axes) {
      detail::fail("rotary::axis_map: axes is %zu; it must be 1 to %zu. Count the positions of one token.", axes,
                   most_axes);
    }
    detail::require_rotary_dim("axis_map", 2 * pairs());
    for (std::size_t j = 0; j < pairs(); ++j) {
      if (axis_of_pair_[j] < axes) continue;
      detail::fail("rotary::axis_map: axis_of_pair[%zu] is %u; it must be below axes, %zu. Axes count from 0.", j,
                   unsigned{axis_of_pair_[j]}, axes);
    }
  }

  std::size_t pairs() const noexcept { return axis_of_pair_.size(); }
  std::size_t axes() const noexcept { return axes_; }
  /// The axis of pair j < pairs().
  std::size_t operator[](std::size_t j) const noexcept { return axis_of_pair_[j]; }
  /// [pairs]
  const list<std::uint8_t>& axis_of_pair() const noexcept { return axis_of_pair_; }

  friend bool operator==(const axis_map& a, const axis_map& b) {
    return a.axes_ == b.axes_ && a.axis_of_pair_ == b.axis_of_pair_;
  }
  friend bool operator!=(const axis_map& a, const axis_map& b) { return !(a == b); }

 private:
  list<std::uint8_t> axis_of_pair_;
  std::size_t axes_;
};

namespace detail {

/// The number of pairs in all sections.
inline std::size_t sum_of_sections(const char* maker, const list<std::size_t>& sections) {
  constexpr std::size_t most = rotary_dim_limit / 2;
  if (sections.empty() || sections.size() > axis_map::most_axes) {
    fail("rotary::%s: sections has %zu values; it must have 1 to %zu, one of each axis. Give mrope_section.", maker,
         sections.size(), axis_map::most_axes);
  }
  std::size_t sum = 0;
  for (std::size_t a = 0; a < sections.size(); ++a) {
    if (sections[a] > most - sum) {
      fail("rotary::%s: sections[%zu] is %zu; all sections together may have %zu pairs. Check for a negative value.",
           maker, a, sections[a], most);
    }
    sum += sections[a];
  }
  return sum;
}

inline void require_sections(const char* maker, const list<std::size_t>& sections, std::size_t count) {
  if (sections.size() == count) return;
  fail("rotary::%s: sections has %zu values; it must have %zu, one of each axis. Give mrope_section.", maker,
       sections.size(), count);
}

/// Pair j = axis, axis + 3, axis + 6, ... as many as the axis has; the last of them must exist.
inline void interleave(const char* maker, list<std::uint8_t>& axis_of_pair, const list<std::size_t>& sections,
                       std::size_t axis) {
  const std::size_t count = sections[axis], pairs = axis_of_pair.size();
  if (count != 0 && 3 * (count - 1) + axis >= pairs) {
    fail(
        "rotary::%s: sections[%zu] is %zu; of %zu pairs in all, every third from pair %zu on is %zu of them. A larger "
        "section would lose pairs without notice.",
        maker, axis, count, pairs, axis, pairs > axis ? (pairs - axis + 2) / 3 : 0);
  }
  for (std::size_t i = 0; i < count; ++i) axis_of_pair[3 * i + axis] = static_cast<std::uint8_t>(axis);
}

}  // namespace detail

/// Sections of pairs, one of each axis, one after the other. M-RoPE (arXiv 2409.12191): t, h, w with mrope_section
/// {16, 24, 24} in Qwen2-VL and Qwen2.5-VL, {8, 12, 12} in GLM-4.1V, a fourth section in xDRoPE (HunyuanVL, {16, 16,
/// 16, 16}) and in ggml's MROPE. Also axial grids: {d / 2, ...} of axial{d, ...}'s channels, {8, 28, 28} for Flux.
/// Sections count pairs, so they sum to rotary_dim / 2. Throws error for no section and for sums beyond the largest
/// rotary_dim.
inline axis_map mrope_chunked(const list<std::size_t>& sections) {
  list<std::uint8_t> axis_of_pair(detail::sum_of_sections("mrope_chunked", sections));
  std::size_t j = 0;
  for (std::size_t a = 0; a < sections.size(); ++a) {
    for (std::size_t i = 0; i < sections[a]; ++i) axis_of_pair[j++] = static_cast<std::uint8_t>(a);
  }
  return axis_map(std::move(axis_of_pair), sections.size());
}

/// Interleaved M-RoPE of Qwen3-VL, Qwen3.5 and Qwen3-Omni as transformers reads it, mrope_section {24, 20, 20} or
/// {11, 11, 10}: axis h for pairs 1, 4, 7, ... (h of them), w for 2, 5, 8, ... (w of them), t for all others. Throws
/// error unless there are three sections and every axis gets exactly its section: transformers and ggml clip
/// larger ones without notice.
inline axis_map mrope_interleaved(const list<std::size_t>& sections) {
  detail::require_sections("mrope_interleaved", sections, 3);
  list<std::uint8_t> axis_of_pair(detail::sum_of_sections("mrope_interleaved", sections));
  for (std::size_t axis = 1; axis < 3; ++axis) detail::interleave("mrope_interleaved", axis_of_pair, sections, axis);
  return axis_map(std::move(axis_of_pair), 3);
}

/// The same model as ggml's IMROPE (mode 40) computes it, for parity with llama.cpp: four sections (GGUF's
/// rope.dimension_sections, {24, 20, 20, 0}), of which t too only has pairs 0, 3, 6, ... below 3 * t; what is left
/// reads the fourth axis. llama.cpp gives position 0 there for text, so for Qwen3-VL's 64 pairs it does not rotate
/// pairs 61 and 62, where the model was trained with t. Throws error unless there are four sections and h and w get
/// theirs.
inline axis_map mrope_interleaved_ggml(const list<std::size_t>& sections) {
  detail::require_sections("mrope_interleaved_ggml", sections, 4);
  list<std::uint8_t> axis_of_pair(detail::sum_of_sections("mrope_interleaved_ggml", sections));
  for (std::size_t j = 0; j < axis_of_pair.size(); ++j) axis_of_pair[j] = j % 3 == 0 && j / 3 < sections[0] ? 0 : 3;
  for (std::size_t axis = 1; axis < 3; ++axis) {
    detail::interleave("mrope_interleaved_ggml", axis_of_pair, sections, axis);
  }
  return axis_map(std::move(axis_of_pair), 4);
}

namespace detail {
/// The axis whose share of its pairs is the smallest so far, the first of several; not `last` unless it alone has any
/// left.
inline std::size_t least_served(const list<std::size_t>& counts, const list<std::size_t>& placed, std::size_t last) {
  std::size_t best = counts.size();
  for (std::size_t a = 0; a < counts.size(); ++a) {
    if (placed[a] == counts[a] || a == last) continue;
    if (best == counts.size() || placed[a] * counts[best] < placed[best] * counts[a]) best = a;
  }
  return best == counts.size() ? last : best;
}
}  // namespace detail

/// openPangu-VL's interleaved M-RoPE as vLLM computes it: each pair goes to the axis that has the smallest share of its
/// section so far (the first of several), but to another one than the pair before while there is one. The last of three
/// sections' pairs goes to t. Throws error unless there are two sections (h, w) or three (t, h, w) with t > 0.
inline axis_map mrope_balanced(const list<std::size_t>& sections) {
  if (sections.size() != 2) detail::require_sections("mrope_balanced", sections, 3);
  list<std::uint8_t> axis_of_pair(detail::sum_of_sections("mrope_balanced", sections));
  list<std::size_t> counts = sections, placed(sections.size());
  if (counts.size() == 3 && counts[0]-- == 0) {
    detail::fail("rotary::mrope_balanced: sections[0] is 0; it must be at least 1 of three. The last pair reads it.");
  }
  std::size_t last = counts.size();
  for (std::size_t j = 0; j < axis_of_pair.size(); ++j) {
    const bool reserved = counts.size() == 3 && j + 1 == axis_of_pair.size();
    last = reserved ? 0 : detail::least_served(counts, placed, last);
    axis_of_pair[j] = static_cast<std::uint8_t>(last);
    ++placed[last];
  }
  return axis_map(std::move(axis_of_pair), sections.size());
}

/// ERNIE-4.5-VL, and Ming (Bailing) in vLLM: of the first h + w pairs the even ones read axis 1 (h), the odd ones axis
/// 2 (w); the last t pairs read axis 0 (t). ERNIE's section {22, 22, 20} lists h, w, t, Ming's lists t, h, w. Throws
/// error unless h equals w.
inline axis_map height_width_alternating(std::size_t h, std::size_t w, std::size_t t) {
  list<std::uint8_t> axis_of_pair(detail::sum_of_sections("height_width_alternating", {h, w, t}));
  if (h != w) {
    detail::fail("rotary::height_width_alternating: h is %zu and w is %zu; they must be equal. They take turns.", h, w);
  }
  for (std::size_t j = 0; j < h + w; ++j) axis_of_pair[j] = j % 2 == 0 ? 1 : 2;
  return axis_map(std::move(axis_of_pair), 3);
}

namespace detail {
inline void require_even_pairs(const char* maker, std::size_t pairs) {
  if (pairs % 2 == 0 && pairs <= rotary_dim_limit / 2) return;
  fail("rotary::%s: pairs is %zu; it must be even and at most %zu. Two axes share the rotary_dim / 2 pairs.", maker,
       pairs, rotary_dim_limit / 2);
}
}  // namespace detail

/// Images of two axes: the first half of the pairs reads axis 0, the second half axis 1. With a spectrum by
/// axial{{d / 2, d / 2}} of d = 2 * pairs channels: the vision towers of Qwen2-VL to Qwen3-VL, GLM-4V and PaddleOCR-VL
/// (h, w), Llama-4 (x, y, positions from 1) and SAM2. With axial_even_odd: Pixtral and Mistral-3. DINOv3: axial with
/// rope_theta 100 and coordinates c = 2 (i + 0.5) / N - 1 of (y, x), given as the positions 2 pi c. Throws error on an
/// odd number of pairs.
inline axis_map vision_2d(std::size_t pairs) {
  detail::require_even_pairs("vision_2d", pairs);
  list<std::uint8_t> axis_of_pair(pairs);
  for (std::size_t j = pairs / 2; j < pairs; ++j) axis_of_pair[j] = 1;
  return axis_map(std::move(axis_of_pair), 2);
}

/// MoonViT (Kimi-VL, Kimi-K2.5): even pairs read axis 0 (x), odd pairs axis 1 (y), with a spectrum by
/// axial_alternating. Throws error on an odd number of pairs.
inline axis_map vision_2d_alternating(std::size_t pairs) {
  detail::require_even_pairs("vision_2d_alternating", pairs);
  list<std::uint8_t> axis_of_pair(pairs);
  for (std::size_t j = 1; j < pairs; j += 2) axis_of_pair[j] = 1;
  return axis_map(std::move(axis_of_pair), 2);
}

/// Positions of tokens on several axes, borrowed: that of token t on axis a is first[a * axis_stride + t]. Dense
/// [axes, tokens] planes (transformers' position_ids, [3, batch, tokens] too) have axis_stride = tokens; 0 gives all
/// axes the same positions, as text has. P is std::int32_t, std::int64_t, float or double.
template <class P>
struct position_planes {
  const P* first;
  std::size_t axes, tokens;
  std::ptrdiff_t axis_stride;  ///< elements from one axis to the next; any sign

  P at(std::size_t axis, std::size_t token) const noexcept {
    return first[static_cast<std::ptrdiff_t>(axis) * axis_stride + static_cast<std::ptrdiff_t>(token)];
  }

  /// Throws rotary::error unless these are planes for a map of so many axes.
  void check(const char* function, std::size_t of_map) const {
    if (axes != of_map) {
      detail::fail("rotary::%s: planes.axes is %zu; the axis_map has %zu axes. Give the positions of each axis.",
                   function, axes, of_map);
    }
    if (first == nullptr && tokens != 0) {
      detail::fail("rotary::%s: positions is a null pointer with %zu tokens; pass the array.", function, tokens);
    }
    if (axes > 1 && axis_stride != 0) check_stride(function);
  }

 private:
  ROTARY_NOINLINE void check_stride(const char* function) const {
    const std::size_t stride = static_cast<std::size_t>(axis_stride), apart = axis_stride < 0 ? 0 - stride : stride;
    if (apart >= tokens && apart <= static_cast<std::size_t>(-1) / 2 / sizeof(P) / axes) return;
    detail::fail(
        "rotary::%s: planes.axis_stride is %lld; it must be 0 (all axes share a plane) or at least tokens, %zu, and "
        "within the address space. Planes follow each other; tokens with their axes side by side do not fit.",
        function, static_cast<long long>(axis_stride), tokens);
  }
};

/// Dense planes, [axes, tokens]; tokens may count a whole batch. Throws rotary::error if the sizes multiply beyond the
/// address space.
template <class P>
position_planes<P> axis_major(const P* first, std::size_t axes, std::size_t tokens) {
  if (axes != 0 && tokens > static_cast<std::size_t>(-1) / 2 / sizeof(P) / axes) {
    detail::fail("rotary::axis_major: tokens is %zu; %zu planes of that many do not fit into memory.", tokens, axes);
  }
  return {first, axes, tokens, static_cast<std::ptrdiff_t>(tokens)};
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
