// The numbers that GGUF files use for types, and how many bytes each takes.
#ifndef ROTARY_DETAIL_GGUF_TYPES_HPP
#define ROTARY_DETAIL_GGUF_TYPES_HPP

#include <cstddef>
#include <cstdint>

#include "config.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Types of values, by their numbers in the file.
enum class gguf_type : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64
};

namespace detail {

constexpr std::uint32_t gguf_type_count = 13;

inline const char* gguf_type_name(gguf_type type) {
  static constexpr const char* names[gguf_type_count] = {"uint8",  "int8",    "uint16",  "int16",  "uint32",
                                                         "int32",  "float32", "boolean", "string", "array",
                                                         "uint64", "int64",   "float64"};
  return names[static_cast<std::uint32_t>(type)];
}

/// Bytes of a number or boolean; for a string the least it takes, its length.
inline std::size_t gguf_type_size(gguf_type type) {
  static constexpr unsigned char sizes[gguf_type_count] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return sizes[static_cast<std::uint32_t>(type)];
}

/// Elements of a tensor are stored in blocks of `elements` that take `bytes`.
struct ggml_block {
  std::uint32_t type;  // ggml_type's number
  const char* name;
  std::uint32_t elements;
  std::uint32_t bytes;
};

/// Null for a number that is not known here: types are added to ggml every few months.
inline const ggml_block* find_ggml_block(std::uint32_t type) {
  static constexpr ggml_block blocks[] = {
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
      {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
      {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
      {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};
  for (const ggml_block& block : blocks) {
    if (block.type == type) return &block;
  }
  return nullptr;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
