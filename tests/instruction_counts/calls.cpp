// Fixed calls, each in a function of its own, whose instructions count.py counts. The argument is the backend.
#include <cstdio>
#include <cstring>
#include <rotary/rotary.hpp>
#include <vector>

namespace {

#define MEASURED extern "C" __attribute__((noinline, used)) void

constexpr rotary::pairing half = rotary::pairing::split_half, interleaved = rotary::pairing::interleaved;

// Large enough for 8 tokens of 40 heads of 192 doubles; all zero, which takes as many instructions as anything else.
std::vector<double> memory(2 * 8 * 40 * 192);

template <class T>
T* source() {
  return reinterpret_cast<T*>(memory.data());
}
template <class T>
T* destination() {
  return reinterpret_cast<T*>(memory.data() + memory.size() / 2);
}

const rotary::spectrum& spectrum(std::size_t rotary_dim) {
  static const rotary::spectrum full = rotary::make_spectrum(128, 500000.0), partial = rotary::make_spectrum(20, 1e4);
  return rotary_dim == 128 ? full : partial;
}

const rotary::table<float>& rows(std::size_t rotary_dim) {
  static const rotary::table<float> full(spectrum(128), 64), partial(spectrum(20), 64);
  return rotary_dim == 128 ? full : partial;
}

rotary::step_table<float>& step() {
  static rotary::step_table<float> made(spectrum(128));
  return made;
}

template <class T>
void dense(std::size_t tokens, rotary::pairing how) {
  rotary::rotate(rotary::thd(source<T>(), tokens, 40, 128), rows(128), 3, how);
}

}  // namespace

MEASURED f32_half_one_head() { rotary::rotate(rotary::thd(source<float>(), 1, 1, 128), rows(128), 3, half); }
MEASURED f32_half_1_token() { dense<float>(1, half); }
MEASURED f32_half_8_tokens() { dense<float>(8, half); }
MEASURED f32_interleaved_1_token() { dense<float>(1, interleaved); }
MEASURED f32_interleaved_8_tokens() { dense<float>(8, interleaved); }
MEASURED f64_half_8_tokens() { dense<double>(8, half); }
MEASURED bf16_half_8_tokens() { dense<rotary::bfloat16>(8, half); }
MEASURED bf16_interleaved_8_tokens() { dense<rotary::bfloat16>(8, interleaved); }
MEASURED f16_half_8_tokens() { dense<rotary::float16>(8, half); }
MEASURED f16_interleaved_8_tokens() { dense<rotary::float16>(8, interleaved); }

MEASURED f32_half_20_of_80() { rotary::rotate(rotary::thd(source<float>(), 8, 40, 80), rows(20), 3, half); }
MEASURED f32_interleaved_20_of_80() {
  rotary::rotate(rotary::thd(source<float>(), 8, 40, 80), rows(20), 3, interleaved);
}
MEASURED f32_half_bhsd() { rotary::rotate(rotary::bhsd(source<float>(), 1, 40, 8, 128), rows(128), 3, half); }
MEASURED f32_half_packed_qkv() {
  rotary::rotate(rotary::heads(rotary::thd(source<float>(), 8, 48, 128), 32, 8), rows(128), 3, half);
}
MEASURED f32_half_channel_slice() {
  rotary::rotate(rotary::channels(rotary::thd(source<float>(), 8, 40, 192), 64, 128), rows(128), 3, half);
}
MEASURED f32_half_slice_2_of_3() {
  rotary::rotate(rotary::thd(source<float>(), 8, 40, 128), rows(128), 3, half, {1, 3});
}
MEASURED f32_to_f32_half() {
  rotary::rotate(rotary::thd(source<float>(), 8, 40, 128), rotary::thd(destination<float>(), 8, 40, 128), rows(128), 3,
                 half);
}
MEASURED f32_to_bf16_interleaved_to_half() {
  rotary::rotate(rotary::thd(source<float>(), 8, 40, 128), rotary::thd(destination<rotary::bfloat16>(), 8, 40, 128),
                 rows(128), 3, rotary::layout(interleaved, 0, half));
}

MEASURED range_table_1024_rows() { const rotary::table<float> made(spectrum(128), 1024); }
MEASURED step_row_small_position() {
  const std::int64_t position = 60000;
  step().assign(&position, 1);
}
MEASURED step_row_32_bit_position() {
  const std::int64_t position = 2000000000;
  step().assign(&position, 1);
}

using call = void (*)();

constexpr call calls[] = {f32_half_one_head,
                          f32_half_1_token,
                          f32_half_8_tokens,
                          f32_interleaved_1_token,
                          f32_interleaved_8_tokens,
                          f64_half_8_tokens,
                          bf16_half_8_tokens,
                          bf16_interleaved_8_tokens,
                          f16_half_8_tokens,
                          f16_interleaved_8_tokens,
                          f32_half_20_of_80,
                          f32_interleaved_20_of_80,
                          f32_half_bhsd,
                          f32_half_packed_qkv,
                          f32_half_channel_slice,
                          f32_half_slice_2_of_3,
                          f32_to_f32_half,
                          f32_to_bf16_interleaved_to_half,
                          range_table_1024_rows,
                          step_row_small_position,
                          step_row_32_bit_position};

// The first round makes the tables, finds out about the CPU, and links functions; it is not counted.
__attribute__((noinline)) void first_round() {
  for (const call each : calls) each();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const rotary::backend wanted = std::strcmp(argv[1], "avx2") == 0 ? rotary::backend::avx2 : rotary::backend::baseline;
  if (!rotary::detail::backend_available(wanted)) {
    std::puts("unavailable");
    return 0;
  }
  rotary::detail::force_backend(wanted);
  first_round();
  for (const call each : calls) each();
}
