// The policy that rope.scaling.* and the tensors of divisors of a GGUF file stand for.
#ifndef ROTARY_DETAIL_GGUF_SCALING_HPP
#define ROTARY_DETAIL_GGUF_SCALING_HPP

#include "../rope.hpp"
#include "gguf_architectures.hpp"
#include "gguf_settings.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Of the layers that have scaling. Every member throws error for what no policy of scaling.hpp can express.
class gguf_scaling {
 public:
  gguf_scaling(const gguf_settings& settings, unsigned traits) : file_(settings), traits_(traits) {
    read_factor();
    read_type();
    read_mscale_all_dim();
    // ggml's own multiplier, which it applies on top of what it knows of YaRN.
    attn_factor_ = file_.finite("rope.scaling.attn_factor").value_or(1.0);
    if (attn_factor_ <= 0.0) file_.refuse("rope.scaling.attn_factor", attn_factor_, "greater than 0");
  }

  /// The policy for a layer of these dimensions.
  scaling policy(std::size_t head_dim, std::size_t rotary_dim) const {
    const rule chosen = chosen_rule();
    if (chosen != rule::longrope && has("rope_factors_short.weight"))
      require_absent_tensor("rope_factors_short.weight");
    switch (chosen) {
      case rule::longrope:
        return long_factors(rotary_dim);
      case rule::divisors:
        return divisors(rotary_dim);
      case rule::ntk_alpha:
        return ntk_policy(head_dim, rotary_dim);
      case rule::yarn:
        return yarn_policy();
      case rule::linear:
        break;
    }
    refuse_attn_factor("this type of scaling");
    return factor_ == 1.0 ? scaling(none{}) : scaling(linear{factor_});
  }

  /// llama.cpp's kq_scale * sqrt(head_dim) in DeepSeek's graphs: what attn_factor came to without its cancelling of
  /// ggml's own multiplier, times g(mscale_all_dim), squared.
  double softmax_multiplier() const {
    if (!yarn_ || (traits_ & log_multiplier_tenth) == 0) return 1.0;
    return attn_factor_ * attn_factor_ * softmax_scale_multiplier(factor_, *mscale_all_dim_);
  }

  /// For people: what makes softmax_multiplier() other than 1.
  std::string softmax_source() const {
    return file_.full("rope.scaling.yarn_log_multiplier") + (attn_factor_ == 1.0 ? "" : ", rope.scaling.attn_factor");
  }

  /// For people: what says so.
  std::string source() const {
    switch (chosen_rule()) {
      case rule::longrope:
        return "tensor rope_factors_long.weight";
      case rule::divisors:
        return "tensor rope_freqs.weight";
      case rule::ntk_alpha:
        return file_.full("rope.scaling.alpha");
      case rule::yarn:
        return file_.full(gguf_scaling_type);
      case rule::linear:
        break;
    }
    if (type_ == "yarn") return file_.full("rope.scaling.yarn_ext_factor");
    if (file_.scaling_type) return file_.full(gguf_scaling_type);
    return factor_ == 1.0 ? "default: none" : file_.full(factor_key_);
  }

 private:
  enum class rule { longrope, divisors, ntk_alpha, yarn, linear };

  rule chosen_rule() const {
    if (has("rope_factors_long.weight") || type_ == "longrope") return rule::longrope;
    if (has("rope_freqs.weight") && !(yarn_ && all_ones("rope_freqs.weight"))) return rule::divisors;
    if (file_.finite("rope.scaling.alpha").value_or(0.0) != 0.0) return rule::ntk_alpha;
    return yarn_ ? rule::yarn : rule::linear;
  }

  bool has(const char* tensor) const { return file_.tensors.count(tensor) != 0; }

  void read_factor() {
    const std::optional<double> factor = file_.finite("rope.scaling.factor");
    const std::optional<double> old = file_.finite("rope.scale_linear");
    if (factor && old && *factor != *old) file_.refuse("rope.scale_linear", *old, "that of rope.scaling.factor");
    if (!factor && old) factor_key_ = "rope.scale_linear";
    factor_ = factor.value_or(old.value_or(0.0));
    // Below 1 the inverse must have been meant: no model is trained to shrink its context.
    if (factor_ != 0.0 && factor_ < 1.0) file_.refuse(factor_key_, factor_, "0 or at least 1");
    if (factor_ == 0.0) factor_ = 1.0;  // llama.cpp: not set
  }

  // ext_factor is how much of the ramp YaRN applies; below 0 it is not set.
  void read_type() {
    type_ = file_.scaling_type.value_or("linear");
    if (type_ != "none" && type_ != "linear" && type_ != "yarn" && type_ != "longrope") {
      fail(
          "rotary::from_gguf: \"%s\" is \"%s\"; it must be none, linear, yarn or longrope. Make a rotary::rope by hand "
          "for this model.",
          printable(file_.full(gguf_scaling_type)).c_str(), printable(type_).c_str());
    }
    if (type_ == "none" && factor_ != 1.0) file_.refuse(factor_key_, factor_, "1, as rope.scaling.type is none");
    const double ext = file_.finite("rope.scaling.yarn_ext_factor").value_or(-1.0);
    yarn_ = type_ == "yarn" && ext != 0.0;
    if (ext > 0.0 && ext != 1.0) file_.refuse("rope.scaling.yarn_ext_factor", ext, "0, 1, or negative for the default");
    for (const char* const key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
                                  "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}) {
      const std::optional<double> value = file_.finite(key);
      if (value && type_ != "yarn") file_.refuse(key, *value, "absent unless rope.scaling.type is yarn");
    }
  }

  void read_mscale_all_dim() {
    constexpr const char* key = "rope.scaling.yarn_log_multiplier";
    mscale_all_dim_ = file_.finite(key);
    if (!mscale_all_dim_) {
      if (!yarn_ || (traits_ & log_multiplier_tenth) == 0) return;
      fail(
          "rotary::from_gguf: \"%s\" is missing; it must be 0.1 * mscale_all_dim, which scales the softmax of this "
          "architecture. Convert the model anew.",
          printable(file_.full(key)).c_str());
    }
    if (*mscale_all_dim_ < 0.0) file_.refuse(key, *mscale_all_dim_, "at least 0");
    if ((traits_ & (log_multiplier_tenth | log_multiplier_plain)) == 0) {
      file_.refuse(key, *mscale_all_dim_, "absent: its unit is not known for this architecture");
    }
    if (!yarn_ && factor_ != 1.0) file_.refuse(key, *mscale_all_dim_, "absent unless rope.scaling.type is yarn");
    if ((traits_ & log_multiplier_tenth) != 0) *mscale_all_dim_ /= 0.1;
  }

  // Only YaRN and LongRoPE have a multiplier of cos and sin.
  void refuse_attn_factor(const char* where) const {
    if (attn_factor_ == 1.0) return;
    fail("rotary::from_gguf: \"%s\" is %.9g; it must be 1 with %s. It would multiply cos and sin.",
         printable(file_.full("rope.scaling.attn_factor")).c_str(), attn_factor_, where);
  }

  void require_no_other(const char* what) const {
    if (yarn_ || factor_ != 1.0) {
      fail(
          "rotary::from_gguf: \"%s\" is %.9g and the type %s beside %s; it must be 1 and not yarn. No policy combines "
          "them.",
          printable(file_.full(factor_key_)).c_str(), factor_, type_.c_str(), what);
    }
  }

  void require_no_alpha(const char* range) const {
    const double alpha = file_.finite("rope.scaling.alpha").value_or(0.0);
    if (alpha != 0.0) file_.refuse("rope.scaling.alpha", alpha, range);
  }

  [[noreturn]] void require_absent_tensor(const char* tensor) const {
    fail(
        "rotary::from_gguf: tensor \"%s\" is there; it must be absent %s \"rope_factors_long.weight\". Convert the "
        "model anew.",
        tensor, has("rope_factors_long.weight") ? "beside" : "without");
  }

  // One positive divisor of each pair.
  const std::vector<double>& checked(const char* tensor, std::size_t rotary_dim) const {
    const std::vector<double>& factors = file_.tensors.at(tensor);
    if (factors.size() != rotary_dim / 2) {
      fail(
          "rotary::from_gguf: tensor \"%s\" has %zu values; it must have %zu, half of the rotated channels. Convert "
          "the model anew.",
          tensor, factors.size(), rotary_dim / 2);
    }
    for (std::size_t j = 0; j < factors.size(); ++j) {
      if (is_moderate(factors[j]) && factors[j] > 0.0) continue;
      fail("rotary::from_gguf: value %zu of tensor \"%s\" is %.9g; it must be from 1e-60 to 1e60. The file is damaged.",
           j, tensor, factors[j]);
    }
    return factors;
  }
  bool all_ones(const char* tensor) const {
    for (const double factor : file_.tensors.at(tensor)) {
      if (factor != 1.0) return false;
    }
    return true;
  }

  // ggml divides the angle by the pair's divisor and multiplies it by 1 / factor.
  scaling divisors(std::size_t rotary_dim) const {
    if (yarn_) require_no_other("tensor rope_freqs.weight");
    require_no_alpha("absent beside tensor rope_freqs.weight");
    refuse_attn_factor("tensor rope_freqs.weight");
    std::vector<double> factors = checked("rope_freqs.weight", rotary_dim);
    for (double& factor : factors) factor *= factor_;
    return frequency_factors{factors};
  }

  scaling long_factors(std::size_t rotary_dim) const {
    require_no_other("LongRoPE");
    require_no_alpha("absent beside LongRoPE");
    if (has("rope_freqs.weight")) require_absent_tensor("rope_freqs.weight");
    if (!has("rope_factors_long.weight")) {
      fail(
          "rotary::from_gguf: tensor \"rope_factors_long.weight\" is missing; it must be there as \"%s\" is longrope. "
          "Give the lookup access to the tensors.",
          printable(file_.full(gguf_scaling_type)).c_str());
    }
    const std::int64_t original = original_length();
    const std::int64_t trained = file_.length("context_length").value_or(original);
    const std::vector<double> none_short;
    const double factor = trained > original ? static_cast<double>(trained) / static_cast<double>(original) : 1.0;
    const longrope_magnitude magnitude = longrope_magnitude::exactly(attn_factor_);
    return longrope{factor,
                    original,
                    has("rope_factors_short.weight") ? checked("rope_factors_short.weight", rotary_dim) : none_short,
                    checked("rope_factors_long.weight", rotary_dim),
                    magnitude,
                    magnitude};
  }

  scaling ntk_policy(std::size_t head_dim, std::size_t rotary_dim) const {
    const double alpha = *file_.finite("rope.scaling.alpha");
    if (alpha < 0.0) file_.refuse("rope.scaling.alpha", alpha, "at least 0");
    require_no_other("rope.scaling.alpha");
    refuse_attn_factor("rope.scaling.alpha");
    if (head_dim != rotary_dim) {
      fail(
          "rotary::from_gguf: \"%s\" is %.9g with %zu of %zu channels rotated; it must be absent unless all are: "
          "llama.cpp's exponent has the head's channels. Make a rotary::rope by hand for this model.",
          printable(file_.full("rope.scaling.alpha")).c_str(), alpha, rotary_dim, head_dim);
    }
    return ntk{alpha};
  }

  scaling yarn_policy() const {
    yarn policy{factor_, original_length()};
    policy.beta_fast = file_.finite("rope.scaling.yarn_beta_fast").value_or((traits_ & yarn_grok) != 0 ? 8.0 : 32.0);
    policy.beta_slow = file_.finite("rope.scaling.yarn_beta_slow").value_or(1.0);
    policy.truncate = (traits_ & yarn_untruncated) == 0;
    if (mscale_all_dim_.value_or(0.0) != 0.0) {
      // DeepSeek's models have mscale = mscale_all_dim, which the file does not repeat; Mistral's have 1.
      const double mscale = (traits_ & log_multiplier_tenth) != 0 ? *mscale_all_dim_ : 1.0;
      policy.magnitude = yarn_magnitude::mscale_ratio(mscale, *mscale_all_dim_);
    }
    const double multiplier = attn_factor_ * yarn_attn_factor(policy.magnitude.value(factor_));
    if (multiplier != 1.0) policy.magnitude = yarn_magnitude::exactly(policy.magnitude.value(factor_) * multiplier);
    return policy;
  }

  // What yarn_attn_factor adds to `magnitude`. Converters write the final multiplier of transformers' attention_factor
  // there, Grok's a multiple of 0.1 ln s + 1, and llama.cpp overwrites both.
  double yarn_attn_factor(double magnitude) const {
    constexpr const char* key = "rope.scaling.yarn_attn_factor";
    const std::optional<double> value = file_.finite(key);
    if (!value) return 1.0;
    if (*value <= 0.0) file_.refuse(key, *value, "greater than 0");
    if ((traits_ & yarn_grok) != 0) return *value;
    const double share = *value / magnitude;
    if ((traits_ & yarn_factor_is_final) != 0) return share;
    if (share > 1.0 - 0x1p-22 && share < 1.0 + 0x1p-22) return 1.0;  // all readings agree: it is the default, in float
    fail(
        "rotary::from_gguf: \"%s\" is %.9g; it must be %.9g, 0.1 ln(factor) + 1, or absent. Some writers mean the "
        "final multiplier of cos and sin, others a multiple of that. Make a rotary::rope by hand for this model.",
        printable(file_.full(key)).c_str(), *value, magnitude);
  }

  std::int64_t original_length() const {
    constexpr const char* key = "rope.scaling.original_context_length";
    constexpr std::int64_t most = std::int64_t{1} << 53;
    const std::optional<std::int64_t> stated = file_.integer(key, 1, most);
    const std::optional<std::int64_t> trained = stated ? stated : file_.integer("context_length", 1, most);
    if (!trained) {
      fail(
          "rotary::from_gguf: \"%s\" is missing; %s scaling needs the number of tokens trained on first. Correct the "
          "file.",
          printable(file_.full(key)).c_str(), type_.c_str());
    }
    return *trained;
  }

  const gguf_settings& file_;
  unsigned traits_;
  const char* factor_key_ = "rope.scaling.factor";
  double factor_ = 1.0;
  std::string type_;
  bool yarn_ = false;
  std::optional<double> mscale_all_dim_;
  double attn_factor_ = 1.0;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
