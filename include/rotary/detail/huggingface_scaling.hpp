// A rope_scaling or rope_parameters block -> a scaling policy. A block's every key is read, passed over by name here,
// or refused by huggingface.hpp.
#ifndef ROTARY_DETAIL_HUGGINGFACE_SCALING_HPP
#define ROTARY_DETAIL_HUGGINGFACE_SCALING_HPP

#include "huggingface_keys.hpp"
#include "huggingface_models.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// What a policy takes from outside its block.
struct scaling_context {
  const config_object& config;
  std::optional<std::int64_t> max_position_embeddings;
};

/// Keys that blocks carry without a bearing on the rotation.
inline constexpr const char* foreign_scaling_keys[] = {
    "finetuned",                // llama.cpp's note that the model was trained with the scaling
    "max_position_embeddings",  // Ministral-3 repeats the config's own
};

inline double required_factor(const config_object& block, double least = 0.0) {
  const std::optional<double> factor = block.positive("factor");
  if (!factor) refuse_missing(block.path_of("factor"), "state how many times the context grows");
  if (*factor < least) {
    block.refuse_value("factor", "it must be at least 1. It is not the inverse");
  }
  return *factor;
}

inline std::int64_t required_max_position(const config_object& block, const scaling_context& context) {
  if (!context.max_position_embeddings) {
    refuse_missing("max_position_embeddings", "the scaling of " + block.path() + " needs it");
  }
  return *context.max_position_embeddings;
}

/// The length trained on. A value beside the block wins over one in it, as in transformers.
inline std::optional<std::int64_t> original_length(const config_object& block, const scaling_context& context) {
  const std::optional<std::int64_t> inside = block.length("original_max_position_embeddings");
  const std::optional<std::int64_t> beside = context.config.length("original_max_position_embeddings");
  return beside ? beside : inside;
}

inline std::int64_t required_original_length(const config_object& block, const scaling_context& context) {
  const std::optional<std::int64_t> original = original_length(block, context);
  if (!original) {
    refuse_missing(block.path_of("original_max_position_embeddings"),
                   "state the context that the model was trained on");
  }
  return *original;
}

inline scaling read_llama3(const config_object& block, const scaling_context& context) {
  const double factor = required_factor(block, 1.0);
  const std::optional<double> low = block.positive("low_freq_factor"), high = block.positive("high_freq_factor");
  if (!low) refuse_missing(block.path_of("low_freq_factor"), "Llama-3.1 has 1");
  if (!high) refuse_missing(block.path_of("high_freq_factor"), "Llama-3.1 has 4");
  if (*high < *low) {
    block.refuse_value("high_freq_factor", "it must be at least low_freq_factor, " + std::to_string(*low));
  }
  // Llama-4 Scout has 1 and 1, which leave no ramp. The policy wants one: with the next number up no pair falls into
  // it.
  const double above = *low * (1.0 + 0x1p-52);
  return llama3{factor, *low, *high > above ? *high : above, required_original_length(block, context)};
}

/// With one of mscale and mscale_all_dim alone, transformers and DeepSeek's own code differ, but for an mscale of 1.
inline yarn_magnitude read_yarn_magnitude(const config_object& block, double factor) {
  const std::optional<double> attention_factor = block.positive("attention_factor");
  const double mscale = block.number("mscale").value_or(0.0);
  const double mscale_all_dim = block.number("mscale_all_dim").value_or(0.0);
  const double attn_factor = block.positive("attn_factor").value_or(1.0);
  if (attention_factor && block.has("attn_factor")) {
    if (attn_factor == *attention_factor) return yarn_magnitude::exactly(*attention_factor);
    block.refuse_value("attn_factor", "it must equal attention_factor. Remove one");
  }
  yarn_magnitude magnitude = yarn_magnitude::paper();
  if (attention_factor) {
    magnitude = yarn_magnitude::exactly(*attention_factor);
  } else if (!block.flag("apply_yarn_scaling").value_or(true)) {
    magnitude = yarn_magnitude::one();
  } else if (mscale == 1.0 && mscale_all_dim == 0.0) {
    magnitude = yarn_magnitude::paper();
  } else if (mscale < 0.0 || mscale_all_dim < 0.0 || (mscale == 0.0) != (mscale_all_dim == 0.0)) {
    refuse(block.path_of("mscale"), std::to_string(mscale) + " beside mscale_all_dim " + std::to_string(mscale_all_dim),
           "both must be greater than 0, or neither stated. Engines differ here: state attention_factor");
  } else if (mscale > 0.0) {
    magnitude = yarn_magnitude::mscale_ratio(mscale, mscale_all_dim);
  }
  if (attn_factor == 1.0) return magnitude;
  return yarn_magnitude::exactly(attn_factor * magnitude.value(factor));
}

inline scaling read_yarn(const config_object& block, const scaling_context& context) {
  const std::optional<std::int64_t> stated = original_length(block, context);
  const std::int64_t original = stated ? *stated : required_max_position(block, context);
  // A factor of null is the ratio of the lengths; what the ratio stands for needs both of them.
  double factor = 0.0;
  if (!block.has("factor") && stated && block.raw().contains("factor")) {
    factor = static_cast<double>(required_max_position(block, context)) / static_cast<double>(original);
  } else {
    factor = required_factor(block, 1.0);
  }
  yarn policy{factor, original};
  // transformers takes a beta of 0 for one that is not stated.
  const double beta_fast = block.number("beta_fast").value_or(0.0), beta_slow = block.number("beta_slow").value_or(0.0);
  if (beta_fast != 0.0) policy.beta_fast = beta_fast;
  if (beta_slow != 0.0) policy.beta_slow = beta_slow;
  policy.truncate = block.flag("truncate").value_or(true);
  policy.magnitude = read_yarn_magnitude(block, factor);
  if (block.number("extrapolation_factor").value_or(1.0) != 1.0) {
    block.refuse_value("extrapolation_factor", "it must be 1");
  }
  return policy;
}

inline scaling read_longrope(const config_object& block, const scaling_context& context) {
  longrope policy{1.0, 1, {}, {}};
  const std::optional<std::vector<double>> long_factor = block.numbers("long_factor");
  if (!long_factor) refuse_missing(block.path_of("long_factor"), "longrope needs a divisor for each pair");
  policy.long_factor = *long_factor;
  if (const auto short_factor = block.numbers("short_factor")) {
    if (short_factor->empty()) block.refuse_value("short_factor", "it must have a divisor for each pair");
    policy.short_factor = *short_factor;
  }
  policy.original_max_position_embeddings = required_original_length(block, context);
  if (const auto factor = block.positive("factor")) {
    policy.factor = *factor;
  } else {
    policy.factor = static_cast<double>(required_max_position(block, context)) /
                    static_cast<double>(policy.original_max_position_embeddings);
  }
  const auto both = block.positive("attention_factor");
  const auto of_short = block.positive("short_mscale"), of_long = block.positive("long_mscale");
  if (both && (of_short || of_long)) {
    block.refuse_value("attention_factor", "it must not stand beside short_mscale or long_mscale");
  }
  if (both || of_short) policy.short_magnitude = longrope_magnitude::exactly(both ? *both : *of_short);
  if (both || of_long) policy.long_magnitude = longrope_magnitude::exactly(both ? *both : *of_long);
  return policy;
}

/// Hunyuan writes its fixed alpha as "dynamic", and beside it keys of yarn that its code never reads.
inline scaling read_dynamic(const config_object& block, const scaling_context& context) {
  if (const std::optional<double> alpha = block.positive("alpha")) {
    if (block.number("factor").value_or(1.0) != 1.0) {
      block.refuse_value("factor", "it must be 1 beside alpha");
    }
    for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) block.pass_over(key);
    return ntk{*alpha};
  }
  const std::int64_t max_position = required_max_position(block, context);
  const std::optional<std::int64_t> original = block.length("original_max_position_embeddings");
  if (original && *original != max_position) {
    block.refuse_value("original_max_position_embeddings", "beside dynamic it must equal max_position_embeddings, " +
                                                               std::to_string(max_position) +
                                                               ". Engines differ in which of them starts the scaling");
  }
  return dynamic_ntk{required_factor(block, 1.0), max_position};
}

/// rope_type wins over type where they differ, as in transformers.
inline std::string rope_type_of(const config_object& block) {
  const std::optional<std::string> rope_type = block.word("rope_type"), type = block.word("type");
  return rope_type ? *rope_type : type.value_or("default");
}

inline scaling read_scaling(const config_object& block, const scaling_context& context, peculiarity special) {
  std::string type = rope_type_of(block);
  for (const char* key : foreign_scaling_keys) block.pass_over(key);
  if (type == "yarn" && special == peculiarity::phi3_su && block.has("long_factor")) type = "longrope";
  if (type == "yarn") return read_yarn(block, context);
  if (type == "longrope" || type == "su") return read_longrope(block, context);
  if (type == "llama3") return read_llama3(block, context);
  if (type == "dynamic" || type == "xdrope") return read_dynamic(block, context);
  if (type == "proportional") {
    proportional policy;
    if (const auto factor = block.positive("factor")) policy.factor = *factor;
    return policy;  // huggingface.hpp adds partial_rotary_factor
  }
  block.pass_over("original_max_position_embeddings");
  if (type == "default" || type == "mrope") return none{};
  if (type == "linear") return linear{required_factor(block, 1.0)};
  if (type == "ntk") {
    const double factor = required_factor(block);
    const std::optional<double> mixed_b = block.number("mixed_b");
    if (mixed_b && *mixed_b < 0.0) block.refuse_value("mixed_b", "it must be at least 0");
    return mixed_b ? scaling(ntk_mixed{factor, *mixed_b}) : scaling(ntk_fixed{factor});
  }
  block.refuse_value(
      block.has("rope_type") ? "rope_type" : "type",
      "known are default, linear, dynamic, ntk, yarn, longrope, su, llama3, proportional, mrope and xdrope");
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
