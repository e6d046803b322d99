// Large calls treat memory otherwise (memory_habits). Here all calls do, and must not change a single bit.
#include "memory_habits.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <rotary/rotary.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "guarded.hpp"
#include "reference.hpp"

namespace {

using rotary::detail::memory_habits;

struct shape {
  std::size_t batch, tokens, heads, head_dim, rotary_dim, offset;
  std::size_t size() const { return batch * tokens * heads * head_dim; }
};

// Blocks that fill whole lines, blocks that do not, channels that do not rotate, one head, heads farther apart than the
// caches' lines are many.
constexpr shape shapes[] = {{1, 9, 4, 128, 128, 0}, {2, 3, 5, 64, 64, 0},     {1, 7, 3, 192, 64, 128},
                            {1, 5, 3, 96, 96, 0},   {2, 4, 3, 80, 40, 8},     {1, 33, 1, 256, 256, 0},
                            {1, 6, 2, 192, 64, 66}, {1, 3, 2, 4096, 4096, 0}, {1, 5, 3, 128, 40, 0}};

template <class From, class To>
struct pair_of_types {
  using from = From;
  using to = To;
};

template <class Pair>
class MemoryHabits : public testing::Test {
 protected:
  using From = typename Pair::from;
  using To = typename Pair::to;
  using Row = std::conditional_t<std::is_same<From, double>::value, double, float>;

  // What one call leaves in and around a destination that starts `shift` numbers after a line's begin.
  static std::vector<To> result(const shape& of, const rotary::layout& how, bool head_major, std::size_t shift,
                                const rotary::table<Row>& table, const memory_habits& of_call) {
    const habits::for_a_while meanwhile(of_call);
    reference::random_bits random(7);
    std::vector<From> from(of.size());
    for (From& x : from) x = static_cast<From>(static_cast<float>(random.next_unit()));
    constexpr std::size_t line = 64 / sizeof(To);
    std::vector<To> to(of.size() + 3 * line, To(0.25f));
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(to.data());
    To* const start = to.data() + (64 - address % 64) % 64 / sizeof(To) + shift;
    const auto view = [&](auto* data) {
      return head_major ? rotary::bhsd(data, of.batch, of.heads, of.tokens, of.head_dim)
                        : rotary::bshd(data, of.batch, of.tokens, of.heads, of.head_dim);
    };
    rotary::rotate(view(static_cast<const From*>(from.data())), view(start), table, 130901, how);
    std::vector<To> everything(start - shift, start - shift + of.size() + 2 * line);
    return everything;
  }
};

using Pairs = testing::Types<pair_of_types<float, float>, pair_of_types<float, rotary::bfloat16>,
                             pair_of_types<rotary::bfloat16, rotary::bfloat16>, pair_of_types<double, double>>;
class names_of_pairs {
 public:
  template <class Pair>
  static std::string GetName(int index) {
    return std::to_string(index) + "_" + std::to_string(8 * sizeof(typename Pair::from)) + "_to_" +
           std::to_string(8 * sizeof(typename Pair::to)) + "_bits";
  }
};
TYPED_TEST_SUITE(MemoryHabits, Pairs, names_of_pairs);

TYPED_TEST(MemoryHabits, ChangeNoBit) {
  constexpr std::size_t element = sizeof(typename TypeParam::to);
  for (const shape& of : shapes) {
    const rotary::table<typename TestFixture::Row> table(rotary::make_spectrum(of.rotary_dim, 10000.0), 64, 130900);
    for (const rotary::pairing how : {rotary::pairing::split_half, rotary::pairing::interleaved}) {
      for (const bool head_major : {false, true}) {
        for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
          SCOPED_TRACE(testing::Message()
                       << "[" << of.batch << ", " << of.tokens << ", " << of.heads << ", " << of.head_dim
                       << "], rotary_dim " << of.rotary_dim << ", offset " << of.offset << ", heads before tokens "
                       << head_major << ", shifted by " << shift);
          backends::on_each([&](rotary::backend) {
            const rotary::layout layout(how, of.offset);
            const auto plain = TestFixture::result(of, layout, head_major, shift, table, habits::all[0]);
            for (const memory_habits& careful_habits : habits::all) {
              const auto careful = TestFixture::result(of, layout, head_major, shift, table, careful_habits);
              EXPECT_EQ(0, std::memcmp(plain.data(), careful.data(), plain.size() * element))
                  << "habits " << &careful_habits - habits::all;
            }
          });
        }
      }
    }
  }
}

// In place there is nothing to write past the caches, but lines to ask for: also beyond the end of the tensor. The last
// vectors of rows overlap those before them, and must be loaded before those are stored. Slices take other loops, too.
TEST(MemoryHabitsInPlace, ChangeNoBit) {
  for (const shape& of : shapes) {
    const rotary::table<float> table(rotary::make_spectrum(of.rotary_dim, 10000.0), 64, 130900);
    for (const rotary::pairing how : {rotary::pairing::split_half, rotary::pairing::interleaved}) {
      for (const bool head_major : {false, true}) {
        const auto rotated = [&](const memory_habits& of_call, std::size_t slices) {
          const habits::for_a_while meanwhile(of_call);
          reference::random_bits random(8);
          std::vector<float> x;
          for (std::size_t i = 0; i < of.size(); ++i) x.push_back(static_cast<float>(random.next_unit()));
          const auto view = head_major ? rotary::bhsd(x.data(), of.batch, of.heads, of.tokens, of.head_dim)
                                       : rotary::bshd(x.data(), of.batch, of.tokens, of.heads, of.head_dim);
          for (std::size_t i = 0; i < slices; ++i) {
            rotary::rotate(view, table, 130901, rotary::layout(how, of.offset), rotary::slice{i, slices});
          }
          return x;
        };
        backends::on_each([&](rotary::backend) {
          const std::vector<float> plain = rotated(habits::all[0], 1);
          for (const memory_habits& careful_habits : habits::all) {
            for (const std::size_t slices : {std::size_t{1}, std::size_t{4}}) {
              const std::vector<float> careful = rotated(careful_habits, slices);
              EXPECT_EQ(0, std::memcmp(plain.data(), careful.data(), of.size() * sizeof(float)))
                  << of.head_dim << " " << of.rotary_dim << " heads before tokens " << head_major << ", habits "
                  << &careful_habits - habits::all << ", slices " << slices;
            }
          }
        });
      }
    }
  }
}

// A broadcast source has a head stride of 0, by which no distance may be divided.
TEST(MemoryHabitsOfCopies, TakeABroadcastSource) {
  constexpr std::size_t tokens = 5, heads = 3, dim = 64;
  const rotary::table<float> table(rotary::make_spectrum(dim, 10000.0), 16);
  std::vector<float> head(dim);
  reference::random_bits random(10);
  for (float& x : head) x = static_cast<float>(random.next_unit());
  const rotary::tensor_view<const float> repeated = {head.data(), 1, tokens, heads, dim, 0, 0, 0};
  const auto rotated = [&](const memory_habits& of_call) {
    const habits::for_a_while meanwhile(of_call);
    std::vector<float> to(tokens * heads * dim);
    rotary::rotate(repeated, rotary::bshd(to.data(), 1, tokens, heads, dim), table, 3);
    return to;
  };
  for (const memory_habits& of_call : habits::all) EXPECT_EQ(rotated(habits::all[0]), rotated(of_call));
}

// What calls prefetch, by the limits of Zen 5 in small: of dense, packed and head-major tensors of 4 heads.
TEST(MemoryHabitsOfJobs, PrefetchByKindAndSize) {
  memory_habits small;
  small.prefetch_near_from = small.prefetch_jumps_from = 2;
  small.prefetch_from = 14;
  small.prefetch_copies_from = 24;
  small.prefetch_dense_copies_until = 96;
  small.distance = 12288;
  small.near_distance = 1024;
  enum order { dense, packed, head_major };
  struct choice {
    bool in_place;
    order of;
    std::size_t element_size;
    double bytes;
    std::ptrdiff_t distance;  // 0: it prefetches nothing
    bool jumps;
  };
  const choice choices[] = {
      {true, dense, 4, 1, 0, false},       {true, dense, 4, 2, 1024, false},    {true, dense, 4, 13, 1024, false},
      {true, dense, 4, 14, 12288, false},  {true, packed, 4, 13, 0, false},     {true, packed, 4, 14, 12288, false},
      {true, head_major, 4, 13, 0, false}, {true, dense, 8, 13, 0, false},      {true, dense, 8, 14, 12288, false},
      {true, dense, 2, 1, 0, false},       {true, dense, 2, 13, 0, true},       {true, head_major, 2, 2, 0, true},
      {false, dense, 4, 23, 0, false},     {false, dense, 4, 24, 12288, false}, {false, dense, 4, 95, 12288, false},
      {false, dense, 4, 96, 0, false},     {false, packed, 4, 96, 12288, false}};
  for (const choice& expected : choices) {
    const std::ptrdiff_t token = expected.of == dense ? 4 * 64 : expected.of == packed ? 6 * 64 : 64;
    const std::ptrdiff_t head = expected.of == head_major ? 9 * 64 : 64;
    const rotary::detail::tensor_shape x = {64, expected.element_size, 1, 9, 4, 64, 0, token, head};
    const rotary::detail::rows_shape rows = {nullptr, nullptr, 9, 32, 32, 1, 0};
    rotary::detail::rotation_job job(x, x, rows, 0, {}, 1.0, 1.0);
    rotary::detail::choose_prefetch(job, expected.in_place, expected.bytes, small);
    SCOPED_TRACE(testing::Message() << "in place " << expected.in_place << ", order " << expected.of << ", "
                                    << expected.element_size << " bytes a number, " << expected.bytes << " in all");
    EXPECT_EQ(job.prefetch, expected.distance != 0);
    if (expected.distance != 0) {
      EXPECT_EQ(job.prefetch_distance, expected.distance);
    }
    EXPECT_EQ(job.prefetch_jumps, expected.jumps);
  }
}

// Rows of more pairs than are prepared at a time go in parts, each of which must stay within the tensor: here one that
// ends at a guard page.
TEST(MemoryHabitsInPlace, ReadNothingBeyondLongRows) {
  constexpr std::size_t tokens = 2, dim = 8192;
  const rotary::table<float> table(rotary::make_spectrum(dim, 10000.0), 8);
  for (const rotary::pairing how : {rotary::pairing::split_half, rotary::pairing::interleaved}) {
    backends::on_each([&](rotary::backend) {
      guarded::array<float> plain(tokens * dim), careful(tokens * dim);
      reference::random_bits random(9);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        plain[i] = careful[i] = static_cast<float>(random.next_unit());
      }
      rotary::rotate_adjoint(rotary::bshd(plain.data(), 1, tokens, 1, dim), table, 3, how);
      const habits::for_a_while meanwhile(habits::always(habits::in_order));
      rotary::rotate_adjoint(rotary::bshd(careful.data(), 1, tokens, 1, dim), table, 3, how);
      EXPECT_EQ(0, std::memcmp(plain.data(), careful.data(), plain.size() * sizeof(float)));
    });
  }
}

}  // namespace
