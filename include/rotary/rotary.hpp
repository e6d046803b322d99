// Rotary position embedding (RoPE) for the CPU. Four nouns and one verb:
//
//     scaling + rotary_dim + theta ──> spectrum ──> table ──> rotate(tensor_view)
//              (policy)               inv_freq,    cos|sin    in place, or from one tensor to another
//                                     magnitude    rows
//
//     // Llama-3.1-8B
//     const auto spectrum = rotary::make_spectrum(128, 500000.0, rotary::llama3{8.0, 1.0, 4.0, 8192});
//     const rotary::table<float> table(spectrum, 8192);                      // positions 0 .. 8191
//     rotary::rotate(rotary::bshd(q, 1, tokens, 32, 128), table, first_position);
//     rotary::rotate(rotary::bshd(k, 1, tokens,  8, 128), table, first_position);
//
//     // an engine with its own batches: any positions, no largest length
//     rotary::step_table step(spectrum);
//     step.assign(position_ids, tokens);                                     // once per forward pass
//     for (auto& layer : layers) rotary::rotate(rotary::thd(layer.q, tokens, 32, 128), step);
//
// A header each: scaling.hpp (policies), spectrum.hpp, angles.hpp, axes.hpp (tokens with several positions: images,
// video), table.hpp, positions.hpp, tensor.hpp, layout.hpp, rotate.hpp, types.hpp (float16, bfloat16, your own types),
// list.hpp, error.hpp, backend.hpp. Not included here, since not everybody needs them: kv_cache.hpp (append to a KV
// cache), kv_shift.hpp (keys at other positions, or of another spectrum), qk_norm.hpp (RMSNorm of heads and rotation in
// one), split_qkv.hpp (a packed projection), parallel.hpp and parallel/ (threads), position_maps.hpp (ids of
// Self-Extend, dual chunks, context parallelism), huggingface.hpp, gguf.hpp, gguf_file.hpp and rope_summary.hpp (what a
// model's files say), permute.hpp (weights), eigen.hpp; each includes what it needs.
#ifndef ROTARY_ROTARY_HPP
#define ROTARY_ROTARY_HPP

#include "angles.hpp"
#include "axes.hpp"
#include "backend.hpp"
#include "error.hpp"
#include "layout.hpp"
#include "list.hpp"
#include "positions.hpp"
#include "rotate.hpp"
#include "scaling.hpp"
#include "spectrum.hpp"
#include "table.hpp"
#include "tensor.hpp"
#include "types.hpp"

#endif
